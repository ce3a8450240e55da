//! Random inputs, in orders that no runtime would make: after every drain the session keeps its word.

use proptest::prelude::*;

use super::*;

/// One step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Lease {
        json: bool,
        stored: bool,
    },
    Frame(Frame),
    Alive {
        pong: bool,
    },
    Wrote,
    Flushed,
    Closed {
        too_big: bool,
    },
    Durable,
    ClientGone,
    ClientFull,
    Slept,
    Cut,
    Retire,
    /// Milliseconds pass, and all deadlines are judged; the client may have taken nothing for so long.
    Tick {
        after: u64,
        stuck: Option<u64>,
    },
}

/// A frame of the upstream's. Small numbers name the few responses of a history, so that ids repeat.
#[derive(Clone, Debug)]
enum Frame {
    Created(u8),
    Delta(u8),
    Item(u8),
    Telemetry,
    Keepalive,
    Completed(u8),
    Done(u8),
    Bare(u8),
    Incomplete(u8),
    Failed(u8),
    Error(&'static str),
    Large,
    Nonsense,
}

impl Frame {
    fn text(&self) -> String {
        let response = |id: u8, status: &str| {
            format!(r#"{{"id":"r{id}","object":"response","status":"{status}","output":[]}}"#)
        };
        let event =
            |kind: &str, object: String| format!(r#"{{"type":"response.{kind}","response":{object}}}"#);
        match self {
            Frame::Created(id) => event("created", response(*id, "in_progress")),
            Frame::Delta(n) => {
                format!(r#"{{"type":"response.output_text.delta","sequence_number":{n},"delta":"d"}}"#)
            }
            Frame::Item(n) => {
                format!(r#"{{"type":"response.output_item.done","output_index":{n},"item":{{"n":{n}}}}}"#)
            }
            Frame::Telemetry => LIMITS.into(),
            Frame::Keepalive => r#"{"type":"keepalive","sequence_number":4}"#.into(),
            Frame::Completed(id) => event("completed", response(*id, "completed")),
            Frame::Done(id) => event("done", response(*id, "completed")),
            Frame::Bare(id) => response(*id, "completed"),
            Frame::Incomplete(id) => event("incomplete", response(*id, "incomplete")),
            Frame::Failed(id) => event("failed", response(*id, "failed")),
            Frame::Error(code) => format!(r#"{{"type":"error","error":{{"code":"{code}"}}}}"#),
            Frame::Large => format!(r#"{{"type":"response.x","p":"{}"}}"#, "x".repeat(100_000)),
            Frame::Nonsense => "nonsense".into(),
        }
    }
}

fn frame() -> impl Strategy<Value = Frame> {
    let code = prop_oneof![
        Just("rate_limit_exceeded"),
        Just("websocket_connection_limit_reached"),
        Just("server_error"),
    ];
    prop_oneof![
        6 => (0..4_u8).prop_map(Frame::Created),
        6 => (0..9_u8).prop_map(Frame::Delta),
        2 => (0..9_u8).prop_map(Frame::Item),
        2 => Just(Frame::Telemetry),
        1 => Just(Frame::Keepalive),
        4 => (0..4_u8).prop_map(Frame::Completed),
        1 => (0..4_u8).prop_map(Frame::Done),
        1 => (0..4_u8).prop_map(Frame::Bare),
        1 => (0..4_u8).prop_map(Frame::Incomplete),
        1 => (0..4_u8).prop_map(Frame::Failed),
        2 => code.prop_map(Frame::Error),
        1 => Just(Frame::Large),
        1 => Just(Frame::Nonsense),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let after = prop_oneof![
        0..50_u64,
        200..2000_u64,
        Just(25_000_u64),
        5_000..130_000_u64,
        Just(4_000_000_u64),
    ];
    prop_oneof![
        8 => (any::<bool>(), any::<bool>()).prop_map(|(json, stored)| Step::Lease { json, stored }),
        16 => frame().prop_map(Step::Frame),
        3 => any::<bool>().prop_map(|pong| Step::Alive { pong }),
        2 => Just(Step::Wrote),
        4 => Just(Step::Flushed),
        1 => any::<bool>().prop_map(|too_big| Step::Closed { too_big }),
        5 => Just(Step::Durable),
        1 => Just(Step::ClientGone),
        1 => Just(Step::ClientFull),
        1 => Just(Step::Slept),
        1 => Just(Step::Cut),
        1 => Just(Step::Retire),
        8 => (after, proptest::option::of(0..200_000_u64))
            .prop_map(|(after, stuck)| Step::Tick { after, stuck }),
    ]
}

/// What one client call has been told, and what the upstream was sent for it.
#[derive(Default)]
struct Ledger {
    /// A lease was taken and is neither sent nor given back.
    leased: bool,
    /// The turn was sent and has not ended.
    running: bool,
    json: bool,
    committed: bool,
    accepted: bool,
    /// An HTTP error, an object or a terminal went to the client.
    answers: u32,
    terminals: u32,
    closing: bool,
    gone: bool,
    sends: u32,
    ends: u32,
}

impl Ledger {
    fn note(&mut self, output: &Output) {
        assert!(!self.gone, "after Gone: {output:?}");
        match output {
            Output::Send => {
                assert!(
                    self.leased,
                    "sent without a lease, or twice, or after it was given back"
                );
                assert!(!self.closing, "sent on a closing socket");
                self.leased = false;
                self.running = true;
                self.sends += 1;
            }
            Output::Unsent => assert!(std::mem::take(&mut self.leased), "nothing to give back"),
            Output::Ping => assert!(!self.closing, "a ping on a closing socket"),
            Output::Idle => {
                assert!(!self.running && !self.closing && !self.leased);
            }
            Output::Retired(_) => {
                assert!(!self.running, "retired under a running turn");
                assert!(!std::mem::replace(&mut self.closing, true), "retired twice");
            }
            Output::Close(code) => {
                assert!(self.closing);
                assert!(matches!(code, 1000 | 1001));
            }
            Output::Gone => {
                assert!(self.closing && !self.leased);
                self.gone = true;
            }
            Output::Turn(output) => self.note_turn(output),
        }
    }

    fn note_turn(&mut self, output: &turn::Output) {
        assert!(self.running, "an output of no running turn: {output:?}");
        assert_eq!(
            self.answers + self.terminals,
            u32::from(matches!(output, turn::Output::End(_)) && self.answers + self.terminals > 0),
            "something after the answer: {output:?}"
        );
        match output {
            turn::Output::Accepted(_) => self.accepted = true,
            turn::Output::Commit => {
                assert!(!self.json && !std::mem::replace(&mut self.committed, true));
            }
            turn::Output::Forward { name, .. } => {
                assert!(self.committed);
                let terminal = [
                    &b"response.completed"[..],
                    b"response.failed",
                    b"response.incomplete",
                ];
                self.terminals += u32::from(terminal.contains(&&name[..]));
            }
            turn::Output::Comment => assert!(self.committed),
            turn::Output::Keepalive => assert!(self.committed && self.accepted),
            turn::Output::Fail { .. } => {
                assert!(self.committed);
                self.answers += 1;
            }
            turn::Output::Reject(_) | turn::Output::Refuse(_) => {
                assert!(!self.committed);
                self.answers += 1;
            }
            turn::Output::Json(_) => {
                assert!(self.json && !self.committed);
                self.answers += 1;
            }
            turn::Output::Tear => self.answers += 1,
            turn::Output::End(end) => {
                assert!(end.sent);
                assert_eq!(end.accepted, self.accepted);
                assert_eq!(end.committed, self.committed);
                assert_eq!(
                    self.answers + self.terminals,
                    u32::from(end.outcome != Outcome::ClientGone),
                    "{end:?}"
                );
                *self = Ledger {
                    closing: self.closing,
                    sends: self.sends,
                    ends: self.ends + 1,
                    ..Ledger::default()
                };
            }
        }
    }
}

/// Takes one step; a lease only where the registry would: of a session that says it is idle, or is closing.
fn take(bench: &mut Bench, ledger: &mut Ledger, step: &Step) {
    let input = match step {
        Step::Lease { json, stored } => {
            if ledger.leased || ledger.running || ledger.gone {
                return;
            }
            ledger.leased = true;
            ledger.json = *json;
            Input::Lease {
                turn: turn::Policy {
                    stream: !json,
                    ..turn_policy()
                },
                arrived: bench.now,
                stored: *stored,
            }
        }
        Step::Frame(frame) => event(&frame.text()),
        Step::Alive { pong } => Input::Alive { pong: *pong },
        Step::Wrote => Input::Wrote,
        Step::Flushed => Input::Flushed,
        Step::Closed { too_big } => Input::Closed { too_big: *too_big },
        Step::Durable => Input::Durable,
        Step::ClientGone => Input::ClientGone,
        Step::ClientFull => Input::ClientFull,
        Step::Slept => Input::Slept,
        Step::Cut => Input::Cut,
        Step::Retire => Input::Retire(Retired::Evicted),
        Step::Tick { after, stuck } => {
            bench.now += Duration::from_millis(*after);
            let since = stuck.map(|stuck| bench.now - Duration::from_millis(stuck));
            bench.session.tick(bench.now, since);
            return;
        }
    };
    bench.session.handle(bench.now, input);
}

fn check(bench: &mut Bench, ledger: &mut Ledger, step: &Step) {
    while let Some(output) = bench.session.poll() {
        ledger.note(&output);
    }
    if matches!(step, Step::Tick { .. }) {
        let deadline = bench.session.deadline();
        assert!(deadline.is_none_or(|at| at >= bench.now), "a wait in the past");
        assert!(
            deadline.is_some() != ledger.gone,
            "until it is gone a session waits for something"
        );
    }
    assert_eq!(bench.session.turn().is_some(), ledger.running);
    assert_eq!(bench.session.turns(), ledger.sends);
    assert_eq!(ledger.sends, ledger.ends + u32::from(ledger.running));
    if let Some(turn) = bench.session.turn() {
        assert!(turn.is_bounded(), "more held than the caps allow");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// [SES-6] [SES-22] [SES-29] [INV-1] [INV-2] [INV-3] [INV-7] whatever happens in whatever order: at most one send per
    /// lease and none after it came back unsent, exactly one end and one answer per sent turn, nothing after the end, no
    /// output after `Gone`, no wait in the past, bounded buffers.
    #[test]
    fn a_session_keeps_its_word(steps in proptest::collection::vec(step(), 1..80)) {
        let mut bench = Bench::new();
        let mut ledger = Ledger::default();
        for step in &steps {
            take(&mut bench, &mut ledger, step);
            check(&mut bench, &mut ledger, step);
        }
        // However it stands, it comes to its end by itself.
        for _ in 0..20 {
            let step = Step::Tick { after: 8_000_000, stuck: None };
            take(&mut bench, &mut ledger, &step);
            check(&mut bench, &mut ledger, &step);
        }
        prop_assert!(ledger.gone && !ledger.running && !ledger.leased);
    }
}
