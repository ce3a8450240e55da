//! The file that is followed: every way in which it changes, and every way in which it is none.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use responses_bridge::app::Followed;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::client::Ask;
use crate::shared::turn;
use crate::world::{Setup, World, eventually};

/// A world that follows a file, which says what is in force already.
struct Following {
    world: World,
    folder: tempfile::TempDir,
    asked: Arc<Notify>,
}

const CLIENT: &str = r#"
[server]
admin_token = { file = "{folder}/token" }
[[clients]]
name = "alice"
key = { file = "{folder}/alice" }

[providers.openai]
base_url = "{openai}"
[[providers.openai.accounts]]
name = "main"
credential = { env = "ACCOUNT" }
"#;

impl Following {
    async fn start() -> Following {
        Following::at("bridge.toml", |_| String::new()).await
    }

    /// The file is called so in a folder of its own, where what `config` lays over the usual is as well.
    async fn at(name: &str, config: impl FnOnce(&Path) -> String) -> Following {
        let following = Following::written(name, config).await;
        let secrets = following.world.secrets.clone();
        following.world.app.follow(Followed {
            file: Some(following.path(name)),
            environment: Arc::new(move |name| secrets.get(name).cloned()),
            asked: following.asked.clone(),
        });
        following
    }

    /// The same, and nobody follows the file yet.
    async fn written(name: &str, config: impl FnOnce(&Path) -> String) -> Following {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup::new().config(&config(folder.path()));
        let world = setup.secret("ACCOUNT", "sk-account").start().await;
        let asked = Arc::new(Notify::new());
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &world.text).unwrap();
        Following { world, folder, asked }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self) -> PathBuf {
        self.path("bridge.toml")
    }

    /// The usual text with another deadline, which makes it another one.
    fn text(&self, idle: &str) -> String {
        format!("{}\n[watchdog]\nidle_deadline = \"{idle}\"\n", self.world.text)
    }

    /// The latest of so many reloads: what it changed.
    async fn reloaded(&self, times: usize) -> Value {
        self.world.saw("config_reloaded", times).await;
        let events = self.world.events("config_reloaded");
        assert_eq!(events.len(), times, "{events:?}");
        let last = events.last().unwrap();
        assert_eq!(last["needs_restart"], json!([]), "{last}");
        last["changed"].clone()
    }

    async fn rejected(&self, times: usize) -> Value {
        self.world.saw("config_rejected", times).await;
        let events = self.world.events("config_rejected");
        assert_eq!(events.len(), times, "{events:?}");
        events.last().unwrap().clone()
    }

    fn idle_deadline(&self) -> Duration {
        self.world.app.reloader().in_force().watchdog.idle_deadline
    }
}

fn idle() -> Value {
    json!(["watchdog.idle_deadline"])
}

/// [REL-5] A file that is written in place, renamed over, or written without a difference is read; what the bridge was started
/// with is not told of.
#[tokio::test]
async fn written_and_renamed() {
    let following = Following::start().await;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(
        following.world.events("config_reloaded").len(),
        0,
        "nothing has changed"
    );
    fs::write(following.file(), following.text("10m")).unwrap();
    assert_eq!(following.reloaded(1).await, idle());
    let fresh = following.path("fresh");
    fs::write(&fresh, following.text("11m")).unwrap();
    fs::rename(&fresh, following.file()).unwrap();
    assert_eq!(following.reloaded(2).await, idle());
    assert_eq!(following.idle_deadline(), Duration::from_secs(660));
    fs::write(following.file(), format!("# Mine.\n{}", following.text("11m"))).unwrap();
    assert_eq!(following.reloaded(3).await, json!([]));
}

/// [REL-5] What differs already when the file is looked at first is put in force.
#[tokio::test]
async fn changed_during_the_start() {
    let following = Following::start().await;
    fs::write(following.file(), following.text("10m")).unwrap();
    assert_eq!(following.reloaded(1).await, idle());
}

