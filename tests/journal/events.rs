//! `responses-bridge events`, a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use responses_bridge::bridge::key::{Hash16, Hasher};
use responses_bridge::event::{At, name};
use responses_bridge::journal::{self, Entry, Names};
use responses_bridge::store::{Directory, Options, Sqlite, Store};

use super::wait;

const KEY: Hash16 = Hash16([0xab, 0xcd, 0xef, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

/// A store as a bridge has it, and the hasher of its names.
fn bridge(home: &Path) -> (Sqlite, Hasher) {
    let directory = Directory::open(home).unwrap();
    let hasher = Hasher::new(*directory.key().bytes());
    let opened = Sqlite::open(directory, Options::new(10, 10, 10), SystemTime::now());
    assert!(opened.fault.is_none());
    (opened.store, hasher)
}

fn entry(event: &'static str, members: &str, names: &[u64]) -> Entry {
    let mut all = Names::default();
    names.iter().for_each(|name| all.add(*name));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Entry {
        at_ms: now.as_millis() as u64,
        event,
        at: Some(At {
            provider: name("openai"),
            account: name("main"),
        }),
        names: all,
        body: format!(r#"{{"event":"{event}","provider":"openai","account":"main"{members}}}"#).into(),
    }
}

/// A turn that failed, and what followed.
fn incident(store: &Sqlite, hasher: &Hasher) {
    let key = format!(r#","key":"{KEY}""#);
    let turn = [hasher.name("req-1"), hasher.name("resp_1"), journal::of_key(KEY)];
    let old = entry("refused", r#","reason":"draining""#, &[hasher.name("req-0")]);
    store.journal(Entry {
        at_ms: old.at_ms - 3_600_000,
        ..old
    });
    let finished = format!(
        r#"{key},"outcome":"response_created_timeout","transport":"websocket","total_ms":30012,"attempt":1"#
    );
    store.journal(entry("turn_finished", &finished, &turn));
    let opened = format!(r#"{key},"window_ms":60000,"trip":1"#);
    store.journal(entry("quarantine_opened", &opened, &[journal::of_key(KEY)]));
}

fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_responses-bridge"));
    command
        .arg("events")
        .args(arguments)
        .env_clear()
        .env("TERM", "xterm")
        .stdin(Stdio::null());
    if !arguments.contains(&"--config") {
        command.arg("--state").arg(home);
    }
    command
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    command(home, arguments).output().unwrap()
}

/// The names of the events that are printed.
fn shown(home: &Path, arguments: &[&str]) -> Vec<String> {
    let output = run(home, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let objects = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    objects
        .map(|object| object["event"].as_str().unwrap().to_owned())
        .collect()
}

/// [JRN-8] [JRN-11] A responder with an id, a key, a time or a kind gets the events, for people or for programs, of a bridge
/// that is dead.
#[test]
fn what_happened_is_shown() {
    let home = tempfile::tempdir().unwrap();
    let (store, hasher) = bridge(home.path());
    incident(&store, &hasher);
    assert_eq!(store.close(super::PATIENCE), 0);
    drop(store);
    let home = home.path();
    assert_eq!(
        shown(home, &[]),
        ["refused", "turn_finished", "quarantine_opened"]
    );
    assert_eq!(
        shown(home, &["--since", "10m"]),
        ["turn_finished", "quarantine_opened"]
    );
    assert_eq!(shown(home, &["--kind", "quarantine*"]), ["quarantine_opened"]);
    assert_eq!(shown(home, &["--id", "req-1"]), ["turn_finished"]);
    assert_eq!(shown(home, &["--id", "req-0", "--since", "2h"]), ["refused"]);
    assert_eq!(
        shown(home, &["--key", &KEY.to_string()]),
        ["turn_finished", "quarantine_opened"]
    );
    assert_eq!(
        shown(home, &["--key", &KEY.to_string(), "--id", "resp_1"]),
        ["turn_finished"]
    );
    assert_eq!(
        shown(home, &["--account", "main", "--limit", "1"]),
        ["quarantine_opened"]
    );
    assert_eq!(shown(home, &["--account", "azure/main"]), [""; 0]);

    let output = run(home, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
    assert!(!text.contains('\x1b'), "no colour where there is no terminal");
    assert!(
        lines[2].contains("Z ! quarantine_opened        abcdef010203 openai/main  60s"),
        "{text}"
    );
    assert!(lines[0].contains("Z   refused "), "{text}");
}

/// [JRN-13] [JRN-9] What cannot be asked for, and where nothing can be read: each in a few words, with its exit code.
#[test]
fn strange_questions() {
    let home = tempfile::tempdir().unwrap();
    let told = |arguments: &[&str], code: i32, says: &str| {
        let output = run(home.path(), arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            (output.status.code(), &output.stdout[..]),
            (Some(code), &b""[..]),
            "{message}"
        );
        assert!(message.contains(says) && message.len() < 600, "{message}");
    };
    told(&[], 2, "there is no state in");
    let (store, _) = bridge(home.path());
    told(&[], 0, "no event");
    for (flag, wrong, says) in [
        ("--since", "yesterday", "10m"),
        ("--key", "' OR 1=1 --", "12 hexadecimal digits"),
        ("--kind", "\x1b[2J", "control characters"),
        ("--account", "", "is empty"),
        ("--kind", &"*".repeat(100_000), "256 are the most"),
        ("--id", &"r".repeat(100_000), "8192 are the most"),
    ] {
        told(&[flag, wrong], 1, says);
        told(&[flag, wrong], 1, flag);
    }
    told(
        &["--limit", "0"],
        1,
        "--limit: 0 shows nothing but what comes, with --follow",
    );
    for sql in ["'; DROP TABLE journal; --", "%", "\" OR \"\"=\""] {
        told(&["--account", sql], 0, "the journal knows no account");
        told(&["--kind", sql], 0, "no event");
        told(&["--id", sql], 0, "no event");
    }
    told(&["--config", "/nonexistent/bridge.toml"], 2, "cannot be read");
    store.close(super::PATIENCE);
    drop(store);
    let file = home.path().join("state.db");
    let sound = std::fs::read(&file).unwrap();
    let cut = sound.len() / 4096 / 2 * 4096;
    std::fs::write(&file, &sound[..cut]).unwrap();
    told(&[], 2, "restore a copy");
    std::fs::write(&file, "no database, but a text").unwrap();
    told(&[], 2, "move the file away");
    let mut newer = sound;
    newer[60..64].copy_from_slice(&99u32.to_be_bytes());
    std::fs::write(&file, &newer).unwrap();
    told(&[], 2, "read it with the program that wrote it");
    std::fs::remove_file(home.path().join("install.key")).unwrap();
    told(&[], 2, "restore the key from a copy");
    std::fs::remove_file(&file).unwrap();
    told(&[], 2, "there is no state in");
}

/// [JRN-18] Of a journal full of healthy turns, those that ended so are shown, whatever the limit.
#[test]
fn how_a_turn_ended_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let (store, _) = bridge(home.path());
    let turn = |outcome: &str| {
        let members = format!(r#","outcome":"{outcome}","transport":"http","total_ms":7"#);
        store.journal(entry("turn_finished", &members, &[]));
    };
    turn("rejected");
    turn("connect_failed");
    store.journal(entry("session_retired", r#","reason":"rejected""#, &[]));
    (0..150).for_each(|_| turn("completed"));
    store.close(super::PATIENCE);
    drop(store);
    let outcomes = |arguments: &[&str]| {
        let output = run(home.path(), &[arguments, &["--json"]].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let of = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["outcome"].as_str().unwrap().to_owned()
        };
        text.lines().map(of).collect::<Vec<_>>()
    };
    assert_eq!(outcomes(&["--outcome", "rejected"]), ["rejected"]);
    assert_eq!(
        outcomes(&["--outcome", "rejected", "--outcome", "connect_*"]),
        ["rejected", "connect_failed"]
    );
    assert_eq!(
        outcomes(&["--outcome", "re*", "--outcome", "con*", "--limit", "1"]),
        ["connect_failed"]
    );
    assert_eq!(outcomes(&["--since", "1h", "--outcome", "failed"]), [""; 0]);
    let refused = run(home.path(), &["--outcome", ""]);
    assert_eq!(refused.status.code(), Some(1));
}

/// [JRN-17] Nothing at an account may mean that there is none of that name.
#[test]
fn an_account_that_is_not_known() {
    let home = tempfile::tempdir().unwrap();
    let (store, hasher) = bridge(home.path());
    let note = |arguments: &[&str]| {
        let output = run(home.path(), arguments);
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b""[..]));
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        note(&["--account", "nosuch"]),
        "the journal knows no account \"nosuch\", nor any other: nothing has happened at one\n"
    );
    incident(&store, &hasher);
    store.close(super::PATIENCE);
    drop(store);
    for wrong in ["nosuch", "openai", "azure/main"] {
        assert_eq!(
            note(&["--account", wrong]),
            format!("the journal knows no account \"{wrong}\", but openai/main\n")
        );
    }
    // While the disk is full, what is looked for can only be found elsewhere.
    let nothing = note(&["--account", "main", "--kind", "store_degraded"]);
    assert!(nothing.starts_with("no event in the journal is as you ask for"));
    assert!(
        nothing.contains("`responses-bridge status`") && nothing.contains("log"),
        "{nothing}"
    );
}

/// [ADM-36] Nobody reads what a command prints, or nobody hears what it says: that is no failure, and no panic. A disk that is
/// full is one.
#[test]
fn nobody_reads() {
    let home = tempfile::tempdir().unwrap();
    let (store, hasher) = bridge(home.path());
    incident(&store, &hasher);
    store.close(super::PATIENCE);
    drop(store);
    let state = home.path().to_str().unwrap();
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for arguments in [
        &["events", "--state", state][..],
        &["explain", "req-1", "--state", state],
        &["tune", "--state", state],
        &["schema"],
        &["check"],
        &["check", "--json"],
    ] {
        let ended = |stdout: Stdio, stderr: Stdio| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_responses-bridge"));
            command.args(arguments).env_clear().env("HOME", state);
            let output = command.stdout(stdout).stderr(stderr).output().unwrap();
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        };
        assert_eq!(
            ended(closed().into(), Stdio::piped()),
            (Some(0), String::new()),
            "{arguments:?}"
        );
        // One that was closed before the start is /dev/null: so Rust's runtime has it, and nobody can tell the two apart.
        let mut closed_before = Command::new("sh");
        closed_before.args([
            "-c",
            "exec \"$0\" \"$@\" >&-",
            env!("CARGO_BIN_EXE_responses-bridge"),
        ]);
        let output = closed_before
            .args(arguments)
            .env_clear()
            .env("HOME", state)
            .output()
            .unwrap();
        assert_eq!(
            (output.status.code(), output.stderr),
            (Some(0), Vec::new()),
            "{arguments:?}"
        );
        let (code, said) = ended(full().into(), Stdio::piped());
        let name = format!("responses-bridge {}: cannot print: ", arguments[0]);
        // Of explain, 1 says that there is nothing of this id.
        let failed = if arguments[0] == "explain" { 2 } else { 1 };
        assert!(code == Some(failed) && said.starts_with(&name), "{code:?} {said}");
        let (code, _) = ended(full().into(), closed().into());
        assert_eq!(code, Some(failed), "{arguments:?}");
    }
    for arguments in [
        &["check", "/nonexistent"][..],
        &["events", "--state", "/nonexistent"],
        &["status"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_responses-bridge"));
        command.args(arguments).env_clear().env("HOME", state);
        let output = command.stdout(closed()).stderr(closed()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

/// [JRN-9] A file into which nothing was ever written, or that was cut to nothing, is told apart from none at all.
#[test]
fn an_empty_file() {
    let home = tempfile::tempdir().unwrap();
    let (store, _) = bridge(home.path());
    store.close(super::PATIENCE);
    drop(store);
    for file in std::fs::read_dir(home.path()).unwrap() {
        let path = file.unwrap().path();
        if path
            .file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("state.db")
        {
            std::fs::write(&path, "").unwrap();
        }
    }
    let output = run(home.path(), &[]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("state.db is empty") && message.contains("store_degraded"),
        "{message}"
    );
}

/// [JRN-12] [JRN-10] Followed while a bridge runs, is gone, and runs again: each event once and in order; and when nobody
/// reads any more, it ends without a word.
#[test]
fn followed_over_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let (store, _) = bridge(home.path());
    let mark = |store: &Sqlite, number: u32| {
        store.journal(entry("refused", &format!(r#","number":{number}"#), &[]));
    };
    mark(&store, 0);
    let mut child = command(home.path(), &["--follow", "--json", "--since", "1h"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || {
        let line: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        line["number"].as_u64().unwrap()
    };
    assert_eq!(next(), 0);
    (1..400).for_each(|n| mark(&store, n));
    (1..400).for_each(|n| assert_eq!(next(), n));
    store.close(super::PATIENCE);
    drop(store);
    let (store, _) = bridge(home.path());
    mark(&store, 400);
    assert_eq!(next(), 400);
    store.close(super::PATIENCE);
    drop(store);
    // Another file in its place: its rows count from the beginning.
    for file in ["state.db", "state.db-wal", "state.db-shm"] {
        let _ = std::fs::remove_file(home.path().join(file));
    }
    let (store, _) = bridge(home.path());
    mark(&store, 401);
    assert_eq!(next(), 401);
    drop(lines);
    wait("it ends", || {
        mark(&store, 500);
        std::thread::sleep(Duration::from_millis(100));
        child.try_wait().unwrap().is_some()
    });
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.lines().all(|line| line.contains("waiting: ")), "{said}");
}
