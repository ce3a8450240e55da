use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::wire::head::{self, Head};

const OF: Subject<'static> = Subject {
    response_id: "resp_1",
    model: "m\"x",
    created_at: 1_790_000_000,
};

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// [WIRE-10] The failure that ends a stream is one that SDKs can parse and that this room reads back.
#[test]
fn a_failure_is_complete() {
    let bytes = failed(OF, 7, "bridge_timeout", "no \"answer\"");
    let event = value(&bytes);
    assert_eq!(
        (&event["type"], &event["sequence_number"]),
        (&"response.failed".into(), &7.into())
    );
    let response = event["response"].as_object().unwrap();
    for field in [
        "id",
        "object",
        "created_at",
        "status",
        "error",
        "incomplete_details",
        "instructions",
        "max_output_tokens",
        "model",
        "output",
        "parallel_tool_calls",
        "previous_response_id",
        "reasoning",
        "store",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_p",
        "truncation",
        "usage",
        "user",
        "metadata",
    ] {
        assert!(response.contains_key(field), "{field}");
    }
    assert_eq!(response["status"], "failed");
    assert_eq!(
        (&response["id"], &response["model"]),
        (&"resp_1".into(), &"m\"x".into())
    );
    assert_eq!(response["created_at"], 1_790_000_000);
    assert_eq!(
        response["error"],
        serde_json::json!({"code": "bridge_timeout", "message": "no \"answer\""})
    );
    assert_eq!(response["output"], serde_json::json!([]));
    assert_eq!(
        response["usage"],
        serde_json::json!({
            "input_tokens": 0, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 0, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 0
        })
    );
    let Head::Terminal(terminal) = head::read(&bytes).head else {
        panic!("no terminal")
    };
    assert!(terminal.typed && terminal.has_usage && terminal.response_id.as_deref() == Some("resp_1"));
}

/// [WIRE-10] The `response.created` that goes before it, and the rare keepalive.
#[test]
fn created_and_keepalive() {
    let event = value(&created(OF, 0));
    assert_eq!(
        (&event["type"], &event["sequence_number"]),
        (&"response.created".into(), &0.into())
    );
    assert_eq!(
        (&event["response"]["status"], &event["response"]["error"]),
        (&"in_progress".into(), &Value::Null)
    );
    assert_eq!(keepalive(12), br#"{"type":"keepalive","sequence_number":12}"#);
}

/// [WIRE-10] An untyped terminal made anew keeps upstream's object.
#[test]
fn a_retyped_terminal_keeps_the_object() {
    let object = br#"{"id":"r", "n":1.00}"#;
    assert_eq!(
        retyped(TerminalKind::Completed, Some(4), object),
        br#"{"type":"response.completed","sequence_number":4,"response":{"id":"r", "n":1.00}}"#
    );
    assert_eq!(
        retyped(TerminalKind::Incomplete, None, object),
        br#"{"type":"response.incomplete","response":{"id":"r", "n":1.00}}"#
    );
}

fn filled_text(response: &str, items: &[&str]) -> String {
    String::from_utf8(filled(
        response.as_bytes(),
        items.iter().map(|item| item.as_bytes()),
    ))
    .unwrap()
}

/// [WIRE-11] Empty, `null` and absent outputs are filled; all other bytes stay.
#[test]
fn empty_outputs_are_filled() {
    let items = [r#"{"n":1.0}"#, r#"{ "b" : 2 }"#];
    for (response, expected) in [
        (
            r#"{"id":"r", "output" : [ ] ,"x":1e2}"#,
            r#"{"id":"r", "output" : [{"n":1.0},{ "b" : 2 }] ,"x":1e2}"#,
        ),
        (r#"{"output":null}"#, r#"{"output":[{"n":1.0},{ "b" : 2 }]}"#),
        (
            "{\"id\":\"r\" }\n",
            "{\"id\":\"r\" ,\"output\":[{\"n\":1.0},{ \"b\" : 2 }]}\n",
        ),
        ("{}", r#"{"output":[{"n":1.0},{ "b" : 2 }]}"#),
        (
            r#"{"text":{"output":[]},"output":[]}"#,
            r#"{"text":{"output":[]},"output":[{"n":1.0},{ "b" : 2 }]}"#,
        ),
    ] {
        assert_eq!(filled_text(response, &items), expected);
    }
    assert_eq!(filled_text(r#"{"output":[]}"#, &[]), r#"{"output":[]}"#);
}

/// [WIRE-11] An output that has something, and what is no object, stay as they are.
#[test]
fn other_outputs_are_left_alone() {
    for response in [
        r#"{"output":[{"a":1}]}"#,
        r#"{"output":"x"}"#,
        "[]",
        "",
        "{",
        "\u{1}",
    ] {
        assert_eq!(filled_text(response, &["{}"]), response);
    }
}

proptest! {
    /// [WIRE-11] No bytes make filling panic.
    #[test]
    fn filling_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = filled(&bytes, [&b"{}"[..]]);
    }
}
