//! Stories from rows that a bridge could have written.

use std::cell::RefCell;

use serde_json::{Value, json};

use super::timeline::happened;
use super::*;
use crate::bridge::availability::Reason;
use crate::bridge::plan::Direct;
use crate::bridge::route::Why;
use crate::bridge::session::Retired;
use crate::bridge::turn::Outcome;
use crate::journal::{STARTS, SURROUNDINGS};
use crate::refusal::Kind;
use crate::upstream::CloseClass;
use crate::wire::error::ErrorClass;

mod aftermath;

/// 2026-11-30T12:00:00Z.
const NOON: u64 = 1_796_040_000_000;
const KEY: &str = "1f2e3d4c5b6a";

/// A journal in memory, which notes what it is asked.
#[derive(Default)]
struct Journal {
    rows: Vec<Row>,
    asked: RefCell<Vec<Wanted>>,
}

impl Source for Journal {
    type Fault = ();

    fn find(&self, name: u64, most: usize) -> Result<Vec<Row>, ()> {
        self.rows(&Wanted {
            until_ms: u64::MAX,
            name: Some(name),
            most,
            newest: true,
            ..Wanted::default()
        })
    }

    fn rows(&self, wanted: &Wanted) -> Result<Vec<Row>, ()> {
        self.asked.borrow_mut().push(wanted.clone());
        let fits = |row: &&Row| {
            (wanted.since_ms..=wanted.until_ms).contains(&row.at_ms)
                && wanted.kind.is_none_or(|kind| kind == row.event)
                && wanted.name.is_none_or(|name| row.names.contains(&name))
                && wanted
                    .account
                    .as_ref()
                    .is_none_or(|account| Some(account) == row.account.as_ref())
        };
        let rows: Vec<Row> = self.rows.iter().filter(fits).cloned().collect();
        let over = rows.len().saturating_sub(wanted.most);
        Ok(match wanted.newest {
            true => rows.into_iter().skip(over).collect(),
            false => rows.into_iter().take(wanted.most).collect(),
        })
    }
}

impl Journal {
    /// Something happened `after` milliseconds after noon, to the call of this name, if to one.
    fn add(&mut self, after: i64, event: &str, call: Option<u64>, fields: Value) -> &mut Self {
        let mut body = fields;
        body["event"] = event.into();
        let mut names: Vec<u64> = call.into_iter().collect();
        names.extend(call.map(|_| 77));
        names.extend(body["key"].as_str().and_then(key_name));
        let around = [
            "cooldown_",
            "credential_",
            "breaker_",
            "store_",
            "clock_",
            "config_",
            "operator_",
            "drain_",
            "bridge_",
        ];
        if around.iter().any(|prefix| event.starts_with(prefix)) {
            names.push(SURROUNDINGS);
        }
        if event == "bridge_started" {
            names.push(STARTS);
        }
        let account = body["account"]
            .as_str()
            .map(|account| format!("openai/{account}"));
        self.rows.push(Row {
            seq: self.rows.len() as u64 + 1,
            at_ms: NOON.saturating_add_signed(after),
            event: event.to_owned(),
            account,
            names,
            body: body.to_string(),
        });
        self
    }

    /// A turn of a call ended so.
    fn turn(&mut self, after: i64, call: u64, outcome: &str, more: Value) -> &mut Self {
        let mut fields = json!({
            "provider": "openai", "account": "main", "model": "gpt-5", "key": KEY, "key_kind": "thread",
            "transport": "websocket", "outcome": outcome, "route": "only", "plan": "opened", "attempt": 1,
            "session": 9, "stream": true, "sent": true, "committed": false, "total_ms": 1000, "sent_ms": 10
        });
        for (name, value) in more.as_object().unwrap() {
            fields[name] = value.clone();
        }
        self.add(after, "turn_finished", Some(call), fields)
    }

    fn served(&mut self, after: i64, call: u64) -> &mut Self {
        self.turn(
            after,
            call,
            "completed",
            json!({"created_ms": 310, "first_output_ms": 905, "committed": true}),
        )
    }

    /// The incident of the issue's text.
    fn incident(&mut self) -> &mut Self {
        let key = |fields: Value| {
            let mut fields = fields;
            (fields["key"], fields["account"]) = (KEY.into(), "main".into());
            fields
        };
        self.add(
            60_010,
            "response_created_timeout",
            Some(1),
            key(json!({"shape": "eventless", "waited_ms": 60_000})),
        );
        self.turn(60_010, 1, "response_created_timeout", json!({"total_ms": 60_010}));
        self.add(
            60_011,
            "session_retired",
            None,
            key(json!({"session": 9, "reason": "eventless"})),
        );
        self.add(
            60_011,
            "quarantine_opened",
            None,
            key(json!({"window_ms": 60_000, "trip": 1})),
        );
        self.add(61_000, "quarantine_http_fallback", Some(2), key(json!({})));
        let http = json!({"transport": "http", "plan": "quarantined", "created_ms": 200, "committed": true});
        self.turn(62_000, 2, "completed", http)
    }

