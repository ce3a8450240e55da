//! What one upstream frame, or the data of one SSE event, is.
//!
//! Most frames of a turn are deltas: those are told by their first bytes. Everything else is read one level deep.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::value::RawValue;

use super::error::WireError;
use super::json;

/// A frame's head and the name under which clients get it.
#[derive(Debug, PartialEq)]
pub struct Framed<'a> {
    /// The SSE event name: the frame's type; for shapes without a usable one the type that clients know it by
    /// (`response.done` and bare response objects: `response.completed`, `.failed` or `.incomplete`; bare errors:
    /// `error`; anything else without a type: `message`).
    pub event: Cow<'a, str>,
    /// What the frame means to the turn.
    pub head: Head,
}

/// What a frame means to the turn that it belongs to.
#[derive(Debug, PartialEq)]
pub enum Head {
    /// `response.created`: the only proof of acceptance (INV-4).
    Created(Created),
    /// `response.output_item.done`; see [`done_item`].
    ItemDone,
    /// Any other data event: deltas, `response.in_progress`, `response.queued`, types not known yet.
    Data,
    /// `{"type":"keepalive"}`: resets the idle deadline once the turn is accepted.
    Keepalive,
    /// `codex.rate_limits`: not progress.
    Telemetry,
    /// `response.metadata` and `codex.response.metadata`.
    Metadata,
    /// The end of the turn.
    Terminal(Terminal),
    /// An error frame, in any of its shapes.
    Error(Box<WireError>),
    /// Not one whole JSON object.
    NotJson,
}

/// The facts of `response.created`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Created {
    /// `response.id`.
    pub response_id: Option<Box<str>>,
    /// `response.store`: whether upstream keeps the response beyond the socket.
    pub store: Option<bool>,
    /// `response.model`.
    pub model: Option<Box<str>>,
}

/// The facts of a terminal event.
#[derive(Debug, PartialEq)]
pub struct Terminal {
    /// How it ended.
    pub kind: TerminalKind,
    /// The response's id.
    pub response_id: Option<Box<str>>,
    /// Why a failed response failed; also of an incomplete one whose reason is an error code.
    pub error: Option<Box<WireError>>,
    /// `output` is empty or absent: a JSON client's object has to be filled.
    pub output_empty: bool,
    /// Where `output` lies in the frame.
    pub output: Option<Range<usize>>,
    /// The response itself says, or at least does not deny, that it completed.
    pub whole: bool,
    /// There is a `usage` object.
    pub has_usage: bool,
    /// The frame has one of the three documented types. False for `response.done` and bare response objects: clients do
    /// not know these, they need the event made anew around [`response_object`].
    pub typed: bool,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalKind {
    /// `response.completed`.
    Completed,
    /// `response.failed`; a cancelled response, too.
    Failed,
    /// `response.incomplete`.
    Incomplete,
}

impl TerminalKind {
    /// The event type that clients know.
    pub fn event(self) -> &'static str {
        match self {
            Self::Completed => "response.completed",
            Self::Failed => "response.failed",
            Self::Incomplete => "response.incomplete",
        }
    }
}

/// Event types that are told by their first bytes, unless a second `type` stands somewhere: the [`Head::Data`] that make up
/// nearly all of a turn.
const PROGRESS: [&str; 15] = [
    "response.audio.delta",
    "response.audio.transcript.delta",
    "response.code_interpreter_call_code.delta",
    "response.code_interpreter_call_code.done",
    "response.custom_tool_call_input.delta",
    "response.custom_tool_call_input.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_text.delta",
    "response.refusal.delta",
    "response.refusal.done",
];

/// Event types that are told by their first bytes although their payload has a `type` inside, so that a second `type` of the
/// frame's own would go unseen. They carry whole objects, which would be read through for nothing, in every turn.
const WITH_OBJECTS: [&str; 5] = [
    "response.content_part.added",
    "response.content_part.done",
    "response.in_progress",
    "response.output_item.added",
    "response.queued",
];

/// Longest name in [`PROGRESS`]; no closing quote is looked for beyond it.
const LONGEST: usize = 48;

static TYPE_KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#""type""#));
static NUMBER_KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#""sequence_number""#));
static ASCII_ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r"\u00"));

/// Reads the head of one frame. Never fails, never panics, whatever the bytes [WIRE-1].
pub fn read(frame: &[u8]) -> Framed<'_> {
    match quick(frame) {
        Some(event) => Framed {
            event: Cow::Borrowed(event),
            head: Head::Data,
        },
        None => full(frame),
    }
}

