use super::super::seen::{Call, Phase, Sent};
use super::super::{Fault, expectations, scale};
use super::*;
use crate::config::Config;

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// One client on one account.
fn plan(fault: Fault) -> Plan {
    let text = r#"
        [providers.p]
        base_url = "https://p.example"
        accounts = [{ name = "a", credential = { env = "A" } }]
    "#;
    let env = |name: &str| Some(format!("/tmp/{name}"));
    let mut config = Config::parse(text, "bridge.toml", &env).unwrap_or_else(|faults| panic!("{faults}"));
    let speed = "60".parse().unwrap();
    scale(&mut config, speed);
    Plan::of(&config, fault, speed, 1)
}

fn call(question: u32, attempt: u32, began: Duration, took: Duration, ended: Ended) -> Call {
    Call {
        client: 0,
        question,
        attempt,
        began,
        waited: took,
        took,
        ended,
    }
}

fn sent(call: &str, way: Way) -> Sent {
    Sent {
        call: call.to_owned(),
        way,
        rejected: false,
        broken: false,
    }
}

fn told(at: Duration, event: &str) -> Told {
    Told {
        at,
        event: event.to_owned(),
        key: Some("k".to_owned()),
        account: Some("p/a".to_owned()),
        ..Told::default()
    }
}

fn error(status: Option<u16>, retry_after: Option<u64>) -> Ended {
    Ended::Error {
        status,
        code: "some_code".to_owned(),
        retry_after,
    }
}

const WEBSOCKET: Ended = Ended::Answered(Some(Way::Websocket));
const HTTP: Ended = Ended::Answered(Some(Way::Http));

/// A silent session as it should be: found out after a second, HTTP in the window, a session again after it.
fn silence() -> Record {
    let shape = Some("eventless".to_owned());
    Record {
        phases: vec![Phase {
            name: "all".to_owned(),
            began: Duration::ZERO,
        }],
        fault: (S, 3 * S),
        calls: vec![
            call(1, 1, Duration::ZERO, 10 * MS, WEBSOCKET),
            call(2, 1, S, S, error(Some(504), Some(1))),
            call(2, 2, 2 * S + 50 * MS, 10 * MS, HTTP),
            call(3, 1, 3 * S + 100 * MS, 10 * MS, WEBSOCKET),
        ],
        sent: vec![
            sent("1", Way::Websocket),
            sent("2.1", Way::Websocket),
            sent("2.2", Way::Http),
            sent("3", Way::Websocket),
        ],
        events: vec![
            Told {
                shape: shape.clone(),
                waited: Some(S),
                ..told(2 * S, "response_created_timeout")
            },
            Told {
                reason: shape,
                ..told(2 * S, "session_retired")
            },
            Told {
                window: Some(S),
                ..told(2 * S, "quarantine_opened")
            },
            Told {
                way: Some(Way::Http),
                ..told(2 * S + 50 * MS, "turn_sent")
            },
        ],
        stall: Duration::ZERO,
    }
}

/// The expectations of a fault that a record does not meet.
fn missed(fault: Fault, record: &Record) -> Vec<&'static str> {
    let plan = plan(fault);
    let all = expectations(&plan, &[]);
    let missed = all
        .iter()
        .filter(|expectation| !judge(expectation, &plan, record).met);
    missed.map(|expectation| expectation.id).collect()
}