    fn told(&self, name: u64) -> Story {
        explain(&gather(self, &[name]).unwrap()).unwrap()
    }
}

/// [EXP-4] The sentence of the issue's text, by the failed call, by the conversation, and by the printed key.
#[test]
fn a_silent_session() {
    let mut journal = Journal::default();
    journal.incident();
    for name in [1, 77, key_name(KEY).unwrap()] {
        let story = journal.told(name);
        assert_eq!(
            story.sentence,
            "the upstream accepted the connection but never sent response.created; the conversation was quarantined for \
             60 s; the retry at 12:01:01 was served over HTTP"
        );
        assert_eq!((story.cause, story.keys), (Cause::Silent, vec![KEY.to_owned()]));
    }
    let story = journal.told(2);
    assert_eq!(
        story.sentence,
        "the conversation was in quarantine since 12:01:00, because its session had gone silent; the call was served by \
         openai/main over HTTP in 1 s, response.created after 200 ms"
    );
    assert_eq!(story.cause, Cause::Quarantined);
}

/// [EXP-2] [EXP-3] [EXP-10] The timeline has what was planned, sent, seen and done, in the order of time, with the next call,
/// which is seen to be another one.
#[test]
fn a_timeline_across_requests() {
    let mut journal = Journal::default();
    journal.incident();
    let story = journal.told(1);
    assert_eq!((story.calls, story.others), (1, 1));
    let told = story.timeline.iter().map(|line| {
        let call = match (line.call, line.other) {
            (Some(call), None) => format!("#{call}"),
            (None, Some(other)) => format!("~{other}"),
            _ => String::new(),
        };
        format!("{} {call} {} {}", line.since_ms, line.what, line.words)
    });
    let told: Vec<String> = told.collect();
    assert_eq!(
        told,
        [
            "0 #1 asked gpt-5, key 1f2e3d4c5b6a (thread)",
            "0 #1 route to openai/main: no other could serve it",
            "0 #1 plan by a session opened for it",
            "10 #1 sent over WebSocket, session 9",
            "60010 #1 watchdog nothing at all came within 60 s of the sending",
            "60010 #1 ended failed after 60 s: the upstream never sent response.created",
            "60011  session session 9 takes no turn any more: it was silent",
            "60011  quarantine for 60 s this conversation goes over HTTP",
            "61000 ~1 quarantine over HTTP to the same account",
            "62000 ~1 call over HTTP by openai/main completed after 1 s",
        ]
    );
    assert_eq!(story.timeline[0].at, "2026-11-30T12:00:00.000Z");
}

/// [EXP-4] Of several things the most specific to the call comes first, then what was around it.
#[test]
fn the_call_before_its_surroundings() {
    let mut journal = Journal::default();
    journal
        .add(
            -5_000,
            "store_degraded",
            None,
            json!({"reason": "full", "lost": 0, "way_out": "x"}),
        )
        .turn(
            1_000,
            1,
            "upstream_closed",
            json!({"close": "server_error", "socket": "reused", "turns": 3}),
        )
        .add(
            2_000,
            "config_rejected",
            None,
            json!({"reason": "faulty", "line": 3, "key_path": "http.x", "faults": 1}),
        );
    assert_eq!(
        journal.told(1).sentence,
        "the upstream closed the connection with code 1011, server error after the request was sent and before \
         response.created, on a session that was in its 3rd turn; the bridge did not send it again, since the upstream may \
         have taken it; no later call of the conversation is in the journal; the state could not be written from 11:59:55: \
         the disk is full; the configuration that was read at 12:00:02 was rejected (line 3, http.x), and the one before it \
         stayed in force"
    );
    let mut journal = Journal::default();
    journal
        .add(-5_000, "store_degraded", None, json!({"reason": "full"}))
        .served(1_000, 1)
        .add(9_000, "store_recovered", None, json!({"lost": 0}));
    let story = journal.told(1);
    assert_eq!(
        story.sentence,
        "nothing went wrong with the call itself: the call was served by openai/main over WebSocket in 1 s, response.created \
         after 310 ms, first output after 905 ms; the state could not be written from 11:59:55 until 12:00:09: the disk is \
         full"
    );
    assert_eq!(
        (story.cause, story.detail.as_deref()),
        (Cause::StoreDegraded, Some("full"))
    );
}

/// [EXP-4] What was over before the call, and what is of other accounts or calls, is none of its causes.
#[test]
fn what_is_over_is_no_cause() {
    let mut journal = Journal::default();
    journal
        .add(-90_000, "store_degraded", None, json!({"reason": "full"}))
        .add(-80_000, "store_recovered", None, json!({"lost": 0}))
        .add(-80_000, "config_rejected", None, json!({"reason": "faulty"}))
        .add(-70_000, "config_reloaded", None, json!({"changed": ["http.x"]}))
        .add(
            -70_000,
            "cooldown_started",
            None,
            json!({"account": "a", "reason": "quota", "for_ms": 10_000}),
        )
        .add(
            -40_000,
            "breaker_changed",
            None,
            json!({"account": "main", "reason": "opened"}),
        )
        .add(
            -30_000,
            "breaker_changed",
            None,
            json!({"account": "main", "reason": "closed"}),
        )
        .served(1_000, 1);
    let story = journal.told(1);
    assert_eq!(story.cause, Cause::Healthy, "{}", story.sentence);
    journal.add(
        -10_000,
        "cooldown_started",
        None,
        json!({"account": "b", "reason": "quota", "for_ms": 60_000}),
    );
    assert_eq!(journal.told(1).cause, Cause::Cooldown);
}

