//! `responses-bridge demo` as a newcomer meets it: the real binary, its output and its exit code.
// A test that cannot go on ends there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const INCIDENT: [&str; 6] = [
    "response_created_timeout",
    "session_retired",
    "quarantine_opened",
    "quarantine_http_fallback",
    "quarantine_probe",
    "quarantine_cleared",
];

/// The demo with its temporary files in `temporary`, and no key anywhere near.
fn demo(temporary: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_responses-bridge"));
    command
        .arg("demo")
        .args(arguments)
        .env_clear()
        .env("TMPDIR", temporary)
        .stdin(Stdio::null());
    command
}

fn played(arguments: &[&str]) -> (Output, String) {
    let temporary = tempfile::tempdir().unwrap();
    let output = demo(temporary.path(), arguments).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_plain_page(&text);
    (output, text)
}

/// The names in the second column, in order.
fn names(text: &str) -> Vec<&str> {
    let timed = |line: &&str| line.get(7..9) == Some(" s");
    text.lines()
        .filter(timed)
        .filter_map(|line| line[9..].split_whitespace().next())
        .collect()
}

/// `wanted` among `names`, in this order.
fn in_order(names: &[&str], wanted: &[&str]) -> bool {
    let mut names = names.iter();
    wanted.iter().all(|wanted| names.any(|name| name == wanted))
}

/// [RUN-12] [RUN-17] One incident, from a silent session to the way back, in ten seconds, without a key, and nothing is
/// left behind.
#[test]
fn an_incident_is_shown_from_its_beginning_to_its_end() {
    let temporary = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let output = demo(temporary.path(), &[]).output().unwrap();
    let took = began.elapsed();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(in_order(&names(&text), &INCIDENT), "{text}");
    let last = text.lines().last().unwrap();
    assert!(last.contains("a silent session"), "{last}");
    assert!(
        last.contains("responses-bridge serve") && last.contains("http://127.0.0.1:8787/v1"),
        "{last}"
    );
    let left: Vec<_> = std::fs::read_dir(temporary.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// [RUN-13] What the agent does and what the bridge sees stand beside each other, with the time, in plain words, and are
/// printed as they happen: the first lines come while the upstream is still silent.
#[test]
fn every_event_is_explained_as_it_happens() {
    let temporary = tempfile::tempdir().unwrap();
    let mut child = demo(temporary.path(), &[])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut arrived = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if line.get(7..9) == Some(" s") {
            arrived.push((line, Instant::now()));
        }
    }
    child.wait().unwrap();
    assert!(arrived.len() > 20, "{arrived:?}");
    for (line, _) in &arrived {
        line[..7]
            .trim()
            .parse::<f64>()
            .unwrap_or_else(|_| panic!("no time: {line}"));
        assert!(line[37..].split_whitespace().count() >= 3, "no words: {line}");
    }
    let at = |name: &str| {
        let found = arrived.iter().find(|(line, _)| line[11..].starts_with(name));
        found.unwrap_or_else(|| panic!("no {name}: {arrived:?}")).1
    };
    assert!(at("agent asks") <= at("session_opened") && at("session_opened") <= at("agent receives"));
    assert!(at("response_created_timeout") - at("session_reused") > Duration::from_secs(1));
    assert!(at("quarantine_probe") - at("quarantine_opened") > Duration::from_secs(1));
}

/// [RUN-14] [RUN-15] A healthy conversation shows no event of an incident.
#[test]
fn without_a_fault_there_is_no_incident() {
    let (output, text) = played(&["--fault", "none"]);
    assert!(output.status.success(), "{text}");
    let known = [
        "agent",
        "session_opened",
        "session_reused",
        "continuation_used",
        "turn_sent",
        "turn_accepted",
        "turn_finished",
    ];
    let strange: Vec<_> = names(&text)
        .into_iter()
        .filter(|name| !known.contains(name))
        .collect();
    assert!(strange.is_empty(), "{strange:?}\n{text}");
    assert_eq!(
        names(&text)
            .iter()
            .filter(|name| **name == "turn_finished")
            .count(),
        3
    );
}

fn shows(fault: &str, wanted: &[&str], told: &str) {
    let (output, text) = played(&["--fault", fault]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{fault}: {text}\n{errors}");
    assert!(in_order(&names(&text), wanted), "{fault}: {text}");
    assert!(text.contains(told), "{fault}: {text}");
    assert!(text.contains("nothing was sent twice"), "{fault}: {text}");
}

/// [RUN-14] Both silent shapes go the whole way, and neither telemetry nor pings prove anything.
#[test]
fn other_silent_sessions_are_incidents_too() {
    let faults = [
        ("events-without-created", "events came, which prove nothing"),
        ("telemetry", "events came, which prove nothing"),
        ("pings", "no event came"),
    ];
    std::thread::scope(|plays| {
        for (fault, told) in faults {
            plays.spawn(move || shows(fault, &INCIDENT, told));
        }
    });
}

/// [RUN-14] A socket that closes costs one turn, which is not sent again by itself.
#[test]
fn a_closed_socket_costs_one_turn() {
    let wanted = [
        "session_reused",
        "continuation_used",
        "turn_sent",
        "turn_finished",
        "session_retired",
        "session_opened",
        "turn_accepted",
    ];
    shows("close", &wanted, "HTTP 502");
}

/// [RUN-14] A refused upgrade is not seen by the agent.
#[test]
fn a_refused_upgrade_costs_nothing() {
    shows(
        "refusal",
        &["http_fallback", "turn_accepted", "session_opened"],
        "refused with 503",
    );
}

/// No line is wider than 100 columns, and without a terminal there is no colour.
fn assert_plain_page(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(!text.contains('\x1b'), "{text}");
}

/// The demo on a pseudo-terminal, with these variables.
fn on_a_terminal(variables: &[(&str, &str)]) -> String {
    let temporary = tempfile::tempdir().unwrap();
    let script = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) != 0)";
    let output = Command::new("python3")
        .args([
            "-c",
            script,
            env!("CARGO_BIN_EXE_responses-bridge"),
            "demo",
            "--fault",
            "none",
        ])
        .env("TMPDIR", temporary.path())
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// [RUN-15] On a terminal there is colour, unless NO_COLOR or a dumb terminal forbids it.
#[test]
fn colour_is_for_terminals_that_want_it() {
    assert!(on_a_terminal(&[]).contains("\x1b[32msession_opened"));
    assert!(!on_a_terminal(&[("NO_COLOR", "1")]).contains('\x1b'));
    assert!(!on_a_terminal(&[("TERM", "dumb")]).contains('\x1b'));
}

/// [RUN-16] What cannot be played is an error that says why.
#[test]
fn what_cannot_be_played_says_why() {
    let output = demo(Path::new("/nowhere/at/all"), &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("cannot make a directory for the state"),
        "{errors}"
    );
    let output = demo(Path::new("/tmp"), &["--fault", "silence"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("silent"));
}

/// [RUN-17] Ctrl-C ends it and leaves nothing behind.
#[test]
fn ctrl_c_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let mut child = demo(temporary.path(), &[])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("session_opened")));
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let left: Vec<_> = std::fs::read_dir(temporary.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
