//! The file and SIGHUP as the process that serves knows them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::client::Ask;
use crate::serve::{Bridge, PATIENCE, configuration};
use crate::shared::turn;

/// What is told beside events.
fn messages(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| event["message"].as_str())
        .collect()
}

/// [REL-8] [REL-9] SIGHUP has the file read, and is always answered: what is new is in force, what is wrong is told in the words
/// of `check`, and the process serves on. Signals that come together are one.
#[tokio::test]
async fn sighup() {
    let mut bridge = Bridge::start("", "").await;
    let good = fs::read_to_string(bridge.file()).unwrap();
    bridge.signal("HUP");
    let reloaded = bridge.event("config_reloaded").await;
    assert_eq!(
        (&reloaded["changed"], &reloaded["needs_restart"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(reloaded["level"], "info");

    let changed = good.replace("[server]", "[server]\nheartbeat = \"5s\"\nbody_budget = \"2GiB\"");
    fs::write(bridge.file(), &changed).unwrap();
    bridge.signal("HUP");
    let reloaded = bridge.event("config_reloaded").await;
    assert_eq!(reloaded["changed"], json!(["server.heartbeat"]));
    assert_eq!(reloaded["needs_restart"], json!(["server.body_budget"]));

    let faulty = changed
        .replace("heartbeat", "heart_beat")
        .replace("2GiB", "2 gigs");
    fs::write(bridge.file(), faulty).unwrap();
    bridge.signal("HUP");
    let rejected = bridge.event("config_rejected").await;
    assert_eq!((&rejected["line"], &rejected["faults"]), (&json!(2), &json!(2)));
    assert_eq!(
        (&rejected["key_path"], &rejected["level"]),
        (&json!("server.heart_beat"), &json!("warn"))
    );
    let checked = std::process::Command::new(env!("CARGO_BIN_EXE_responses-bridge"))
        .arg("check")
        .arg(bridge.file())
        .output()
        .unwrap();
    let checked = String::from_utf8(checked.stderr).unwrap();
    let told = messages(&bridge.events).join("\n");
    assert_eq!(checked, format!("{told}\n2 faults: the bridge would not start\n"));
    assert!(told.contains("did you mean `heartbeat`?"), "{told}");

    fs::write(bridge.file(), good).unwrap();
    for _ in 0..40 {
        bridge.signal("HUP");
    }
    let reloaded = bridge.event("config_reloaded").await;
    assert_eq!(reloaded["changed"], json!(["server.heartbeat"]));
    tokio::time::sleep(Duration::from_secs(1)).await;
    bridge.signal("TERM");
    assert_eq!(bridge.end().await.code(), Some(0));
    let answers = bridge
        .events
        .iter()
        .filter(|event| event["event"] == "config_reloaded");
    let answers = answers.count();
    // On a busy machine the signals themselves come slowly, and yet not all apart.
    assert!(answers < 40, "{answers} answers");
}

/// [REL-21] Whoever empties the file of a token that leaked, or deletes it, is told that the token still opens, and how to end that.
#[tokio::test]
async fn an_emptied_token_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "token-one").unwrap();
    let mut bridge = Bridge::start(&format!("admin_token = {{ file = {file:?} }}"), "").await;
    let address = ([127, 0, 0, 1], bridge.port).into();
    let status = Ask::bare("GET", "/admin/status").bearer("token-one");
    let told = |bridge: &Bridge| {
        let lines = messages(&bridge.events).into_iter();
        lines
            .filter(|line| line.contains("is still valid; to revoke it"))
            .count()
    };
    for (times, change) in [(1, true), (2, false)] {
        match change {
            true => fs::write(&file, "").unwrap(),
            false => fs::remove_file(&file).unwrap(),
        }
        bridge.signal("HUP");
        let rejected = bridge.event("config_rejected").await;
        assert_eq!(rejected["key_path"], "server.admin_token.file");
        assert_eq!(told(&bridge), times, "{:?}", messages(&bridge.events));
        assert_eq!(status.ask(address).await.status, 200, "what is told is true");
    }
    fs::write(&file, "token-two").unwrap();
    bridge.signal("HUP");
    bridge.event("config_reloaded").await;
    assert_eq!(status.ask(address).await.status, 401);
}

/// [REL-9] SIGHUP during a drain: the turn that runs is finished, and the drain is a success.
#[tokio::test]
async fn sighup_during_a_drain() {
    let mut bridge = Bridge::start("", "").await;
    let ask = turn("one", "sim:pause(after=1, for=1s)");
    let mut running = ask.open(([127, 0, 0, 1], bridge.port).into()).await;
    running.until("response.created").await;
    bridge.signal("TERM");
    bridge.event("drain_started").await;
    for _ in 0..3 {
        bridge.signal("HUP");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    running.finish().await.completed();
    assert_eq!(bridge.end().await.code(), Some(0));
    assert!(
        bridge
            .events
            .iter()
            .all(|event| event["event"] != "config_reloaded")
    );
}

/// [REL-9] When the terminal is closed on which it was started, the process ends as by SIGTERM, instead of serving on unseen.
#[tokio::test]
async fn the_terminal_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let file = configuration(folder.path(), "http://127.0.0.1:9/v1", "", "");
    let log = folder.path().join("log");
    // `script` gives it a terminal; stderr goes to a file, so that its last words can be read.
    let bridge = env!("CARGO_BIN_EXE_responses-bridge");
    let command = format!("exec {bridge} serve --config {file} 2>{}", log.display());
    let mut terminal = Command::new("script")
        .args(["--quiet", "--command", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(terminal.stdout.take().unwrap()).lines();
    tokio::time::timeout(PATIENCE, stdout.next_line())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    terminal.kill().await.unwrap();
    let until = tokio::time::Instant::now() + PATIENCE;
    while !fs::read_to_string(&log).unwrap().contains("drain_finished") {
        assert!(tokio::time::Instant::now() < until, "it serves on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// [REL-7] A file that may not be read any more: what is in force stays, and the log says why.
#[tokio::test]
async fn permission_denied() {
    let folder = tempfile::tempdir().unwrap();
    let file = configuration(folder.path(), "http://127.0.0.1:9/v1", "", "");
    let bridge = folder.path().join("responses-bridge");
    // Root may read everything: then the bridge is somebody else.
    let mut command = if is_root() {
        fs::copy(env!("CARGO_BIN_EXE_responses-bridge"), &bridge).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command.arg(&bridge);
        command
    } else {
        Command::new(env!("CARGO_BIN_EXE_responses-bridge"))
    };
    let command = command.args(["serve", "--config", &file]).kill_on_drop(true);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    tokio::time::timeout(PATIENCE, stdout.next_line())
        .await
        .unwrap()
        .unwrap()
        .expect("it does not start");
    fs::set_permissions(Path::new(&file), fs::Permissions::from_mode(0o200)).unwrap();
    signal(child.id().unwrap(), "HUP");
    let mut lines = Vec::new();
    while lines.len() < 2 {
        let line = tokio::time::timeout(PATIENCE, stderr.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        let line = serde_json::from_str::<Value>(&line).unwrap();
        if line["event"] != "bridge_started" {
            lines.push(line);
        }
    }
    let message = lines[0]["message"].as_str().unwrap();
    assert!(message.contains("this user may not read it"), "{message}");
    assert_eq!(
        (&lines[1]["event"], &lines[1]["reason"]),
        (&json!("config_rejected"), &json!("unreadable"))
    );
    signal(child.id().unwrap(), "TERM");
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

fn is_root() -> bool {
    let id = std::process::Command::new("id").arg("-u").output().unwrap();
    id.stdout.trim_ascii() == b"0"
}

fn signal(process: u32, name: &str) {
    let killed = std::process::Command::new("kill")
        .args([format!("-{name}"), process.to_string()])
        .status();
    assert!(killed.unwrap().success());
}