/// [EXP-4] Of several calls the last one in trouble is told; the others are counted.
#[test]
fn a_conversation_of_many_calls() {
    let mut journal = Journal::default();
    for call in 1..=3 {
        journal.served(call * 10_000, call.unsigned_abs());
    }
    assert!(
        journal
            .told(77)
            .sentence
            .starts_with("nothing went wrong: all 3 calls were served; the last one was")
    );
    journal
        .turn(40_000, 4, "rejected", json!({"status": 500, "error": "server"}))
        .turn(
            50_000,
            5,
            "slow_client",
            json!({"created_ms": 5, "committed": true}),
        )
        .served(60_000, 6);
    let story = journal.told(77);
    assert_eq!(
        story.sentence,
        "2 of 6 calls failed, the last one at 12:00:50: the client did not take the response's bytes in time; the bridge \
         tore the stream and closed the upstream connection; the retry at 12:00:59 was served over WebSocket"
    );
    // Those in order take one line each.
    let lines = |call| {
        story
            .timeline
            .iter()
            .filter(move |line| line.call == Some(call))
            .count()
    };
    assert_eq!((lines(1), lines(5) > 4), (1, true));
}

/// [EXP-2] Calls without a conversation of their own share a key, and are not each other's retries.
#[test]
fn keyless_calls_are_told_alone() {
    let mut journal = Journal::default();
    journal
        .turn(
            1_000,
            1,
            "upstream_closed",
            json!({"key_kind": "keyless", "close": "reset"}),
        )
        .turn(3_000, 2, "completed", json!({"key_kind": "keyless"}));
    let mut story = journal.told(1);
    assert!(
        !story.sentence.contains("retry") && !story.sentence.contains("later call"),
        "{}",
        story.sentence
    );
    story.timeline.retain(|line| line.call == Some(2));
    assert!(story.timeline.is_empty());
}

/// [EXP-4] The bridge's refusals are told as such, with the account where one is meant.
#[test]
fn refusals() {
    let mut journal = Journal::default();
    journal
        .add(
            0,
            "owner_unavailable",
            Some(1),
            json!({"account": "a", "reason": "credential", "retry_after_s": 10}),
        )
        .add(0, "refused", Some(1), json!({"reason": "owner_unavailable"}))
        .add(5, "refused", Some(2), json!({"reason": "draining"}));
    assert_eq!(
        journal.told(1).sentence,
        "the bridge refused it, because openai/a, the account that holds what it builds on, was unavailable: its credential \
         was rejected; nothing of it was sent upstream"
    );
    let story = journal.told(2);
    assert_eq!(
        (story.cause, story.detail.as_deref()),
        (Cause::Drained, Some("draining"))
    );
    assert_eq!(
        story.sentence,
        "the bridge refused it: it took no new turns, since an operator had drained it or it was shutting down; nothing of \
         it was sent upstream"
    );
}

/// [EXP-4] A client that left before there was a response had got heartbeats at most, and that is what is said.
#[test]
fn heartbeats_are_no_response() {
    let told = |more: Value| {
        let mut journal = Journal::default();
        let story = journal.turn(1_000, 1, "client_gone", more).told(1);
        (story.timeline.last().unwrap().words.clone(), story.sentence)
    };
    let (ended, sentence) = told(json!({"committed": true}));
    assert_eq!(
        ended,
        "the client left after 1 s; only heartbeats had been sent to the client"
    );
    assert!(
        sentence.starts_with(
            "the client left after 1 s, after the request was sent and before response.created; only heartbeats had been \
             sent to it; "
        ),
        "{sentence}"
    );
    for more in [
        json!({}),
        json!({"committed": true, "created_ms": 5}),
        // A call that went with its process does not know.
        json!({"committed": true, "sent_ms": null}),
    ] {
        let (ended, sentence) = told(more);
        assert!(!(ended + &sentence).contains("heartbeats"), "{sentence}");
    }
}

/// [EXP-2] Nothing of a call comes before it was asked for, though its arrival is reckoned from whole milliseconds.
#[test]
fn it_begins_with_being_asked() {
    let mut journal = Journal::default();
    let fields = json!({"key": KEY, "account": "main"});
    journal.add(0, "quarantine_probe", Some(1), fields).turn(
        1_001,
        1,
        "completed",
        json!({"total_ms": 1_000}),
    );
    let told: Vec<&str> = journal.told(1).timeline.iter().map(|line| line.what).collect();
    assert_eq!(told, ["asked", "route", "plan", "quarantine", "sent", "ended"]);
}

