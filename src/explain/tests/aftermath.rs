//! What a responder asks when it is over: after a kill, an operator's hand, a disk that was full.

use super::*;

fn start(before: &str, last: i64) -> Value {
    json!({"before": before, "last_ms": NOON.saturating_add_signed(last), "version": "1"})
}

/// [EXP-15] A kill between two calls of a conversation, or shortly before its first, is told: what ran then has no row.
#[test]
fn a_retry_does_not_hide_the_cut() {
    let cut = super::words::cut(NOON + 20_000, Some(NOON + 5_000), units::time);
    let clause = format!("; {cut}: a call of the conversation that ran then left no row");
    let mut journal = Journal::default();
    journal
        .served(5_000, 1)
        .add(20_000, "bridge_started", None, start("cut", 5_000))
        .served(25_000, 2);
    let story = journal.told(77);
    assert_eq!(story.cause, Cause::BridgeCut);
    assert!(
        story
            .sentence
            .starts_with("nothing went wrong with the calls themselves: both calls were served"),
        "{}",
        story.sentence
    );
    assert!(story.sentence.ends_with(&clause), "{}", story.sentence);
    assert!(story.timeline.iter().any(|line| line.what == "start"));
    // Each of the two had come to its end.
    for call in [1, 2] {
        assert_eq!(journal.told(call).cause, Cause::Healthy, "{call}");
    }
    // However often it went on, and whatever else happened in that time.
    for second in 0..150 {
        journal.add(
            26_000 + second,
            "config_reloaded",
            None,
            json!({"changed": ["http.x"]}),
        );
    }
    journal.served(60_000, 3).served(3_000_000, 4);
    let story = journal.told(77);
    assert!(story.sentence.ends_with(&clause), "{}", story.sentence);
    // A failed one is the cause; the cut is told all the same.
    journal.turn(
        3_100_000,
        5,
        "rejected",
        json!({"status": 500, "error": "server"}),
    );
    let story = journal.told(77);
    assert_eq!(story.cause, Cause::UpstreamRejected);
    assert!(story.sentence.ends_with(&clause), "{}", story.sentence);

    // Before the first call that has a row.
    let first = |arrived: i64| {
        let mut journal = Journal::default();
        journal
            .add(20_000, "bridge_started", None, start("cut", 5_000))
            .served(arrived + 1_000, 1);
        journal.told(77)
    };
    let story = first(60_000);
    assert_eq!(story.cause, Cause::BridgeCut);
    assert!(story.sentence.ends_with(&clause), "{}", story.sentence);
    assert_eq!(first(200_000).cause, Cause::Healthy);

    // One that had been drained lost nothing.
    let mut journal = Journal::default();
    journal
        .served(5_000, 1)
        .add(20_000, "bridge_started", None, start("drained", 5_000))
        .served(25_000, 2);
    assert_eq!(journal.told(77).cause, Cause::Healthy);
}

/// [EXP-16] A quarantine that an operator ended is not told as one that lasted its window, whether one key or all were cleared.
#[test]
fn a_quarantine_that_an_operator_cleared() {
    let told = |after: i64, fields: Value| {
        let mut journal = Journal::default();
        journal.incident().add(after, "operator_action", None, fields);
        journal.rows.sort_by_key(|row| row.at_ms);
        (1..).zip(&mut journal.rows).for_each(|(seq, row)| row.seq = seq);
        journal.told(1).sentence
    };
    let quarantined = "the conversation was quarantined for 60 s; ";
    let cleared = "an operator cleared it at 12:01:01; the retry at 12:01:01 was served";
    for key in [json!(KEY), Value::Null] {
        let sentence = told(
            61_000,
            json!({"reason": "quarantine_cleared", "by": "ann", "key": key, "count": 1}),
        );
        let (_, rest) = sentence.split_once(quarantined).unwrap();
        assert!(rest.starts_with(cleared), "{sentence}");
    }
    // Another key's, another action, one before it, and one when it was over.
    for (after, reason, key) in [
        (61_000, "quarantine_cleared", "000000000001"),
        (61_000, "quarantine_added", KEY),
        (30_000, "quarantine_cleared", KEY),
        (130_000, "quarantine_cleared", KEY),
    ] {
        let sentence = told(
            after,
            json!({"reason": reason, "by": "ann", "key": key, "count": 1}),
        );
        let (_, rest) = sentence.split_once(quarantined).unwrap();
        assert!(rest.starts_with("the retry"), "{sentence}");
    }
}

/// [EXP-5] What an operator did is told in words, every action that the bridge knows of.
#[test]
fn what_an_operator_did_has_words() {
    let told = |fields: Value| {
        let mut journal = Journal::default();
        journal.add(0, "operator_action", None, fields);
        let facts = fact::read(&Evidence {
            found: journal.rows,
            ..Evidence::default()
        });
        happened(&facts[0]).unwrap().words
    };
    for (fields, words) in [
        (
            json!({"reason": "session_closed", "by": "ann", "account": "main", "session": 9, "count": 1}),
            "session 9 of openai/main was closed by ann",
        ),
        (
            json!({"reason": "quarantine_added", "by": "token", "key": KEY, "count": 1}),
            "the conversation was put into quarantine with the admin token",
        ),
        (
            json!({"reason": "quarantine_cleared", "by": "page", "key": KEY, "count": 1}),
            "the conversation was taken out of quarantine on the status page",
        ),
        (
            json!({"reason": "quarantine_cleared", "by": "token", "count": 2}),
            "2 conversations were taken out of quarantine with the admin token",
        ),
        (
            json!({"reason": "quarantine_cleared", "by": "token", "count": 1}),
            "1 conversation was taken out of quarantine with the admin token",
        ),
        (
            json!({"reason": "breaker_reset", "by": "ann", "account": "main", "count": 1}),
            "the WebSocket transport of openai/main was reset by ann",
        ),
        (
            json!({"reason": "drain_on", "by": "ann", "count": 1}),
            "drained by ann: no new turns are taken",
        ),
        (
            json!({"reason": "drain_off", "by": "ann", "count": 1}),
            "the drain was ended by ann: new turns are taken again",
        ),
        (
            json!({"reason": "signed_in", "by": "page", "count": 1}),
            "somebody signed in on the status page",
        ),
        (
            json!({"reason": "of_tomorrow", "by": "ann", "count": 1}),
            "of_tomorrow by ann",
        ),
    ] {
        assert_eq!(told(fields), words);
    }
    // Each that the bridge can do is among those above.
    let sources = [
        include_str!("../../runtime/operate/actions.rs"),
        include_str!("../../admin/ui/answer.rs"),
    ];
    for reason in [
        "session_closed",
        "quarantine_added",
        "quarantine_cleared",
        "breaker_reset",
        "drain_on",
        "drain_off",
        "signed_in",
    ] {
        assert!(
            sources
                .iter()
                .any(|source| source.contains(&format!("\"{reason}\"")))
        );
        assert!(
            !told(json!({"reason": reason, "account": "main"})).contains('_'),
            "{reason}"
        );
    }
}

/// [EXP-17] The reasons why an id is not found begin with a call that still runs, and a state that is not written is one.
#[test]
fn a_call_that_runs_has_no_row() {
    let told = not_found(Some(NOON), &[]);
    let begin = "the journal has nothing of this id: a call that still runs has no row yet (`responses-bridge status` and the \
                 status page show what runs), a bridge that cannot write its state has nothing of now in it \
                 (`responses-bridge status` tells), or it may be older";
    assert!(told.starts_with(begin), "{told}");
    let told = not_found(None, &[]);
    assert!(told.contains("cannot write its state"), "{told}");
}
