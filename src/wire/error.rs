//! An upstream's error, whatever shape it came in, and what it means.

use std::borrow::Cow;
use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{headers, json};
pub use code::ErrorClass;

mod code;
mod wait;

/// An upstream's error in the API's terms.
///
/// Its message may quote a prompt: `Debug` shows neither the message nor the raw object (INV-9).
#[derive(Clone, Default, PartialEq)]
pub struct WireError {
    /// The status upstream gave, on the frame or on the HTTP answer. `None` where it gave none.
    pub status: Option<u16>,
    /// `error.type`.
    pub kind: Option<String>,
    /// `error.code`.
    pub code: Option<String>,
    /// `error.message`, or `detail`.
    pub message: Option<String>,
    /// `error.param`.
    pub param: Option<String>,
    /// Headers that came inside the error frame or with the HTTP answer. Unfiltered: see [`WireError::client_headers`].
    pub headers: Vec<(String, String)>,
    /// `error.resets_at`: when a used-up limit starts afresh, in seconds since 1970.
    pub resets_at: Option<u64>,
    /// `error.resets_in_seconds`: the same from now on, in seconds.
    pub resets_in_seconds: Option<u64>,
    /// Upstream's error object, byte for byte, where it sent one.
    raw: Option<Box<[u8]>>,
}

impl WireError {
    /// Reads an error frame or an HTTP error body, in any shape: nested or flat `error`, a bare string, `detail`.
    pub(super) fn from_envelope(envelope: &str) -> Self {
        let names = ["status", "status_code", "headers", "error", "detail"];
        let [status, status_code, headers, error, detail] = json::fields(envelope, names).unwrap_or_default();
        let mut read = match error {
            Some(error) if json::is_object(error) => Self {
                raw: Some(error.get().as_bytes().into()),
                ..Self::from_object(error.get())
            },
            Some(error) => Self {
                message: json::loose_text(error),
                ..Self::from_object(envelope)
            },
            None => Self::from_object(envelope),
        };
        if matches!(
            read.kind.as_deref(),
            Some("error" | "response.error" | "response.failed")
        ) {
            read.kind = None; // the frame's own type, in a flat shape
        }
        if read.message.is_none() {
            read.message = detail.and_then(detail_text);
        }
        let outer = status
            .and_then(json::loose_number)
            .or_else(|| status_code.and_then(json::loose_number));
        read.status = outer
            .and_then(|status| u16::try_from(status).ok())
            .or(read.status);
        if read.raw.is_some() {
            collect_headers(headers, &mut read.headers);
        }
        read
    }

    /// Reads `response.error` of a failed response. Its shape is `{code, message}`: not what clients of an HTTP error
    /// expect, so that [`WireError::body`] builds the object anew.
    pub(super) fn from_response_error(error: &RawValue) -> Self {
        match json::is_object(error) {
            true => Self::from_object(error.get()),
            false => Self {
                message: json::loose_text(error),
                ..Self::default()
            },
        }
    }

    /// The error named by the reason of an incomplete response. `None` for reasons that are no error, like
    /// `max_output_tokens` and `steered`.
    pub(super) fn from_known_code(reason: &str) -> Option<Self> {
        code::known(reason).map(|_| Self {
            code: Some(reason.to_owned()),
            ..Self::default()
        })
    }

    /// Reads an HTTP answer with an error status. Only headers that clients may see are kept.
    pub fn from_http(status: u16, answer: &HeaderMap, body: &[u8]) -> Self {
        let mut read = std::str::from_utf8(body)
            .map(Self::from_envelope)
            .unwrap_or_default();
        read.status = Some(status);
        for (name, value) in &headers::to_client(answer) {
            if let Ok(value) = value.to_str() {
                read.headers.push((name.as_str().to_owned(), value.to_owned()));
            }
        }
        read
    }

