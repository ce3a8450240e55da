use proptest::prelude::*;

use super::*;
use crate::wire::error::ErrorClass;

fn head(frame: &str) -> Head {
    read(frame.as_bytes()).head
}

fn terminal_of(frame: &str) -> (String, Terminal) {
    let framed = read(frame.as_bytes());
    let event = framed.event.into_owned();
    match framed.head {
        Head::Terminal(terminal) => (event, terminal),
        other => panic!("no terminal: {other:?}"),
    }
}

fn error_of(frame: &str) -> WireError {
    let framed = read(frame.as_bytes());
    assert_eq!(framed.event, "error", "{frame}");
    match framed.head {
        Head::Error(error) => *error,
        other => panic!("no error: {other:?}"),
    }
}

/// [WIRE-1] `type` anywhere, twice, escaped, in a pretty-printed frame.
#[test]
fn the_type_is_found_wherever_it_stands() {
    for frame in [
        r#"{"type":"response.created","response":{"id":"resp_1"}}"#,
        r#"{"response":{"id":"resp_1","type":"response.failed"},"type":"response.created"}"#,
        r#"{"type":"response.output_text.delta","response":{"id":"resp_1"},"type":"response.created"}"#,
        r#"{"type":"response.output_text.delta","response":{"id":"resp_1"},"\u0074ype":"response.created"}"#,
        r#"{"type":"response\u002ecreated","response":{"id":"resp_1"}}"#,
        "{\r\n  \"response\" : {\n \"id\" : \"resp_1\" },\n\t\"type\" : \"response.created\"\n}\n",
    ] {
        let head = Head::Created(Created {
            response_id: Some("resp_1".into()),
            ..Created::default()
        });
        assert_eq!(
            read(frame.as_bytes()),
            Framed {
                event: "response.created".into(),
                head
            },
            "{frame}"
        );
    }
}

/// [WIRE-1] A quoted terminal inside a delta ends nothing.
#[test]
fn quoted_events_in_a_delta_stay_text() {
    for frame in [
        r#"{"type":"response.output_text.delta","delta":"{\"type\":\"response.completed\"}"}"#,
        r#"{"type":"response.output_text.delta","delta":"\"type\":\"response.completed\",\"response\":{}"}"#,
        r#"{"delta":"\"type\":\"response.completed\"","type":"response.output_text.delta"}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"\\\"type\\\":\\\"error\\\""}"#,
        r#"{"type":"response.output_text.delta","delta":"type"}"#,
    ] {
        assert_eq!(head(frame), Head::Data, "{frame}");
    }
}

