use super::*;
use crate::bridge::watchdog::{Limits, Quiet, Shape, Transport};
use crate::wire::head;

const S: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);

fn policy() -> Policy {
    Policy {
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
        heartbeat: 10 * S,
        slow_client: 120 * S,
        items_cap: 1000,
    }
}

/// A turn, a clock, and what came out, in words.
struct Bench {
    turn: Turn,
    now: Instant,
    start: Instant,
    end: Option<TurnEnd>,
}

impl Bench {
    fn new(policy: Policy, late: Option<&str>) -> Self {
        let now = Instant::now();
        Bench {
            turn: Turn::new(
                policy,
                now,
                late.map(|id| Previous {
                    response_id: id.into(),
                    last: None,
                }),
            ),
            now,
            start: now,
            end: None,
        }
    }

    fn sse() -> Self {
        Bench::new(policy(), None)
    }

    fn json() -> Self {
        let policy = Policy {
            stream: false,
            ..policy()
        };
        Bench::new(policy, None)
    }

    fn sent(mut self) -> Self {
        assert!(self.put(Input::Wrote).is_empty());
        assert!(self.put(Input::Flushed).is_empty());
        self
    }

    /// Sent, and accepted as response `r1`, whose owner is durable.
    fn accepted(self) -> Self {
        let mut bench = self.sent();
        bench.frame(&created("r1"));
        assert!(bench.put(Input::Durable).is_empty());
        bench
    }

    fn put(&mut self, input: Input) -> Vec<String> {
        self.turn.handle(self.now, input);
        self.drain()
    }

    fn frame(&mut self, frame: &str) -> Vec<String> {
        self.put(event(frame))
    }

    fn tick(&mut self, after: Duration) -> Vec<String> {
        self.waiting(after, None)
    }

    fn waiting(&mut self, after: Duration, since: Option<Instant>) -> Vec<String> {
        self.now += after;
        self.turn.tick(self.now, since);
        let outputs = self.drain();
        assert!(
            self.turn.deadline().is_none_or(|at| at > self.now),
            "a wait in the past"
        );
        outputs
    }

    fn drain(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        while let Some(output) = self.turn.poll() {
            if let Output::End(end) = &output {
                assert!(self.end.replace(*end).is_none(), "a second end");
            }
            words.push(word(&output));
        }
        words
    }

    /// The end that has come out.
    #[track_caller]
    fn end(&self) -> TurnEnd {
        self.end.unwrap()
    }
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
    let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    match output {
        Output::Accepted(created) => format!("accepted {}", created.response_id.as_deref().unwrap_or("-")),
        Output::Commit => "commit".into(),
        Output::Forward { name, data } => {
            let frame = text(data);
            let number = head::sequence_number(data).map(|number| format!(" {number}"));
            assert!(frame.starts_with('{'));
            format!("{}{}", text(name), number.unwrap_or_default())
        }
        Output::Comment => "comment".into(),
        Output::Keepalive => "keepalive".into(),
        Output::Fail { code, message } => format!("fail {code}: {message}"),
        Output::Reject(error) => format!(
            "reject {} {}",
            error.http_status(),
            error.code.as_deref().unwrap_or("-")
        ),
        Output::Refuse(refusal) => format!("refuse {}", refusal.kind.label()),
        Output::Json(object) => format!("json {}", text(object)),
        Output::Tear => "tear".into(),
        Output::End(end) => format!("end {}", end.outcome.label()),
    }
}

fn created(id: &str) -> String {
    format!(
        r#"{{"type":"response.created","sequence_number":0,"response":{{"id":"{id}","status":"in_progress"}}}}"#
    )
}

