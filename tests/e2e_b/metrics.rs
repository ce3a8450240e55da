//! What is counted and told: every documented metric, closed labels, and nothing that is a caller's.

use std::collections::{BTreeMap, BTreeSet};

use responses_bridge::bridge::plan::Direct;
use responses_bridge::refusal::Kind;
use responses_bridge::wire::error::ErrorClass;

use crate::client::Ask;
use crate::shared::metric;
use crate::world::{Setup, World};

/// Every metric, as `spec/events.md` lists them.
const METRICS: [&str; 28] = [
    "bridge_events_total",
    "bridge_turns_total",
    "bridge_upstream_errors_total",
    "bridge_refusals_total",
    "bridge_watchdog_trips_total",
    "bridge_socket_failures_total",
    "bridge_socket_failures_by_age_total",
    "bridge_accept_seconds",
    "bridge_first_output_seconds",
    "bridge_event_gap_seconds",
    "bridge_queue_wait_seconds",
    "bridge_ready",
    "bridge_sessions",
    "bridge_quarantined_keys",
    "bridge_queue_depth",
    "bridge_running_turns",
    "bridge_sick_transports",
    "bridge_owners",
    "bridge_pins",
    "bridge_turn_states",
    "bridge_unavailable_accounts",
    "bridge_held_bytes",
    "bridge_store_lag_seconds",
    "bridge_store_queue",
    "bridge_store_degraded",
    "bridge_store_lost_total",
    "bridge_journal_lost_total",
    "bridge_log_lost_total",
];

const MARKS: [&str; 7] = [
    "sk-very-secret",
    "thread-mark",
    "session-mark",
    "cache-mark",
    "prompt-mark",
    "model-mark",
    "acct-mark",
];

/// A bridge that has met a bit of everything, by a caller whose every word is a mark.
async fn well_travelled() -> World {
    let config = "[watchdog]\nresponse_created_deadline = \"150ms\"\n[quarantine]\nwindow = \"300ms\"\nmax_window = \"1s\"\n\
                  [session]\nmax_per_key = 1\nqueue_wait = \"50ms\"";
    let world = Setup::new().config(config).start().await;
    let ask = |words: &str| {
        let ask = Ask::turn(format!("prompt-mark sim:conv=a {words}"))
            .bearer("sk-very-secret")
            .thread("thread-mark");
        let ask = ask
            .header("session-id", "session-mark")
            .header("openai-organization", "acct-mark");
        ask.with("prompt_cache_key", "cache-mark")
            .with("model", "model-mark")
    };
    let first = world.ask(&ask("hello")).await.id();
    world.ask(&ask("hello").json().after(&first)).await.completed();
    world.ask(&ask("sim:error(status=429)")).await;
    world.ask(&ask("sim:terminal(shape=failed)")).await;
    world.ask(&ask("sim:terminal(shape=incomplete)")).await;
    world.ask(&ask("sim:reset")).await;
    world.ask(&ask("sim:close(code=1011, after=1)")).await;
    world.ask(&ask("sim:silent(on=ws)")).await;
    world.ask(&ask("by http")).await.completed();
    tokio::time::sleep(std::time::Duration::from_millis(320)).await;
    world.ask(&ask("a probe")).await.completed();
    let mut busy = world.open(&ask("sim:pause(after=1, for=ever)")).await;
    busy.until("response.created").await;
    world.ask(&ask("queued")).await.completed();
    drop(busy);
    world.ask(&ask("hello").to("/v1/nothing/here")).await;
    world
        .ask(&Ask::bare("GET", "/nowhere").bearer("sk-very-secret"))
        .await;
    world
        .ask(&Ask::bare("GET", format!("/v1/responses/{first}")).bearer("sk-very-secret"))
        .await;
    world
}

/// Name and labels of every series of a scrape.
async fn series(world: &World) -> Vec<(String, BTreeMap<String, String>)> {
    let answer = world.ask(&Ask::bare("GET", "/metrics")).await;
    let lines = answer
        .text()
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let parse = |line: &str| {
        let (left, value) = line.rsplit_once(' ').unwrap();
        value.parse::<f64>().unwrap();
        let (name, labels) = left.split_once('{').unwrap_or((left, ""));
        let pairs = labels
            .trim_end_matches('}')
            .split("\",")
            .filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (name, value) = pair.split_once("=\"").unwrap();
            (name.to_owned(), value.trim_end_matches('"').to_owned())
        };
        (name.to_owned(), pairs.map(pair).collect())
    };
    lines.map(parse).collect()
}