/// [WIRE-1] What the first bytes settle is settled without a parse, and the table is in order.
#[test]
fn common_deltas_are_told_by_their_first_bytes() {
    assert!(PROGRESS.is_sorted());
    for event in PROGRESS {
        assert!(event.len() < LONGEST, "{event}");
        for frame in [
            format!(r#"{{"type":"{event}","sequence_number":4,"delta":"a \"type\" 你好"}}"#),
            format!(r#"{{"type": "{event}", "delta": "x"}}"#),
        ] {
            assert_eq!(quick(frame.as_bytes()), Some(event), "{frame}");
            assert_eq!(
                full(frame.as_bytes()),
                Framed {
                    event: event.into(),
                    head: Head::Data
                }
            );
        }
    }
    assert_eq!(
        quick(br#"{"type":"response.output_text.deltas","delta":"x"}"#),
        None
    );
    assert_eq!(
        quick(br#"{"type":"response.output_text.delta","delta":"x""#),
        None
    );
}

/// [WIRE-1] Whatever is no JSON object is said to be none.
#[test]
fn other_than_json_objects_are_told() {
    for frame in [
        &b""[..],
        b"[DONE]",
        b"null",
        b"[]",
        b"\"x\"",
        b"{",
        b"{}x",
        b"\xff\xfe",
        b"{\"type\":\"\xff\"}",
    ] {
        assert_eq!(
            read(frame),
            Framed {
                event: "message".into(),
                head: Head::NotJson
            }
        );
    }
    assert_eq!(
        read(b"{}"),
        Framed {
            event: "message".into(),
            head: Head::Data
        }
    );
    assert_eq!(
        read(br#"{"type":7}"#),
        Framed {
            event: "message".into(),
            head: Head::Data
        }
    );
}

/// [WIRE-2] Acceptance and ownership facts, absent where the frame does not have them.
#[test]
fn created_brings_id_store_and_model() {
    let frame = r#"{"type":"response.created","sequence_number":3,"response":{"id":"resp_1","store":false,"model":"m"}}"#;
    let full = Created {
        response_id: Some("resp_1".into()),
        store: Some(false),
        model: Some("m".into()),
    };
    assert_eq!(head(frame), Head::Created(full));
    for bare in [
        r#"{"type":"response.created"}"#,
        r#"{"type":"response.created","response":null}"#,
        r#"{"type":"response.created","response":"x"}"#,
        r#"{"type":"response.created","response":{"id":7,"store":"yes","model":null}}"#,
    ] {
        assert_eq!(head(bare), Head::Created(Created::default()), "{bare}");
    }
}

/// [WIRE-2] The count can be continued.
#[test]
fn the_sequence_number_can_be_read() {
    assert_eq!(
        sequence_number(br#"{"type":"response.in_progress","sequence_number":41}"#),
        Some(41)
    );
    assert_eq!(
        sequence_number(br#"{"sequence_number":1,"x":{"sequence_number":9}}"#),
        Some(1)
    );
    assert_eq!(sequence_number(br#"{"type":"x"}"#), None);
    assert_eq!(sequence_number(b"[DONE]"), None);
}

/// [WIRE-3] The three documented terminals.
#[test]
fn documented_terminals() {
    let (event, terminal) = terminal_of(
        r#"{"type":"response.completed","response":{"id":"r","output":[{"a":1}],"usage":{"total_tokens":0}}}"#,
    );
    assert_eq!(event, "response.completed");
    assert_eq!(
        terminal,
        Terminal {
            kind: TerminalKind::Completed,
            response_id: Some("r".into()),
            error: None,
            output_empty: false,
            output: Some(59..68),
            whole: true,
            has_usage: true,
            typed: true,
        }
    );
    let (_, chatgpt) =
        terminal_of(r#"{"type":"response.completed","response":{"id":"r","output":[ ],"usage":null}}"#);
    assert!(chatgpt.output_empty && !chatgpt.has_usage);

    let (event, failed) = terminal_of(
        r#"{"type":"response.failed","response":{"id":"r","error":{"code":"rate_limit_exceeded","message":"m"}}}"#,
    );
    let error = failed.error.unwrap();
    assert_eq!(
        (event.as_str(), failed.kind),
        ("response.failed", TerminalKind::Failed)
    );
    assert_eq!(
        (error.class(), error.message.as_deref()),
        (ErrorClass::RateLimit, Some("m"))
    );

    let (event, incomplete) = terminal_of(r#"{"response":{"id":"r"},"type":"response.incomplete"}"#);
    assert_eq!(
        (event.as_str(), incomplete.kind),
        ("response.incomplete", TerminalKind::Incomplete)
    );
    assert!(incomplete.error.is_none() && incomplete.output_empty);
}

/// [WIRE-3] A failure without an error is still a failure with an (unknown) error.
#[test]
fn a_failure_always_has_an_error() {
    for (frame, class) in [
        (r#"{"type":"response.failed"}"#, ErrorClass::Unknown),
        (
            r#"{"type":"response.failed","response":{"id":"r","error":null}}"#,
            ErrorClass::Unknown,
        ),
        (
            r#"{"type":"response.failed","error":{"code":"server_error"},"response":{"id":"r"}}"#,
            ErrorClass::Server,
        ),
        (
            r#"{"type":"response.failed","response":{"id":"r","error":"overloaded"}}"#,
            ErrorClass::Unknown,
        ),
    ] {
        assert_eq!(terminal_of(frame).1.error.unwrap().class(), class, "{frame}");
    }
}

/// [WIRE-3] `response.done` and bare response objects, under the names that clients know.
#[test]
fn undocumented_terminals() {
    let object = r#"{"id":"r","object":"response","status":"STATUS","output":[],"usage":{}}"#;
    for (status, kind, event) in [
        ("completed", TerminalKind::Completed, "response.completed"),
        ("failed", TerminalKind::Failed, "response.failed"),
        ("cancelled", TerminalKind::Failed, "response.failed"),
        ("incomplete", TerminalKind::Incomplete, "response.incomplete"),
    ] {
        let object = object.replace("STATUS", status);
        for frame in [
            object.clone(),
            format!(r#"{{"type":"response.done","response":{object}}}"#),
        ] {
            let (name, terminal) = terminal_of(&frame);
            assert_eq!(
                (name.as_str(), terminal.kind, terminal.typed),
                (event, kind, false),
                "{frame}"
            );
            assert_eq!(terminal.response_id.as_deref(), Some("r"));
            assert!(terminal.output_empty && terminal.has_usage);
            let span = response_object(frame.as_bytes()).unwrap();
            assert_eq!(&frame[span], object);
        }
    }
    let (event, done) = terminal_of(r#"{"type":"response.done"}"#);
    assert_eq!(
        (event.as_str(), done.kind),
        ("response.completed", TerminalKind::Completed)
    );
    assert_eq!(
        head(r#"{"id":"r","object":"response","status":"in_progress","output":[]}"#),
        Head::Data
    );
    assert_eq!(
        head(r#"{"id":"c","object":"chat.completion","status":"completed"}"#),
        Head::Data
    );
}

/// [WIRE-3] An incomplete response whose reason is an error code, and one whose reason is none.
#[test]
fn incomplete_with_an_error_code_as_reason() {
    let frame =
        r#"{"type":"response.incomplete","response":{"id":"r","incomplete_details":{"reason":"REASON"}}}"#;
    let error = |reason: &str| terminal_of(&frame.replace("REASON", reason)).1.error;
    assert_eq!(
        error("rate_limit_exceeded").unwrap().class(),
        ErrorClass::RateLimit
    );
    assert_eq!(error("server_is_overloaded").unwrap().http_status(), 503);
    for ordinary in ["max_output_tokens", "content_filter", "steered"] {
        assert!(error(ordinary).is_none(), "{ordinary}");
    }
}

/// [WIRE-3] The response object's own bytes.
#[test]
fn the_response_object_is_found() {
    let frame = r#"{"type":"response.completed", "response" : { "id":"r" } }"#;
    assert_eq!(
        response_object(frame.as_bytes()).map(|span| &frame[span]),
        Some(r#"{ "id":"r" }"#)
    );
    assert_eq!(response_object(br#"{"type":"response.completed"}"#), None);
    assert_eq!(response_object(br#"{"type":"error","error":{}}"#), None);
    let bare = " {\"object\":\"response\",\"status\":\"completed\"}\n";
    assert_eq!(
        response_object(bare.as_bytes()).map(|span| &bare[span]),
        Some(bare.trim())
    );
}

/// [WIRE-4] The nested shape, with its status under either name, or none.
#[test]
fn nested_errors() {
    let full = error_of(
        r#"{"type":"error","status":400,"error":{"type":"invalid_request_error","code":"previous_response_not_found",
            "message":"m","param":"previous_response_id"}}"#,
    );
    assert_eq!(full.status, Some(400));
    assert_eq!(full.kind.as_deref(), Some("invalid_request_error"));
    assert_eq!(full.code.as_deref(), Some("previous_response_not_found"));
    assert_eq!(full.message.as_deref(), Some("m"));
    assert_eq!(full.param.as_deref(), Some("previous_response_id"));
    for (frame, status) in [
        (
            r#"{"type":"error","status_code":429,"error":{"code":"x"}}"#,
            Some(429),
        ),
        (
            r#"{"type":"error","status":"503","error":{"code":"x"}}"#,
            Some(503),
        ),
        (r#"{"type":"error","error":{"code":"x","status":500}}"#, Some(500)),
        (r#"{"type":"error","error":{"code":"x"}}"#, None),
    ] {
        assert_eq!(error_of(frame).status, status, "{frame}");
    }
    let untyped = error_of(r#"{"type":"error","status":500,"error":{"code":null,"message":"m"}}"#);
    assert_eq!((untyped.kind, untyped.code), (None, None));
}

/// [WIRE-4] The flat shape, `response.error`, a bare string, no type, and `detail`.
#[test]
fn other_error_shapes() {
    for frame in [
        r#"{"type":"error","code":"slow_down","message":"m","param":null,"sequence_number":2}"#,
        r#"{"type":"error","code":"slow_down","message":"m","error":null}"#,
        r#"{"type":"response.error","error":{"code":"slow_down","message":"m"}}"#,
        r#"{"type":"response.error","code":"slow_down","message":"m"}"#,
        r#"{"error":{"code":"slow_down","message":"m"}}"#,
        r#"{"error":"m","code":"slow_down"}"#,
        r#"{"code":"slow_down","message":"m"}"#,
        r#"{"detail":{"message":"m"},"code":"slow_down"}"#,
    ] {
        let error = error_of(frame);
        assert_eq!(
            (error.message.as_deref(), error.code.as_deref()),
            (Some("m"), Some("slow_down")),
            "{frame}"
        );
        assert_eq!(error.kind, None, "{frame}");
    }
    assert_eq!(
        error_of(r#"{"detail":"Unauthorized"}"#).message.as_deref(),
        Some("Unauthorized")
    );
    assert_eq!(
        error_of(r#"{"detail":[{"msg":"x"}],"status":422}"#).status,
        Some(422)
    );
    assert_eq!(error_of(r#"{"type":"error"}"#).class(), ErrorClass::Unknown);
}

/// [WIRE-4] Headers at the top or inside the error, with values of any simple type.
#[test]
fn error_headers() {
    let top = r#"{"type":"error","headers":{"retry-after":7,"x-should-retry":true,"X-A":"b","x-l":[1]},"error":{}}"#;
    let inside =
        r#"{"type":"error","error":{"headers":{"retry-after":7,"x-should-retry":true,"X-A":"b","x-l":[1]}}}"#;
    let flat = r#"{"type":"error","message":"m","headers":{"retry-after":7,"x-should-retry":true,"X-A":"b","x-l":{}}}"#;
    for frame in [top, inside, flat] {
        let expected = [("retry-after", "7"), ("x-should-retry", "true"), ("X-A", "b")];
        let expected: Vec<(String, String)> = expected
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(error_of(frame).headers, expected, "{frame}");
    }
}

/// [WIRE-5] Each of the special types, and the data that has none.
#[test]
fn progress_telemetry_and_metadata() {
    for (event, expected) in [
        ("keepalive", Head::Keepalive),
        ("codex.rate_limits", Head::Telemetry),
        ("response.metadata", Head::Metadata),
        ("codex.response.metadata", Head::Metadata),
        ("response.in_progress", Head::Data),
        ("response.queued", Head::Data),
        ("response.output_item.added", Head::Data),
        ("response.something_new", Head::Data),
        ("response.output_item.done", Head::ItemDone),
    ] {
        let frame = format!(r#"{{"type":"{event}","item":{{"type":"error"}}}}"#);
        assert_eq!(
            read(frame.as_bytes()),
            Framed {
                event: event.into(),
                head: expected
            }
        );
    }
}

/// [WIRE-5] The item of an `output_item.done`, byte for byte.
#[test]
fn done_items_come_raw() {
    let frame = r#"{"item": {"id":"i", "n":1.0e2 },"output_index":3,"type":"response.output_item.done"}"#;
    let (index, span) = done_item(frame.as_bytes()).unwrap();
    assert_eq!((index, &frame[span]), (3, r#"{"id":"i", "n":1.0e2 }"#));
    assert_eq!(done_item(br#"{"type":"response.output_item.done"}"#), None);
}

fn json_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just(r#""type":"response.completed""#.to_owned()),
        Just("type".to_owned()),
        Just("\u{1}\\\"type\"".to_owned()),
    ]
}

fn a_type() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(&PROGRESS[..]).prop_map(str::to_owned),
        Just("response.created".to_owned()),
        Just("response.completed".to_owned()),
        Just("error".to_owned()),
        "[a-z._]{0,60}",
    ]
}

proptest! {
    /// [WIRE-1] The fast path never contradicts the full parse on a JSON object.
    #[test]
    fn the_fast_path_agrees(kind in a_type(), key in json_text(), value in json_text(),
                            last in proptest::option::of(a_type()), escaped in any::<bool>(), space in any::<bool>()) {
        let quote = |text: &str| serde_json::to_string(text).unwrap();
        let gap = if space { " " } else { "" };
        let mut frame = format!(r#"{{"type":{gap}"{kind}",{}:{}"#, quote(&key), quote(&value));
        if let Some(last) = last {
            let name = if escaped { r"t\u0079pe" } else { "type" };
            frame.push_str(&format!(r#","{name}":"{last}""#));
        }
        frame.push('}');
        prop_assert_eq!(read(frame.as_bytes()), full(frame.as_bytes()));
    }

    /// [WIRE-1] No bytes make any reader panic.
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read_all(&bytes);
    }

    /// [WIRE-1] Nor do frames that were cut or hit by a stray byte.
    #[test]
    fn no_damaged_frame_panics(cut in 0_usize..200, at in 0_usize..200, byte in any::<u8>()) {
        let whole = r#"{"type":"error","status":429,"headers":{"a":1},"error":{"code":"x","message":"é","headers":{}},
            "response":{"id":"r","output":[],"incomplete_details":{"reason":"steered"}},"item":{},"detail":[]}"#;
        let mut bytes = whole.as_bytes().to_vec();
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        read_all(&bytes);
        bytes.truncate(cut);
        read_all(&bytes);
    }
}

fn read_all(bytes: &[u8]) {
    let _ = read(bytes);
    let _ = sequence_number(bytes);
    let _ = done_item(bytes).map(|(_, span)| &bytes[span]);
    let _ = response_object(bytes).map(|span| &bytes[span]);
}

/// [WIRE-1] the common data events that carry whole objects are told by their first bytes, whatever `type`s are inside;
/// written in any other way they are read.
#[test]
fn events_with_objects_inside() {
    for name in WITH_OBJECTS {
        let quick = format!(r#"{{"type":"{name}","sequence_number":1,"item":{{"type":"message"}}}}"#);
        let read_through = format!(r#"{{"sequence_number":1,"item":{{"type":"message"}},"type":"{name}"}}"#);
        for frame in [quick, read_through] {
            let framed = read(frame.as_bytes());
            assert_eq!((&*framed.event, framed.head), (name, Head::Data), "{frame}");
        }
        let torn = format!(r#"{{"type":"{name}","item":{{"type":"mess"#);
        assert_eq!(read(torn.as_bytes()).head, Head::NotJson);
    }
}
