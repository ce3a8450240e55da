use serde_json::{Value, json};

use super::*;

fn finished(change: Value) -> String {
    let mut body = json!({
        "event": "turn_finished", "provider": "openai", "account": "main", "model": "gpt-5", "key": "05420f42f987",
        "key_kind": "thread", "transport": "websocket", "outcome": "completed", "route": "only", "plan": "reused",
        "attempt": 1, "session": 9, "stream": true, "sent": true, "committed": true, "total_ms": 5000, "sent_ms": 1,
        "upstream_ms": 4900, "created_ms": 300, "first_output_ms": 700, "longest_gap_ms": 450, "age": "10m", "idle": "30s",
    });
    let members = body.as_object_mut().unwrap();
    for (name, value) in change.as_object().unwrap() {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    body.to_string()
}

fn of(only: Option<&str>, rows: &[(&str, String)]) -> Read {
    let mut evidence = Evidence::new(only, vec!["vercel".to_owned()]);
    for (at_ms, (event, body)) in (1000..).zip(rows) {
        evidence.take(Row { at_ms, event, body });
    }
    evidence.read()
}

fn one(change: Value) -> Read {
    of(None, &[("turn_finished", finished(change))])
}

fn wait(ms: u64, end: End) -> Vec<Wait> {
    vec![Wait { ms, end }]
}

/// [TUNE-3] what each end of a turn says about its acceptance and its silences.
#[test]
fn what_a_turn_says() {
    let read = one(json!({}));
    let gpt = &read.models["gpt-5"];
    assert_eq!(
        (&gpt.created, &gpt.gaps),
        (&wait(300, End::Came), &wait(450, End::Came))
    );
    assert_eq!(
        (read.rows, read.unreadable, read.span),
        (1, 0, Some((1000, 1000)))
    );

    let gone = one(json!({ "outcome": "client_gone" }));
    assert_eq!(gone.models["gpt-5"].gaps, wait(450, End::GivenUp));
    let idle = one(json!({ "outcome": "idle_timeout" }));
    assert_eq!(idle.models["gpt-5"].gaps, wait(450, End::Tripped));
    for outcome in ["rejected", "client_gone", "upstream_closed"] {
        let read = one(json!({ "outcome": outcome, "created_ms": null, "longest_gap_ms": null }));
        assert_eq!(
            read.models["gpt-5"].created,
            wait(4900, End::GivenUp),
            "{outcome}"
        );
        assert!(read.models["gpt-5"].gaps.is_empty());
    }
    let unsent = one(json!({ "sent": false, "upstream_ms": null, "created_ms": null }));
    assert!(unsent.models.is_empty());
}

/// [TUNE-3] direct HTTP is apart from sessions, and answers in one piece say nothing.
#[test]
fn direct_http_is_apart() {
    let read = one(json!({ "transport": "http", "session": null, "age": null, "idle": null }));
    assert!(read.models.is_empty());
    assert_eq!(read.direct.created, wait(300, End::Came));
    let whole = one(json!({ "transport": "http", "stream": false }));
    assert!(whole.direct.created.is_empty());
}

fn trip(session: u64, waited_ms: u64) -> (&'static str, String) {
    let body = json!({
        "event": "response_created_timeout", "provider": "openai", "account": "main", "model": "gpt-5",
        "key": "05420f42f987", "key_kind": "thread", "shape": "eventless", "session": session, "waited_ms": waited_ms,
    });
    ("response_created_timeout", body.to_string())
}

/// [TUNE-3] a silent session is two rows and one sample; where one of them was lost the other one counts.
#[test]
fn a_trip_counts_once() {
    let turn = |session: u64| {
        let change = json!({ "outcome": "response_created_timeout", "session": session, "created_ms": null, "longest_gap_ms": null,
            "total_ms": 61_000, "upstream_ms": 60_010 });
        ("turn_finished", finished(change))
    };
    let tripped = wait(60_003, End::Tripped);
    assert_eq!(
        of(None, &[trip(9, 60_003), turn(9)]).models["gpt-5"].created,
        tripped
    );
    assert_eq!(of(None, &[trip(9, 60_003)]).models["gpt-5"].created, tripped);
    assert_eq!(
        of(None, &[turn(9)]).models["gpt-5"].created,
        wait(60_010, End::Tripped)
    );
}

/// [TUNE-2] rows that are cut, forged or absurd are counted and left out.
#[test]
fn unreadable_rows_are_counted() {
    let bad = [
        ("turn_finished", String::new()),
        ("turn_finished", "{\"event\":\"turn_fin".to_owned()),
        ("turn_finished", "[]".to_owned()),
        ("turn_finished", finished(json!({ "created_ms": -1 }))),
        ("turn_finished", finished(json!({ "created_ms": 1e300 }))),
        ("turn_finished", finished(json!({ "created_ms": "300" }))),
        ("turn_finished", finished(json!({ "created_ms": 4901 }))),
        ("turn_finished", finished(json!({ "longest_gap_ms": u64::MAX }))),
        ("turn_finished", finished(json!({ "upstream_ms": 5001 }))),
        (
            "turn_finished",
            finished(json!({ "total_ms": u64::MAX, "upstream_ms": u64::MAX })),
        ),
        (
            "turn_finished",
            finished(json!({ "transport": "carrier pigeon" })),
        ),
        ("turn_finished", finished(json!({ "age": "eternal" }))),
        ("turn_finished", finished(json!({ "model": null }))),
        trip(1, 0),
        trip(1, u64::MAX),
        ("quarantine_opened", "null".to_owned()),
        ("quarantine_probe", json!({ "key": 7 }).to_string()),
        ("operator_action", "{}".to_owned()),
    ];
    let read = of(None, &bad);
    assert_eq!((read.rows, read.unreadable), (18, 18));
    assert!(read.models.is_empty() && read.direct.created.is_empty() && read.incidents.is_empty());
    assert_eq!((read.ages, read.span), (Buckets::default(), None));
    // Of what is not about windows nothing is expected.
    assert_eq!(of(None, &[("store_degraded", "{".to_owned())]).rows, 0);
}

/// [TUNE-2] a model's name is shown in a safe alphabet, whatever the row holds.
#[test]
fn names_are_made_safe() {
    let hostile =
        "'; DROP TABLE journal;-- <script>alert(1)</script> \u{1b}[31mred\u{1b}[0m \n ünïcode ".repeat(4);
    let read = one(json!({ "model": hostile }));
    let name = read.models.keys().next().unwrap();
    assert_eq!(name.len(), 64);
    assert!(
        name.starts_with("???DROP?TABLE?journal?--??script?alert?1??/script?"),
        "{name}"
    );
}

/// [TUNE-1] one model alone: its turns, and the quarantines that it opened.
#[test]
fn one_model_alone() {
    let quarantine = |event: &'static str, key: &str| (event, json!({ "key": key }).to_string());
    let rows = [
        trip(9, 60_000),
        quarantine("quarantine_opened", "05420f42f987"),
        quarantine("quarantine_opened", "other"),
        quarantine("quarantine_probe", "05420f42f987"),
        quarantine("quarantine_cleared", "05420f42f987"),
        quarantine("quarantine_probe", "other"),
        quarantine("quarantine_cleared", "other"),
        ("turn_finished", finished(json!({ "model": "o4-mini" }))),
    ];
    let all = of(None, &rows);
    assert_eq!((all.models.len(), all.incidents.len()), (2, 2));
    let gpt = of(Some("gpt-5"), &rows);
    assert_eq!((gpt.models.len(), gpt.incidents.len(), gpt.rows), (1, 1, 4));
    let other = of(Some("o4-mini"), &rows);
    assert_eq!((other.models.len(), other.incidents.len(), other.rows), (1, 0, 1));
    let none = of(Some("nosuch"), &rows);
    assert_eq!(
        (none.rows, &none.others[..]),
        (0, &["gpt-5".to_owned(), "o4-mini".to_owned()][..])
    );
}

/// [TUNE-8] each turn on a session counts in the bucket of its socket, once among those that failed with it; providers with
/// a `max_age` of their own say nothing about that of all.
#[test]
fn sockets_by_age() {
    let mut ages = Buckets::default();
    let mut idles = Buckets::default();
    ages.add(1, false);
    idles.add(1, false);
    let read = one(json!({}));
    assert_eq!((read.ages, read.idles), (ages, idles));
    let own = one(json!({ "provider": "vercel" }));
    assert_eq!((own.ages, own.idles), (Buckets::default(), idles));
    let mut failed = Buckets::default();
    failed.add(1, true);
    assert_eq!(one(json!({ "outcome": "upstream_closed" })).ages, failed);
    assert_eq!(one(json!({ "outcome": "rejected" })).ages, ages);
}
