//! The JSON text of single events, `type` and `sequence_number` first as the real API writes them.

use serde_json::{Value, json};

use super::faults::ErrorFrame;
use super::object::{Item, Part, to_json};
use super::reply::Output;

/// Telemetry of the ChatGPT backend.
pub const RATE_LIMITS: &str = r#"{"type":"codex.rate_limits","plan_type":"plus","rate_limits":{"allowed":true,"limit_reached":false,"primary":{"used_percent":12,"window_minutes":300,"reset_after_seconds":9000,"reset_at":1893456000},"secondary":{"used_percent":3,"window_minutes":10080,"reset_after_seconds":500000,"reset_at":1893456000}},"code_review_rate_limits":null,"credits":{"has_credits":false,"unlimited":false,"balance":null},"promo":null}"#;

/// Numbers events and writes them in the form that was asked for.
#[derive(Debug)]
pub struct Writer {
    sequence: u64,
    pretty: bool,
    type_last: bool,
}

impl Writer {
    /// A writer that starts at number 0.
    pub fn new(pretty: bool, type_last: bool) -> Writer {
        Writer {
            sequence: 0,
            pretty,
            type_last,
        }
    }

    /// The number of the next event.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// An event with a body that is a JSON object.
    pub fn event(&mut self, kind: &str, body: &str) -> String {
        let sequence = self.sequence;
        self.sequence += 1;
        let members = body
            .strip_prefix('{')
            .and_then(|body| body.strip_suffix('}'))
            .unwrap_or_default();
        let json = if self.type_last {
            format!(r#"{{{members},"sequence_number":{sequence},"type":"{kind}"}}"#)
        } else {
            format!(r#"{{"type":"{kind}","sequence_number":{sequence},{members}}}"#)
        };
        self.bare(&json)
    }

    /// An error frame; it takes a number, whether its shape shows one or not.
    pub fn error(&mut self, error: &ErrorFrame) -> String {
        let json = error.frame(self.sequence);
        self.sequence += 1;
        self.bare(&json)
    }

    /// JSON text without a number of its own.
    pub fn bare(&self, json: &str) -> String {
        if !self.pretty {
            return json.to_owned();
        }
        let value =
            serde_json::from_str::<Value>(json).and_then(|value| serde_json::to_string_pretty(&value));
        value.unwrap_or_else(|_| json.to_owned())
    }
}

/// An event before it has a number.
#[derive(Debug)]
pub struct Draft {
    /// Its type.
    pub kind: &'static str,
    /// Its other members, as a JSON object.
    pub body: String,
}

fn draft(kind: &'static str, body: String) -> Draft {
    Draft { kind, body }
}

fn item_event(kind: &'static str, index: usize, item: &Item) -> Draft {
    draft(
        kind,
        format!(r#"{{"output_index":{index},"item":{}}}"#, to_json(item)),
    )
}

/// The events that begin an item.
pub fn opening(output: &Output, index: usize) -> Vec<Draft> {
    let mut begun = output.item.clone();
    match &mut begun {
        Item::Message { status, content, .. } => {
            *status = "in_progress";
            content.clear();
        }
        Item::Reasoning { summary, .. } => summary.clear(),
        Item::FunctionCall {
            status, arguments, ..
        } => {
            *status = "in_progress";
            arguments.clear();
        }
        Item::CustomToolCall { status, input, .. } => {
            *status = "in_progress";
            input.clear();
        }
        Item::LocalShellCall { status, .. } => *status = "in_progress",
        Item::Compaction { .. } => {}
    }
    let mut drafts = vec![item_event("response.output_item.added", index, &begun)];
    if let Item::Message { id, .. } = &output.item {
        drafts.push(part_event("response.content_part.added", id, index, ""));
    }
    drafts
}

/// A delta of an item, and what belongs to it: a part of a summary is one delta. Empty for items that have none.
pub fn delta(output: &Output, index: usize, number: usize, text: &str) -> Vec<Draft> {
    let delta = to_json(&text);
    let draft = match &output.item {
        Item::Message { id, .. } => text_delta(id, index, number, &delta),
        Item::Reasoning { id, .. } => return summary_part(id, index, number, text),
        Item::FunctionCall { id, .. } => draft(
            "response.function_call_arguments.delta",
            format!(r#"{{"item_id":"{id}","output_index":{index},"delta":{delta}}}"#),
        ),
        Item::CustomToolCall { id, .. } => draft(
            "response.custom_tool_call_input.delta",
            format!(r#"{{"item_id":"{id}","output_index":{index},"delta":{delta}}}"#),
        ),
        Item::LocalShellCall { .. } | Item::Compaction { .. } => return Vec::new(),
    };
    vec![draft]
}

fn text_delta(id: &str, index: usize, number: usize, delta: &str) -> Draft {
    // The real API pads deltas to hide their length; its value says nothing.
    let obfuscation = &"aVq3ZtR8xKb1LmWy"[..8 + number % 8];
    draft(
        "response.output_text.delta",
        format!(
            r#"{{"item_id":"{id}","output_index":{index},"content_index":0,"delta":{delta},"logprobs":[],"obfuscation":"{obfuscation}"}}"#
        ),
    )
}

/// A delta that belongs to no item that was announced.
pub fn stray_delta(number: u32) -> Draft {
    text_delta("msg_stray", 0, 0, &to_json(&format!("stray {number} ")))
}

/// The events that finish an item.
pub fn closing(output: &Output, index: usize) -> Vec<Draft> {
    let text = to_json(&output.deltas.concat());
    let mut drafts = match &output.item {
        Item::Message { id, .. } => vec![
            draft(
                "response.output_text.done",
                format!(
                    r#"{{"item_id":"{id}","output_index":{index},"content_index":0,"text":{text},"logprobs":[]}}"#
                ),
            ),
            part_event("response.content_part.done", id, index, &output.deltas.concat()),
        ],
        Item::FunctionCall { id, name, .. } => vec![draft(
            "response.function_call_arguments.done",
            format!(
                r#"{{"item_id":"{id}","output_index":{index},"arguments":{text},"name":{}}}"#,
                to_json(name)
            ),
        )],
        Item::CustomToolCall { id, .. } => vec![draft(
            "response.custom_tool_call_input.done",
            format!(r#"{{"item_id":"{id}","output_index":{index},"input":{text}}}"#),
        )],
        _ => Vec::new(),
    };
    drafts.push(item_event("response.output_item.done", index, &output.item));
    drafts
}

fn part_event(kind: &'static str, id: &str, index: usize, text: &str) -> Draft {
    let part = to_json(&Part::output(text));
    draft(
        kind,
        format!(r#"{{"item_id":"{id}","output_index":{index},"content_index":0,"part":{part}}}"#),
    )
}

/// One part of a summary from its beginning to its end.
fn summary_part(id: &str, index: usize, number: usize, text: &str) -> Vec<Draft> {
    let place = format!(r#""item_id":"{id}","output_index":{index},"summary_index":{number}"#);
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    let text_json = to_json(&text);
    vec![
        draft(
            "response.reasoning_summary_part.added",
            format!(r#"{{{place},"part":{}}}"#, part("")),
        ),
        draft(
            "response.reasoning_summary_text.delta",
            format!(r#"{{{place},"delta":{text_json}}}"#),
        ),
        draft(
            "response.reasoning_summary_text.done",
            format!(r#"{{{place},"text":{text_json}}}"#),
        ),
        draft(
            "response.reasoning_summary_part.done",
            format!(r#"{{{place},"part":{}}}"#, part(text)),
        ),
    ]
}