fn delta(number: u64) -> String {
    format!(r#"{{"type":"response.output_text.delta","delta":"x","sequence_number":{number}}}"#)
}

fn completed(id: &str) -> String {
    format!(
        r#"{{"type":"response.completed","sequence_number":9,"response":{{"id":"{id}","object":"response","status":"completed","output":[{{"a":1}}]}}}}"#
    )
}

const LIMITS: &str = r#"{"type":"codex.rate_limits","rate_limits":{}}"#;
const FAILED: &str = r#"{"type":"response.failed","sequence_number":9,"response":{"id":"r1","status":"failed","error":{"code":"server_is_overloaded","message":"busy"}}}"#;
const REJECTED: &str = r#"{"type":"error","status":429,"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"slow down"}}"#;
const BARE: &str =
    r#"{"id":"r1","object":"response","status":"completed","output":[{"a":1}],"usage":{"total_tokens":3}}"#;

/// [SES-6] [SES-7] [INV-2] a healthy turn, from send to end, and nothing after its end.
#[test]
fn a_healthy_turn() {
    let mut bench = Bench::sse().sent();
    assert_eq!(
        bench.frame(&created("r1")),
        ["accepted r1", "commit", "response.created 0"]
    );
    assert_eq!(bench.turn.response_id(), Some("r1"));
    assert_eq!(bench.frame(&delta(1)), ["response.output_text.delta 1"]);
    assert!(bench.put(Input::Durable).is_empty());
    assert_eq!(
        bench.frame(&completed("r1")),
        ["response.completed 9", "end completed"]
    );
    let end = bench.end();
    assert!(end.sent && end.accepted && end.committed && end.upstream_done);
    assert_eq!(end.verdict, None);

    for input in [
        Input::Wrote,
        Input::Flushed,
        Input::Headers,
        event(&delta(2)),
        event(&created("r2")),
        event(&completed("r1")),
        Input::Lost(Kind::UpstreamClosed),
        Input::Durable,
        Input::ClientGone,
        Input::ClientFull,
        Input::Cut,
    ] {
        assert!(bench.put(input).is_empty());
    }
    assert!(bench.tick(100_000 * S).is_empty());
    assert_eq!(bench.turn.deadline(), None);
}

/// [INV-8] payloads are forwarded byte for byte.
#[test]
fn bytes_pass_through() {
    let mut bench = Bench::sse().accepted();
    let frame = "{ \"type\" : \"response.new_thing\",\n \"n\":1.0e2, \"n\":2, \"\\u00e9\":\"\u{e9}\" }";
    bench.turn.handle(bench.now, event(frame));
    match bench.turn.poll() {
        Some(Output::Forward { name, data }) => {
            assert_eq!(&name[..], b"response.new_thing");
            assert_eq!(&data[..], frame.as_bytes());
        }
        other => panic!("{other:?}"),
    }
}

/// [INV-8] a documented terminal too, with whatever else is in it.
#[test]
fn a_terminal_passes_through() {
    let mut bench = Bench::sse().accepted();
    let frame = r#"{ "response" : {"id":"r1", "output":[]}, "extra":1.0e2, "type":"response.completed" }"#;
    bench.turn.handle(bench.now, event(frame));
    match bench.turn.poll() {
        Some(Output::Forward { data, .. }) => assert_eq!(&data[..], frame.as_bytes()),
        other => panic!("{other:?}"),
    }
}

/// [SES-7] telemetry commits nothing; a rejection after it is a real status (field reports 18 and 38).
#[test]
fn telemetry_then_a_rejection() {
    let mut bench = Bench::sse().sent();
    assert!(bench.frame(LIMITS).is_empty());
    assert!(bench.tick(14 * S).is_empty());
    assert_eq!(
        bench.frame(REJECTED),
        ["reject 429 rate_limit_exceeded", "end rejected"]
    );
    let end = bench.end();
    assert!(end.sent && end.upstream_done && !end.accepted && !end.committed);
}

/// [SES-7] after `commit_after` since the call's arrival the status line goes, with a comment.
#[test]
fn the_status_line_is_held_for_so_long() {
    let mut bench = Bench::sse().sent();
    assert!(bench.tick(15 * S - NANO).is_empty());
    assert_eq!(bench.tick(NANO), ["commit", "comment"]);
    assert_eq!(bench.tick(10 * S), ["comment"]);
    assert_eq!(
        bench.frame(&created("r1")),
        ["accepted r1", "response.created 0"],
        "committed once"
    );
}

/// [SES-8] what came before `response.created` is delivered right after it, in order.
#[test]
fn held_events_follow_created() {
    let mut bench = Bench::sse().sent();
    for frame in [LIMITS, &delta(5), r#"{"type":"response.queued"}"#] {
        assert!(bench.frame(frame).is_empty());
    }
    assert_eq!(
        bench.frame(&created("r1")),
        [
            "accepted r1",
            "commit",
            "response.created 0",
            "codex.rate_limits",
            "response.output_text.delta 5",
            "response.queued"
        ]
    );
}

/// [SES-8] they are dropped when the turn fails, held or committed.
#[test]
fn held_events_are_dropped_with_the_turn() {
    for committed in [false, true] {
        let mut bench = Bench::sse().sent();
        bench.frame(&delta(1));
        if committed {
            assert_eq!(bench.tick(15 * S), ["commit", "comment"]);
        }
        let told = bench.frame(FAILED);
        let expected = match committed {
            false => "reject 503 server_is_overloaded",
            true => "fail server_is_overloaded: busy",
        };
        assert_eq!(told, [expected, "end rejected"]);
    }
}

/// [SES-8] [INV-7] more than is kept ends the turn, be it one large event or many small ones.
#[test]
fn more_than_is_held() {
    let large = format!(r#"{{"type":"response.x","p":"{}"}}"#, "x".repeat(256 * 1024));
    let mut bench = Bench::sse().sent();
    assert_eq!(bench.frame(&large), ["refuse hold_overflow", "end hold_overflow"]);
    assert!(!bench.end().upstream_done);

    let mut bench = Bench::sse().sent();
    let many = (0..5000).take_while(|_| bench.frame("{}").is_empty()).count();
    assert!((3000..4000).contains(&many));
}

/// [SES-9] an error before commit: upstream's own, from a frame, a failed terminal, or an HTTP status.
#[test]
fn an_error_while_the_status_line_is_held() {
    let http = WireError::from_http(503, &http::HeaderMap::new(), br#"{"error":{"code":"slow_down"}}"#);
    for (input, expected) in [
        (event(REJECTED), "reject 429 rate_limit_exceeded"),
        (event(FAILED), "reject 503 server_is_overloaded"),
        (event(r#"{"detail":"no"}"#), "reject 502 -"),
        (Input::Rejected(http.into()), "reject 503 slow_down"),
    ] {
        let mut bench = Bench::sse().sent();
        let outputs = bench.put(input);
        assert_eq!(outputs[1..], ["end rejected"]);
        assert!(outputs[0].starts_with(expected.split(' ').next().unwrap()));
        if !expected.ends_with('-') {
            assert_eq!(outputs[0], expected);
        }
        assert!(bench.end().upstream_done);
    }
}

/// [SES-10] an error frame after created reaches the client as a failure with the same code and message.
#[test]
fn an_error_after_created() {
    let mut bench = Bench::sse().accepted();
    assert_eq!(
        bench.frame(REJECTED),
        ["fail rate_limit_exceeded: slow down", "end failed"]
    );
    assert!(bench.end().accepted && bench.end().upstream_done);
}

/// [SES-10] where a code is missing the type stands in for it, then the error's class; a missing message is replaced.
#[test]
fn an_error_without_a_code() {
    let mut bench = Bench::sse().accepted();
    let outputs =
        bench.frame(r#"{"type":"error","error":{"type":"overloaded_error","message":"m","code":null}}"#);
    assert_eq!(outputs[0], "fail overloaded_error: m");
    let mut bench = Bench::sse().accepted();
    let outputs = bench.frame(r#"{"type":"error","status":503}"#);
    let class = WireError::from_http(503, &http::HeaderMap::new(), b"")
        .class()
        .label();
    assert_eq!(
        outputs[0],
        format!("fail {class}: The upstream reported an error without a message.")
    );
}

/// [SES-10] an accepted turn's own `response.failed` is passed on as it came.
#[test]
fn a_failed_terminal_after_created() {
    let mut bench = Bench::sse().accepted();
    assert_eq!(bench.frame(FAILED), ["response.failed 9", "end failed"]);
}

/// [SES-10] [INV-3] the bridge's own findings: an HTTP error while held, `response.failed` after commit.
#[test]
fn the_bridges_own_findings() {
    let mut bench = Bench::sse().sent();
    let lost = Input::Lost(Kind::UpstreamClosed);
    assert_eq!(bench.put(lost), ["refuse upstream_closed", "end upstream_closed"]);
    assert!(!bench.end().upstream_done && bench.end().sent && !bench.end().accepted);

    let mut bench = Bench::sse().accepted();
    let outputs = bench.put(Input::Lost(Kind::UpstreamClosed));
    assert!(
        outputs[0].starts_with("fail bridge_upstream_closed: The upstream closed"),
        "{outputs:?}"
    );
    assert_eq!(outputs[1..], ["end upstream_closed"]);
    assert!(bench.end().committed && bench.end().accepted);

    let mut bench = Bench::sse().sent();
    assert_eq!(
        bench.frame("not json"),
        ["refuse upstream_protocol", "end upstream_protocol"]
    );
}

/// [SES-3] [INV-4] each verdict ends the turn as its own kind, and the end says which it was.
#[test]
fn verdicts() {
    let http = Policy {
        transport: Transport::Http,
        commit_after: 1000 * S,
        ..policy()
    };
    let held = Policy {
        commit_after: 1000 * S,
        ..policy()
    };
    let mut silent = Bench::new(held, None).sent();
    assert_eq!(
        silent.tick(60 * S),
        ["refuse response_created_timeout", "end response_created_timeout"]
    );
    assert_eq!(silent.end().verdict, Some(Verdict::Silent(Shape::Eventless)));

    let mut telemetry = Bench::new(held, None).sent();
    for _ in 0..59 {
        telemetry.now += S;
        assert!(telemetry.frame(LIMITS).is_empty());
    }
    telemetry.tick(S);
    assert_eq!(
        telemetry.end().verdict,
        Some(Verdict::Silent(Shape::EventsWithoutCreated))
    );

    let mut stalled = Bench::new(held, None);
    stalled.put(Input::Wrote);
    assert_eq!(
        stalled.tick(30 * S),
        ["refuse write_stalled", "end write_stalled"]
    );

    let mut first_byte = Bench::new(http, None).sent();
    assert_eq!(
        first_byte.tick(60 * S),
        ["refuse first_byte_timeout", "end first_byte_timeout"]
    );

    let mut first_event = Bench::new(http, None).sent();
    first_event.put(Input::Headers);
    assert_eq!(
        first_event.tick(60 * S),
        ["refuse first_event_timeout", "end first_event_timeout"]
    );

    let mut request = Bench::new(http, None);
    request.turn.table.clear(Timer::Commit);
    assert_eq!(
        request.tick(7200 * S),
        ["refuse request_deadline", "end request_deadline"]
    );
    assert!(!request.end().sent);

    let mut idle = Bench::sse().accepted();
    let outputs = idle.tick(900 * S);
    assert!(outputs[0].starts_with("fail bridge_idle_timeout"), "{outputs:?}");
    assert_eq!(idle.end().verdict, Some(Verdict::Idle));
}

/// [SES-4] telemetry after acceptance reaches the client but is no progress.
#[test]
fn telemetry_is_no_progress() {
    let mut bench = Bench::sse().accepted();
    bench.now += 899 * S;
    assert_eq!(bench.frame(LIMITS), ["codex.rate_limits"]);
    bench.now += S;
    bench.turn.tick(bench.now, None);
    assert!(bench.drain().last().unwrap() == "end idle_timeout");

    let mut bench = Bench::sse().accepted();
    bench.now += 899 * S;
    assert_eq!(
        bench.frame(r#"{"type":"keepalive","sequence_number":3}"#),
        ["keepalive 3"]
    );
    bench.now += 899 * S;
    bench.turn.tick(bench.now, None);
    assert!(!bench.drain().iter().any(|word| word.starts_with("end")));
}

/// [SES-5] a JSON client of an upstream that streams all the same keeps the deadlines of a stream; of one that was
/// asked for one object it has that of the whole request only (field report 21).
#[test]
fn json_over_http() {
    let streamed = Policy {
        transport: Transport::Http,
        stream: false,
        ..policy()
    };
    let mut bench = Bench::new(streamed, None).sent();
    bench.put(Input::Headers);
    assert_eq!(
        bench.tick(60 * S),
        ["refuse first_event_timeout", "end first_event_timeout"]
    );

    let whole = Policy {
        whole: true,
        ..streamed
    };
    let mut bench = Bench::new(whole, None).sent();
    bench.put(Input::Headers);
    assert!(bench.tick(7199 * S).is_empty());
    assert_eq!(bench.tick(S), ["refuse request_deadline", "end request_deadline"]);
}

/// [SES-11] a quiet client hears a comment every 10 s of quiet, and a keepalive event after each 120 s without data.
#[test]
fn a_quiet_client_hears_something() {
    let mut bench = Bench::sse().accepted();
    assert!(bench.tick(10 * S - NANO).is_empty());
    assert_eq!(bench.tick(NANO), ["comment"]);
    bench.now += 5 * S;
    bench.frame(&delta(1));
    assert!(bench.tick(10 * S - NANO).is_empty(), "data is no quiet");
    assert_eq!(bench.tick(NANO), ["comment"]);
    let mut keepalives = Vec::new();
    for second in 11..=400 {
        for word in bench.tick(S) {
            if word == "keepalive" {
                keepalives.push(second);
            }
        }
    }
    assert_eq!(keepalives, [120, 240, 360], "counted from the last data event");
}

/// [SES-11] before `response.created` a client hears comments only: data would be an event before created.
#[test]
fn no_keepalive_before_created() {
    let patient = Policy {
        limits: Limits {
            created: 1000 * S,
            ..policy().limits
        },
        ..policy()
    };
    let mut bench = Bench::new(patient, None).sent();
    bench.tick(15 * S);
    for _ in 0..50 {
        assert_eq!(bench.tick(10 * S), ["comment"]);
    }
}

/// [SES-12] a JSON client hears nothing before the end and gets the terminal's object as it came.
#[test]
fn a_json_client_gets_one_object() {
    let mut bench = Bench::json().sent();
    assert!(bench.frame(LIMITS).is_empty());
    assert_eq!(bench.frame(&created("r1")), ["accepted r1"]);
    bench.put(Input::Durable);
    assert!(bench.frame(&delta(1)).is_empty());
    assert!(bench.tick(500 * S).is_empty());
    assert_eq!(
        bench.frame(&completed("r1")),
        [
            r#"json {"id":"r1","object":"response","status":"completed","output":[{"a":1}]}"#,
            "end completed"
        ]
    );
    assert!(!bench.end().committed);
}

/// [SES-12] an empty output is filled by index from the finished items, early ones too (field report 36).
#[test]
fn an_empty_output_is_filled() {
    let item = |index: u64, text: &str| {
        format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{{"t":"{text}"}}}}"#)
    };
    let empty = r#"{"type":"response.completed","response":{"id":"r1","output":[]}}"#;
    let mut bench = Bench::json().sent();
    bench.frame(&item(2, "c"));
    bench.frame(&created("r1"));
    bench.put(Input::Durable);
    bench.frame(&item(1, "b"));
    bench.frame(&item(0, "a"));
    assert_eq!(
        bench.frame(empty)[0],
        r#"json {"id":"r1","output":[{"t":"a"},{"t":"b"},{"t":"c"}]}"#
    );

    let mut bench = Bench::json().accepted();
    assert_eq!(bench.frame(empty)[0], r#"json {"id":"r1","output":[]}"#);

    let mut bench = Bench::json().accepted();
    bench.frame(&item(0, "a"));
    assert!(
        bench.frame(&completed("r1"))[0].ends_with(r#""output":[{"a":1}]}"#),
        "not empty: as it came"
    );
}

/// [SES-12] [INV-7] items are kept up to their cap; one byte more, and an output that comes empty cannot be filled, while
/// one that comes full is passed on. An SSE client's items are not kept at all.
#[test]
fn items_cap_and_cap_plus_one() {
    let item = |length: usize| {
        let shell = r#"{"type":"response.output_item.done","item":""}"#.len();
        let text = "x".repeat(length - shell);
        format!(r#"{{"type":"response.output_item.done","item":"{text}"}}"#)
    };
    let overflown = |end: &str| {
        let mut bench = Bench::json().accepted();
        assert!(bench.frame(&item(500)).is_empty());
        assert!(bench.frame(&item(500)).is_empty());
        assert!(bench.frame(&item(60)).is_empty(), "no fault yet");
        bench.frame(end)
    };
    let empty = r#"{"type":"response.completed","response":{"id":"r1","output":[]}}"#;
    assert_eq!(overflown(empty), ["refuse hold_overflow", "end hold_overflow"]);
    assert!(overflown(&completed("r1"))[0].ends_with(r#""output":[{"a":1}]}"#));
    let mut bench = Bench::sse().accepted();
    for _ in 0..10 {
        assert_eq!(bench.frame(&item(500)), ["response.output_item.done"]);
    }
}

/// [SES-12] a JSON client's failure is an HTTP error, at whatever stage and of whatever making.
#[test]
fn a_json_failure_is_an_http_error() {
    let cases = [
        (event(FAILED), "reject 503 server_is_overloaded", "end failed"),
        (event(REJECTED), "reject 429 rate_limit_exceeded", "end failed"),
        (
            Input::Lost(Kind::UpstreamClosed),
            "refuse upstream_closed",
            "end upstream_closed",
        ),
        (
            event(r#"{"type":"response.completed"}"#),
            "refuse upstream_protocol",
            "end upstream_protocol",
        ),
        (
            event(
                r#"{"type":"response.incomplete","response":{"id":"r1","incomplete_details":{"reason":"rate_limit_exceeded"}}}"#,
            ),
            "reject 429 rate_limit_exceeded",
            "end failed",
        ),
    ];
    for (input, told, end) in cases {
        let mut bench = Bench::json().accepted();
        assert_eq!(bench.put(input), [told, end]);
    }
    let incomplete = r#"{"type":"response.incomplete","response":{"id":"r1","output":[1],"incomplete_details":{"reason":"max_output_tokens"}}}"#;
    let outputs = Bench::json().accepted().frame(incomplete);
    assert!(outputs[0].starts_with("json {") && outputs[1] == "end incomplete");
}

/// [SES-13] `response.done` and a bare object become the documented event around the same object.
#[test]
fn undocumented_terminals_are_made_anew() {
    let done = format!(r#"{{"type":"response.done","sequence_number":4,"response":{BARE}}}"#);
    for (frame, number) in [(BARE, ""), (&done, r#""sequence_number":4,"#)] {
        let mut bench = Bench::sse().accepted();
        bench.turn.handle(bench.now, event(frame));
        match bench.turn.poll() {
            Some(Output::Forward { name, data }) => {
                assert_eq!(&name[..], b"response.completed");
                let expected = format!(r#"{{"type":"response.completed",{number}"response":{BARE}}}"#);
                assert_eq!(std::str::from_utf8(&data).unwrap(), expected);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// [SES-13] an incomplete response is passed on as it came; with an error code for a reason it is a failure.
#[test]
fn incomplete_responses() {
    let incomplete = |reason| {
        format!(
            r#"{{"type":"response.incomplete","response":{{"id":"r1","incomplete_details":{{"reason":"{reason}"}}}}}}"#
        )
    };
    let plain = incomplete("max_output_tokens");
    assert_eq!(
        Bench::sse().accepted().frame(&plain),
        ["response.incomplete", "end incomplete"]
    );
    let erroneous = incomplete("rate_limit_exceeded");
    assert_eq!(
        Bench::sse().accepted().frame(&erroneous),
        ["response.incomplete", "end failed"]
    );
    assert_eq!(
        Bench::sse().sent().frame(&erroneous),
        ["reject 429 rate_limit_exceeded", "end rejected"]
    );
}

/// [SES-13] [INV-2] nothing that follows the terminal is passed on, also while the terminal waits for the store.
#[test]
fn nothing_follows_the_terminal() {
    let mut bench = Bench::sse().sent();
    bench.frame(&created("r1"));
    assert!(bench.frame(&completed("r1")).is_empty());
    assert!(bench.frame(&delta(10)).is_empty());
    assert!(bench.frame(REJECTED).is_empty());
    assert!(bench.frame(&completed("r1")).is_empty());
    assert_eq!(
        bench.put(Input::Durable),
        ["response.completed 9", "end completed"]
    );
}

/// [SES-14] [INV-11] the terminal waits for its owner to be durable, for 250 ms at most.
#[test]
fn the_terminal_waits_for_the_store() {
    let mut bench = Bench::sse().sent();
    bench.frame(&created("r1"));
    assert!(!bench.turn.awaits_durable());
    assert!(bench.frame(&completed("r1")).is_empty());
    assert!(bench.turn.awaits_durable());
    assert_eq!(
        bench.turn.deadline(),
        Some(bench.now + Duration::from_millis(250))
    );
    assert!(bench.tick(Duration::from_millis(249)).is_empty());
    assert_eq!(
        bench.tick(Duration::from_millis(1)),
        ["response.completed 9", "end completed"]
    );
    assert!(!bench.turn.awaits_durable());
}

/// [SES-14] [INV-11] neither a close in the same read nor a drain lets the terminal outrun its owner, or loses it
/// (field report 37).
#[test]
fn a_close_does_not_hurry_the_terminal() {
    for input in [Input::Lost(Kind::UpstreamClosed), Input::Cut] {
        let mut bench = Bench::sse().sent();
        bench.frame(&created("r1"));
        bench.frame(&completed("r1"));
        assert!(bench.put(input).is_empty());
        assert_eq!(
            bench.put(Input::Durable),
            ["response.completed 9", "end completed"]
        );
    }
}

/// [SES-14] no watchdog judges a turn that only waits for the store.
#[test]
fn the_store_is_not_the_upstreams_fault() {
    let mut bench = Bench::sse().sent();
    bench.frame(&created("r1"));
    bench.frame(&completed("r1"));
    assert_eq!(bench.tick(7200 * S), ["response.completed 9", "end completed"]);
}

/// [SES-14] a response without an id has no owner to wait for.
#[test]
fn nothing_to_own() {
    let mut bench = Bench::sse().sent();
    let outputs = bench.frame(r#"{"type":"response.created","response":{}}"#);
    assert_eq!(outputs, ["accepted -", "commit", "response.created"]);
    let outputs = bench.frame(r#"{"type":"response.completed","response":{"output":[]}}"#);
    assert_eq!(outputs, ["response.completed", "end completed"]);
}

/// [SES-15] a client that leaves ends its turn at once, at every stage.
#[test]
fn the_client_leaves() {
    let mut held = Bench::sse().sent();
    assert_eq!(held.put(Input::ClientGone), ["end client_gone"]);
    let mut running = Bench::sse().accepted();
    running.frame(&delta(1));
    assert_eq!(running.put(Input::ClientGone), ["end client_gone"]);
    let mut unsent = Bench::sse();
    assert_eq!(unsent.put(Input::ClientGone), ["end client_gone"]);
    assert!(!unsent.end().sent && !unsent.end().upstream_done);
    let mut ending = Bench::sse().sent();
    ending.frame(&created("r1"));
    ending.frame(&completed("r1"));
    assert_eq!(ending.put(Input::ClientGone), ["end client_gone"]);
}

/// [SES-16] [INV-7] a full client buffer tears the connection.
#[test]
fn a_full_client_buffer() {
    let mut bench = Bench::sse().accepted();
    assert_eq!(bench.put(Input::ClientFull), ["tear", "end slow_client"]);
    assert!(!bench.end().upstream_done);
}

/// [SES-16] no byte taken for 120 s although some wait: torn. A client that takes some, however slowly, is not.
#[test]
fn a_client_that_takes_nothing() {
    let mut bench = Bench::sse().accepted();
    let since = bench.now + S;
    for _ in 0..12 {
        bench.now += 10 * S;
        bench.frame(&delta(1));
        bench.turn.tick(bench.now, Some(since));
        assert!(!bench.drain().contains(&"tear".into()));
    }
    assert_eq!(bench.waiting(S, Some(since)), ["tear", "end slow_client"]);

    let mut bench = Bench::sse().accepted();
    for _ in 0..100 {
        bench.now += 5 * S;
        bench.frame(&delta(1));
        let since = bench.now - 119 * S;
        assert!(
            bench.waiting(Duration::ZERO, Some(since)).is_empty(),
            "it takes some, however late"
        );
    }
    let mut bench = Bench::sse().accepted();
    for _ in 0..100 {
        bench.now += 5 * S;
        bench.frame(&delta(1));
        assert!(
            bench.waiting(Duration::ZERO, None).is_empty(),
            "nothing waits for it"
        );
    }
}

/// [SES-16] comments are bytes too: a client that takes none of them is as slow.
#[test]
fn a_client_that_takes_no_comment() {
    let patient = Policy {
        limits: Limits {
            created: 1000 * S,
            ..policy().limits
        },
        ..policy()
    };
    let mut bench = Bench::new(patient, None).sent();
    bench.tick(15 * S);
    let since = bench.now;
    let torn = (0..30).find(|_| bench.waiting(10 * S, Some(since)).contains(&"tear".into()));
    assert!(torn.is_some());
    assert_eq!(bench.now, since + 120 * S);
}

/// [SES-17] [SES-14] a steered turn owns both its responses, and its terminal waits for both owners.
#[test]
fn a_steered_turn() {
    let mut bench = Bench::sse().sent();
    bench.frame(&created("r1"));
    assert_eq!(bench.frame(&created("r2")), ["accepted r2", "response.created 0"]);
    assert_eq!(bench.turn.response_id(), Some("r2"));
    assert!(bench.frame(&completed("r2")).is_empty());
    assert!(bench.put(Input::Durable).is_empty());
    assert_eq!(
        bench.put(Input::Durable),
        ["response.completed 9", "end completed"]
    );
}

/// [SES-18] [INV-5] a repeated terminal of the socket's last response is nobody's.
#[test]
fn a_late_terminal() {
    let mut bench = Bench::new(policy(), Some("r0")).sent();
    assert!(bench.frame(&completed("r0")).is_empty());
    assert!(
        bench
            .frame(r#"{"type":"response.failed","response":{"id":"r0","error":{}}}"#)
            .is_empty()
    );
    assert_eq!(bench.frame(&created("r1"))[0], "accepted r1");
    bench.put(Input::Durable);
    assert_eq!(
        bench.frame(&completed("r1")),
        ["response.completed 9", "end completed"]
    );
}

/// [SES-18] an upstream that reuses the id of the last response is believed once it has confirmed it.
#[test]
fn a_reused_id() {
    let mut bench = Bench::new(policy(), Some("r0")).sent();
    bench.frame(&created("r0"));
    bench.put(Input::Durable);
    assert_eq!(
        bench.frame(&completed("r0")),
        ["response.completed 9", "end completed"]
    );
}

/// [SES-18] [INV-5] an event numbered after this response's first, but here before it, is the last response's: on a
/// socket that made one. Events without a number, and all on a fresh socket, are this turn's.
#[test]
fn late_events_are_told_by_their_number() {
    let item = r#"{"type":"response.output_item.done","sequence_number":8,"item":{"late":1}}"#;
    let mut bench = Bench::new(policy(), Some("r0")).sent();
    for frame in [&delta(7), item, LIMITS] {
        bench.frame(frame);
    }
    assert_eq!(
        bench.frame(&created("r1")),
        ["accepted r1", "commit", "response.created 0", "codex.rate_limits"]
    );

    let json = Policy {
        stream: false,
        ..policy()
    };
    let mut bench = Bench::new(json, Some("r0")).sent();
    bench.frame(item);
    bench.frame(&created("r1"));
    bench.put(Input::Durable);
    assert_eq!(
        bench.frame(r#"{"type":"response.completed","response":{"id":"r1","output":[]}}"#)[0],
        r#"json {"id":"r1","output":[]}"#
    );

    let mut bench = Bench::new(policy(), Some("r0")).sent();
    bench.frame(&delta(0));
    assert_eq!(bench.frame(&created("r1")).len(), 4, "not numbered after it");
}

/// [SES-19] a whole answer is accepted, owned and ended by its one object.
#[test]
fn a_whole_answer_is_owned() {
    let whole = Policy {
        transport: Transport::Http,
        stream: false,
        whole: true,
        ..policy()
    };
    let mut bench = Bench::new(whole, None).sent();
    bench.put(Input::Headers);
    assert_eq!(bench.frame(BARE), ["accepted r1"]);
    assert_eq!(
        bench.put(Input::Durable),
        [format!("json {BARE}"), "end completed".into()]
    );
    assert!(bench.end().accepted);

    let failed = r#"{"id":"r1","object":"response","status":"failed","error":{"code":"invalid_prompt"}}"#;
    let mut bench = Bench::new(whole, None).sent();
    assert_eq!(
        bench.frame(failed),
        ["reject 400 invalid_prompt", "end rejected"],
        "nothing to own"
    );
}

/// [SES-19] [SES-14] a whole answer that is no terminal, a queued background response, is owned first and passed on as it is.
#[test]
fn a_queued_answer() {
    let policy = Policy {
        transport: Transport::Http,
        stream: false,
        whole: true,
        ..policy()
    };
    let whole = || Input::Whole {
        object: Bytes::from_static(br#"{"id":"r1","status":"queued","output":[]}"#),
        response_id: Some("r1".into()),
    };
    let mut bench = Bench::new(policy, None).sent();
    assert_eq!(bench.put(whole()), ["accepted r1"]);
    assert!(bench.put(whole()).is_empty(), "once");
    assert_eq!(
        bench.put(Input::Durable),
        [
            r#"json {"id":"r1","status":"queued","output":[]}"#,
            "end completed"
        ]
    );
    assert!(!format!("{:?}", whole()).contains("queued"));
}

/// [SES-19] a stream that has a terminal and no `response.created` ends as its terminal says, and what was held comes
/// first.
#[test]
fn a_terminal_without_created() {
    let mut bench = Bench::sse().sent();
    bench.frame(&delta(1));
    assert_eq!(bench.frame(&completed("r1")), ["accepted r1"]);
    assert_eq!(
        bench.put(Input::Durable),
        [
            "commit",
            "response.output_text.delta 1",
            "response.completed 9",
            "end completed"
        ]
    );
}

/// [SES-19] the times are those of the first such event; progress reports and telemetry are no output.
#[test]
fn times() {
    let mut bench = Bench::sse();
    let step = |bench: &mut Bench, input| {
        bench.now += S;
        bench.put(input);
    };
    step(&mut bench, Input::Wrote);
    step(&mut bench, Input::Wrote);
    step(&mut bench, Input::Flushed);
    step(&mut bench, Input::Flushed);
    step(&mut bench, event(&created("r1")));
    step(&mut bench, event(r#"{"type":"response.in_progress"}"#));
    step(&mut bench, event(r#"{"type":"response.queued"}"#));
    step(&mut bench, event(LIMITS));
    step(&mut bench, event(r#"{"type":"keepalive"}"#));
    step(&mut bench, event(&delta(1)));
    step(&mut bench, event(&delta(2)));
    step(&mut bench, event(&created("r2")));
    step(&mut bench, Input::ClientGone);
    let after = |seconds| Some(bench.start + seconds * S);
    let times = Times {
        sent: after(1),
        flushed: after(3),
        accepted: after(5),
        first_output: after(10),
        // The telemetry between the 7th and the 9th second is no event that counts.
        quiet: after(12).map(|since| Quiet {
            longest: 2 * S,
            since,
        }),
    };
    assert_eq!(bench.end().times, times);
}

/// [TUNE-3] the silence before the terminal, and the one before any other end, is as good as one between two events.
#[test]
fn every_silence_counts() {
    let mut bench = Bench::sse().accepted();
    bench.now += 40 * S;
    bench.frame(&completed("r1"));
    let quiet = bench.end().times.quiet.unwrap();
    assert_eq!((quiet.longest, quiet.by(bench.now + S)), (40 * S, 40 * S));

    let mut bench = Bench::sse().sent();
    bench.frame(&created("r1"));
    let since = bench.now;
    bench.now += 90 * S;
    bench.put(Input::ClientGone);
    assert_eq!(bench.end().times.quiet.unwrap().by(since + 90 * S), 90 * S);

    let mut bench = Bench::sse().sent();
    bench.put(Input::ClientGone);
    assert_eq!(
        bench.end().times.quiet,
        None,
        "a turn that was not accepted has none"
    );
}

/// [SES-19] what upstream says about storing is known.
#[test]
fn stored() {
    let mut bench = Bench::sse().sent();
    assert!(bench.turn.is_sent());
    bench.frame(r#"{"type":"response.created","response":{"id":"r1","store":false}}"#);
    assert_eq!(bench.turn.stored(), Some(false));
    assert!(!Bench::sse().turn.is_sent());
}

/// [SES-31] a drain's cut is a retryable failure.
#[test]
fn a_cut() {
    let mut held = Bench::sse().sent();
    assert_eq!(held.put(Input::Cut), ["refuse drained", "end drained"]);
    let mut running = Bench::sse().accepted();
    let outputs = running.put(Input::Cut);
    assert!(outputs[0].starts_with("fail bridge_drained"));
}

/// [INV-9] `Debug` shows no payload of any input or output, and nothing of what a turn holds.
#[test]
fn debug_shows_no_content() {
    let frame = r#"{"type":"response.output_item.done","item":"SECRET"}"#;
    let error = WireError::from_http(400, &http::HeaderMap::new(), br#"{"error":{"message":"SECRET"}}"#);
    let secret = || Bytes::from_static(b"SECRET");
    let inputs = [
        Input::Wrote,
        Input::Flushed,
        Input::Headers,
        event(frame),
        Input::Rejected(error.clone().into()),
        Input::Lost(Kind::SocketDead),
        Input::Durable,
        Input::ClientGone,
        Input::ClientFull,
        Input::Cut,
    ];
    let outputs = [
        Output::Accepted(Created::default()),
        Output::Commit,
        Output::Forward {
            name: secret(),
            data: secret(),
        },
        Output::Comment,
        Output::Keepalive,
        Output::Fail {
            code: "SECRET".into(),
            message: "SECRET".into(),
        },
        Output::Reject(error.into()),
        Output::Refuse(Refusal::because(Kind::Internal, "SECRET")),
        Output::Json(secret()),
        Output::Tear,
    ];
    let mut bench = Bench::sse().sent();
    bench.frame(frame);
    let mut shown: Vec<_> = inputs.iter().map(|input| format!("{input:?}")).collect();
    shown.extend(outputs.iter().map(|output| format!("{output:?}")));
    shown.push(format!("{:?}", bench.turn));
    for text in shown {
        assert!(
            !text.is_empty() && !text.contains("SECRET") && !text.contains("83, 69"),
            "{text}"
        );
    }
}
