//! A thousand changes while clients run turns all the time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use responses_bridge::app::NotReloaded;
use tokio::runtime::Handle;

use crate::client::Ask;
use crate::world::{Setup, World, eventually};

/// Changes, and as many bad files in between as one in three makes.
const RELOADS: usize = 1000;
/// Memory may move by so much while there are twice as many, and no turns: what they would take is a multiple.
const SLACK: usize = 4 << 20;

const CONFIG: &str = r#"
[[clients]]
name = "alice"
key = { env = "ALICE" }
[[clients]]
name = "bob"
key = { env = "BOB" }

[session]
queue_wait = "20s"

[watchdog]
connect_deadline = "10s"

[providers.sockets]
base_url = "{openai}"
models = ["gpt-5"]
[[providers.sockets.accounts]]
name = "main"
credential = { env = "ONE" }
[[providers.sockets.accounts]]
name = "spare"
credential = { env = "TWO" }

[providers.direct]
base_url = "{openai}"
transport = "http"
models = ["o4-mini"]
[[providers.direct.accounts]]
name = "main"
credential = { env = "THREE" }
"#;

/// What differs from file to file: keys of every table that is live, caps and windows among them, a client that comes and
/// goes, and what a third of them needs a restart for.
fn variant(base: &str, number: usize) -> String {
    let mut table: toml::Table = base.parse().unwrap();
    let mut set = |table_name: &str, key: &str, value: toml::Value| {
        let inner = table
            .entry(table_name)
            .or_insert_with(|| toml::Table::new().into());
        inner.as_table_mut().unwrap().insert(key.to_owned(), value);
    };
    let seconds = |n: usize| toml::Value::from(format!("{}s", 60 + n % 7));
    let count = |n: usize| toml::Value::Integer(n.try_into().unwrap());
    set("watchdog", "response_created_deadline", seconds(number));
    set("watchdog", "ping_interval", seconds(number / 2));
    set("http", "between_events", seconds(number));
    set("quarantine", "window", seconds(number / 3));
    set("session", "max_sessions", count(3 + number % 50));
    set("session", "max_per_key", count(1 + number % 3));
    set(
        "session",
        "idle_ttl",
        if number.is_multiple_of(5) {
            "10ms".into()
        } else {
            seconds(number)
        },
    );
    set(
        "session",
        "max_age",
        if number.is_multiple_of(7) {
            "20ms".into()
        } else {
            seconds(number)
        },
    );
    set("affinity", "max_pins", count(2 + number % 9));
    set(
        "continuation",
        "enabled",
        toml::Value::Boolean(number.is_multiple_of(2)),
    );
    let strategies = ["priority", "round_robin", "least_in_flight", "power_of_two"];
    set("routing", "strategy", strategies[number % 4].into());
    set(
        "server",
        "heartbeat",
        toml::Value::from(format!("{}s", 1 + number % 9)),
    );
    if number.is_multiple_of(3) {
        set("state", "max_owners", count(1000 + number));
    }
    if number.is_multiple_of(100) {
        set("watchdog", "connect_deadline", "9s".into());
    }
    if number.is_multiple_of(2) {
        let carol = "x = { name = \"carol\", key = { env = \"CAROL\" } }"
            .parse::<toml::Table>()
            .unwrap();
        let clients = table.get_mut("clients").unwrap().as_array_mut().unwrap();
        clients.push(carol["x"].clone());
    }
    toml::to_string(&table).unwrap()
}

/// Files that must change nothing.
fn bad(base: &str, number: usize) -> String {
    match number % 4 {
        0 => base.replace("queue_wait", "queue_wayt"),
        1 => base[..base.len() / 2].to_owned() + "\n[[",
        2 => base.replace("20s", "20 days"),
        _ => base.replace("BOB", "NOBODY"),
    }
}

async fn served() -> World {
    let setup = Setup::new()
        .config(CONFIG)
        .secret("ALICE", "key-alice")
        .secret("BOB", "key-bob");
    let setup = setup
        .secret("CAROL", "key-carol")
        .secret("ONE", "sk-1")
        .secret("TWO", "sk-2");
    setup.secret("THREE", "sk-3").start().await
}

