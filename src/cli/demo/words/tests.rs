use super::*;

fn seen(json: serde_json::Value) -> Seen {
    serde_json::from_value(json).unwrap()
}

fn words(json: serde_json::Value) -> String {
    seen(json).words(&mut Sessions::default()).1
}

/// [RUN-13] What the numbers of an event say is in the words.
#[test]
fn the_words_say_what_the_event_says() {
    let silent =
        serde_json::json!({"event": "response_created_timeout", "shape": "eventless", "waited_ms": 1501});
    assert_eq!(words(silent), "no response.created in 1.5 s: no event came");
    let wedged = serde_json::json!({"event": "response_created_timeout", "shape": "events_without_created", "waited_ms": 900});
    assert_eq!(
        words(wedged),
        "no response.created in 900 ms: events came, which prove nothing"
    );
    let direct = serde_json::json!({"event": "turn_finished", "outcome": "completed", "transport": "http", "total_ms": 210});
    assert_eq!(words(direct), "completed on direct HTTP in 210 ms");
    let refused = serde_json::json!({"event": "http_fallback", "reason": "upgrade_refused", "status": 503});
    assert_eq!(
        words(refused),
        "WebSocket refused with 503: direct HTTP in the same call"
    );
}

/// [RUN-13] Sessions are numbered as they appear, and keep their number.
#[test]
fn sessions_keep_their_number() {
    let mut sessions = Sessions::default();
    let mut of = |session: u64| {
        seen(serde_json::json!({"event": "turn_sent", "transport": "websocket", "session": session}))
            .words(&mut sessions)
            .1
    };
    assert_eq!(of(99_000_001), "the request goes out on session 1");
    assert_eq!(of(99_000_002), "the request goes out on session 2");
    assert_eq!(of(99_000_001), "the request goes out on session 1");
}

/// [RUN-14] A healthy turn's events are no trouble; any other event is, the unknown ones too.
#[test]
fn trouble_is_told_from_work() {
    for healthy in ["session_opened", "session_reused", "turn_sent", "turn_accepted"] {
        assert!(
            !seen(serde_json::json!({"event": healthy})).is_trouble(),
            "{healthy}"
        );
    }
    assert!(!seen(serde_json::json!({"event": "turn_finished", "outcome": "completed"})).is_trouble());
    assert!(seen(serde_json::json!({"event": "turn_finished", "outcome": "truncated"})).is_trouble());
    assert!(seen(serde_json::json!({"event": "http_fallback"})).is_trouble());
    assert!(seen(serde_json::json!({"event": "store_degraded"})).is_trouble());
}
