//! `responses-bridge tune` as an operator meets it: the real binary on a journal that the real store wrote.
// A test that cannot go on ends there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "tasks of a test end with its runtime")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use responses_bridge::event::{At, name};
use responses_bridge::journal::{Entry, Names};
use responses_bridge::store::journal::Reader;
use responses_bridge::store::{Directory, Opened, Options, Sqlite, Store};
use serde_json::{Value, json};

#[path = "support/client.rs"]
mod client;
#[path = "support/world.rs"]
mod world;

use client::Ask;
use world::Setup;

const LONG: Duration = Duration::from_secs(60);
/// What an operator's file looks like.
const CONFIG: &str = "# The night shift's bridge. Do not touch before asking Ann.\r\n\
    [watchdog]\r\n\
    idle_deadline   = '15m'   # o3 thinks for long\r\n\
    response_created_deadline = \"60s\"\t# was 90s until May\r\n\
    \r\n\
    [session]\r\n\
    max_age = \"45m\"\r\n";

/// A state directory with a journal in it, and a configuration beside it.
struct Place {
    folder: tempfile::TempDir,
    opened: Opened,
    written: u64,
    at_ms: u64,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::open(&folder.path().join("state")).unwrap();
        let opened = Sqlite::open(directory, Options::new(1000, 1000, 1000), SystemTime::now());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let place = Place {
            folder,
            opened,
            written: 0,
            // Two days ago.
            at_ms: u64::try_from(now.as_millis()).unwrap() - 2 * 86_400_000,
        };
        fs::write(place.config(), CONFIG).unwrap();
        place
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("bridge.toml")
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn row(&mut self, event: &'static str, account: &str, body: &str) {
        self.at_ms += 1000;
        self.written += 1;
        let (provider, account) = (name("openai"), name(account));
        self.opened.store.journal(Entry {
            at_ms: self.at_ms,
            event,
            at: Some(At { provider, account }),
            names: Names::default(),
            body: body.into(),
        });
        if self.written.is_multiple_of(4096) {
            self.wait();
        }
    }