/// [EVT-3] Every documented metric is there, and no other.
#[tokio::test]
async fn every_documented_metric() {
    let world = well_travelled().await;
    let suffixes = ["_bucket", "_sum", "_count"];
    let base = |name: String| {
        let histogram = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix));
        histogram
            .filter(|base| base.ends_with("_seconds"))
            .map(str::to_owned)
            .unwrap_or(name)
    };
    let found: BTreeSet<String> = series(&world)
        .await
        .into_iter()
        .map(|(name, _)| base(name))
        .collect();
    let documented = std::fs::read_to_string("spec/events.md").unwrap();
    for name in &found {
        assert!(
            documented.contains(&format!("`{name}`")),
            "{name} is not in spec/events.md"
        );
    }
    for name in METRICS {
        assert!(found.contains(name), "{name} is missing; there are {found:?}");
    }
}

/// [EVT-4] [INV-9] Every label is one of the documented few, and its value one of a closed set or a configured name. Nothing
/// of the caller's is in a label or in the log: no credential, no prompt, no id as it was sent.
#[tokio::test]
async fn labels_are_closed() {
    let world = well_travelled().await;
    let mut seen = BTreeMap::<String, BTreeSet<String>>::new();
    for (_, labels) in series(&world).await {
        for (name, value) in labels {
            seen.entry(name).or_default().insert(value);
        }
    }
    let known: BTreeSet<&str> = [
        "event",
        "reason",
        "shape",
        "transport",
        "provider",
        "account",
        "key_kind",
        "outcome",
        "kind",
        "class",
        "state",
        "close",
        "socket",
        "last_event",
        "age",
        "idle",
        "le",
    ]
    .into();
    let names: BTreeSet<&str> = seen.keys().map(String::as_str).collect();
    assert!(names.is_subset(&known), "{names:?}");
    let word = |value: &String| {
        value
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    for (name, values) in seen.iter().filter(|(name, _)| *name != "le") {
        assert!(values.iter().all(word), "{name}: {values:?}");
        assert!(values.len() <= 40, "{name}: {values:?}");
    }
    assert_eq!(
        seen["provider"],
        ["chatgpt", "openai"]
            .map(str::to_owned)
            .into_iter()
            .filter(|name| seen["provider"].contains(name))
            .collect()
    );
    let classes = ErrorClass::ALL.map(ErrorClass::label);
    assert!(
        seen["class"]
            .iter()
            .all(|class| classes.contains(&class.as_str())),
        "{:?}",
        seen["class"]
    );
    let refusals: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.label()).collect();
    assert!(
        seen["kind"].iter().all(|kind| refusals.contains(kind.as_str())),
        "{:?}",
        seen["kind"]
    );
    assert!(
        seen["reason"].contains(Direct::Busy.label()),
        "{:?}",
        seen["reason"]
    );

    let scrape = world.ask(&Ask::bare("GET", "/metrics")).await;
    let log: String = world.lines().iter().map(|line| format!("{line}\n")).collect();
    for mark in MARKS {
        assert!(!scrape.text().contains(mark), "{mark} is in the metrics");
        let told = mark == "model-mark";
        assert_eq!(log.contains(mark), told, "{mark} in the log");
    }
    let ids = world.upstream.look(|ledger| {
        ledger
            .creates
            .iter()
            .map(|create| create.response_id.clone())
            .collect::<Vec<_>>()
    });
    assert!(
        ids.iter().all(|id| !log.contains(id.as_str())),
        "a response id stands in the log as it is"
    );
}

/// [EVT-10] What the upstream rejects or fails is counted by its class, with one account, too, by either transport.
#[tokio::test]
async fn upstream_errors_by_class() {
    for transport in ["auto", "http"] {
        let config = format!(
            "[providers.openai]\nbase_url = \"{{openai}}\"\ntransport = \"{transport}\"\n\
             [[providers.openai.accounts]]\nname = \"main\"\ncredential = \"client\""
        );
        let world = Setup::new().config(&config).start().await;
        for (words, class) in [
            ("error(status=429)", "rate_limit"),
            ("error(status=401)", "authentication"),
            ("error(status=429, code=usage_limit_reached)", "quota"),
            ("terminal(shape=failed, code=server_error)", "server"),
        ] {
            for _ in 0..2 {
                world.ask(&Ask::turn(format!("sim:{words}"))).await;
            }
            let labels = format!("class=\"{class}\"");
            let counted = metric(&world, "bridge_upstream_errors_total", &labels).await;
            assert_eq!(counted, 2.0, "{transport} {class}");
        }
        world.ask(&Ask::turn("hello")).await.completed();
        assert_eq!(metric(&world, "bridge_upstream_errors_total", "").await, 8.0);
    }
}