/// [EXP-4] Other calls that an account rejected are counted where it did so for the same reason.
#[test]
fn other_calls_of_the_same_reason() {
    let mut journal = Journal::default();
    for (call, class) in [(2, "rate_limit"), (3, "quota"), (4, "rate_limit"), (1, "quota")] {
        let because = json!({"status": 429, "error": class, "key": format!("a{call:011x}")});
        journal.turn(1_000, call, "rejected", because);
    }
    let sentence = journal.told(1).sentence;
    assert!(
        sentence.contains("with 429 (quota used up), as it did 1 other call within a minute"),
        "{sentence}"
    );
}

/// [EXP-4] A call that went from account to account: the rejection of each is told, and its keys are in their order.
#[test]
fn each_account_that_rejected_it() {
    let class = json!({"status": 429, "error": "rate_limit", "total_ms": 20});
    let spare = |more: Value| {
        let mut fields = more;
        (fields["account"], fields["attempt"]) = ("spare".into(), 2.into());
        (fields["key"], fields["total_ms"]) = ("a00000000001".into(), 60.into());
        fields
    };
    let told = |outcome: &str, more: Value| {
        let mut journal = Journal::default();
        let story = journal
            .turn(20, 1, "rejected", class.clone())
            .turn(60, 1, outcome, spare(more))
            .told(1);
        assert_eq!(story.keys, [KEY, "a00000000001"]);
        story.sentence
    };
    let main = "openai/main rejected it with 429 (rate limit)";
    for (outcome, more, words) in [
        (
            "rejected",
            json!({"status": 429, "error": "quota"}),
            ", then openai/spare with 429 (quota used up); ",
        ),
        (
            "rejected",
            json!({"status": 400, "error": "invalid"}),
            ", then openai/spare with 400 (a fault of the request); ",
        ),
        (
            "rejected",
            json!({"account": "x", "error": "quota"}),
            ", then openai/spare rejected it (quota used up); ",
        ),
        (
            "connect_failed",
            json!({}),
            ", then openai/spare could not be reached; ",
        ),
        (
            "idle_timeout",
            json!({}),
            ", and then it went to openai/spare; the upstream went silent in the middle",
        ),
        (
            "completed",
            json!({}),
            "; the same call was served by openai/spare",
        ),
    ] {
        let sentence = told(outcome, more);
        let begin = format!("{main}{words}");
        assert!(sentence.starts_with(&begin), "{sentence}");
    }
    let mut journal = Journal::default();
    let class = json!({"status": 401, "error": "authentication", "total_ms": 20});
    let again = json!({"status": 401, "error": "authentication", "total_ms": 40, "attempt": 2});
    journal
        .turn(20, 1, "rejected", class)
        .turn(40, 1, "rejected", again);
    let sentence = journal.told(1).sentence;
    let begin = "openai/main rejected it with 401 (credential not accepted), then again with 401 (credential not accepted)";
    assert!(sentence.starts_with(begin), "{sentence}");
}

/// [EXP-5] Every outcome, kind, plan, route, reason and class has words of its own: none is shown as its label.
#[test]
fn every_label_has_words() {
    let mut journal = Journal::default();
    let mut causes = Vec::new();
    let outcomes = [
        Outcome::Completed,
        Outcome::Incomplete,
        Outcome::Failed,
        Outcome::Rejected,
        Outcome::ClientGone,
    ];
    let outcomes = outcomes.into_iter().chain(Kind::ALL.map(Outcome::Bridge));
    for (call, outcome) in (1..).zip(outcomes) {
        journal.turn(0, call, outcome.label(), json!({"key": format!("{call:012x}")}));
        let story = journal.told(call);
        assert!(
            !story.sentence.contains('_') || story.sentence.contains('.'),
            "{}",
            story.sentence
        );
        assert!(
            !story.sentence.contains("ended as "),
            "{outcome:?}: {}",
            story.sentence
        );
        causes.push(story.cause);
    }
    for (call, kind) in (100..).zip(Kind::ALL) {
        journal.add(0, "refused", Some(call), json!({"reason": kind.label()}));
        let sentence = journal.told(call).sentence;
        assert!(sentence.contains(words::of_kind(kind)), "{sentence}");
    }
    // One kind for what names a wrong Host and for what comes from a page.
    let stranger = words::of_kind(Kind::OriginNotAllowed);
    assert!(
        stranger.contains("Host") && stranger.contains("web page"),
        "{stranger}"
    );
    for direct in Direct::ALL {
        assert!(words::plan(direct.label()).starts_with("over HTTP, because "));
    }
    assert_eq!(
        words::plan("ceiling"),
        "over HTTP, because the account had refused a further socket while others were open"
    );
    for why in Why::ALL {
        assert_ne!(words::route(why.label()), why.label());
    }
    for strategy in [
        "priority",
        "weighted",
        "round_robin",
        "least_in_flight",
        "power_of_two",
    ] {
        assert!(words::route(strategy).starts_with("chosen by strategy"));
    }
    type Words = fn(&str) -> &str;
    let lists: [(Vec<&str>, Words); 5] = [
        (
            Retired::ALL.map(|retired| retired.label()).to_vec(),
            words::retired,
        ),
        (Reason::ALL.map(|reason| reason.label()).to_vec(), words::reason),
        (ErrorClass::ALL.map(|class| class.label()).to_vec(), words::class),
        (CloseClass::ALL.map(|close| close.label()).to_vec(), words::close),
        (words::STORE.map(|reason| reason.label()).to_vec(), words::store),
    ];
    for (labels, words) in lists {
        let mut distinct = labels.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(
            distinct.len(),
            labels.len(),
            "one is listed twice, and another one not at all"
        );
        for label in labels {
            assert_ne!(words(label), label);
            assert_eq!(words("of_tomorrow"), "of_tomorrow");
        }
    }
    let mut labels = Cause::ALL.map(Cause::label).to_vec();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), Cause::ALL.len());
    assert!(causes.iter().all(|cause| Cause::ALL.contains(cause)));
}