/// [REH-8] A good record meets all, and each thing that goes wrong misses what says so.
#[test]
fn each_fault_of_the_bridge_is_found_out() {
    assert!(missed(Fault::Silent, &silence()).is_empty());
    let broken = |what: &dyn Fn(&mut Record)| {
        let mut record = silence();
        what(&mut record);
        missed(Fault::Silent, &record)
    };
    assert_eq!(
        broken(&|r| r.calls[0].ended = error(Some(502), None)),
        ["healthy_before", "answered"]
    );
    assert_eq!(broken(&|r| r.calls[1].waited = 3 * S), ["bounded_wait"]);
    assert_eq!(broken(&|r| r.calls[1].ended = Ended::Broken), ["bounded_wait"]);
    assert_eq!(broken(&|r| r.sent[2].call = "2.1".to_owned()), ["sent_once"]);
    assert_eq!(broken(&|r| r.calls[2].attempt = 7), ["no_agent_gives_up"]);
    // What is missing of the incident.
    assert_eq!(
        broken(&|r| r.events[1].reason = Some("idle_ttl".to_owned())),
        ["quarantined"]
    );
    assert_eq!(
        broken(&|r| r.events[1].key = Some("another".to_owned())),
        ["quarantined"]
    );
    assert_eq!(broken(&|r| drop(r.events.remove(2))), ["quarantined"]);
    assert_eq!(broken(&|r| r.events[0].waited = Some(4 * S)), ["quarantined"]);
    assert_eq!(broken(&|r| r.events.clear()), ["fault_met"]);
    // The way it took.
    assert_eq!(broken(&|r| r.events[3].way = Some(Way::Websocket)), ["then_http"]);
    assert_eq!(broken(&|r| r.events[2].window = Some(2 * S)), ["doubling"]);
    let unanswered = |record: &mut Record| {
        let detail = "first_byte_timeout, http".to_owned();
        let ended = told(3 * S, "turn_finished");
        record.events.push(Told {
            way: Some(Way::Http),
            detail,
            ..ended
        });
    };
    assert_eq!(broken(&unanswered), ["http_answers"]);
    assert_eq!(
        broken(&|r| r.calls[2].ended = error(Some(502), Some(1))),
        ["answered"]
    );
    assert_eq!(broken(&|r| r.calls[3].ended = HTTP), ["back_on_sessions"]);
    assert_eq!(broken(&|r| r.calls[3].began = 60 * S), ["back_on_sessions"]);
}

/// [REH-8] What this machine's own stalls take is not the bridge's fault.
#[test]
fn a_stall_adds_to_the_slack() {
    let mut record = silence();
    record.calls[1].waited = 3 * S;
    record.stall = S;
    assert!(missed(Fault::Silent, &record).is_empty());
}

/// [REH-8] The window after the window may be a probe's.
#[test]
fn after_the_window_a_session_may_be_tried() {
    let mut record = silence();
    record.events[3].way = Some(Way::Websocket);
    record.events[3].at = 3 * S + 100 * MS;
    assert!(missed(Fault::Silent, &record).is_empty());
}

/// [REH-8] Wedged is not mute; a reset, a limit and a slow upstream are not silent.
#[test]
fn the_other_faults_have_rules_of_their_own() {
    assert_eq!(missed(Fault::Wedged, &silence()), ["quarantined"]);
    let mut cut = silence();
    cut.sent[1].broken = true;
    let quiet = |record: &Record| Record {
        events: Vec::new(),
        ..record.clone()
    };
    assert_eq!(missed(Fault::Reset, &cut), ["no_quarantine"]);
    assert!(missed(Fault::Reset, &quiet(&cut)).is_empty());
    cut.calls[1].ended = error(Some(502), None);
    assert_eq!(missed(Fault::Reset, &quiet(&cut)), ["retryable"]);
    let mut limited = quiet(&silence());
    limited.sent[1].rejected = true;
    limited.calls[1].ended = error(Some(429), Some(1));
    assert!(missed(Fault::Limit, &limited).is_empty());
    limited.calls[1].ended = error(Some(429), None);
    assert_eq!(missed(Fault::Limit, &limited), ["limit_told"]);
    let mut slow = quiet(&silence());
    slow.calls.remove(2);
    slow.calls[1] = call(2, 1, S, 500 * MS, WEBSOCKET);
    assert!(missed(Fault::Slow, &slow).is_empty());
    slow.events.push(Told {
        reason: Some("eventless".to_owned()),
        ..told(S, "session_retired")
    });
    assert_eq!(missed(Fault::Slow, &slow), ["nothing_retired"]);
}

/// [REH-8] A flap must reach the longest window, by doubling.
#[test]
fn a_flap_is_judged_by_its_windows() {
    let mut record = silence();
    let opened = |seconds| Told {
        window: Some(seconds * S),
        ..told(3 * S, "quarantine_opened")
    };
    record.events.pop();
    record.events.extend([2, 4, 4, 8].map(opened));
    assert_eq!(missed(Fault::Flap, &record), ["top_reached"]);
    record.events.push(opened(10));
    assert!(missed(Fault::Flap, &record).is_empty());
    record.events.push(opened(1));
    assert_eq!(missed(Fault::Flap, &record), ["doubling"]);
    // Ten seconds after a clear, the level is forgotten.
    record.events.pop();
    record.events.push(told(4 * S, "quarantine_cleared"));
    record.events.push(Told {
        at: 13 * S,
        ..opened(1)
    });
    assert_eq!(missed(Fault::Flap, &record), ["doubling"]);
    record.events.pop();
    record.events.push(Told {
        at: 14 * S,
        ..opened(1)
    });
    assert!(missed(Fault::Flap, &record).is_empty());
}
