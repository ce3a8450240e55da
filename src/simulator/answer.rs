//! HTTP answers that are known as a whole, and the heads of those that are not.

use std::fmt::Write;

use bytes::BytesMut;

use super::faults::ErrorFrame;

/// One HTTP answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// More headers.
    pub headers: Vec<(String, String)>,
    /// The content type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

impl Answer {
    /// A JSON object with status 200.
    pub fn json(body: impl Into<String>) -> Answer {
        Answer {
            status: 200,
            headers: Vec::new(),
            content_type: "application/json",
            body: body.into(),
        }
    }

    /// An error as a status, with its headers and body.
    pub fn error(error: &ErrorFrame) -> Answer {
        let (content_type, body) = error.body();
        // A status below 300 cannot carry an error over HTTP: the next best thing is the upstream's own failure.
        let status = if error.status < 300 { 500 } else { error.status };
        Answer {
            status,
            headers: error.headers.clone(),
            content_type,
            body,
        }
    }

    /// Writes the whole answer.
    pub fn write(&self, out: &mut BytesMut) {
        self.write_head(out);
        out.extend_from_slice(self.body.as_bytes());
    }

    /// Writes the answer to a HEAD: all but the body.
    pub fn write_head(&self, out: &mut BytesMut) {
        let length = [("content-length".to_owned(), self.body.len().to_string())];
        let headers = self.headers.iter().chain(&length);
        head(
            out,
            self.status,
            self.content_type,
            headers.map(|(name, value)| (name.as_str(), value.as_str())),
        );
    }
}

/// Writes the head of an answer.
pub fn head<'a>(
    out: &mut BytesMut,
    status: u16,
    content_type: &str,
    headers: impl Iterator<Item = (&'a str, &'a str)>,
) {
    let reason = http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason());
    let mut text = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: {content_type}\r\n",
        reason.unwrap_or("Scripted")
    );
    for (name, value) in headers {
        // Writing to a string cannot fail.
        _ = write!(text, "{name}: {value}\r\n");
    }
    text.push_str("\r\n");
    out.extend_from_slice(text.as_bytes());
}

/// The headers that the upstream's answers and handshakes carry.
pub fn usual_headers(chatgpt: bool, turn: &str) -> Vec<(String, String)> {
    let openai = [
        ("openai-version", "2020-10-01"),
        ("openai-processing-ms", "12"),
        ("x-ratelimit-limit-requests", "5000"),
        ("x-ratelimit-remaining-requests", "4999"),
        ("x-ratelimit-reset-requests", "12ms"),
    ];
    let codex = [
        ("x-codex-turn-state", turn),
        ("x-models-etag", "W/\"simulated\""),
        ("x-reasoning-included", "true"),
        ("x-codex-primary-used-percent", "12"),
        ("x-codex-primary-window-minutes", "300"),
        ("x-codex-secondary-used-percent", "3"),
        ("x-codex-secondary-window-minutes", "10080"),
    ];
    let kind: &[(&str, &str)] = if chatgpt { &codex } else { &openai };
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    let request = ("x-request-id".to_owned(), format!("req_{turn}"));
    std::iter::once(request).chain(kind.iter().map(owned)).collect()
}