/// [EXP-5] Every event that there is has a line of its own, and one that only another version knows is shown as it is.
#[test]
fn every_event_has_words() {
    let source = include_str!("../event/labels.rs");
    let named = ["at(\"", "named(\""].iter().flat_map(|before| {
        let found = source.match_indices(before);
        found.filter_map(|(at, before)| source[at + before.len()..].split('"').next())
    });
    let mut count = 0;
    for event in named {
        let mut journal = Journal::default();
        journal.add(0, event, None, json!({"account": "a"}));
        let facts = fact::read(&Evidence {
            found: journal.rows,
            ..Evidence::default()
        });
        if event != "turn_finished" {
            let line = happened(&facts[0]).unwrap();
            assert_ne!(line.what, "event", "{event}");
            assert!(line.what.len() <= 10, "{}", line.what);
        }
        count += 1;
    }
    assert!(count > 30, "the events were not found");
    let mut journal = Journal::default();
    journal.add(0, "of_tomorrow", Some(1), json!({"reason": "why"}));
    assert_eq!(journal.told(1).timeline[0].words, "of_tomorrow why");
}

/// [EXP-5] Numbers agree with their words, and what is not there is not announced.
#[test]
fn numbers_agree_with_their_words() {
    let told = |event: &str, fields: Value| {
        let mut journal = Journal::default();
        journal.add(0, event, None, fields);
        let found = journal.rows;
        let facts = fact::read(&Evidence {
            found,
            ..Evidence::default()
        });
        happened(&facts[0]).unwrap().words
    };
    for (event, fields, words) in [
        (
            "config_reloaded",
            json!({}),
            "reloaded: no key in force has changed",
        ),
        (
            "config_reloaded",
            json!({"needs_restart": ["a.b"]}),
            "reloaded: no key in force has changed; 1 key waits for a restart",
        ),
        (
            "config_reloaded",
            json!({"changed": ["a.b"], "needs_restart": ["c", "d"]}),
            "reloaded: a.b; 2 keys wait for a restart",
        ),
        (
            "config_rejected",
            json!({"reason": "faulty", "line": 3, "key_path": "a.b", "faults": 1}),
            "rejected, faulty: line 3 a.b (1 fault)",
        ),
        (
            "config_rejected",
            json!({"reason": "unreadable"}),
            "rejected, unreadable",
        ),
        (
            "store_recovered",
            json!({"lost": 1}),
            "written again; 1 change was lost",
        ),
        (
            "journal_lost",
            json!({"lost": 2}),
            "2 events are not in the journal",
        ),
        ("drain_started", json!({"turns": 1}), "began, with 1 turn running"),
        ("drain_finished", json!({"cut": 1}), "over; 1 turn was cut"),
        ("drain_finished", json!({}), "over; 0 turns were cut"),
        (
            "operator_action",
            json!({"reason": "drain_on", "by": "token", "count": 1}),
            "drained with the admin token: no new turns are taken",
        ),
    ] {
        assert_eq!(told(event, fields), words);
    }
}

/// [EXP-6] What is asked is bounded in number and, but for the id's own rows, in time, whatever the journal has; what was left
/// out is said.
#[test]
fn questions_are_bounded() {
    let mut journal = Journal::default();
    for call in 1..=2_000 {
        journal.served(call * 500, call.unsigned_abs());
    }
    let story = journal.told(77);
    assert!(story.cut && story.timeline.len() <= 200);
    let asked = journal.asked.borrow();
    assert!(asked.len() < 20, "{}", asked.len());
    for wanted in asked.iter() {
        let within = wanted.until_ms - wanted.since_ms <= 3_600_000;
        assert!(
            wanted.most <= 500 && (within || wanted.name.is_some() && (wanted.newest || wanted.most == 1)),
            "{wanted:?}"
        );
    }
}