/// [REL-18] A thousand changes, bad files in between, while six clients run turns by sessions and by direct HTTP: no request
/// fails, nothing is left behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_reloads() {
    let setup = Setup::new()
        .config(CONFIG)
        .secret("ALICE", "key-alice")
        .secret("BOB", "key-bob");
    let setup = setup
        .secret("CAROL", "key-carol")
        .secret("ONE", "sk-1")
        .secret("TWO", "sk-2");
    let world = setup.secret("THREE", "sk-3").start().await;
    let stop = Arc::new(AtomicBool::new(false));
    let turns = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..6)
        .map(|n| tokio::spawn(run(&world, n, stop.clone(), turns.clone())))
        .collect();
    while turns.load(Ordering::Relaxed) < 20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let reloader = world.app.reloader();
    let (text, secrets) = (world.text.clone(), world.secrets.clone());
    let changing = tokio::task::spawn_blocking(move || {
        let environment = |name: &str| secrets.get(name).cloned();
        let file = |text: &str| reloader.load(Some((Path::new("world.toml"), text)), &environment);
        for number in 0..RELOADS {
            let reloaded = file(&variant(&text, number)).unwrap();
            assert!(reloaded.changed.len() > 5, "{number}: {reloaded:?}");
            assert_eq!(
                reloaded.needs_restart.is_empty(),
                !number.is_multiple_of(3),
                "{reloaded:?}"
            );
            if number.is_multiple_of(3) {
                let rejected = file(&bad(&text, number)).unwrap_err();
                assert!(matches!(rejected, NotReloaded::Faulty(_)), "{rejected:?}");
            }
            // Not so fast that no turn would be served in between.
            std::thread::sleep(Duration::from_millis(3));
        }
    });
    let before = turns.load(Ordering::Relaxed);
    changing.await.unwrap();
    let between = turns.load(Ordering::Relaxed) - before;
    assert!(between > 100, "{between} turns while it was changed");
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    println!("{RELOADS} reloads, {between} turns meanwhile");
    for outcome in world.events("turn_finished").iter().map(|turn| &turn["outcome"]) {
        assert_eq!(outcome, "completed");
    }

    // With every session closed there is no more than there was before the first client.
    let reloader = world.app.reloader();
    let mut config = reloader.in_force();
    config.session.idle_ttl = Duration::from_millis(1);
    reloader.reload(&config).unwrap();
    world
        .upstream_saw("no socket", |ledger| ledger.sockets_open == 0)
        .await;
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let files = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    // The listeners, the watches, and the pools of direct HTTP; a thousand of anything would show.
    eventually("no task is left", || tasks() < 60).await;
    eventually("no file is left", || files() < 120).await;
}

/// [REL-18] Twice a thousand changes, with sessions open, leave no memory behind. In a process of its own, which other tests do
/// not fill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_flat() {
    const ALONE: &str = "RELOAD_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut alone = tokio::process::Command::new(std::env::current_exe().unwrap());
        alone
            .args(["load::memory_is_flat", "--exact", "--nocapture"])
            .env(ALONE, "1");
        let output = alone.output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        println!("{said}");
        return;
    }
    let world = served().await;
    let reloader = world.app.reloader();
    let (text, secrets) = (world.text.clone(), world.secrets.clone());
    let change = |number: usize| {
        let environment = |name: &str| secrets.get(name).cloned();
        let text = variant(&text, number);
        reloader
            .load(Some((Path::new("world.toml"), &text)), &environment)
            .unwrap();
    };
    for n in 0..20 {
        let ask = Ask::turn("hello").bearer("key-bob").thread(&format!("t{n}"));
        world.ask(&ask).await.completed();
    }
    // Not those that close the sessions.
    let kind = (0..).filter(|number: &usize| !number.is_multiple_of(5) && !number.is_multiple_of(7));
    for number in kind.clone().take(300) {
        change(number);
    }
    let early = memory();
    for number in kind.take(2 * RELOADS) {
        change(number);
    }
    let late = memory();
    println!(
        "memory: {} KiB, and after {} reloads {} KiB",
        early >> 10,
        2 * RELOADS,
        late >> 10
    );
    assert!(late < early + SLACK, "from {early} to {late} bytes");
}

/// A client that runs one turn after the other: even ones by sessions, odd ones by direct HTTP.
fn run(
    world: &World,
    number: usize,
    stop: Arc<AtomicBool>,
    turns: Arc<AtomicUsize>,
) -> impl Future<Output = ()> + use<> {
    let address = world.address;
    async move {
        let who = if number.is_multiple_of(3) { "alice" } else { "bob" };
        let (model, thread) = (["gpt-5", "o4-mini"][number % 2], format!("t{number}"));
        let mut turn = 0;
        while !stop.load(Ordering::Relaxed) {
            turn += 1;
            let words = "sim:text(n=4, size=20, delay=2ms)";
            // A conversation now and then, so that pins and sessions come and go.
            let thread = format!("{thread}-{}", turn / 20);
            let ask = Ask::turn(words)
                .bearer(&format!("key-{who}"))
                .thread(&thread)
                .with("model", model);
            let ask = if turn % 4 == 0 { ask.json() } else { ask };
            ask.ask(address).await.completed();
            turns.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Bytes that the process has resident.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = status.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
