use super::*;
use std::time::Duration;

use crate::bridge::continuation::{Digester, Draft, Outline};
use crate::bridge::watchdog::{Limits, Transport};
use crate::wire::head;
use crate::wire::request::read_create;

mod random;

const S: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);

fn policy() -> Policy {
    Policy {
        ping: 25 * S,
        dead_after: 60 * S,
        reuse_check_after: 30 * S,
        pong: S,
        idle_ttl: 2700 * S,
        max_age: 3600 * S,
        close: S,
    }
}

fn turn_policy() -> turn::Policy {
    turn::Policy {
        limits: Limits {
            write: 30 * S,
            created: 60 * S,
            idle: 900 * S,
            request: 7200 * S,
            first_byte: 60 * S,
            first_event: 60 * S,
            between_events: 900 * S,
        },
        transport: Transport::WebSocket,
        stream: true,
        whole: false,
        commit_after: 15 * S,
        heartbeat: 1000 * S,
        slow_client: 120 * S,
        items_cap: 1000,
    }
}

/// A session, a clock, and what came out, in words.
struct Bench {
    session: Session,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let now = Instant::now();
        Bench {
            session: Session::new(policy(), now),
            now,
        }
    }

    fn put(&mut self, input: Input) -> Vec<String> {
        self.session.handle(self.now, input);
        self.drain()
    }

    fn lease(&mut self) -> Vec<String> {
        self.lease_of(true)
    }

    fn lease_of(&mut self, stored: bool) -> Vec<String> {
        self.put(Input::Lease {
            turn: turn_policy(),
            arrived: self.now,
            stored,
        })
    }

    fn frame(&mut self, frame: &str) -> Vec<String> {
        self.put(event(frame))
    }

    fn tick(&mut self, after: Duration) -> Vec<String> {
        self.now += after;
        self.session.tick(self.now, None);
        let outputs = self.drain();
        assert!(
            self.session.deadline().is_none_or(|at| at > self.now),
            "a wait in the past"
        );
        outputs
    }

    /// Lets time pass second by second, and every ping be answered.
    fn pass_with_pongs(&mut self, seconds: u32) -> Vec<String> {
        let mut words = Vec::new();
        for _ in 0..seconds {
            for word in self.tick(S) {
                if word == "ping" {
                    words.extend(self.put(Input::Alive { pong: true }));
                } else {
                    words.push(word);
                }
            }
        }
        words
    }

    fn drain(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.session.poll())
            .map(|output| word(&output))
            .collect()
    }

    /// A leased, sent and flushed turn.
    fn busy() -> Self {
        let mut bench = Bench::new();
        assert_eq!(bench.lease(), ["send"]);
        assert!(bench.put(Input::Flushed).is_empty());
        bench
    }

    /// A turn accepted as `id`, whose owner is durable.
    fn accept(&mut self, id: &str) {
        self.frame(&created(id));
        assert!(self.put(Input::Durable).is_empty());
    }

    /// A whole healthy turn.
    fn serve(&mut self, id: &str) {
        assert_eq!(self.lease(), ["send"]);
        self.put(Input::Flushed);
        self.accept(id);
        assert_eq!(self.frame(&completed(id)), ["forward", "end completed", "idle"]);
    }
}

const LIMITS: &str = r#"{"type":"codex.rate_limits"}"#;
const DELTA: &str = r#"{"type":"response.output_text.delta","delta":"x"}"#;
const REJECTED: &str = r#"{"type":"error","status":400,"error":{"code":"invalid_prompt","message":"m"}}"#;