/// [REL-5] A link on the way to the file that becomes another one, as Kubernetes changes mounted configuration.
#[tokio::test]
async fn a_link_that_is_swapped() {
    let following = Following::written("..first/bridge.toml", |_| String::new()).await;
    // The folder of the mount: the file is a link to one below `..data`, which is a link to a folder of a version.
    symlink("..first", following.path("..data")).unwrap();
    symlink("..data/bridge.toml", following.file()).unwrap();
    let asked = Arc::new(Notify::new());
    let secrets = following.world.secrets.clone();
    following.world.app.follow(Followed {
        file: Some(following.file()),
        environment: Arc::new(move |name| secrets.get(name).cloned()),
        asked,
    });
    fs::create_dir(following.path("..second")).unwrap();
    fs::write(following.path("..second/bridge.toml"), following.text("10m")).unwrap();
    symlink("..second", following.path("..data_tmp")).unwrap();
    fs::rename(following.path("..data_tmp"), following.path("..data")).unwrap();
    assert_eq!(following.reloaded(1).await, idle());
    // Renamed over in the version's own folder: the link stays.
    fs::write(following.path("fresh"), following.text("11m")).unwrap();
    fs::rename(following.path("fresh"), following.path("..second/bridge.toml")).unwrap();
    assert_eq!(following.reloaded(2).await, idle());
}