    fn from_object(object: &str) -> Self {
        let names = [
            "type",
            "code",
            "message",
            "param",
            "status",
            "status_code",
            "resets_at",
            "resets_in_seconds",
            "headers",
        ];
        let [
            kind,
            code,
            message,
            param,
            status,
            status_code,
            resets_at,
            resets_in_seconds,
            headers,
        ] = json::fields(object, names).unwrap_or_default();
        let status = status
            .and_then(json::loose_number)
            .or_else(|| status_code.and_then(json::loose_number));
        let mut read = Self {
            status: status.and_then(|status| u16::try_from(status).ok()),
            kind: kind.and_then(json::loose_text),
            code: code.and_then(json::loose_text),
            message: message.and_then(json::loose_text),
            param: param.and_then(json::loose_text),
            resets_at: resets_at.and_then(json::loose_number),
            resets_in_seconds: resets_in_seconds.and_then(json::loose_number),
            ..Self::default()
        };
        collect_headers(headers, &mut read.headers);
        read
    }

    /// What the error means, from its code, else its type, else its message, else its status [WIRE-6].
    pub fn class(&self) -> ErrorClass {
        code::classify(self).0
    }

    /// The HTTP status for the client, always 4xx or 5xx: upstream's own where it gave one, else the code's. What a
    /// retry could cure is never 400, whatever upstream said, because agents give up on a 400 [WIRE-7].
    pub fn http_status(&self) -> u16 {
        code::status(self)
    }

    /// `{"error":{…}}` for the client: upstream's own object where it sent one, else one built from the facts [WIRE-8].
    pub fn body(&self) -> Vec<u8> {
        if let Some(raw) = &self.raw {
            return [br#"{"error":"#, &raw[..], b"}"].concat();
        }
        let class = self.class();
        let message = match &self.message {
            Some(message) => Cow::Borrowed(message.as_str()),
            None => Cow::Owned(format!("the upstream reported an error ({})", class.label())),
        };
        let kind = self
            .kind
            .as_deref()
            .unwrap_or_else(|| kind_of(self.http_status()));
        encode(kind, self.code.as_deref(), &message, self.param.as_deref())
    }

    /// The error's headers as far as a client may see them: rate limits, `retry-after`, request id.
    pub fn client_headers(&self) -> HeaderMap {
        let mut all = HeaderMap::new();
        for (name, value) in &self.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_str()), HeaderValue::from_str(value))
            {
                all.append(name, value);
            }
        }
        headers::to_client(&all)
    }
}

impl fmt::Debug for WireError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WireError")
            .field("status", &self.status)
            .field("class", &self.class())
            .field("message_bytes", &self.message.as_ref().map(String::len))
            .field("headers", &self.headers.len())
            .finish_non_exhaustive()
    }
}

/// `detail` is a string, or (FastAPI) a list of objects with a `msg`, or an object with a `message`.
fn detail_text(detail: &RawValue) -> Option<String> {
    match json::is_object(detail) {
        true => {
            let [message, code] = json::fields(detail.get(), ["message", "code"])?;
            message.or(code).and_then(json::loose_text)
        }
        false => json::loose_text(detail),
    }
}

/// Values may be strings, numbers or booleans; anything else is no header value.
fn collect_headers(headers: Option<&RawValue>, into: &mut Vec<(String, String)>) {
    let Some(headers) = headers else { return };
    // A value that is no object has no members: nothing is collected.
    let _ = json::each_member(headers.get(), |name, value| {
        if let (Some(name), Some(value)) = (json::text(name), json::loose_text(value)) {
            into.push((name.into_owned(), value));
        }
    });
}

/// The API's error type for a status.
fn kind_of(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

/// An error body of the bridge's own in the API's shape: `{"error":{"message","type","param","code"}}`.
pub fn api_error(kind: &str, code: &str, message: &str, param: Option<&str>) -> Vec<u8> {
    encode(kind, Some(code), message, param)
}

fn encode(kind: &str, code: Option<&str>, message: &str, param: Option<&str>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Body<'a> {
        error: Object<'a>,
    }
    #[derive(Serialize)]
    struct Object<'a> {
        message: &'a str,
        r#type: &'a str,
        param: Option<&'a str>,
        code: Option<&'a str>,
    }
    let body = Body {
        error: Object {
            message,
            r#type: kind,
            param,
            code,
        },
    };
    // Strings and nulls always serialise.
    serde_json::to_vec(&body).unwrap_or_default()
}

#[cfg(test)]
mod tests;