fn created(id: &str) -> String {
    format!(r#"{{"type":"response.created","response":{{"id":"{id}"}}}}"#)
}

fn completed(id: &str) -> String {
    format!(r#"{{"type":"response.completed","response":{{"id":"{id}","output":[1]}}}}"#)
}

fn ended(id: &str) -> String {
    format!(r#"{{"type":"response.completed","response":{{"id":"{id}","output":[]}}}}"#)
}

fn event(frame: &str) -> Input {
    let framed = head::read(frame.as_bytes());
    Input::Event {
        name: Bytes::copy_from_slice(framed.event.as_bytes()),
        data: Bytes::copy_from_slice(frame.as_bytes()),
        head: framed.head,
    }
}

fn word(output: &Output) -> String {
    match output {
        Output::Send => "send".into(),
        Output::Ping => "ping".into(),
        Output::Close(code) => format!("close {code}"),
        Output::Unsent => "unsent".into(),
        Output::Idle => "idle".into(),
        Output::Retired(reason) => format!("retired {}", reason.label()),
        Output::Gone => "gone".into(),
        Output::Turn(output) => match output {
            turn::Output::Accepted(_) => "accepted".into(),
            turn::Output::Commit => "commit".into(),
            turn::Output::Forward { .. } => "forward".into(),
            turn::Output::Comment => "comment".into(),
            turn::Output::Keepalive => "keepalive".into(),
            turn::Output::Fail { .. } => "fail".into(),
            turn::Output::Reject(_) => "reject".into(),
            turn::Output::Refuse(_) => "refuse".into(),
            turn::Output::Json(_) => "json".into(),
            turn::Output::Tear => "tear".into(),
            turn::Output::End(end) => format!("end {}", end.outcome.label()),
        },
    }
}

/// [SES-22] a lease is sent once, and its turn's outputs come through the session.
#[test]
fn a_healthy_turn() {
    let mut bench = Bench::new();
    assert_eq!(bench.lease(), ["send"]);
    assert!(bench.session.turn().is_some_and(Turn::is_sent));
    assert!(bench.put(Input::Wrote).is_empty());
    assert!(bench.put(Input::Flushed).is_empty());
    assert_eq!(bench.frame(&created("r1")), ["accepted", "commit", "forward"]);
    assert_eq!(bench.frame(DELTA), ["forward"]);
    assert!(bench.frame(&completed("r1")).is_empty(), "it waits for its owner");
    assert_eq!(bench.put(Input::Durable), ["forward", "end completed", "idle"]);
    assert!(bench.session.turn().is_none());
    assert_eq!(bench.session.turns(), 1);
    assert_eq!(bench.session.idle_before_turn(), Duration::ZERO);
    bench.now += 7 * S;
    bench.serve("r2");
    assert_eq!(bench.session.idle_before_turn(), 7 * S);
    assert_eq!(bench.session.turns(), 2);
}

/// [SES-22] [INV-1] a session that is closing gives the turn back, unsent.
#[test]
fn a_closing_session_takes_no_turn() {
    let mut bench = Bench::new();
    bench.put(Input::Retire(Retired::Evicted));
    assert_eq!(bench.lease(), ["unsent"]);
    assert_eq!(bench.session.turns(), 0);
}

/// [SES-23] a socket heard from within 30 s is leased at once; a quieter one proves itself with a pong first
/// (field reports 14 and 40).
#[test]
fn a_quiet_socket_proves_itself() {
    let mut bench = Bench::new();
    bench.now += 30 * S - NANO;
    assert_eq!(bench.lease(), ["send"]);

    let mut bench = Bench::new();
    bench.now += 30 * S;
    assert_eq!(bench.lease(), ["ping"]);
    assert!(bench.session.turn().is_none());
    assert_eq!(bench.session.deadline(), Some(bench.now + S));
    assert!(
        bench.put(Input::Alive { pong: false }).is_empty(),
        "other bytes are no answer"
    );
    assert!(bench.frame(LIMITS).is_empty());
    assert_eq!(bench.put(Input::Alive { pong: true }), ["send"]);
    assert!(bench.put(Input::Alive { pong: true }).is_empty(), "sent once");
    assert!(bench.tick(S).is_empty(), "the check is over");
}

/// [SES-23] without a pong within a second the turn goes back unsent and the socket is retired.
#[test]
fn no_proof() {
    let mut bench = Bench::new();
    bench.now += 30 * S;
    bench.lease();
    assert!(bench.tick(S - NANO).is_empty());
    assert_eq!(bench.tick(NANO), ["unsent", "retired unfit", "close 1000"]);
    assert!(bench.put(Input::Alive { pong: true }).is_empty(), "too late");
    assert_eq!(bench.session.turns(), 0);
}

/// [SES-23] [INV-10] after a sleep even a socket that was heard from just now proves itself, once.
#[test]
fn a_sleep() {
    let mut bench = Bench::new();
    bench.serve("r1");
    assert!(bench.put(Input::Slept).is_empty());
    assert_eq!(bench.lease(), ["ping"]);
    assert_eq!(bench.put(Input::Alive { pong: true }), ["send"]);
    bench.put(Input::Flushed);
    bench.frame(REJECTED);
    assert_eq!(bench.lease(), ["send"]);
}

/// [SES-23] [INV-10] a pong that comes by itself is proof enough after a sleep, and a busy socket is not disturbed.
#[test]
fn a_sleep_and_a_pong() {
    let mut bench = Bench::busy();
    bench.put(Input::Slept);
    bench.accept("r1");
    bench.frame(&completed("r1"));
    assert_eq!(bench.lease(), ["ping"]);

    let mut bench = Bench::new();
    bench.put(Input::Slept);
    bench.put(Input::Alive { pong: true });
    assert_eq!(bench.lease(), ["send"]);
}

/// [SES-23] [SES-31] a drain's cut during the check leaves the turn unsent.
#[test]
fn a_cut_during_the_check() {
    let mut bench = Bench::new();
    bench.now += 30 * S;
    bench.lease();
    assert_eq!(bench.put(Input::Cut), ["unsent", "retired drained", "close 1001"]);
    assert!(bench.put(Input::Alive { pong: true }).is_empty());
}

/// [SES-23] a client that leaves during the check leaves a socket that still owes its proof.
#[test]
fn the_client_leaves_during_the_check() {
    let mut bench = Bench::new();
    bench.now += 30 * S;
    bench.lease();
    assert_eq!(bench.put(Input::ClientGone), ["unsent", "idle"]);
    assert!(bench.tick(2 * S).is_empty(), "the check is over");
    assert_eq!(bench.lease(), ["ping"]);

    let mut bench = Bench::new();
    bench.now += 30 * S;
    bench.lease();
    bench.put(Input::Retire(Retired::Drained));
    assert_eq!(
        bench.put(Input::ClientGone),
        ["unsent", "retired drained", "close 1001"]
    );
}

/// [SES-23] a close, a death or a stray frame during the check leaves the turn unsent.
#[test]
fn the_socket_ends_during_the_check() {
    let checking = || {
        let mut bench = Bench::new();
        bench.now += 30 * S;
        bench.lease();
        bench
    };
    assert_eq!(
        checking().put(Input::Closed { too_big: false }),
        ["unsent", "retired closed_by_upstream", "gone"]
    );
    assert_eq!(
        checking().frame(DELTA),
        ["unsent", "retired unexpected_frame", "close 1000"]
    );
    assert_eq!(
        checking().frame(REJECTED),
        ["unsent", "retired refused_by_upstream", "close 1000"]
    );

    let mut bench = Bench::new();
    bench.put(Input::Alive { pong: true });
    bench.tick(25 * S);
    bench.now += 20 * S;
    bench.session.policy.pong = 100 * S;
    assert_eq!(bench.lease(), ["ping"]);
    assert_eq!(bench.tick(15 * S), ["unsent", "retired dead", "close 1000"]);
}

/// [SES-24] [INV-5] a data frame or an error while idle retires the socket; telemetry and the like are ignored
/// (field report 23).
#[test]
fn frames_while_idle() {
    for frame in [
        LIMITS,
        r#"{"type":"response.metadata"}"#,
        r#"{"type":"keepalive"}"#,
    ] {
        let mut bench = Bench::new();
        bench.serve("r1");
        assert!(bench.frame(frame).is_empty());
        assert_eq!(bench.lease(), ["send"]);
    }
    let limit = r#"{"type":"error","error":{"code":"websocket_connection_limit_reached"}}"#;
    for (frame, reason) in [
        (DELTA, "unexpected_frame"),
        (&completed("r1"), "unexpected_frame"),
        (&created("r9"), "unexpected_frame"),
        ("nonsense", "unexpected_frame"),
        (limit, "refused_by_upstream"),
    ] {
        let mut bench = Bench::new();
        bench.serve("r1");
        assert_eq!(
            bench.frame(frame),
            [format!("retired {reason}"), "close 1000".into()]
        );
        assert!(bench.frame(frame).is_empty(), "closing");
    }
}

/// [SES-24] the same holds while the terminal waits for the store: how fast that is changes nothing for the socket.
#[test]
fn frames_after_the_terminal() {
    for (frame, then) in [
        (LIMITS, vec!["forward", "end completed", "idle"]),
        (
            DELTA,
            vec![
                "forward",
                "end completed",
                "retired unexpected_frame",
                "close 1000",
            ],
        ),
        (
            REJECTED,
            vec![
                "forward",
                "end completed",
                "retired refused_by_upstream",
                "close 1000",
            ],
        ),
    ] {
        let mut bench = Bench::busy();
        bench.frame(&created("r1"));
        bench.frame(&completed("r1"));
        assert!(bench.frame(frame).is_empty());
        assert_eq!(bench.put(Input::Durable), then);
    }
}

/// [SES-25] the socket is pinged every 25 s, idle or busy.
#[test]
fn pings() {
    let mut bench = Bench::new();
    assert!(bench.tick(25 * S - NANO).is_empty());
    assert_eq!(bench.tick(NANO), ["ping"]);
    assert!(bench.tick(25 * S - NANO).is_empty());
    assert_eq!(bench.tick(NANO), ["ping"]);
    let mut bench = Bench::busy();
    bench.accept("r1");
    assert_eq!(bench.tick(25 * S), ["ping"]);
}

/// [SES-25] a socket that used to answer pings and lets two pass is dead after 60 s without a byte.
#[test]
fn a_dead_socket() {
    let mut idle = Bench::new();
    idle.put(Input::Alive { pong: true });
    let mut busy = Bench::busy();
    busy.put(Input::Alive { pong: true });
    busy.accept("r1");
    for bench in [&mut idle, &mut busy] {
        assert_eq!(bench.tick(25 * S), ["ping"]);
        assert_eq!(bench.tick(25 * S), ["ping"]);
        assert!(bench.tick(10 * S - NANO).is_empty());
    }
    assert_eq!(idle.tick(NANO), ["retired dead", "close 1000"]);
    assert_eq!(
        busy.tick(NANO),
        ["fail", "end socket_dead", "retired dead", "close 1000"]
    );
}

/// [SES-25] where pings are so rare that one passes in that time, it is the second one that counts.
#[test]
fn one_ping_is_not_enough() {
    let mut bench = Bench::new();
    bench.session.policy.ping = 50 * S;
    bench.put(Input::Alive { pong: true });
    assert_eq!(bench.tick(25 * S), ["ping"]);
    assert!(bench.tick(40 * S).is_empty());
    bench.now += 10 * S;
    bench.session.tick(bench.now, None);
    assert_eq!(bench.drain(), ["ping"]);
    assert_eq!(bench.tick(Duration::ZERO), ["retired dead", "close 1000"]);
}

/// [SES-25] any inbound byte begins the count anew (field report 13: a model silent for 8.5 min, pings answered).
#[test]
fn a_byte_begins_the_count_anew() {
    let signs: [fn() -> Input; 3] = [
        || Input::Alive { pong: true },
        || Input::Alive { pong: false },
        || event(LIMITS),
    ];
    for sign in signs {
        let mut bench = Bench::busy();
        bench.put(Input::Alive { pong: true });
        bench.accept("r1");
        for _ in 0..10 {
            for time in [25 * S, 25 * S, 9 * S] {
                bench.tick(time);
            }
            bench.put(sign());
            assert!(bench.session.turn().is_some());
        }
    }
    let mut bench = Bench::busy();
    bench.accept("r1");
    assert_eq!(
        bench
            .pass_with_pongs(510)
            .iter()
            .filter(|word| *word != "keepalive")
            .count(),
        0
    );
    assert_eq!(bench.frame(DELTA), ["forward"]);
}

/// [SES-25] one that never answered a ping is not judged by that: its turn has the idle deadline.
#[test]
fn a_peer_that_never_answers_pings() {
    let mut bench = Bench::busy();
    bench.accept("r1");
    for _ in 0..35 {
        let words = bench.tick(25 * S);
        assert!(!words.iter().any(|word| word.starts_with("end")), "{words:?}");
    }
    assert!(bench.tick(25 * S).contains(&"end idle_timeout".into()));
}

/// [SES-3] [SES-26] [INV-4] a silent turn is failed, its socket retired, and the reason is the shape, also where the
/// socket was to be retired anyway.
#[test]
fn a_silent_turn() {
    for drained in [false, true] {
        let mut bench = Bench::busy();
        if drained {
            bench.put(Input::Retire(Retired::Drained));
        }
        let words = bench.tick(60 * S);
        assert_eq!(
            words[words.len() - 3..],
            ["end response_created_timeout", "retired eventless", "close 1000"]
        );
    }
    let mut bench = Bench::busy();
    bench.frame(LIMITS);
    let words = bench.tick(60 * S);
    assert!(words.contains(&"retired events_without_created".into()));
    assert!(bench.frame(&created("r1")).is_empty(), "a late frame is nobody's");
    assert_eq!(bench.lease(), ["unsent"]);
}

/// [SES-26] a terminal of any kind, and a rejection, keep the socket (field report 22).
#[test]
fn what_keeps_a_socket() {
    for frame in [
        r#"{"type":"response.incomplete","response":{"id":"r1"}}"#,
        r#"{"type":"response.failed","response":{"id":"r1","error":{"code":"server_error"}}}"#,
        r#"{"type":"error","error":{"code":"server_error"}}"#,
        &completed("r1"),
    ] {
        let mut bench = Bench::busy();
        bench.accept("r1");
        assert_eq!(bench.frame(frame).last().unwrap(), "idle");
        assert_eq!(bench.lease(), ["send"]);
    }
    let mut bench = Bench::busy();
    assert_eq!(bench.frame(REJECTED), ["reject", "end rejected", "idle"]);
    assert_eq!(bench.lease(), ["send"]);
}

/// [SES-26] an error about the connection or its credential retires the socket after the turn's end.
#[test]
fn errors_that_retire() {
    for code in [
        r#""code":"websocket_connection_limit_reached""#,
        r#""code":"websocket_stream_limit_reached""#,
        r#""type":"authentication_error","code":"invalid_api_key""#,
    ] {
        let frame = format!(r#"{{"type":"error","error":{{{code}}}}}"#);
        let mut bench = Bench::busy();
        assert_eq!(
            bench.frame(&frame),
            [
                "reject",
                "end rejected",
                "retired refused_by_upstream",
                "close 1000"
            ]
        );
    }
}

/// [SES-26] [SES-15] [INV-5] what the bridge or the client ended retires the socket, for its own reason (field report 23).
#[test]
fn what_retires_a_socket() {
    let mut bench = Bench::busy();
    bench.accept("r1");
    assert_eq!(
        bench.put(Input::ClientGone),
        ["end client_gone", "retired client_gone", "close 1000"]
    );
    let mut bench = Bench::busy();
    bench.accept("r1");
    assert_eq!(
        bench.put(Input::ClientFull),
        ["tear", "end slow_client", "retired slow_client", "close 1000"]
    );
    let mut bench = Bench::busy();
    assert_eq!(
        bench.frame("nonsense"),
        [
            "refuse",
            "end upstream_protocol",
            "retired upstream_protocol",
            "close 1000"
        ]
    );
    let mut bench = Bench::busy();
    bench.accept("r1");
    let idle = bench.pass_with_pongs(900);
    assert_eq!(
        idle[idle.len() - 4..],
        ["fail", "end idle_timeout", "retired idle_timeout", "close 1000"]
    );
}

/// [SES-16] how long bytes have waited for the client reaches the turn.
#[test]
fn a_slow_client() {
    let mut bench = Bench::busy();
    bench.accept("r1");
    let since = bench.now;
    for _ in 0..5 {
        bench.now += 24 * S;
        bench.put(Input::Alive { pong: true });
        bench.session.tick(bench.now, Some(since));
    }
    assert!(bench.drain().contains(&"end slow_client".into()));
}

/// [SES-27] what a socket remembers: its latest response, and whether upstream keeps it (its own word counts).
#[test]
fn memory() {
    let mut bench = Bench::new();
    let memory = |bench: &Bench| {
        let memory = bench.session.memory()?;
        Some((memory.response_id.to_string(), memory.stored))
    };
    assert_eq!(memory(&bench), None);
    bench.serve("r1");
    assert_eq!(memory(&bench), Some(("r1".into(), true)));

    bench.lease_of(false);
    bench.put(Input::Flushed);
    assert!(bench.session.memory().is_some());
    bench.accept("r2");
    bench.frame(r#"{"type":"response.incomplete","response":{"id":"r2"}}"#);
    assert_eq!(memory(&bench), Some(("r2".into(), false)));

    bench.lease();
    bench.put(Input::Flushed);
    bench.frame(r#"{"type":"response.created","response":{"id":"r3","store":false}}"#);
    bench.put(Input::Durable);
    bench.frame(&completed("r3"));
    assert_eq!(memory(&bench), Some(("r3".into(), false)));
}

fn item(index: u32) -> String {
    let item = format!(r#"{{"type":"message","role":"assistant","content":"{index}"}}"#);
    format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#)
}

/// [CONT-20] [CONT-21] a completed turn leaves the conversation: what it said, and the items that came out of it.
#[test]
fn a_conversation_is_remembered() {
    let mut bench = Bench::new();
    let mut conversation = |record: bool, events: &[&str]| {
        bench.lease();
        bench.put(Input::Flushed);
        if record {
            bench.put(Input::Record(recording()));
        }
        events.iter().for_each(|event| drop(bench.frame(event)));
        bench.put(Input::Durable);
        bench.put(Input::Durable);
        let history = bench
            .session
            .memory()
            .and_then(|memory| memory.history.as_deref());
        history.map(|history| history.len())
    };
    let (begun, done) = (created("r"), ended("r"));
    let two = r#"{"type":"response.completed","response":{"id":"r","output":[{"a":1},{"b":2}]}}"#;
    assert_eq!(conversation(true, &[&begun, &done]), Some(1));
    assert_eq!(conversation(true, &[&begun, &item(0), &item(1), &done]), Some(3));
    assert_eq!(conversation(true, &[&begun, &item(0), &item(1), two]), Some(3));
    assert_eq!(
        conversation(false, &[&begun, &item(0), &done]),
        None,
        "nothing was recorded"
    );
    // What is not certain is not remembered.
    assert_eq!(conversation(true, &[&begun, two]), None, "items that never came");
    assert_eq!(
        conversation(true, &[&begun, &item(0), two]),
        None,
        "one that never came"
    );
    assert_eq!(
        conversation(true, &[&begun, &item(1), &item(0), &done]),
        None,
        "another order"
    );
    assert_eq!(
        conversation(true, &[&begun, &item(1), &done]),
        None,
        "one is missing"
    );
    let steered = [&*begun, &item(0), &created("s"), &ended("s")];
    assert_eq!(conversation(true, &steered), None, "steered");
    let incomplete = r#"{"type":"response.incomplete","response":{"id":"r"}}"#;
    assert_eq!(conversation(true, &[&begun, &item(0), incomplete]), None);
    for status in ["incomplete", "cancelled", "in_progress"] {
        let not = format!(r#"{{"type":"response.completed","response":{{"id":"r","status":"{status}"}}}}"#);
        assert_eq!(conversation(true, &[&begun, &item(0), &not]), None, "{status}");
    }
    let added = |index: u32| {
        format!(
            r#"{{"type":"response.output_item.added","output_index":{index},"item":{{"type":"message"}}}}"#
        )
    };
    let unfinished = [&*begun, &added(0), &item(0), &added(1), &done];
    assert_eq!(conversation(true, &unfinished), None, "one that never ended");
    assert_eq!(conversation(true, &[&begun, &added(0), &item(0), &done]), Some(2));
    assert_eq!(
        conversation(true, &[&begun, &item(0), &done]),
        Some(2),
        "and it goes on"
    );
}

/// [CONT-21] a recording that comes after the acceptance has missed something: then nothing is remembered.
#[test]
fn a_late_recording() {
    let mut bench = Bench::new();
    bench.lease();
    bench.accept("r1");
    bench.put(Input::Record(recording()));
    bench.frame(&completed("r1"));
    assert!(bench.session.memory().unwrap().history.is_none());
}

fn recording() -> Box<turn::Recording> {
    let body = br#"{"model":"m","store":false,"input":[{"role":"user","content":"hello"}]}"#;
    let create = read_create(Bytes::from_static(body)).unwrap();
    let digester = Digester::new(&[7; 32]);
    let outline = Outline::of(&digester, &create, None).unwrap();
    let draft = Draft::new(&digester, &create, &outline, None);
    Box::new(turn::Recording::new(digester, draft))
}

/// [SES-27] a failed or rejected turn leaves no memory.
#[test]
fn no_memory() {
    let mut bench = Bench::new();
    bench.serve("r1");
    bench.lease();
    bench.frame(REJECTED);
    assert!(bench.session.memory().is_none());
    bench.serve("r2");
    bench.lease();
    bench.accept("r3");
    bench.frame(r#"{"type":"response.failed","response":{"id":"r3"}}"#);
    assert!(bench.session.memory().is_none());
}

/// [SES-18] the last response is known to the next turn even where the socket does not remember it.
#[test]
fn a_late_terminal_after_a_failed_turn() {
    let mut bench = Bench::busy();
    bench.accept("r1");
    bench.frame(r#"{"type":"error","error":{"code":"server_error"}}"#);
    assert!(bench.session.memory().is_none());
    bench.lease();
    bench.put(Input::Flushed);
    let late = r#"{"type":"response.failed","response":{"id":"r1","error":{"code":"server_error"}}}"#;
    assert!(bench.frame(late).is_empty());
    assert_eq!(bench.frame(&created("r2")), ["accepted", "commit", "forward"]);
}

/// [SES-18] [INV-5] frames that go on where the last response ended, in the middle of this one, reach nobody; and the
/// socket is not used again.
#[test]
fn late_frames_in_mid_turn() {
    let numbered = |number: u64| {
        format!(r#"{{"type":"response.output_text.delta","sequence_number":{number},"delta":"x"}}"#)
    };
    let whole = |kind: &str, id: &str, number: u64| {
        format!(
            r#"{{"type":"response.{kind}","sequence_number":{number},"response":{{"id":"{id}","output":[1]}}}}"#
        )
    };
    let mut bench = Bench::busy();
    bench.frame(&whole("created", "r1", 0));
    bench.put(Input::Durable);
    bench.frame(&whole("completed", "r1", 7));
    assert_eq!(bench.lease(), ["send"]);
    bench.put(Input::Flushed);
    bench.frame(&whole("created", "r2", 0));
    bench.put(Input::Durable);
    assert_eq!(bench.frame(&numbered(1)), ["forward"]);
    assert!(bench.frame(&numbered(8)).is_empty());
    assert_eq!(bench.frame(&numbered(2)), ["forward"]);
    assert_eq!(
        bench.frame(&whole("completed", "r2", 3)),
        [
            "forward",
            "end completed",
            "retired unexpected_frame",
            "close 1000"
        ]
    );
}

/// [SES-28] idle for `idle_ttl`: retired. A turn begins the count anew.
#[test]
fn the_idle_ttl() {
    let mut bench = Bench::new();
    bench.session.policy.max_age = 100_000 * S;
    bench.session.schedule_retirement();
    bench.pass_with_pongs(1000);
    bench.serve("r1");
    let words = bench.pass_with_pongs(2699);
    assert!(words.is_empty(), "{words:?}");
    assert_eq!(bench.pass_with_pongs(1), ["retired idle_ttl", "close 1000"]);
}

/// [SES-28] older than `max_age` and idle: retired; in mid-turn, after the turn.
#[test]
fn the_max_age() {
    let mut bench = Bench::new();
    bench.session.policy.max_age = 600 * S;
    bench.session.schedule_retirement();
    let opened = bench.now;
    assert_eq!(bench.session.opened(), opened);
    assert_eq!(bench.session.too_old_at(), opened + 600 * S);
    bench.pass_with_pongs(590);
    bench.serve("r1");
    bench.pass_with_pongs(5);
    bench.lease();
    bench.put(Input::Flushed);
    bench.accept("r2");
    let words = bench.pass_with_pongs(100);
    assert!(!words.iter().any(|word| word.starts_with("retired")), "{words:?}");
    assert_eq!(
        bench.frame(&completed("r2")),
        ["forward", "end completed", "idle"]
    );
    assert_eq!(bench.tick(Duration::ZERO), ["retired max_age", "close 1000"]);
}

/// [SES-28] a socket that alone remembers a response is kept beyond `max_age`, up to `idle_ttl`.
#[test]
fn an_unstored_memory_outlives_the_age() {
    let mut bench = Bench::new();
    bench.session.policy.max_age = 600 * S;
    bench.lease_of(false);
    bench.put(Input::Flushed);
    bench.accept("r1");
    bench.frame(&completed("r1"));
    let words = bench.pass_with_pongs(2699);
    assert!(words.is_empty(), "{words:?}");
    assert_eq!(bench.pass_with_pongs(1), ["retired idle_ttl", "close 1000"]);
}

/// [SES-29] the closing handshake lasts a second at most, and nothing comes after its end.
#[test]
fn the_close() {
    let mut bench = Bench::new();
    assert_eq!(
        bench.put(Input::Retire(Retired::Evicted)),
        ["retired evicted", "close 1000"]
    );
    assert_eq!(bench.session.deadline(), Some(bench.now + S));
    assert!(bench.tick(S - NANO).is_empty());
    assert_eq!(bench.tick(NANO), ["gone"]);
    assert_eq!(bench.session.deadline(), None);

    let mut bench = Bench::new();
    bench.put(Input::Retire(Retired::Evicted));
    assert_eq!(bench.put(Input::Closed { too_big: false }), ["gone"]);
    for input in [
        Input::Closed { too_big: false },
        event(DELTA),
        Input::Alive { pong: true },
        Input::Cut,
        Input::Slept,
        Input::Retire(Retired::Drained),
    ] {
        assert!(bench.put(input).is_empty());
    }
    assert!(bench.lease().is_empty());
    assert!(bench.tick(10_000 * S).is_empty());
}

/// [SES-29] a drained socket is closed with 1001, any other with 1000.
#[test]
fn close_codes() {
    let mut bench = Bench::new();
    assert_eq!(
        bench.put(Input::Retire(Retired::Drained)),
        ["retired drained", "close 1001"]
    );
}

/// [SES-30] a close with a turn in flight: the turn is ambiguous and ends as such, the socket is gone at once.
#[test]
fn the_upstream_closes() {
    for (too_big, kind) in [(false, "upstream_closed"), (true, "frame_too_large")] {
        let mut bench = Bench::busy();
        assert_eq!(
            bench.put(Input::Closed { too_big }),
            [
                "refuse",
                &format!("end {kind}"),
                "retired closed_by_upstream",
                "gone"
            ]
        );
    }
    let mut bench = Bench::new();
    assert_eq!(
        bench.put(Input::Closed { too_big: false }),
        ["retired closed_by_upstream", "gone"]
    );
}

/// [SES-30] [SES-14] [INV-11] terminal and close in one read: the terminal first, once its owner is durable, then the
/// close; no ping goes to the closed socket meanwhile (field report 37).
#[test]
fn terminal_and_close_together() {
    let mut bench = Bench::busy();
    bench.frame(&created("r1"));
    bench.frame(&completed("r1"));
    assert!(bench.put(Input::Closed { too_big: false }).is_empty());
    assert_eq!(
        bench.put(Input::Durable),
        ["forward", "end completed", "retired closed_by_upstream", "gone"]
    );

    let mut bench = Bench::busy();
    bench.now += 25 * S - Duration::from_millis(100);
    bench.frame(&created("r1"));
    bench.frame(&completed("r1"));
    bench.put(Input::Closed { too_big: false });
    assert_eq!(
        bench.session.deadline(),
        Some(bench.now + Duration::from_millis(250))
    );
    assert!(bench.tick(Duration::from_millis(249)).is_empty());
    assert_eq!(
        bench.tick(Duration::from_millis(1)),
        ["forward", "end completed", "retired closed_by_upstream", "gone"]
    );
}

/// [SES-25] [SES-14] a socket that dies while the terminal waits for the store does not hurry it.
#[test]
fn a_death_does_not_hurry_the_terminal() {
    let mut bench = Bench::busy();
    bench.put(Input::Alive { pong: true });
    bench.tick(25 * S);
    bench.tick(25 * S);
    bench.now += 10 * S - NANO;
    let Input::Event { name, data, head } = event(&created("r1")) else {
        panic!("an event");
    };
    // The two frames came in earlier and are read only now: they do not count as life.
    if let State::Busy(running) = &mut bench.session.state {
        running
            .turn
            .handle(bench.now, turn::Input::Event { name, data, head });
        let Input::Event { name, data, head } = event(&completed("r1")) else {
            panic!("an event");
        };
        running
            .turn
            .handle(bench.now, turn::Input::Event { name, data, head });
    }
    let words = bench.tick(NANO);
    assert!(!words.contains(&"end completed".into()), "{words:?}");
    assert_eq!(
        bench.put(Input::Durable),
        ["forward", "end completed", "retired dead", "close 1000"]
    );
}

/// [SES-31] a session that is to go finishes its turn first.
#[test]
fn retired_while_busy() {
    let mut bench = Bench::busy();
    assert!(bench.put(Input::Retire(Retired::Drained)).is_empty());
    bench.accept("r1");
    assert_eq!(
        bench.frame(&completed("r1")),
        ["forward", "end completed", "retired drained", "close 1001"]
    );
}

/// [SES-31] a cut ends the running turn with a retryable failure and the socket with 1001; without a turn it does nothing.
#[test]
fn a_cut() {
    let mut bench = Bench::busy();
    bench.accept("r1");
    assert_eq!(
        bench.put(Input::Cut),
        ["fail", "end drained", "retired drained", "close 1001"]
    );
    let mut bench = Bench::new();
    assert!(bench.put(Input::Cut).is_empty());
    assert_eq!(bench.lease(), ["send"]);
}

/// [INV-9] every reason has a label of its own, but that a reason of the turn's is the turn's.
#[test]
fn labels_are_distinct() {
    let mut all = Retired::ALL.to_vec();
    all.push(Retired::TurnFailed(Kind::IdleTimeout));
    let labels: std::collections::HashSet<_> = all.iter().map(|reason| reason.label()).collect();
    assert_eq!(labels.len(), all.len());
}

/// [INV-9] `Debug` shows no payload.
#[test]
fn debug_shows_no_content() {
    let frame = r#"{"type":"response.output_item.done","item":"SECRET"}"#;
    let mut bench = Bench::busy();
    for input in [
        event(frame),
        Input::Alive { pong: true },
        Input::Wrote,
        Input::Flushed,
        Input::Closed { too_big: true },
        Input::Durable,
        Input::ClientGone,
        Input::ClientFull,
        Input::Slept,
        Input::Cut,
        Input::Retire(Retired::Dead),
        Input::Lease {
            turn: turn_policy(),
            arrived: bench.now,
            stored: true,
        },
    ] {
        assert!(!format!("{input:?}").contains("SECRET"));
    }
    bench.session.handle(bench.now, event(frame));
    bench.session.handle(bench.now, event(&created("r1")));
    let shown = format!("{:?}", bench.session);
    assert!(!shown.contains("SECRET"), "{shown}");
}

/// [REL-11] [REL-15] an idle socket that is idle for too long, or too old, by another policy is retired at once; by a more
/// patient one it stays.
#[test]
fn an_idle_socket_under_another_policy() {
    let mut bench = Bench::new();
    bench.serve("r1");
    assert_eq!(bench.pass_with_pongs(100), [] as [&str; 0]);
    let patient = Policy {
        idle_ttl: 9000 * S,
        max_age: 9000 * S,
        ..policy()
    };
    bench.session.set_policy(bench.now, patient);
    assert_eq!(bench.session.too_old_at(), bench.session.opened() + 9000 * S);
    assert_eq!(bench.pass_with_pongs(3600), [] as [&str; 0]);
    let shorter = Policy {
        idle_ttl: 60 * S,
        ..policy()
    };
    bench.session.set_policy(bench.now, shorter);
    assert!(bench.session.deadline().unwrap() <= bench.now);
    assert_eq!(bench.tick(Duration::ZERO), ["retired idle_ttl", "close 1000"]);
    bench.session.set_policy(bench.now, patient);
    assert_eq!(bench.tick(S), ["gone"], "a socket that closes is closed");

    let mut bench = Bench::new();
    bench.serve("r1");
    bench.pass_with_pongs(100);
    let young = Policy {
        max_age: 60 * S,
        ..policy()
    };
    bench.session.set_policy(bench.now, young);
    assert_eq!(bench.tick(Duration::ZERO), ["retired max_age", "close 1000"]);
}

/// [REL-15] a shorter interval of pings begins now, a longer one after the ping that is due.
#[test]
fn pings_under_another_policy() {
    let mut bench = Bench::new();
    let quick = Policy {
        ping: 5 * S,
        ..policy()
    };
    bench.session.set_policy(bench.now, quick);
    assert_eq!(bench.tick(5 * S), ["ping"]);
    bench.put(Input::Alive { pong: true });
    let slow = Policy {
        ping: 500 * S,
        ..policy()
    };
    bench.session.set_policy(bench.now, slow);
    assert_eq!(bench.tick(5 * S), ["ping"]);
    bench.put(Input::Alive { pong: true });
    assert_eq!(bench.tick(499 * S), [] as [&str; 0]);
    assert_eq!(bench.tick(S), ["ping"]);
}

/// [REL-10] [REL-15] a running turn keeps its deadlines, and its socket is judged by the new policy when it is idle again.
#[test]
fn a_busy_socket_under_another_policy() {
    let mut bench = Bench::busy();
    let strict = Policy {
        idle_ttl: S,
        max_age: S,
        ..policy()
    };
    bench.session.set_policy(bench.now, strict);
    assert_eq!(bench.pass_with_pongs(50), ["commit", "comment"]);
    bench.frame(&created("r1"));
    bench.put(Input::Durable);
    let last = bench.frame(&completed("r1"));
    assert_eq!(last, ["forward", "end completed", "idle"]);
    assert_eq!(bench.tick(Duration::ZERO), ["retired max_age", "close 1000"]);
}