/// The frame's type, where its first bytes settle that it is a common data event.
///
/// A second `type` further on would win over the first. It cannot hide: a key can only be spelt `"type"` or with a
/// `\u00XX` escape, and a quoted one inside a string has its quotes escaped. Where either is seen, the full parse decides.
fn quick(frame: &[u8]) -> Option<&'static str> {
    let rest = frame.strip_prefix(br#"{"type":"#)?;
    let rest = rest.strip_prefix(b" ").unwrap_or(rest).strip_prefix(b"\"")?;
    let end = memchr::memchr(b'"', &rest[..rest.len().min(LONGEST)])?;
    let (name, tail) = rest.split_at(end);
    // Names of another length are told apart without a look at their letters.
    let same = |known: &&&str| known.as_bytes() == name;
    let whole = tail.get(1) == Some(&b',') && tail.last() == Some(&b'}');
    if let Some(known) = WITH_OBJECTS.iter().find(same) {
        return whole.then_some(*known);
    }
    let known = PROGRESS.iter().find(same)?;
    (whole && TYPE_KEY.find(tail).is_none() && ASCII_ESCAPE.find(tail).is_none()).then_some(*known)
}

fn full(frame: &[u8]) -> Framed<'_> {
    let Ok(frame) = std::str::from_utf8(frame) else {
        return Framed::not_json();
    };
    let Some([kind, response]) = json::fields(frame, ["type", "response"]) else {
        return Framed::not_json();
    };
    let Some(event) = kind.and_then(json::text) else {
        return typeless(frame);
    };
    let head = match event.as_ref() {
        "response.created" => Head::Created(created(response)),
        "response.output_item.done" => Head::ItemDone,
        "response.completed" => Head::Terminal(terminal(TerminalKind::Completed, true, response, frame)),
        "response.failed" => Head::Terminal(terminal(TerminalKind::Failed, true, response, frame)),
        "response.incomplete" => Head::Terminal(terminal(TerminalKind::Incomplete, true, response, frame)),
        "response.done" => return untyped_terminal(response, frame),
        "error" | "response.error" => {
            return Framed {
                event: Cow::Borrowed("error"),
                head: Head::Error(WireError::from_envelope(frame).into()),
            };
        }
        "keepalive" => Head::Keepalive,
        "codex.rate_limits" => Head::Telemetry,
        "response.metadata" | "codex.response.metadata" => Head::Metadata,
        _ => Head::Data,
    };
    Framed { event, head }
}

impl Framed<'_> {
    fn not_json() -> Self {
        Self {
            event: Cow::Borrowed("message"),
            head: Head::NotJson,
        }
    }
}

/// A frame without a type: a bare response object that has ended, a bare error, or data of no known kind.
fn typeless(frame: &str) -> Framed<'_> {
    if ended_response(frame) {
        return untyped_terminal(None, frame);
    }
    let [error, detail, code, message] =
        json::fields(frame, ["error", "detail", "code", "message"]).unwrap_or_default();
    let flat = message.is_some_and(|message| json::text(message).is_some()) && code.is_some();
    if error.is_some() || detail.is_some() || flat {
        return Framed {
            event: Cow::Borrowed("error"),
            head: Head::Error(WireError::from_envelope(frame).into()),
        };
    }
    Framed {
        event: Cow::Borrowed("message"),
        head: Head::Data,
    }
}

/// Whether a frame without a type is a response object in a final state. One still in progress ends nothing.
fn ended_response(frame: &str) -> bool {
    let [object, status, output] = json::fields(frame, ["object", "status", "output"]).unwrap_or_default();
    let is_response = object
        .and_then(json::text)
        .map_or(output.is_some(), |object| object == "response");
    let status = status.and_then(json::text);
    is_response
        && matches!(
            status.as_deref(),
            Some("completed" | "failed" | "incomplete" | "cancelled")
        )
}

fn untyped_terminal<'a>(response: Option<&RawValue>, frame: &'a str) -> Framed<'a> {
    let object = response.map_or(frame, RawValue::get);
    let [status, error] = json::fields(object, ["status", "error"]).unwrap_or_default();
    let kind = match status.and_then(json::text).as_deref() {
        Some("failed" | "cancelled") => TerminalKind::Failed,
        Some("incomplete") => TerminalKind::Incomplete,
        Some(_) => TerminalKind::Completed,
        None if error.is_some() => TerminalKind::Failed,
        None => TerminalKind::Completed,
    };
    let terminal = terminal(
        kind,
        false,
        response.or_else(|| serde_json::from_str(frame).ok()),
        frame,
    );
    Framed {
        event: Cow::Borrowed(kind.event()),
        head: Head::Terminal(terminal),
    }
}

fn created(response: Option<&RawValue>) -> Created {
    let [id, store, model] = response
        .and_then(|response| json::fields(response.get(), ["id", "store", "model"]))
        .unwrap_or_default();
    Created {
        response_id: boxed(id),
        store: store.and_then(json::boolean),
        model: boxed(model),
    }
}

