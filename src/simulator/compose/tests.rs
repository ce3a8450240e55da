use serde_json::{Map, Value};

use super::super::behaviour::Part;
use super::super::object::{Item, Usage};
use super::super::reply::Output;
use super::*;

fn score(parts: &[&str], transport: Transport) -> Score {
    let parts: Vec<Part> = parts.iter().map(|part| Part::parse(part).unwrap()).collect();
    let identity = Identity {
        id: "resp_1".into(),
        created_at: 1,
        model: "gpt-5".into(),
        store: false,
        background: false,
        body: Map::new(),
    };
    let item = Item::Message {
        id: "msg_1".into(),
        status: "completed",
        content: Vec::new(),
        role: "assistant",
        phase: None,
    };
    let output = [Output {
        item,
        deltas: vec!["a".into(), "b".into(), "c".into()],
    }];
    let usage = Usage {
        input: 1,
        cached: 0,
        output: 1,
        reasoning: 0,
    };
    let reply = Reply {
        identity: &identity,
        output: &output,
        usage,
        chatgpt: false,
    };
    compose(&reply, &Behaviour::assemble(&parts), transport)
}

/// The score in short: event kinds without their prefix, and other steps by name.
fn short(steps: &[Step]) -> String {
    let words = steps.iter().filter_map(|step| {
        Some(match step {
            Step::Event { kind, .. } => kind.trim_start_matches("response.").to_owned(),
            Step::Error { .. } => "ERROR".into(),
            Step::Head => "HEAD".into(),
            Step::Wait(_) => "WAIT".into(),
            Step::Repeat { lasting, .. } => if lasting.is_some() { "PAUSE" } else { "FOREVER" }.into(),
            Step::End(ending) => format!("{ending:?}")
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_uppercase(),
            Step::Flush | Step::Conclude(_) => return None,
        })
    });
    words.collect::<Vec<_>>().join(" ")
}

const START: &str = "created in_progress output_item.added content_part.added";
const FINISH: &str = "output_text.done content_part.done output_item.done completed";

/// [SIM-1] A healthy turn has every event, numbered without a gap, and the terminal holds the output and usage.
#[test]
fn a_healthy_turn_is_whole() {
    let score = score(&[], Transport::Websocket);
    let deltas = "output_text.delta output_text.delta output_text.delta";
    assert_eq!(short(&score.steps), format!("{START} {deltas} {FINISH}"));
    let events = score.steps.iter().filter_map(|step| match step {
        Step::Event { json, .. } => Some(serde_json::from_str::<Value>(json).unwrap()),
        _ => None,
    });
    for (number, event) in events.enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
    let object: Value = serde_json::from_str(&score.object).unwrap();
    assert_eq!(
        (&object["output"][0]["id"], &object["usage"]["total_tokens"]),
        (&"msg_1".into(), &2.into())
    );
}

/// [SIM-7] A fault strikes where it was put: before created, after so many deltas, or before the terminal.
#[test]
fn faults_strike_where_they_were_put() {
    let ws = |parts: &[&str]| short(&score(parts, Transport::Websocket).steps);
    assert_eq!(ws(&["silent"]), "FOREVER");
    assert_eq!(ws(&["close"]), "CLOSE");
    assert_eq!(ws(&["error(after=0)"]), "created in_progress ERROR");
    assert_eq!(
        ws(&["reset(after=1)"]),
        format!("{START} output_text.delta RESET")
    );
    let all = "output_text.delta output_text.delta output_text.delta output_text.done content_part.done output_item.done";
    assert_eq!(ws(&["fin(after=99)"]), format!("{START} {all} FIN"));
    assert_eq!(
        ws(&["no_created(n=2, delay=0)"]),
        "output_text.delta output_text.delta FOREVER"
    );
    assert_eq!(ws(&["telemetry_error"]), "codex.rate_limits ERROR");
    assert_eq!(
        ws(&["pause(after=1, for=1s)", "cut(after=2)"]),
        format!("{START} output_text.delta PAUSE output_text.delta CUT")
    );
}

/// [SIM-8] A terminal and a close frame that are to leave together have no flush between them.
#[test]
fn a_terminal_and_its_close_leave_together() {
    let score = score(&["terminal_close"], Transport::Websocket);
    let tail = &score.steps[score.steps.len() - 2..];
    assert!(matches!(
        tail,
        [
            Step::Event {
                kind: "response.completed",
                ..
            },
            Step::End(Ending::Close { .. })
        ]
    ));
}

/// [SIM-8] What comes later does not hold up a socket, but belongs to the body over HTTP.
#[test]
fn later_steps_belong_to_the_body_over_http() {
    let parts = ["late(n=1, delay=5ms)"];
    let ws = score(&parts, Transport::Websocket);
    assert_eq!(short(&ws.later), "WAIT output_text.delta");
    let http = score(&parts, Transport::Http);
    assert!(short(&http.steps).ends_with("completed WAIT output_text.delta"));
    assert!(http.later.is_empty());
    assert!(score(&["left_open"], Transport::Websocket).later.is_empty());
}

/// [SIM-6] Each terminal shape ends the turn in its own way.
#[test]
fn terminal_shapes() {
    let last = |shape: &str| {
        let score = score(
            &[&format!("terminal(shape={shape}, code=rate_limit_exceeded)")],
            Transport::Websocket,
        );
        let conclusion = score.steps.iter().find_map(|step| match step {
            Step::Conclude(conclusion) => Some(*conclusion),
            _ => None,
        });
        match score.steps.last() {
            Some(Step::Event { json, .. }) => (conclusion, serde_json::from_str::<Value>(json).unwrap()),
            _ => (conclusion, Value::Null),
        }
    };
    let (conclusion, failed) = last("failed");
    assert_eq!(
        (conclusion, &failed["response"]["error"]["code"]),
        (Some(Conclusion::Failed), &"rate_limit_exceeded".into())
    );
    let (conclusion, incomplete) = last("incomplete");
    let reason = &incomplete["response"]["incomplete_details"]["reason"];
    assert_eq!(
        (conclusion, reason),
        (Some(Conclusion::Incomplete), &"max_output_tokens".into())
    );
    let (_, incomplete) = last("incomplete_code");
    assert_eq!(
        incomplete["response"]["incomplete_details"]["reason"],
        "rate_limit_exceeded"
    );
    assert_eq!(last("done").1["type"], "response.done");
    let (_, typeless) = last("typeless");
    assert_eq!(
        (typeless.get("type"), &typeless["object"]),
        (None, &"response".into())
    );
    assert_eq!(last("none"), (None, Value::Null));
}

/// [SIM-9] `type` can come last, and events can be pretty-printed; their meaning is the same.
#[test]
fn forms_keep_the_meaning() {
    let first = |part: &str| match &score(&[part], Transport::Websocket).steps[0] {
        Step::Event { json, .. } => json.clone(),
        other => panic!("{other:?}"),
    };
    let (plain, last, pretty) = (first("healthy"), first("type_last"), first("pretty"));
    assert!(plain.starts_with(r#"{"type":"response.created","sequence_number":0,"#));
    assert!(last.ends_with(r#""type":"response.created"}"#));
    assert!(pretty.contains("\n  \"type\""));
    let value = |json: &str| serde_json::from_str::<Value>(json).unwrap();
    assert!(value(&plain) == value(&last) && value(&plain) == value(&pretty));
}
