//! W3C trace context: the caller's trace is kept, its span becomes the parent of ours, `tracestate` is passed on as it came
//! (COR-3). Source: <https://www.w3.org/TR/trace-context/>.

use std::fmt::Write;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header that names trace and parent.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// What vendors add to it.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// How Codex spells the two in a frame's `client_metadata`, since a handshake lives for many turns. Source: the strings of
/// Codex CLI 0.171.0.
pub const METADATA: [&str; 2] = ["ws_request_header_traceparent", "ws_request_header_tracestate"];

/// Longest `tracestate` that is passed on, in bytes: what the specification says every party should be able to carry.
const LONGEST_STATE: usize = 512;
/// The flag of a trace that is recorded.
const SAMPLED: u8 = 1;

/// A span's id: eight bytes, never all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanId(u64);

impl SpanId {
    /// An id from random bytes.
    pub fn new(random: [u8; 8]) -> SpanId {
        SpanId(u64::from_be_bytes(random).max(1))
    }

    /// The id of the `n`th span below this one: as random as this one, and told apart from it by any `n` above 0.
    pub fn below(self, n: u32) -> SpanId {
        let id = self.0.wrapping_add(u64::from(n));
        // Over the end: zero is no id, and the ids before this one are nobody's.
        SpanId(if id < self.0 { id.wrapping_add(1) } else { id })
    }

    /// The id's bytes.
    pub fn bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

/// The trace that a call belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// 32 lower-case hexadecimal digits.
    id: Box<str>,
    /// The caller's span, 16 digits; none where the trace begins here.
    parent: Option<Box<str>>,
    flags: u8,
    state: Option<HeaderValue>,
    /// The span of the call itself.
    span: SpanId,
}

impl Trace {
    /// The trace that these headers name. One that is not well-formed, or stands there twice, is no trace: the call has
    /// none then, as if nothing had been sent.
    pub fn of(headers: &HeaderMap, span: SpanId) -> Option<Trace> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let (value, None) = (values.next()?.to_str().ok()?, values.next()) else {
            return None;
        };
        let (id, parent, flags) = parse(value.trim())?;
        Some(Trace {
            id: id.into(),
            parent: Some(parent.into()),
            flags,
            state: state(headers),
            span,
        })
    }

    /// A trace that begins here, and is recorded.
    pub fn begun(random: [u8; 16], span: SpanId) -> Trace {
        Trace {
            id: format!("{:032x}", u128::from_be_bytes(random).max(1)).into(),
            parent: None,
            flags: SAMPLED,
            state: None,
            span,
        }
    }

    /// The trace's id, 32 lower-case hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The caller's span, 16 lower-case hexadecimal digits.
    pub fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    /// The span of the call.
    pub fn span(&self) -> SpanId {
        self.span
    }

    /// Whether spans of the trace are recorded.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The `traceparent` that goes upstream, with `span` as the parent there.
    pub fn parent_of(&self, span: SpanId) -> String {
        let mut text = String::with_capacity(55);
        // Writing to a String cannot fail. What is not known of the flags is not passed on.
        let _ = write!(
            text,
            "00-{}-{:016x}-{:02x}",
            self.id,
            span.0,
            self.flags & SAMPLED
        );
        text
    }

    /// The caller's `tracestate`.
    pub fn state(&self) -> Option<&HeaderValue> {
        self.state.as_ref()
    }
}

/// The trace id in a whole `traceparent`, as people copy it.
pub fn id_in(traceparent: &str) -> Option<&str> {
    parse(traceparent.trim()).map(|(id, _, _)| id)
}

/// Trace id, parent id and flags. Of a later version what this one has is read, and must be followed by a dash or nothing.
fn parse(value: &str) -> Option<(&str, &str, u8)> {
    let mut parts = value.split('-');
    let [version, id, parent, flags] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    let hex = |text: &str, length| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let some = |text: &str| text.bytes().any(|byte| byte != b'0');
    let whole = version != "00" || parts.next().is_none();
    let sound = hex(version, 2) && version != "ff" && hex(id, 32) && hex(parent, 16) && hex(flags, 2);
    if !(whole && sound && some(id) && some(parent)) {
        return None;
    }
    Some((id, parent, u8::from_str_radix(flags, 16).ok()?))
}

/// The `tracestate` headers as one. One that is too long, or not plain text, is left out: the trace itself is more than it.
fn state(headers: &HeaderMap) -> Option<HeaderValue> {
    let values: Option<Vec<&str>> = headers
        .get_all(TRACESTATE)
        .iter()
        .map(|value| value.to_str().ok().map(str::trim))
        .collect();
    let joined = values?.join(",");
    if joined.is_empty() || joined.len() > LONGEST_STATE {
        return None;
    }
    HeaderValue::from_str(&joined).ok()
}

#[cfg(test)]
mod tests;
