//! Error answers in each shape that upstreams have been seen to use, as a frame and as an HTTP response.

use serde_json::{Map, Value, json};

/// The shapes of an error frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `{"type":"error","status":…,"error":{"type","code","message","param"}}`
    Nested,
    /// Nested, with `status_code` for `status`.
    StatusCode,
    /// Nested, without any status.
    NoStatus,
    /// Nested, without `error.type`.
    NoType,
    /// Nested, with `code: null`.
    NullCode,
    /// `{"type":"error","code","message","param","sequence_number"}`
    Flat,
    /// Nested, with the type `response.error`.
    ResponseError,
    /// `{"error":{…}}` without a type of its own.
    Typeless,
    /// `{"detail": "…"}`
    Detail,
    /// Nested, with `headers` beside `error`.
    HeadersTop,
    /// Nested, with `headers` inside `error`.
    HeadersInner,
}

/// All shapes by the names that scripts use.
pub const SHAPES: &[(&str, Shape)] = &[
    ("nested", Shape::Nested),
    ("status_code", Shape::StatusCode),
    ("no_status", Shape::NoStatus),
    ("no_type", Shape::NoType),
    ("null_code", Shape::NullCode),
    ("flat", Shape::Flat),
    ("response_error", Shape::ResponseError),
    ("typeless_error", Shape::Typeless),
    ("detail", Shape::Detail),
    ("headers_top", Shape::HeadersTop),
    ("headers_inner", Shape::HeadersInner),
];

/// An error answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorFrame {
    /// Its shape as a frame; over HTTP only `Detail` and `NullCode` differ from the rest.
    pub shape: Shape,
    /// The HTTP status that it stands for.
    pub status: u16,
    /// `error.type`
    pub kind: String,
    /// `error.code`
    pub code: Option<String>,
    /// `error.message`
    pub message: String,
    /// `error.param`
    pub param: Option<String>,
    /// Headers: of the HTTP answer, or inside the frame where the shape has a place for them.
    pub headers: Vec<(String, String)>,
    /// A body that is sent over HTTP as it is, with its content type, instead of the JSON object.
    pub page: Option<(&'static str, String)>,
}

impl ErrorFrame {
    /// An `invalid_request_error` (400) with a code.
    pub fn invalid(code: &str, message: impl Into<String>, param: Option<&str>) -> ErrorFrame {
        ErrorFrame {
            shape: Shape::Nested,
            status: 400,
            kind: "invalid_request_error".into(),
            code: Some(code.into()),
            message: message.into(),
            param: param.map(str::to_owned),
            headers: Vec::new(),
            page: None,
        }
    }

    /// The answer to an anchor that is neither in the socket's memory nor in storage.
    pub fn previous_not_found(id: &str) -> ErrorFrame {
        let message = format!("Previous response with id '{id}' not found.");
        ErrorFrame::invalid(
            "previous_response_not_found",
            message,
            Some("previous_response_id"),
        )
    }

    /// The same error under another status.
    pub fn with_status(self, status: u16) -> ErrorFrame {
        ErrorFrame { status, ..self }
    }

    /// The JSON text of the frame, `type` first, as it goes into a stream as event number `sequence`.
    pub fn frame(&self, sequence: u64) -> String {
        let error = Value::Object(self.error_object(self.shape == Shape::HeadersInner));
        let status = match self.shape {
            Shape::NoStatus => String::new(),
            Shape::StatusCode => format!(r#","status_code":{}"#, self.status),
            _ => format!(r#","status":{}"#, self.status),
        };
        match self.shape {
            Shape::Flat => format!(
                r#"{{"type":"error","sequence_number":{sequence},"code":{},"message":{},"param":{}}}"#,
                json!(self.code),
                json!(self.message),
                json!(self.param)
            ),
            Shape::Detail => json!({ "detail": self.message }).to_string(),
            Shape::Typeless => json!({ "error": error }).to_string(),
            Shape::ResponseError => format!(r#"{{"type":"response.error"{status},"error":{error}}}"#),
            Shape::HeadersTop => {
                let headers = Value::Object(self.frame_headers());
                format!(r#"{{"type":"error"{status},"error":{error},"headers":{headers}}}"#)
            }
            _ => format!(r#"{{"type":"error"{status},"error":{error}}}"#),
        }
    }

    /// The body over HTTP: its content type and text.
    pub fn body(&self) -> (&'static str, String) {
        match (&self.page, self.shape) {
            (Some((kind, page)), _) => (kind, page.clone()),
            (None, Shape::Detail) => ("application/json", json!({ "detail": self.message }).to_string()),
            _ => (
                "application/json",
                json!({ "error": self.error_object(false) }).to_string(),
            ),
        }
    }

    fn error_object(&self, with_headers: bool) -> Map<String, Value> {
        let mut error = Map::new();
        if self.shape != Shape::NoType {
            error.insert("type".into(), json!(self.kind));
        }
        let code = if self.shape == Shape::NullCode {
            None
        } else {
            self.code.as_deref()
        };
        error.insert("code".into(), json!(code));
        error.insert("message".into(), json!(self.message));
        error.insert("param".into(), json!(self.param));
        if with_headers {
            error.insert("headers".into(), Value::Object(self.frame_headers()));
        }
        error
    }

    /// Header values as upstreams mix them: numbers and booleans where they look like some, else strings.
    fn frame_headers(&self) -> Map<String, Value> {
        let typed = |value: &str| match (value.parse::<u64>(), value.parse::<bool>()) {
            (Ok(number), _) => json!(number),
            (_, Ok(flag)) => json!(flag),
            _ => json!(value),
        };
        self.headers
            .iter()
            .map(|(name, value)| (name.clone(), typed(value)))
            .collect()
    }
}

/// The usual `error.type` of a status.
pub fn kind_of(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

/// The usual `error.code` of a status.
pub fn code_of(status: u16) -> &'static str {
    match status {
        401 => "invalid_api_key",
        403 => "unsupported_country_region_territory",
        404 => "not_found",
        429 => "rate_limit_exceeded",
        503 => "server_is_overloaded",
        500.. => "server_error",
        _ => "invalid_value",
    }
}

#[cfg(test)]
mod tests;
