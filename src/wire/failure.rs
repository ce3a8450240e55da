//! Events that the bridge itself makes, and the one object that it may fill.

use serde::Serialize;

use super::head::TerminalKind;
use super::json;

/// The response that a bridge-made event speaks of.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// Upstream's id, or a bridge-made one that nobody owns.
    pub response_id: &'a str,
    /// The model as the client named it.
    pub model: &'a str,
    /// Seconds since 1970.
    pub created_at: u64,
}

/// `response.created`, for a client that has been sent none before the failure that follows [WIRE-10].
pub fn created(of: Subject<'_>, sequence_number: u64) -> Vec<u8> {
    encode(&Event {
        r#type: "response.created",
        sequence_number,
        response: Response::new(of, "in_progress", None),
    })
}

/// `response.failed` with a complete response object: SDKs parse it into types whose fields must all be there, and
/// Codex wants a `usage` in every terminal [WIRE-10].
pub fn failed(of: Subject<'_>, sequence_number: u64, code: &str, message: &str) -> Vec<u8> {
    let response = Response::new(of, "failed", Some(Failure { code, message }));
    encode(&Event {
        r#type: "response.failed",
        sequence_number,
        response,
    })
}

/// A documented terminal event around upstream's own response object, for frames that came as `response.done` or as a
/// bare object. `response` must be one JSON object.
pub fn retyped(kind: TerminalKind, sequence_number: Option<u64>, response: &[u8]) -> Vec<u8> {
    let number = sequence_number
        .map(|number| format!(r#""sequence_number":{number},"#))
        .unwrap_or_default();
    let head = format!(r#"{{"type":"{}",{number}"response":"#, kind.event());
    [head.as_bytes(), response, b"}"].concat()
}

/// The rare keepalive that counts as data with clients. `last` is the last sequence number that the client has seen.
pub fn keepalive(last: u64) -> Vec<u8> {
    format!(r#"{{"type":"keepalive","sequence_number":{last}}}"#).into_bytes()
}

/// The response object with an empty or absent `output` replaced by `items`; every other byte as it came. An object
/// whose output is not empty, and anything that is no object, comes back unchanged [WIRE-11].
pub fn filled<'i>(response: &[u8], items: impl IntoIterator<Item = &'i [u8]>) -> Vec<u8> {
    let Some(text) = std::str::from_utf8(response).ok() else {
        return response.to_vec();
    };
    let mut output = None;
    let mut members = 0;
    let read = json::each_member(text, |key, value| {
        members += 1;
        if json::text(key).is_some_and(|key| key == "output") {
            output = Some(value);
        }
    });
    if read.is_err() {
        return response.to_vec();
    }
    let (start, end, head) = match output {
        Some(output) if output.get() == "null" || super::head::is_empty_list(output.get()) => {
            let span = json::span(text, output);
            (span.start, span.end, "")
        }
        Some(_) => return response.to_vec(),
        None => {
            let close = text.trim_end().len() - 1;
            (
                close,
                close,
                if members == 0 {
                    r#""output":"#
                } else {
                    r#","output":"#
                },
            )
        }
    };
    let mut out = Vec::with_capacity(response.len() + 64);
    out.extend_from_slice(&response[..start]);
    out.extend_from_slice(head.as_bytes());
    out.push(b'[');
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(item);
    }
    out.push(b']');
    out.extend_from_slice(&response[end..]);
    out
}

fn encode(event: &Event<'_>) -> Vec<u8> {
    // Strings, numbers and nulls always serialise.
    serde_json::to_vec(event).unwrap_or_default()
}

#[derive(Serialize)]
struct Event<'a> {
    r#type: &'static str,
    sequence_number: u64,
    response: Response<'a>,
}

/// The whole response object of the API, with the values that a response without any output has.
#[derive(Serialize)]
struct Response<'a> {
    id: &'a str,
    object: &'static str,
    created_at: u64,
    status: &'static str,
    background: bool,
    error: Option<Failure<'a>>,
    incomplete_details: Option<()>,
    instructions: Option<()>,
    max_output_tokens: Option<u64>,
    model: &'a str,
    output: [(); 0],
    parallel_tool_calls: bool,
    previous_response_id: Option<()>,
    reasoning: Reasoning,
    store: bool,
    temperature: f64,
    text: Text,
    tool_choice: &'static str,
    tools: [(); 0],
    top_p: f64,
    truncation: &'static str,
    usage: Usage,
    user: Option<()>,
    metadata: Empty,
}

#[derive(Serialize)]
struct Failure<'a> {
    code: &'a str,
    message: &'a str,
}

#[derive(Default, Serialize)]
struct Reasoning {
    effort: Option<()>,
    summary: Option<()>,
}

#[derive(Serialize)]
struct Text {
    format: Format,
}

#[derive(Serialize)]
struct Format {
    r#type: &'static str,
}

#[derive(Default, Serialize)]
struct Usage {
    input_tokens: u64,
    input_tokens_details: InputDetails,
    output_tokens: u64,
    output_tokens_details: OutputDetails,
    total_tokens: u64,
}

#[derive(Default, Serialize)]
struct InputDetails {
    cached_tokens: u64,
}

#[derive(Default, Serialize)]
struct OutputDetails {
    reasoning_tokens: u64,
}

#[derive(Serialize)]
struct Empty {}

impl<'a> Response<'a> {
    fn new(of: Subject<'a>, status: &'static str, error: Option<Failure<'a>>) -> Self {
        Self {
            id: of.response_id,
            object: "response",
            created_at: of.created_at,
            status,
            background: false,
            error,
            incomplete_details: None,
            instructions: None,
            max_output_tokens: None,
            model: of.model,
            output: [],
            parallel_tool_calls: true,
            previous_response_id: None,
            reasoning: Reasoning::default(),
            store: false,
            temperature: 1.0,
            text: Text {
                format: Format { r#type: "text" },
            },
            tool_choice: "auto",
            tools: [],
            top_p: 1.0,
            truncation: "disabled",
            usage: Usage::default(),
            user: None,
            metadata: Empty {},
        }
    }
}

#[cfg(test)]
mod tests;