/// [REL-5] A file that is being written for seconds is not applied before it is whole, although what is there is right.
#[tokio::test]
async fn half_written() {
    let following = Following::start().await;
    let mut text = following.text("10m");
    for n in 0..35 {
        text += &format!("# {n}\n");
        fs::write(following.file(), &text).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(following.world.events("config_reloaded").len(), 0);
    assert_eq!(following.reloaded(1).await, idle());
}

/// [REL-6] The file of a client's key, and that of the admin token: the new one is let in, the old one is not.
#[tokio::test]
async fn files_of_secrets() {
    let following = Following::at("bridge.toml", |folder| {
        fs::write(folder.join("alice"), "key-alice\n").unwrap();
        fs::write(folder.join("token"), "token-one\n").unwrap();
        CLIENT.replace("{folder}", folder.to_str().unwrap())
    })
    .await;
    let world = &following.world;
    let alice = |key: &str| turn("one", "").bearer(key);
    world.ask(&alice("key-alice")).await.completed();
    fs::write(following.path("fresh"), "key-fresh\n").unwrap();
    fs::rename(following.path("fresh"), following.path("alice")).unwrap();
    assert_eq!(following.reloaded(1).await, json!(["clients.alice.key"]));
    assert_eq!(world.ask(&alice("key-alice")).await.status, 401);
    world.ask(&alice("key-fresh")).await.completed();
    fs::write(following.path("token"), "token-two").unwrap();
    assert_eq!(following.reloaded(2).await, json!(["server.admin_token"]));
    let metrics = |token: &str| Ask::bare("GET", "/metrics").bearer(token);
    assert_eq!(world.ask(&metrics("token-one")).await.status, 401);
    assert_eq!(world.ask(&metrics("token-two")).await.status, 200);

    fs::remove_file(following.path("alice")).unwrap();
    let rejected = following.rejected(1).await;
    assert_eq!(
        (&rejected["reason"], &rejected["faults"]),
        (&json!("faulty"), &json!(1))
    );
    assert_eq!(rejected["key_path"], "clients[0].key.file");
    assert!(rejected["line"].as_u64().is_some());
    world.ask(&alice("key-fresh")).await.completed();
    fs::write(following.path("alice"), "key-fresh").unwrap();
    assert_eq!(following.reloaded(3).await, json!([]), "as it was");
    assert!(!format!("{:?}", world.lines()).contains("key-"), "no key is told");
}

/// [REL-7] What is no file, or none that can be read, changes nothing, is told once, and is waited for by nobody; when the file
/// is back, it is read.
#[tokio::test]
async fn what_cannot_be_read() {
    let following = Following::start().await;
    let file = following.file();
    let ask = || following.asked.notify_one();
    ask();
    assert_eq!(following.reloaded(1).await, json!([]));
    fs::remove_file(&file).unwrap();
    let rejected = following.rejected(1).await;
    assert_eq!(rejected["reason"], "unreadable");
    assert!(
        rejected.get("line").is_none() && rejected.get("key_path").is_none(),
        "{rejected}"
    );
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(following.world.events("config_rejected").len(), 1, "told once");

    let made = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let large = |path: &Path| fs::File::create(path).unwrap().set_len(100 << 20).unwrap();
    let kinds: [(&dyn Fn(&Path), &str); 4] = [
        (&|path| fs::create_dir(path).unwrap(), "unreadable"),
        (&made, "unreadable"),
        (&large, "unreadable"),
        (
            &|path| fs::write(path, "[server]\nlisten = \"\0\"\n").unwrap(),
            "faulty",
        ),
    ];
    for (number, (kind, reason)) in kinds.iter().enumerate() {
        kind(&file);
        ask();
        let rejected = following.rejected(2 + number).await;
        assert_eq!(rejected["reason"], *reason, "{number}");
        match file.is_dir() {
            true => fs::remove_dir(&file).unwrap(),
            false => fs::rename(&file, following.path("away")).unwrap(),
        }
    }
    let last = following.world.events("config_rejected");
    assert_eq!(last.last().unwrap()["line"], 2, "the NUL has a line");
    fs::write(&file, following.text("10m")).unwrap();
    assert_eq!(following.reloaded(2).await, idle());
    following.world.ask(&turn("one", "")).await.completed();
}

/// [REL-8] A file with faults keeps what is in force; the event names line and key of the first, once for each content. Mended,
/// it is put in force.
#[tokio::test]
async fn a_file_with_faults() {
    let following = Following::start().await;
    let lines = following.world.text.lines().count();
    let faulty = following.text("10m") + "ping_intervall = \"5s\"\n[session]\nmax_queue = -1\n";
    fs::write(following.file(), &faulty).unwrap();
    let rejected = following.rejected(1).await;
    assert_eq!(rejected["reason"], "faulty");
    assert_eq!(rejected["key_path"], "watchdog.ping_intervall");
    assert_eq!(rejected["line"], lines + 4);
    assert_eq!(rejected["faults"], 2);
    assert_ne!(
        following.idle_deadline(),
        Duration::from_secs(600),
        "nothing of it is in force"
    );
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(following.world.events("config_rejected").len(), 1, "told once");
    fs::write(following.file(), faulty + "# Another content, the same faults.\n").unwrap();
    following.rejected(2).await;
    following.asked.notify_one();
    following.rejected(3).await;
    fs::write(following.file(), following.text("10m")).unwrap();
    assert_eq!(following.reloaded(1).await, idle());
}

/// [REL-8] What a rejected file lacks may lie elsewhere: it is tried again, without being written again. A proxy that is in
/// force and answers no more is no reason to reject.
#[tokio::test]
async fn what_it_lacks_is_elsewhere() {
    let proxy = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = proxy.local_addr().unwrap();
    let text = format!(
        "[providers.openai]\nbase_url = \"{{openai}}\"\n[[providers.openai.accounts]]\nname = \"main\"\n\
         credential = {{ env = \"ACCOUNT\" }}\nproxy = \"http://{address}\"\n"
    );
    let following = Following::at("bridge.toml", |_| text).await;
    drop(proxy);
    fs::write(following.file(), following.text("10m")).unwrap();
    assert_eq!(following.reloaded(1).await, idle());

    let ca = following.path("company-ca.pem");
    let with_ca = following.text("11m").replace(
        "[providers.openai]",
        "[providers.openai]\nca_file = \"company-ca.pem\"",
    );
    fs::write(following.file(), with_ca).unwrap();
    let rejected = following.rejected(1).await;
    assert_eq!(rejected["key_path"], "providers.openai.ca_file");
    fs::write(ca, "-----BEGIN CERTIFICATE-----\n").unwrap();
    following.world.saw("config_reloaded", 2).await;
    let last = following.world.events("config_reloaded").pop().unwrap();
    assert_eq!(last["changed"], idle());
    assert_eq!(last["needs_restart"], json!(["providers.openai.ca_file"]));
}

/// [REL-9] Requests that come together are one, and each time there is an answer; a file that differs is applied at once.
#[tokio::test]
async fn asked_for() {
    let following = Following::start().await;
    for _ in 0..50 {
        following.asked.notify_one();
    }
    assert_eq!(following.reloaded(1).await, json!([]));
    fs::write(following.file(), following.text("10m")).unwrap();
    let began = tokio::time::Instant::now();
    following.asked.notify_one();
    eventually("it is read", || {
        following.world.events("config_reloaded").len() == 2
    })
    .await;
    println!("asked for and applied within {:?}", began.elapsed());
    assert_eq!(following.reloaded(2).await, idle());
}

/// [REL-9] A file that never comes to rest: whoever asks is told so, each time, and it is read when it does.
#[tokio::test]
async fn what_never_comes_to_rest() {
    let following = Following::start().await;
    let (file, text) = (following.file(), following.text("10m"));
    let stop = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (stop, fresh) = (stop.clone(), following.path("fresh"));
        move || {
            for round in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                // Whole at each look: a disk that is busy may leave a file empty that is written in place.
                fs::write(&fresh, format!("{text}# {round}\n")).unwrap();
                fs::rename(&fresh, &file).unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    });
    let world = &following.world;
    let answers = || world.events("config_reloaded").len() + world.events("config_rejected").len();
    let unsettled = || {
        let rejected = world.events("config_rejected");
        rejected
            .iter()
            .filter(|event| event["reason"] == "unsettled")
            .count()
    };
    // On a machine that is busy the writer itself may rest for a moment: then there is another answer.
    for _ in 0..20 {
        let before = answers();
        following.asked.notify_one();
        eventually("an answer", || answers() > before).await;
        if unsettled() > 0 {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert!(unsettled() > 0, "{:?}", world.events("config_rejected"));
    let in_force = || world.app.reloader().in_force().watchdog.idle_deadline;
    eventually("it is read", || in_force() == Duration::from_secs(600)).await;
}

/// [REL-9] During a drain nothing is read any more, and nothing is disturbed by what changes.
#[tokio::test]
async fn during_a_drain() {
    let following = Following::start().await;
    let asked = following.asked.clone();
    let (file, text) = (following.file(), following.text("10m"));
    let address = following.world.address;
    let running = turn("one", "sim:pause(after=1, for=1500ms)");
    let running = tokio::spawn(async move { running.ask(address).await });
    following.world.saw("turn_accepted", 1).await;
    let reloader = following.world.app.reloader();
    let Following { world, folder, .. } = following;
    let World { app, upstream, .. } = world;
    let draining = tokio::spawn(app.drain());
    fs::write(file, text).unwrap();
    for _ in 0..5 {
        asked.notify_one();
        // What holds the way to another configuration may still use it: that is as harmless.
        let mut config = reloader.in_force();
        config.watchdog.ping_interval += Duration::from_secs(1);
        config.session.idle_ttl = Duration::from_millis(10);
        reloader.reload(&config).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    running.await.unwrap().completed();
    draining.await.unwrap();
    assert_eq!(
        reloader.in_force().watchdog.idle_deadline,
        Duration::from_secs(900)
    );
    drop((upstream, folder));
}

/// [REL-9] Without a file, a request has the built-in configuration made anew; an answer comes all the same.
#[tokio::test]
async fn without_a_file() {
    let world = Setup::new().start().await;
    let asked = Arc::new(Notify::new());
    world.app.follow(Followed {
        file: None,
        environment: Arc::new(|name| (name == "HOME").then(|| "/home/tester".to_owned())),
        asked: asked.clone(),
    });
    asked.notify_one();
    world.saw("config_reloaded", 1).await;
    let event = world.events("config_reloaded").remove(0);
    assert_eq!(event["changed"], json!([]));
    let waits = event["needs_restart"].as_array().unwrap();
    assert!(
        waits.contains(&json!("server.listen")) && waits.contains(&json!("state.path")),
        "{event}"
    );
    world.ask(&turn("one", "")).await.completed();
}