/// [EXP-8] Rows that are damaged, empty, or of strange values are told of for what they are.
#[test]
fn strange_rows() {
    let mut journal = Journal::default();
    journal.turn(
        0,
        1,
        "completed",
        json!({"total_ms": u64::MAX, "sent_ms": u64::MAX, "created_ms": u64::MAX}),
    );
    journal.turn(
        0,
        2,
        "\u{1b}[2J<script>",
        json!({"queue_ms": u64::MAX, "for_ms": u64::MAX}),
    );
    journal.add(
        0,
        "cooldown_started",
        Some(3),
        json!({"for_ms": u64::MAX, "account": "x"}),
    );
    journal.add(0, "clock_stepped", None, json!({"by_ms": u64::MAX, "reason": 7}));
    for body in [
        "",
        "{",
        "[]",
        "null",
        r#"{"key":7,"total_ms":"x"}"#,
        r#"{"key":"\u0000"}"#,
    ] {
        journal.rows.push(Row {
            seq: u64::MAX,
            at_ms: u64::MAX,
            event: "turn_finished".to_owned(),
            account: None,
            names: vec![4],
            body: body.to_owned(),
        });
        for call in 1..=4 {
            assert!(!journal.told(call).sentence.is_empty());
        }
    }
    assert!(explain(&gather(&journal, &[5]).unwrap()).is_none());
}

fn named(story: &Story) -> Vec<(usize, &'static str)> {
    let lines = story.timeline.iter();
    lines
        .filter_map(|line| Some((line.call?, line.what)))
        .filter(|(_, what)| ["refused", "ended", "watchdog", "quarantine", "http"].contains(what))
        .collect()
}

/// [EXP-9] A request id that a client uses again stands for as many calls as there were: served, failed, refused.
#[test]
fn an_id_that_is_used_again() {
    let mut journal = Journal::default();
    journal.served(1_000, 1);
    let timeout = json!({"key": KEY, "account": "main", "shape": "eventless", "waited_ms": 999});
    journal
        .add(2_500, "response_created_timeout", Some(1), timeout)
        .turn(2_500, 1, "response_created_timeout", json!({"total_ms": 1_400}))
        .add(2_600, "refused", Some(1), json!({"reason": "invalid_body"}))
        .add(
            2_700,
            "quarantine_http_fallback",
            Some(1),
            json!({"key": KEY, "account": "main"}),
        );
    let over_http = json!({"plan": "quarantined", "transport": "http", "total_ms": 400});
    journal.turn(3_000, 1, "completed", over_http);
    let story = journal.told(1);
    assert_eq!(story.calls, 4);
    assert_eq!(
        named(&story),
        [
            (1, "ended"),
            (2, "watchdog"),
            (2, "ended"),
            (3, "refused"),
            (4, "quarantine"),
            (4, "ended")
        ]
    );
    assert!(
        story
            .sentence
            .starts_with("2 of 4 calls failed, the last one at 12:00:02: the bridge refused it"),
        "{}",
        story.sentence
    );
    assert!(!story.sentence.contains("at the same time"), "{}", story.sentence);
    // Those that are another client's say nothing of it: what the id stands for is told by the conversation's name as well.
    assert_eq!(journal.told(77).calls, 4);
}

/// [EXP-9] A call that an account rejected and another one served is one call, also where its id is used again, and also where
/// the clock was set in the middle of it.
#[test]
fn a_failover_is_one_call() {
    let rejected = json!({"status": 429, "error": "rate_limit", "total_ms": 20});
    let moved = json!({"account": "b", "attempt": 2, "route": "failover", "total_ms": 60});
    let mut journal = Journal::default();
    for at in [0, 1_000] {
        journal
            .turn(at + 20, 1, "rejected", rejected.clone())
            .turn(at + 60, 1, "completed", moved.clone());
    }
    journal.turn(2_000, 1, "rejected", rejected.clone()).add(
        2_300,
        "refused",
        Some(1),
        json!({"reason": "session_busy"}),
    );
    let story = journal.told(1);
    assert_eq!(story.calls, 3);
    let per_call = [(1, "ended"), (1, "ended"), (2, "ended"), (2, "ended")];
    let refused = [(3, "ended"), (3, "refused")];
    assert_eq!(named(&story), [&per_call[..], &refused[..]].concat());

    let mut journal = Journal::default();
    journal
        .turn(20, 1, "rejected", rejected.clone())
        .turn(3_600_060, 1, "completed", moved)
        .add(
            3_600_500,
            "clock_stepped",
            None,
            json!({"by_ms": 3_600_000, "reason": "forward"}),
        );
    assert_eq!(journal.told(1).calls, 1);

    // A client that leaves while its call waits for the other account has not begun another attempt.
    let mut journal = Journal::default();
    let left = json!({"account": "b", "sent": false, "total_ms": 500});
    journal
        .turn(20, 1, "rejected", rejected)
        .turn(500, 1, "client_gone", left);
    assert_eq!(journal.told(1).calls, 1);
}

