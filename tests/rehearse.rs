//! `responses-bridge rehearse` as an operator meets it: the real binary, its output and its exit code.
// A test that cannot go on ends there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Two providers, three accounts, two clients; addresses that lead nowhere, secrets that are not there.
const CONFIG: &str = r#"
[server]
listen = "0.0.0.0:8787"
admin_listen = "192.0.2.1:9787"
admin_token = { env = "NO_SUCH_TOKEN" }
[[clients]]
name = "laptop"
key = { env = "NO_SUCH_KEY" }
[[clients]]
name = "ci"
key = { file = "/nowhere/ci.key" }
[providers.openai]
base_url = "https://192.0.2.2/v1"
models = ["gpt-5*"]
headers = { "x-team" = { env = "NO_SUCH_HEADER" } }
[[providers.openai.accounts]]
name = "main"
credential = { env = "NO_SUCH_CREDENTIAL" }
proxy = { env = "NO_SUCH_PROXY" }
[[providers.openai.accounts]]
name = "spare"
credential = { file = "/nowhere/spare.key" }
proxy = "socks5h://192.0.2.3:1080"
[providers.azure]
kind = "azure"
base_url = "https://192.0.2.4/openai/v1"
models = ["deployment"]
[[providers.azure.accounts]]
name = "main"
credential = { env = "NO_SUCH_AZURE" }
[routing]
strategy = "round_robin"
"#;

/// The drill with this configuration, and with no environment at all.
fn rehearse(temporary: &Path, config: Option<&str>, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_responses-bridge"));
    command.arg("rehearse").args(arguments);
    command.env_clear().env("TMPDIR", temporary).stdin(Stdio::null());
    if let Some(config) = config {
        // Beside the drill's temporary files, not among them.
        let path = temporary.with_extension("toml");
        std::fs::write(&path, config).unwrap();
        command.arg("--config").arg(path);
    }
    command
}