    /// Until all is in the file: under pressure rows would be dropped.
    fn wait(&self) {
        let reader = Reader::open(&self.state()).unwrap();
        let end = Instant::now() + LONG;
        while reader.newest().unwrap() < self.written {
            assert!(
                Instant::now() < end,
                "{} of {}",
                reader.newest().unwrap(),
                self.written
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Healthy turns of `model`, most within two seconds, none later than 20 s.
    fn healthy(&mut self, count: u64, model: &str) {
        for number in 0..count {
            let created = 200 + (number * 7919) % 2000 + if number.is_multiple_of(400) { 17_000 } else { 0 };
            let turn = turn(model, "completed", Some(created), 500);
            self.row("turn_finished", "main", &turn);
        }
    }

    /// A client that waited for `response.created` until it left, and one that left in the middle of its answer.
    fn in_vain(&mut self) {
        let early = turn("gpt-5", "client_gone", None, 0);
        self.row("turn_finished", "main", &early);
        let late = turn("gpt-5", "client_gone", Some(900), 720_000);
        self.row("turn_finished", "main", &late);
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let state = self.state();
        let mut all = vec!["tune", "--state", state.to_str().unwrap()];
        all.extend(arguments);
        run(&all)
    }

    fn with_config(&self, arguments: &[&str]) -> Output {
        let config = self.config();
        let mut all = vec!["--config", config.to_str().unwrap()];
        all.extend(arguments);
        self.run(&all)
    }
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_responses-bridge"))
        .args(arguments)
        .env_clear()
        .env("HOME", "/nonexistent")
        .output()
        .unwrap()
}

fn turn(model: &str, outcome: &str, created: Option<u64>, gap: u64) -> String {
    let mut body = json!({
        "event": "turn_finished", "provider": "openai", "account": "main", "model": model, "key": "05420f42f987",
        "key_kind": "thread", "transport": "websocket", "outcome": outcome, "route": "only", "plan": "reused",
        "attempt": 1, "session": 77, "stream": true, "sent": true, "committed": true, "total_ms": 70_000 + gap,
        "sent_ms": 1, "upstream_ms": 69_000 + gap, "age": "10m", "idle": "30s",
    });
    if let Some(created) = created {
        body["created_ms"] = created.into();
        body["longest_gap_ms"] = gap.into();
    }
    body.to_string()
}

fn trip(model: &str, session: u64) -> String {
    json!({
        "event": "response_created_timeout", "provider": "openai", "account": "main", "model": model,
        "key": "05420f42f987", "key_kind": "thread", "shape": "eventless", "session": session, "waited_ms": 60_001,
    })
    .to_string()
}

fn text(output: &Output) -> String {
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(output: &Output, code: i32) -> String {
    assert_eq!(
        output.status.code(),
        Some(code),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn tree(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// [TUNE-1] [TUNE-2] [TUNE-3] from rows in a file to a page of six sections: healthy turns, a model that nobody should have
/// let in, rows that no bridge wrote; a running bridge holds the state meanwhile.
#[test]
fn a_week_in_one_page() {
    let mut place = Place::new();
    place.healthy(7000, "gpt-5");
    place.in_vain();
    let hostile = "\u{1b}[31m'; DROP TABLE journal; --<script>alert(1)</script>";
    place.row(
        "turn_finished",
        "main",
        &turn(hostile, "completed", Some(900), 100),
    );
    for body in ["", "{", "[1]", r#"{"model":"x","created_ms":-5}"#] {
        place.row("turn_finished", "main", body);
    }
    place.wait();
    let page = text(&place.with_config(&[]));
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    assert!(
        !page.contains('\u{1b}') && !page.contains('<') && page.is_ascii(),
        "{page}"
    );
    assert!(
        page.contains("Left out: 4 rows that could not be read\n"),
        "{page}"
    );
    assert!(page.contains("  gpt-5: 7002 turns, 0 tripped"), "{page}");
    assert!(page.contains("  ??31m???DROP?TABLE?journal?"), "{page}");
    let sentences = [
        "\nLower to 30s: less than 0.1 % of healthy turns are later with response.created, none tripped, and\n\
         those that came to nothing would have ended 30s sooner in all.\n",
        "\nLower to 10m: less than 0.1 % of healthy turns are later with an event, none tripped, and those that\n\
         came to nothing would have ended 2m sooner in all.\n",
        "\nNot enough evidence: 0 quarantines probed in time, 35 needed.\n",
        "\nNot enough evidence: 0 turns at an age over 30m, 381 needed.\n",
    ];
    for sentence in sentences {
        assert!(page.contains(sentence), "{sentence}{page}");
    }
    let told: Value = serde_json::from_str(&text(&place.with_config(&["--json"]))).unwrap();
    assert_eq!(
        (&told["evidence"]["rows"], &told["evidence"]["unreadable"]),
        (&json!(7007), &json!(4))
    );
    let created = &told["sections"][0];
    assert_eq!(
        (
            &created["key"],
            &created["verdict"]["verdict"],
            &created["verdict"]["to_ms"]
        ),
        (
            &json!("watchdog.response_created_deadline"),
            &json!("lower"),
            &json!(30_000)
        )
    );
    let line = &created["groups"][1]["table"][1];
    assert_eq!(
        (&line["candidate_ms"], &line["late"]),
        (&json!(10_000), &json!(18)),
        "{created:#}"
    );
    assert!(line["share"]["low"].as_f64().unwrap() < 18.0 / 7000.0);
    assert!(told.get("changes").is_none());
    // The journal is as it was.
    assert_eq!(text(&place.with_config(&[])), page);
}

/// [TUNE-1] one model, one account, one time: what does not match does not count.
#[test]
fn narrowed() {
    let mut place = Place::new();
    place.healthy(10, "gpt-5");
    place.healthy(5, "o4-mini");
    for _ in 0..3 {
        place.row(
            "turn_finished",
            "spare",
            &turn("gpt-5", "completed", Some(100), 100),
        );
    }
    place.wait();
    let turns = |arguments: &[&str]| {
        let mut all = vec!["--json"];
        all.extend(arguments);
        let told: Value = serde_json::from_str(&text(&place.with_config(&all))).unwrap();
        told["sections"][0]["groups"][0]["samples"].as_u64().unwrap_or(0)
    };
    assert_eq!(turns(&[]), 18);
    assert_eq!(turns(&["--model", "gpt-5"]), 13);
    assert_eq!(turns(&["--account", "spare"]), 3);
    assert_eq!(turns(&["--account", "openai/main", "--model", "o4-mini"]), 5);
    assert_eq!(turns(&["--since", "3d"]), 18);
    assert_eq!(turns(&["--since", "1h"]), 0);
    assert_eq!(turns(&["--model", "'; DROP TABLE journal; --"]), 0);
    let page = text(&place.with_config(&["--model", "o4-mini"]));
    assert!(page.starts_with("Evidence: 5 rows, "), "{page}");
    // Where there is nothing at all, that is the page, and what there is instead.
    assert_eq!(
        text(&place.with_config(&["--model", "nosuch"])),
        "Evidence: none of model \"nosuch\", but of gpt-5, o4-mini\n"
    );
    assert_eq!(
        text(&place.with_config(&["--account", "nosuch"])),
        "Evidence: none; the journal knows no account \"nosuch\", but openai/main openai/spare\n"
    );
    let wrong = refused(&place.with_config(&["--since", "yesterday"]), 1);
    assert!(wrong.contains("--since"), "{wrong}");
}

/// [TUNE-10] `--apply` shows and writes the values; comments, order, white space and line ends stay. A dry run shows the
/// same and writes nothing.
#[test]
fn apply_changes_values_alone() {
    let mut place = Place::new();
    place.healthy(7000, "gpt-5");
    place.in_vain();
    place.wait();
    let file = place.config();
    let dry = text(&place.with_config(&["--apply", "--dry-run"]));
    assert_eq!(fs::read_to_string(&file).unwrap(), CONFIG);
    let shown = "@@ line 3\n-idle_deadline   = '15m'   # o3 thinks for long\n\
                 -response_created_deadline = \"60s\"\t# was 90s until May\n\
                 +idle_deadline   = \"10m\"   # o3 thinks for long\n\
                 +response_created_deadline = \"30s\"\t# was 90s until May\n";
    assert!(
        dry.contains(shown) && dry.ends_with("\nNothing was written.\n"),
        "{dry}"
    );
    assert_eq!(text(&place.with_config(&["--dry-run"])), dry);
    assert_eq!(fs::read_to_string(&file).unwrap(), CONFIG);
    let done = text(&place.with_config(&["--apply"]));
    assert!(
        done.contains(shown) && done.ends_with(&format!("\nWritten to {}.\n", file.display())),
        "{done}"
    );
    let wanted = CONFIG.replace("'15m'", "\"10m\"").replace("\"60s\"", "\"30s\"");
    assert_eq!(fs::read_to_string(&file).unwrap(), wanted);
    assert_eq!(tree(place.folder.path()), ["bridge.toml", "state"]);
    // What is not enough evidence was not written: the file has no quarantine in it, and nothing is left to write.
    let again = text(&place.with_config(&["--apply"]));
    assert!(
        again.ends_with("\nNothing to write: no window has a recommendation.\n"),
        "{again}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), wanted);
}

/// [TUNE-10] [ADM-36] what was asked for is done, and is a success, though whoever read has left.
#[test]
fn apply_needs_no_reader() {
    for json in [false, true] {
        let mut place = Place::new();
        place.healthy(7000, "gpt-5");
        place.in_vain();
        place.wait();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (file, state) = (place.config(), place.state());
        let mut command = Command::new(env!("CARGO_BIN_EXE_responses-bridge"));
        command.args(["tune", "--apply", "--config"]).arg(&file);
        command.arg("--state").arg(&state).args(json.then_some("--json"));
        let output = command
            .env_clear()
            .env("HOME", "/nonexistent")
            .stdout(writer)
            .output()
            .unwrap();
        assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
        let written = fs::read_to_string(&file).unwrap();
        assert!(
            written.contains("response_created_deadline = \"30s\""),
            "{written}"
        );
        // On a full disk it is done as well, and that it could not be told is a failure.
        fs::write(&file, CONFIG).unwrap();
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command.stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("cannot print") && said.contains("was written"),
            "{said}"
        );
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(fs::read_to_string(&file).unwrap(), written);
    }
}

/// [CFG-21] [TUNE-10] a file whose secrets only the service can read is judged, tells where the state is, and is changed.
#[test]
fn secrets_are_not_asked_for() {
    let mut place = Place::new();
    place.healthy(8000, "gpt-5");
    place.in_vain();
    place.wait();
    let text = format!(
        "{CONFIG}[state]\npath = \"state\"\n[server]\nadmin_token = {{ file = \"/run/credentials/b.service/token\" }}\n"
    );
    fs::write(place.config(), &text).unwrap();
    let config = place.config();
    let output = run(&["tune", "--config", config.to_str().unwrap(), "--apply"]);
    assert!(output.status.success(), "{output:?}");
    let changed = fs::read_to_string(&config).unwrap();
    assert_ne!(changed, text);
    assert!(changed.contains("/run/credentials/b.service/token"), "{changed}");
}

/// [TUNE-5] [TUNE-10] after one trip no lower deadline is written.
#[test]
fn never_lower_after_a_trip() {
    let mut place = Place::new();
    place.healthy(7000, "gpt-5");
    place.in_vain();
    place.row("response_created_timeout", "main", &trip("gpt-5", 77));
    place.row(
        "turn_finished",
        "main",
        &turn("gpt-5", "response_created_timeout", None, 0),
    );
    place.wait();
    let page = text(&place.with_config(&["--apply"]));
    assert!(
        page.contains("gpt-5: 7003 turns, 1 tripped, 1 ended otherwise"),
        "{page}"
    );
    assert!(
        page.contains("is never lowered while a turn tripped within the evidence.\n"),
        "{page}"
    );
    let wanted = CONFIG.replace("'15m'", "\"10m\"");
    assert_eq!(fs::read_to_string(place.config()).unwrap(), wanted);
}

/// [TUNE-10] [TUNE-11] refused with nothing written: no file, one model alone, a file with faults; and a journal or a file that
/// is not there.
#[test]
fn refusals() {
    let mut place = Place::new();
    place.healthy(3900, "gpt-5");
    place.wait();
    let no_file = refused(&place.run(&["--apply"]), 1);
    assert!(no_file.contains("there is no configuration file"), "{no_file}");
    for narrow in [["--model", "gpt-5"], ["--account", "main"]] {
        let refusal = refused(&place.with_config(&["--apply", narrow[0], narrow[1]]), 1);
        assert!(refusal.contains("leave --model and --account out"), "{refusal}");
    }
    assert_eq!(fs::read_to_string(place.config()).unwrap(), CONFIG);
    let no_file = refused(&place.run(&["--dry-run"]), 1);
    assert!(no_file.contains("there is no configuration file"), "{no_file}");

    fs::write(place.config(), "[watchdog]\nresponse_created_deadline = 60\n").unwrap();
    let faulty = refused(&place.with_config(&["--apply"]), 1);
    assert!(
        faulty.contains("bridge.toml:2") && faulty.contains("write \"60s\""),
        "{faulty}"
    );
    let missing = place.folder.path().join("missing.toml");
    let unreadable = refused(&place.run(&["--config", missing.to_str().unwrap()]), 2);
    assert!(unreadable.contains("missing.toml"), "{unreadable}");
    let nowhere = place.folder.path().join("nowhere");
    let nothing = refused(&run(&["tune", "--state", nowhere.to_str().unwrap()]), 2);
    assert!(nothing.contains("nowhere"), "{nothing}");
}

/// [TUNE-2] [TUNE-7] [TUNE-9] rows that a real bridge writes can all be read, while it runs: healthy turns with the age of
/// their socket and their longest silence, one incident from its trip to its cleared quarantine, and a turn by direct HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_bridge() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    let windows = "[watchdog]\nresponse_created_deadline = \"400ms\"\n[quarantine]\nwindow = \"300ms\"\nmax_window = \"1s\"";
    let world = Setup::new().state(&state).config(windows).start().await;
    for _ in 0..3 {
        let paused = Ask::turn("sim:conv=a sim:pause(after=1, for=300ms)").thread("a");
        world.ask(&paused).await.completed();
    }
    let ask = |words: &str| Ask::turn(format!("sim:conv=b {words}")).thread("b");
    assert_eq!(world.ask(&ask("sim:silent(on=ws)")).await.status, 504);
    world.ask(&ask("by http")).await.completed();
    tokio::time::sleep(Duration::from_millis(320)).await;
    world.ask(&ask("the probe")).await.completed();
    world.saw("quarantine_cleared", 1).await;
    world.saw("turn_finished", 6).await;

    let folder = state.path().to_str().unwrap().to_owned();
    let read = async || {
        let arguments = ["tune", "--json", "--state", &folder];
        let output = Command::new(env!("CARGO_BIN_EXE_responses-bridge"))
            .args(arguments)
            .output()
            .unwrap();
        serde_json::from_str::<Value>(&text(&output)).unwrap()
    };
    let end = Instant::now() + LONG;
    // Six turns, a trip, and the opening, the probe and the clearing of its quarantine.
    let mut told = read().await;
    while told["evidence"]["rows"] != 10 {
        assert!(Instant::now() < end, "{told:#}");
        tokio::time::sleep(Duration::from_millis(100)).await;
        told = read().await;
    }
    assert_eq!(told["evidence"]["unreadable"], 0, "{told:#}");
    let group = |section: usize| &told["sections"][section]["groups"][0];
    let counts = |section: usize| {
        ["samples", "unfinished", "trips"].map(|name| group(section)[name].as_u64().unwrap())
    };
    assert_eq!(counts(0), [5, 1, 1], "{:#}", group(0));
    assert_eq!(counts(1), [4, 0, 0], "{:#}", group(1));
    assert!(group(1)["longest_ms"].as_u64().unwrap() >= 290, "{:#}", group(1));
    assert_eq!(counts(2), [1, 0, 0], "{:#}", group(2));
    let direct = told["sections"][0]["notes"][1].as_str().unwrap();
    assert!(direct.contains("which is not part of it: 1 turn,"), "{direct}");
    let young = &group(4)["table"][0];
    assert_eq!(
        (&young["turns"], &young["failed"]),
        (&json!(5), &json!(1)),
        "{young:#}"
    );
}