/// [EXP-9] Calls of one id at the same time are told apart by their arrivals and names; where a row fits both, that is said.
#[test]
fn calls_of_one_id_at_once() {
    let rejected = |total: u64| json!({"status": 429, "error": "rate_limit", "total_ms": total});
    let moved = |total: u64| json!({"account": "b", "attempt": 2, "total_ms": total});
    let mut journal = Journal::default();
    // One arrives at 0, the other one at 60.
    journal
        .turn(100, 1, "rejected", rejected(100))
        .turn(110, 1, "rejected", rejected(50))
        .turn(130, 1, "completed", moved(70))
        .turn(150, 1, "failed", moved(150));
    let story = journal.told(1);
    let ends = [(1, "ended"), (2, "ended"), (2, "ended"), (1, "ended")];
    assert_eq!((story.calls, named(&story)), (2, ends.to_vec()));
    assert!(!story.sentence.contains("at the same time"), "{}", story.sentence);

    // Both at the same moment, as far as anybody can tell.
    let mut journal = Journal::default();
    journal
        .turn(100, 1, "rejected", rejected(100))
        .turn(101, 1, "rejected", rejected(100))
        .turn(130, 1, "completed", moved(130))
        .turn(150, 1, "failed", moved(149));
    let story = journal.told(1);
    assert_eq!(story.calls, 2);
    assert!(
        story.sentence.ends_with(
            "; calls with the same request id ran at the same time, and 1 line may be of another one of them"
        ),
        "{}",
        story.sentence
    );
    // Of two conversations each has its own.
    for row in journal.rows.iter_mut() {
        let of_the_second = [2, 4].contains(&row.seq);
        row.names[1] = if of_the_second { 78 } else { 77 };
    }
    let story = journal.told(1);
    let ends = [(1, "ended"), (2, "ended"), (1, "ended"), (2, "ended")];
    assert_eq!((story.calls, named(&story)), (2, ends.to_vec()));
    assert!(!story.sentence.contains("at the same time"), "{}", story.sentence);

    // Two that went over HTTP for the same reason at once.
    let mut journal = Journal::default();
    let fallback = json!({"key": KEY, "account": "main", "reason": "ceiling"});
    let over = json!({"plan": "ceiling", "transport": "http", "total_ms": 100});
    journal
        .add(5, "http_fallback", Some(1), fallback.clone())
        .add(5, "http_fallback", Some(1), fallback)
        .turn(100, 1, "completed", over.clone())
        .turn(101, 1, "completed", over);
    let story = journal.told(1);
    assert_eq!(story.calls, 2);
    assert!(
        story
            .sentence
            .ends_with("and 2 lines may be of another one of them"),
        "{}",
        story.sentence
    );
}

/// [EXP-11] Of what happened around a call only what can have mattered is told, and how much is not.
#[test]
fn surroundings_do_not_bury_the_call() {
    let cooldown =
        |account: &str, for_ms: u64| json!({"account": account, "reason": "quota", "for_ms": for_ms});
    let reload = |key: &str| json!({"changed": [key]});
    let mut journal = Journal::default();
    journal
        .add(-400_000, "cooldown_started", None, cooldown("other", 1_000))
        .add(-399_000, "cooldown_cleared", None, cooldown("other", 0))
        .add(-300_000, "cooldown_started", None, cooldown("main", 1_000))
        .add(-200_000, "config_reloaded", None, reload("http.old"))
        .add(-200_000, "store_degraded", None, json!({"reason": "full"}))
        .add(-190_000, "store_recovered", None, json!({"lost": 0}))
        .add(-100_000, "config_rejected", None, json!({"reason": "faulty"}))
        .add(-90_000, "cooldown_started", None, cooldown("lasting", 100_000))
        .add(-20_000, "config_reloaded", None, reload("http.new"))
        .add(
            -10_000,
            "operator_action",
            None,
            json!({"reason": "signed_in", "by": "page"}),
        )
        .incident()
        .add(90_000, "cooldown_started", None, cooldown("third", 60_000))
        .add(95_000, "store_degraded", None, json!({"reason": "full"}))
        .add(500_000, "drain_started", None, json!({"turns": 0}));
    let around = |story: &Story| {
        let lines = story.timeline.iter().filter(|line| line.tone == Tone::Around);
        let lines = lines.filter(|line| line.what != "call");
        lines.map(|line| line.words.clone()).collect::<Vec<_>>()
    };
    let story = journal.told(1);
    assert_eq!(
        around(&story),
        [
            "openai/lasting is left alone for 100 s: its quota is used up",
            "reloaded: http.new",
            // In the quarantine.
            "the state cannot be written: the disk is full",
        ]
    );
    assert_eq!(story.left_out, 10);
    // A storm: what the sentence names stays, and what is nearest.
    journal.add(-15_000, "config_rejected", None, json!({"reason": "faulty"}));
    let late = journal.rows.len() as i64;
    for at in 0..40 {
        journal.add(
            1_000 * at - late,
            "cooldown_started",
            None,
            cooldown(&format!("n{at}"), 60_000),
        );
    }
    journal.rows.sort_by_key(|row| row.at_ms);
    (1..).zip(&mut journal.rows).for_each(|(seq, row)| row.seq = seq);
    let story = journal.told(1);
    assert_eq!(
        (around(&story).len(), story.left_out),
        (8, 46),
        "{:#?}",
        around(&story)
    );
}