fn terminal(kind: TerminalKind, typed: bool, response: Option<&RawValue>, frame: &str) -> Terminal {
    let names = ["id", "error", "incomplete_details", "output", "usage", "status"];
    let [id, error, details, output, usage, status] = response
        .and_then(|response| json::fields(response.get(), names))
        .unwrap_or_default();
    let error = match kind {
        TerminalKind::Completed => None,
        TerminalKind::Failed => Some(match error {
            Some(error) => WireError::from_response_error(error),
            None => WireError::from_envelope(frame),
        }),
        TerminalKind::Incomplete => details
            .and_then(|details| json::fields(details.get(), ["reason"]))
            .and_then(|[reason]| reason.and_then(json::text))
            .and_then(|reason| WireError::from_known_code(&reason)),
    };
    Terminal {
        kind,
        response_id: boxed(id),
        error: error.map(Box::new),
        output_empty: output.is_none_or(|output| is_empty_list(output.get())),
        output: output.map(|output| json::span(frame, output)),
        whole: status
            .and_then(json::text)
            .is_none_or(|status| status == "completed"),
        has_usage: usage.is_some_and(json::is_object),
        typed,
    }
}

fn boxed(value: Option<&RawValue>) -> Option<Box<str>> {
    value
        .and_then(json::text)
        .map(|text| text.into_owned().into_boxed_str())
}

pub(super) fn is_empty_list(raw: &str) -> bool {
    raw.strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|inner| inner.trim().is_empty())
}

/// Whether the frame looks as if it had a `sequence_number`: cheap enough to ask of every event.
pub fn is_numbered(frame: &[u8]) -> bool {
    NUMBER_KEY.find(frame).is_some()
}

/// The frame's `sequence_number`. A bare number near the beginning is read without parsing the frame.
pub fn sequence_number(frame: &[u8]) -> Option<u64> {
    second_member(frame).or_else(|| anywhere(frame))
}

/// The number where it follows the type at once, as most upstreams write it.
fn second_member(frame: &[u8]) -> Option<u64> {
    let rest = frame.strip_prefix(br#"{"type":""#)?;
    let end = memchr::memchr(b'"', &rest[..rest.len().min(LONGEST)])?;
    let number = rest[end..].strip_prefix(br#"","sequence_number":"#)?;
    let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
    matches!(number.get(digits), Some(b',' | b'}')).then_some(())?;
    std::str::from_utf8(&number[..digits]).ok()?.parse().ok()
}

fn anywhere(frame: &[u8]) -> Option<u64> {
    let at = NUMBER_KEY.find(frame)?;
    let (before, rest) = (&frame[..at], &frame[at + NUMBER_KEY.needle().len()..]);
    // No object or list begins before it, and there is no second one: it is the frame's own.
    let own = memchr::memchr2_iter(b'{', b'[', before).count() == 1 && NUMBER_KEY.find(rest).is_none();
    let digits = rest.strip_prefix(b":").map(|rest| rest.trim_ascii_start());
    let read = digits.filter(|_| own).and_then(|digits| {
        let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
        let whole = matches!(digits[end], b',' | b'}');
        std::str::from_utf8(&digits[..end])
            .ok()
            .filter(|_| whole)?
            .parse()
            .ok()
    });
    read.or_else(|| {
        let [number] = json::fields(std::str::from_utf8(frame).ok()?, ["sequence_number"])?;
        json::loose_number(number?)
    })
}

/// Where the response object lies in a created or terminal event: its `response`, or the whole frame where the frame
/// is itself a response object.
pub fn response_object(frame: &[u8]) -> Option<Range<usize>> {
    let text = std::str::from_utf8(frame).ok()?;
    let [kind, response] = json::fields(text, ["type", "response"])?;
    match response.filter(|response| json::is_object(response)) {
        Some(response) => Some(json::span(text, response)),
        None if kind.is_none() && ended_response(text) => {
            let start = text.len() - text.trim_start().len();
            Some(start..text.trim_end().len())
        }
        None => None,
    }
}

/// The `id` of a bare response object, ended or not.
pub fn object_id(object: &[u8]) -> Option<Box<str>> {
    let [id] = json::fields(std::str::from_utf8(object).ok()?, ["id"])?;
    json::text(id?).map(Into::into)
}

/// The output index (0 where there is none) of a `response.output_item.done`, and where its item lies.
pub fn done_item(frame: &[u8]) -> Option<(u64, Range<usize>)> {
    let text = std::str::from_utf8(frame).ok()?;
    let [index, item] = json::fields(text, ["output_index", "item"])?;
    Some((
        index.and_then(json::loose_number).unwrap_or(0),
        json::span(text, item?),
    ))
}

/// How many items a terminal's `output` has; 0 where there is none.
pub fn listed_items(frame: &[u8], terminal: &Terminal) -> usize {
    let output = terminal.output.clone().and_then(|span| frame.get(span));
    let output = output.and_then(|output| std::str::from_utf8(output).ok());
    output.and_then(json::list_len).unwrap_or(0)
}

#[cfg(test)]
mod tests;