fn run(config: Option<&str>, arguments: &[&str]) -> Output {
    let temporary = tempfile::tempdir().unwrap();
    let output = rehearse(temporary.path(), config, arguments).output().unwrap();
    let _ = std::fs::remove_file(temporary.path().with_extension("toml"));
    let left: Vec<_> = std::fs::read_dir(temporary.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    output
}

/// The report of a drill that is to pass.
fn passed(config: Option<&str>, arguments: &[&str]) -> Value {
    let output = run(config, &[arguments, &["--json"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{text}\n{errors}");
    assert!(errors.is_empty(), "{errors}");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["ok"], true);
    let verdicts = report["expectations"].as_array().unwrap();
    assert!(
        verdicts.len() >= 3 && verdicts.iter().all(|verdict| verdict["met"] == true),
        "{text}"
    );
    assert_eq!(report["clients_saw"]["duplicates"], 0);
    report
}

fn expects(report: &Value, id: &str) -> bool {
    let all = report["expectations"].as_array().unwrap();
    all.iter().any(|expectation| expectation["id"] == id)
}

/// How often an event came, with this beginning of its detail.
fn count(report: &Value, event: &str, detail: &str) -> u64 {
    let all = report["events"].as_array().unwrap();
    let of = all
        .iter()
        .filter(|step| step["event"] == event && step["detail"].as_str().unwrap().starts_with(detail));
    of.map(|step| step["count"].as_u64().unwrap()).sum()
}

/// [REH-1] [REH-6] [REH-7] [REH-13] Silent sessions: found out, retired, quarantined, served over HTTP, probed, cleared, and
/// none of it sent twice; told at times of earnest.
#[test]
fn silent_sessions() {
    let report = passed(None, &["--fault", "silent"]);
    for event in [
        "response_created_timeout",
        "quarantine_opened",
        "quarantine_http_fallback",
        "quarantine_cleared",
    ] {
        assert!(count(&report, event, "") > 0, "{event}");
    }
    let told = report["events"].as_array().unwrap();
    assert!(
        told.iter().all(|step| step["phase"] != ""),
        "in no part of the drill: {told:?}"
    );
    let saw = &report["clients_saw"];
    let of = |name: &str| saw[name].as_u64().unwrap();
    assert_eq!(
        of("answered_over_sessions") + of("answered_over_http"),
        of("questions")
    );
    assert_eq!(of("questions") + of("retries"), of("calls"));
    assert!(of("answered_over_http") > 0 && of("answered_over_sessions") > 0);
    assert!(of("slowest_ms") >= 60_000, "60 s in earnest: {saw}");
    let errors = saw["errors"].as_object().unwrap();
    assert!(
        errors
            .keys()
            .all(|kind| kind.ends_with("bridge_response_created_timeout")),
        "{errors:?}"
    );
    // By each conversation at most one silent session of each incident.
    let trips = count(&report, "response_created_timeout", "");
    assert_eq!(
        trips,
        errors.values().map(|count| count.as_u64().unwrap()).sum::<u64>()
    );
    let times: Vec<_> = report["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| phase["began_ms"].as_u64().unwrap())
        .collect();
    assert!(
        times.is_sorted() && times.len() == 3 && times[2] - times[1] > 120_000,
        "{times:?}"
    );
}

/// [REH-1] Events without `response.created` are silence, too.
#[test]
fn wedged_sessions() {
    let report = passed(None, &["--fault", "wedged", "--clients", "8"]);
    assert_eq!(count(&report, "response_created_timeout", "eventless"), 0);
    assert!(count(&report, "response_created_timeout", "events_without_created") > 0);
}

/// [REH-1] A socket that is reset costs its turn an error that may be retried, and no more.
#[test]
fn reset_sockets() {
    let report = passed(None, &["--fault", "reset", "--clients", "8"]);
    assert_eq!(
        report["clients_saw"]["errors"]["502 bridge_upstream_closed"], 16,
        "{}",
        report["clients_saw"]
    );
    assert_eq!(count(&report, "quarantine_opened", ""), 0);
}

/// [REH-1] Limits reach the clients as what they are.
#[test]
fn limits() {
    let report = passed(None, &["--fault", "429", "--clients", "8"]);
    let errors = report["clients_saw"]["errors"].as_object().unwrap();
    assert!(
        errors.len() == 1 && errors.contains_key("429 rate_limit_exceeded"),
        "{errors:?}"
    );
}

/// [REH-1] A slow upstream retires nothing.
#[test]
fn a_slow_upstream() {
    let report = passed(None, &["--fault", "slow", "--clients", "8"]);
    assert!(report["clients_saw"]["slowest_ms"].as_u64().unwrap() >= 30_000);
    assert_eq!(count(&report, "session_retired", ""), 0);
}

/// [REH-1] [REH-5] Silence again and again doubles the window to its longest.
#[test]
fn a_flapping_upstream() {
    let config = "quarantine = { window = \"90s\", max_window = \"5m\" }";
    let report = passed(Some(config), &["--fault", "flap", "--clients", "8"]);
    assert!(expects(&report, "top_reached"));
    for window in ["for 90s", "for 3m", "for 5m"] {
        assert!(
            count(&report, "quarantine_opened", window) > 0,
            "{window}: {}",
            report["events"]
        );
    }
}

/// [REH-2] [REH-5] [REH-10] Nothing of the operator's own can be reached or read, and the drill plays on it all the same: all
/// its accounts, models and clients, without its proxies.
#[test]
fn a_configuration_that_leads_nowhere() {
    let began = Instant::now();
    let report = passed(Some(CONFIG), &["--clients", "9"]);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let notes = report["notes"].to_string();
    assert!(notes.contains("openai/main, openai/spare"), "{notes}");
    assert!(
        count(&report, "quarantine_cleared", "") >= 9,
        "{}",
        report["events"]
    );
    let windows = report["windows"].as_array().unwrap();
    let created = windows
        .iter()
        .find(|window| window["key"] == "watchdog.response_created_deadline")
        .unwrap();
    assert_eq!(
        (&created["own"], &created["drill_ms"], &created["floor"]),
        (&"60s".into(), &1000.into(), &false.into())
    );
}

/// [REH-9] Without quarantine none is expected; without sessions a fault of sessions reaches nobody; without direct HTTP the
/// clients are not served over it; with caps below the number of clients, chance decides.
#[test]
fn what_is_impossible_is_not_expected() {
    std::thread::scope(|drills| {
        drills.spawn(|| {
            let off = passed(Some("quarantine.window = \"0s\""), &["--clients", "6"]);
            assert!(expects(&off, "retired") && !expects(&off, "quarantined") && !expects(&off, "then_http"));
            assert_eq!(count(&off, "quarantine_opened", ""), 0);
        });
        let provider = |transport: &str| {
            format!(
                "[providers.one]\nbase_url = \"http://192.0.2.1/v1\"\ntransport = \"{transport}\"\n\
                 accounts = [{{ name = \"a\", credential = {{ env = \"NOT_SET\" }} }}]\n"
            )
        };
        drills.spawn(|| {
            let small = "session = { max_sessions = 3, max_per_key = 1 }\nquarantine.max_keys = 2";
            let report = passed(Some(small), &["--clients", "6"]);
            assert!(
                expects(&report, "quarantined")
                    && !expects(&report, "doubling")
                    && !expects(&report, "back_on_sessions")
            );
            let notes = report["notes"].to_string();
            assert!(
                notes.contains("max_sessions (3)") && notes.contains("max_keys (2)"),
                "{notes}"
            );
        });
        let http = provider("http");
        drills.spawn(move || {
            let report = passed(Some(&http), &["--clients", "6"]);
            assert!(expects(&report, "not_reached"));
            assert_eq!(report["clients_saw"]["answered_over_sessions"], 0);
        });
        let websocket = provider("websocket");
        drills.spawn(move || {
            let report = passed(Some(&websocket), &["--clients", "6"]);
            assert_eq!(
                report["clients_saw"]["answered_over_http"], 0,
                "{}",
                report["clients_saw"]
            );
        });
    });
}

/// [REH-8] [REH-11] For people: expectations before the play, verdicts after it, on a page that fits, without colour or progress
/// where there is no terminal.
#[test]
fn a_page_for_people() {
    let output = run(None, &["--fault", "reset", "--clients", "4"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let titles = [
        "Windows in force",
        "Expected",
        "What clients saw",
        "What the bridge did",
        "Verdict",
    ];
    let places: Vec<_> = titles
        .iter()
        .map(|title| text.find(&format!("\n{title}\n")).expect(title))
        .collect();
    assert!(places.is_sorted(), "{text}");
    assert!(
        text.trim_end()
            .lines()
            .last()
            .unwrap()
            .starts_with("Passed: all "),
        "{text}"
    );
    assert!(!text.contains('\x1b'));
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

/// [REH-8] [REH-11] A configuration that does not do what it is for fails the drill: here direct HTTP, which is to serve the
/// quarantined conversations, gives up between any two events.
#[test]
fn a_bad_configuration_fails() {
    let config = "http.between_events = \"1ms\"";
    let output = run(Some(config), &["--clients", "4", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &report["ok"]), (Some(1), &false.into()));
    let all = report["expectations"].as_array().unwrap();
    let missed: Vec<_> = all
        .iter()
        .filter(|expectation| expectation["met"] == false)
        .collect();
    assert!(
        missed
            .iter()
            .any(|expectation| expectation["id"] == "http_answers"),
        "{missed:?}"
    );
    assert!(
        missed
            .iter()
            .all(|expectation| expectation["id"] != "quarantined"),
        "{missed:?}"
    );
}

/// [REH-11] On a terminal there are progress and colour.
#[test]
fn progress_is_for_terminals() {
    let temporary = tempfile::tempdir().unwrap();
    let script = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) != 0)";
    let output = Command::new("python3")
        .args(["-c", script, env!("CARGO_BIN_EXE_responses-bridge")])
        .args(["rehearse", "--fault", "reset", "--clients", "4"])
        .env("TMPDIR", temporary.path())
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("the fault: reset: ") && text.contains(" calls answered"),
        "{text}"
    );
    assert!(text.contains("\x1b[32mPassed"), "{text}");
}

/// [REH-11] Ctrl-C ends it and leaves nothing behind.
#[test]
fn ctrl_c_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let mut child = rehearse(temporary.path(), None, &["--speed", "1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Once the bridge has its state, it plays.
    let patience = Instant::now() + Duration::from_secs(30);
    while !std::fs::read_dir(temporary.path())
        .unwrap()
        .flatten()
        .any(|entry| entry.path().join("lock").exists())
    {
        assert!(Instant::now() < patience);
        std::thread::sleep(Duration::from_millis(20));
    }
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let left: Vec<_> = std::fs::read_dir(temporary.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// [REH-3] [REH-11] A faulty configuration is refused in the words of `check`, and so is one that cannot be read.
#[test]
fn a_faulty_configuration_is_refused() {
    let faulty = "[watchdog]\nresponse_created_deadlin = \"60s\"\nidle_deadline = 5\n";
    let temporary = tempfile::tempdir().unwrap();
    let output = rehearse(temporary.path(), Some(faulty), &[]).output().unwrap();
    let path = temporary.path().with_extension("toml");
    let checked = Command::new(env!("CARGO_BIN_EXE_responses-bridge"))
        .arg("check")
        .arg(&path)
        .output()
        .unwrap();
    let words = |output: &Output| String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", words(&output));
    assert_eq!(
        words(&output),
        words(&checked).replace("\n2 faults: the bridge would not start\n", "\n")
    );
    assert!(output.stdout.is_empty());
    let output = rehearse(temporary.path(), Some(faulty), &["--json"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &report["ok"]), (Some(2), &false.into()));
    assert_eq!(report["faults"].as_array().unwrap().len(), 2);
    std::fs::remove_file(path).unwrap();
    let output = run(None, &["--config", "/nowhere/bridge.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        words(&output).contains("/nowhere/bridge.toml: cannot be read"),
        "{}",
        words(&output)
    );
}

/// [REH-12] Bad values are refused, with what to write.
#[test]
fn bad_values_are_refused() {
    let bad: [(&[&str], &str); 8] = [
        (&["--speed", "0"], "1000"),
        (&["--speed", "1e9"], "1000"),
        (&["--speed", "NaN"], "1000"),
        (&["--speed=-60"], "1000"),
        (&["--clients", "0"], "1..=500"),
        (&["--clients", "100000"], "500"),
        (&["--fault", "silence"], "silent"),
        (&["--seed", "x"], "--seed"),
    ];
    for (arguments, told) in bad {
        let output = run(None, arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(told), "{arguments:?}: {errors}");
    }
}