/// [EXP-12] A bridge that ended without a finished drain is the cause of a call that has no end, and may be that of a conversation that
/// went no further; not of a call that ended before, nor of a conversation that went on.
#[test]
fn a_bridge_that_was_cut() {
    let start = |before: &str, last: u64| json!({"before": before, "last_ms": NOON + last, "version": "1"});
    let cut = "the bridge ended without a finished drain between 12:00:05 and 13:00:00";
    let fallback = json!({"key": KEY, "account": "main", "reason": "ceiling", "key_kind": "thread"});
    let mut journal = Journal::default();
    journal.add(5_000, "http_fallback", Some(1), fallback).add(
        3_600_000,
        "bridge_started",
        None,
        start("cut", 5_000),
    );
    for name in [1, 77] {
        let story = journal.told(name);
        assert_eq!(
            (story.cause, story.sentence),
            (
                Cause::BridgeCut,
                format!("{cut}, while the call ran, and so it has no end in the journal")
            )
        );
        let last = &story.timeline[1];
        assert_eq!(
            (last.what, last.words.as_str()),
            (
                "start",
                "the bridge started; the one before it ended without a finished drain"
            )
        );
    }

    // A drain that was not over is none that was finished: the timeline has that it began.
    let mut draining = Journal::default();
    let ceiling = json!({"key": KEY, "account": "main", "reason": "ceiling", "key_kind": "thread"});
    draining
        .add(5_000, "http_fallback", Some(1), ceiling)
        .add(5_000, "drain_started", None, json!({"turns": 1}))
        .add(3_600_000, "bridge_started", None, start("cut", 5_000));
    let story = draining.told(1);
    assert!(story.sentence.starts_with(cut), "{}", story.sentence);
    assert!(story.timeline.iter().any(|line| line.what == "drain"));

    // It is the last one in trouble, whatever failed before it.
    let failed = json!({"status": 500, "error": "server"});
    journal.turn(1_000, 2, "rejected", failed);
    journal.rows.rotate_right(1);
    (1..).zip(&mut journal.rows).for_each(|(seq, row)| row.seq = seq);
    let sentence = journal.told(77).sentence;
    let begin = format!("2 of 2 calls failed, the last one at 12:00:05: {cut}");
    assert!(sentence.starts_with(&begin), "{sentence}");

    let later = "a later call of the conversation that ran then left no row";
    let mut journal = Journal::default();
    journal
        .served(5_000, 1)
        .add(3_600_000, "bridge_started", None, start("cut", 5_000));
    let story = journal.told(77);
    assert_eq!(story.cause, Cause::BridgeCut);
    assert!(
        story
            .sentence
            .starts_with("nothing went wrong with the call itself: "),
        "{}",
        story.sentence
    );
    assert!(
        story.sentence.ends_with(&format!("; {cut}: {later}")),
        "{}",
        story.sentence
    );
    // The call itself had come to its end.
    let story = journal.told(1);
    assert_eq!((story.cause, story.timeline.len()), (Cause::Healthy, 7));
    // The bridge had been drained; or it ended long afterwards.
    for (before, last) in [
        ("drained", 5_000),
        ("none", 5_000),
        ("unknown", 5_000),
        ("cut", 3_000_000),
    ] {
        let mut journal = Journal::default();
        journal
            .served(5_000, 1)
            .add(3_600_000, "bridge_started", None, start(before, last));
        assert_eq!(journal.told(77).cause, Cause::Healthy, "{before} {last}");
    }
    let mut journal = Journal::default();
    journal
        .turn(5_000, 1, "rejected", json!({"status": 500, "error": "server"}))
        .served(5_100, 2)
        .add(3_600_000, "bridge_started", None, start("cut", 5_100));
    assert!(!journal.told(1).sentence.contains("drain"));
    assert!(journal.told(77).sentence.contains(later));
}

/// [EXP-12] An id that the journal does not have is told when the bridge was cut in the hour before: the
/// latest times, newest first.
#[test]
fn no_row_of_a_call_that_was_cut() {
    let mut journal = Journal::default();
    for nth in 1..=5_i64 {
        let before = if nth == 4 { "drained" } else { "cut" };
        let fields = match nth {
            3 => json!({"before": before}),
            _ => json!({"before": before, "last_ms": NOON + 600_000 * nth.unsigned_abs() - 1_000}),
        };
        journal.add(600_000 * nth, "bridge_started", None, fields);
    }
    let told = not_found(Some(NOON), &cuts(&journal, NOON + 3_000_000).unwrap());
    let (_, told) = told.split_once("; ").unwrap();
    assert_eq!(
        told,
        "the bridge ended without a finished drain between 2026-11-30T12:49:59.000Z and 2026-11-30T12:50:00.000Z: a call that ran then \
         left no row; the bridge ended without a finished drain before 2026-11-30T12:30:00.000Z: a call that ran then left no row; the \
         bridge ended without a finished drain between 2026-11-30T12:19:59.000Z and 2026-11-30T12:20:00.000Z: a call that ran then left \
         no row"
    );
    assert!(!not_found(Some(NOON), &[]).contains("drain"));
    // Those of longer ago mislead.
    let recent = |now_ms: u64| cuts(&journal, now_ms).unwrap().len();
    assert_eq!(recent(NOON + 3_000_000 + 3_600_000), 1);
    assert_eq!(recent(NOON + 3_000_001 + 3_600_000), 0);
}
