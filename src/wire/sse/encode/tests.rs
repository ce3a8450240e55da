use bytes::BytesMut;

use super::*;

fn encoded(name: &str, data: &str) -> String {
    let mut out = BytesMut::new();
    event(&mut out, name, data.as_bytes());
    String::from_utf8(out.to_vec()).unwrap()
}

/// [WIRE-17] The one form that every client reads.
#[test]
fn an_event_is_two_lines_and_a_blank_one() {
    assert_eq!(
        encoded("response.created", r#"{"a":"é"}"#),
        "event: response.created\ndata: {\"a\":\"é\"}\n\n"
    );
    assert_eq!(encoded("", "{}"), "data: {}\n\n");
    let mut out = BytesMut::new();
    event(&mut out, "a", b"{}");
    comment(&mut out);
    event(&mut out, "b", b"{}");
    assert_eq!(out, "event: a\ndata: {}\n\n: \n\nevent: b\ndata: {}\n\n");
}

/// [WIRE-17] Pretty-printed JSON becomes one line of the same meaning.
#[test]
fn pretty_printed_json_is_joined() {
    let pretty = "\n{\r\n  \"a\" : [\n 1,\r 2 ],\n\t\"b\": \"x\\ny\"\n}\r\n";
    let line = encoded("e", pretty);
    let data = line
        .strip_prefix("event: e\ndata: ")
        .unwrap()
        .strip_suffix("\n\n")
        .unwrap();
    assert!(!data.contains(['\n', '\r']));
    let (before, after): (serde_json::Value, serde_json::Value) = (
        serde_json::from_str(pretty).unwrap(),
        serde_json::from_str(data).unwrap(),
    );
    assert_eq!(before, after);
}

/// [WIRE-17] An event name from upstream cannot start a line of its own.
#[test]
fn a_name_cannot_forge_a_field() {
    assert_eq!(
        encoded("a\ndata: {\"x\":1}\r\r\nid: 7", "{}"),
        "event: adata: {\"x\":1}id: 7\ndata: {}\n\n"
    );
}