/// [EVT-1] [EVT-2] One occurrence is one line and one count; a healthy turn is one line at `info`; every line has time, level
/// and a name of the closed set.
#[tokio::test]
async fn one_line_and_one_count() {
    let world = Setup::new().start().await;
    for _ in 0..3 {
        world
            .ask(&Ask::turn("sim:conv=a hello").thread("a"))
            .await
            .completed();
    }
    let lines = world.lines();
    let info: Vec<_> = lines
        .iter()
        .filter(|line| line["level"] == "info")
        .map(|line| line["event"].clone())
        .collect();
    assert_eq!(
        info,
        [
            "bridge_started",
            "turn_finished",
            "turn_finished",
            "turn_finished"
        ]
    );
    for line in &lines {
        assert!(line["ts"].as_str().unwrap().ends_with('Z'));
        assert!(["debug", "info", "warn"].contains(&line["level"].as_str().unwrap()));
    }
    let mut counts = BTreeMap::<&str, f64>::new();
    for line in &lines {
        *counts.entry(line["event"].as_str().unwrap()).or_default() += 1.0;
    }
    for (event, count) in counts {
        let counted = metric(&world, "bridge_events_total", &format!("event=\"{event}\"")).await;
        assert_eq!(counted, count, "{event}");
    }
    let turn = &world.events("turn_finished")[2];
    for phase in ["total_ms", "sent_ms", "created_ms", "first_output_ms"] {
        assert!(turn[phase].is_u64(), "{phase}: {turn}");
    }
}

/// [EVT-3] The time between events is that of one turn: how long a socket was idle between two turns is no gap.
#[tokio::test]
async fn idle_time_is_no_gap() {
    let world = Setup::new().config("[session]\nmax_per_key = 1").start().await;
    for _ in 0..2 {
        world
            .ask(&Ask::turn("sim:conv=a hello").thread("a"))
            .await
            .completed();
        tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
    }
    let within = metric(&world, "bridge_event_gap_seconds_bucket", "le=\"1\"").await;
    assert_eq!(metric(&world, "bridge_event_gap_seconds_count", "").await, within);
    let slow = Ask::turn("sim:conv=b sim:pause(after=1, for=1100ms)").thread("b");
    world.ask(&slow).await.completed();
    let within = metric(&world, "bridge_event_gap_seconds_bucket", "le=\"1\"").await;
    assert_eq!(
        metric(&world, "bridge_event_gap_seconds_count", "").await,
        within + 1.0
    );
}

/// [EVT-6] The six lines of an incident, in their order, by one key; and nothing of the kind about anybody else.
#[tokio::test]
async fn an_incident_can_be_read() {
    let config = "[watchdog]\nresponse_created_deadline = \"150ms\"\n[quarantine]\nwindow = \"300ms\"\nmax_window = \"1s\"";
    let world = Setup::new().config(config).start().await;
    let ask = |words: &str| Ask::turn(format!("sim:conv=a {words}")).thread("a");
    world
        .ask(&Ask::turn("sim:conv=b hello").thread("b"))
        .await
        .completed();
    assert_eq!(world.ask(&ask("sim:silent(on=ws)")).await.status, 504);
    world.ask(&ask("by http")).await.completed();
    tokio::time::sleep(std::time::Duration::from_millis(320)).await;
    world.ask(&ask("the probe")).await.completed();
    let incident = [
        "response_created_timeout",
        "session_retired",
        "quarantine_opened",
        "quarantine_http_fallback",
        "quarantine_probe",
        "quarantine_cleared",
    ];
    assert_eq!(world.sequence(&incident), incident);
    let keys: BTreeSet<_> = incident
        .iter()
        .map(|name| world.events(name)[0]["key"].to_string())
        .collect();
    assert_eq!(keys.len(), 1, "{keys:?}");
    assert_eq!(world.events("response_created_timeout")[0]["shape"], "eventless");
    assert_eq!(world.events("session_retired")[0]["reason"], "eventless");
}

/// [EVT-4] [INV-9] A model's name is the caller's text: whatever stands in it, the log keeps 64 safe characters, no label has
/// it, and what the bridge says of it to the client is whole.
#[tokio::test]
async fn a_hostile_model_name() {
    let world = Setup::new().start().await;
    let name = format!("gpt\"}}\n\u{1b}[31m{{\\ 語 {}", "x".repeat(500));
    let answer = world
        .ask(&Ask::turn("sim:conv=a sim:reset(after=3)").with("model", name.as_str()))
        .await;
    assert_eq!(answer.failure(), "bridge_upstream_closed");
    assert_eq!(answer.terminal().data["response"]["model"], name.as_str());
    let told = world.events("turn_finished")[0]["model"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(told.len() == 64 && told.starts_with("gpt"), "{told:?}");
    assert!(
        told.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._:/-?".contains(&byte)),
        "{told:?}"
    );
    let scrape = world.ask(&Ask::bare("GET", "/metrics")).await;
    assert!(!scrape.text().contains("xxxx"));
}
