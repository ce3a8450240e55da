//! The facts of one `response.create`, read from its body.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::behaviour::Transport;
use super::faults::ErrorFrame;

/// One create, checked as far as the real API checks it.
#[derive(Debug)]
pub struct Create {
    /// The whole body; the response object echoes much of it.
    pub body: Map<String, Value>,
    /// `model`
    pub model: String,
    /// `stream`; always true on a WebSocket.
    pub stream: bool,
    /// `store`; true where it is absent.
    pub store: bool,
    /// `background`
    pub background: bool,
    /// `generate`; false is a warm-up.
    pub generate: bool,
    /// `previous_response_id`
    pub previous: Option<String>,
    /// `input` as a list of items; a bare string is one user message.
    pub input: Vec<Arc<Value>>,
}

impl Create {
    /// Reads a body.
    ///
    /// # Errors
    /// The error answer that the real API gives: malformed JSON, a missing model, a wrong type.
    pub fn parse(bytes: &[u8], transport: Transport) -> Result<Create, Box<ErrorFrame>> {
        let invalid = |message: String| Box::new(ErrorFrame::invalid("invalid_json", message, None));
        let body: Value = serde_json::from_slice(bytes).map_err(|error| {
            invalid(format!(
                "We could not parse the JSON body of your request: {error}"
            ))
        })?;
        let Value::Object(body) = body else {
            return Err(invalid("The JSON body of your request is not an object.".into()));
        };
        Create::from_object(body, transport)
    }

    /// Reads a body that is an object already.
    ///
    /// # Errors
    /// See [`Create::parse`].
    pub fn from_object(body: Map<String, Value>, transport: Transport) -> Result<Create, Box<ErrorFrame>> {
        let model = match text(&body, "model")? {
            Some(model) if !model.is_empty() => model,
            _ => return Err(missing("model")),
        };
        let input = match body.get("input") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(text)) => vec![Arc::new(user_message(text))],
            Some(Value::Array(items)) => items.iter().cloned().map(Arc::new).collect(),
            Some(_) => return Err(wrong_type("input", "a string or an array")),
        };
        let websocket = transport == Transport::Websocket;
        Ok(Create {
            model,
            stream: flag(&body, "stream", false)? || websocket,
            store: flag(&body, "store", true)?,
            background: flag(&body, "background", false)? && !websocket,
            generate: flag(&body, "generate", true)? || !websocket,
            previous: text(&body, "previous_response_id")?,
            input,
            body,
        })
    }

    /// Whether `include` asks for encrypted reasoning.
    pub fn wants_encrypted_reasoning(&self) -> bool {
        let include = self.body.get("include").and_then(Value::as_array);
        include.is_some_and(|include| include.iter().any(|field| field == "reasoning.encrypted_content"))
    }

    /// A text field of `client_metadata`.
    pub fn metadata(&self, name: &str) -> Option<&str> {
        self.body.get("client_metadata")?.get(name)?.as_str()
    }

    /// The names of the fields of `client_metadata`, sorted.
    pub fn metadata_keys(&self) -> Vec<String> {
        let fields = self.body.get("client_metadata").and_then(Value::as_object);
        fields
            .map(|fields| fields.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// A short hash of the fields that are neither the conversation, nor the way it travels, nor its sender's names.
    pub fn settings(&self) -> String {
        const ASIDE: &[&str] = &[
            "type",
            "stream",
            "input",
            "previous_response_id",
            "client_metadata",
            "prompt_cache_key",
        ];
        let fields = self
            .body
            .iter()
            .filter(|(name, _)| !ASIDE.contains(&name.as_str()));
        let mut hash = blake3::Hasher::new();
        for (name, value) in fields {
            hash.update(name.as_bytes()).update(&[0]);
            hash.update(value.to_string().as_bytes()).update(&[0]);
        }
        hash.finalize().to_hex()[..8].to_owned()
    }

    /// The tool definitions.
    pub fn tools(&self) -> &[Value] {
        self.body
            .get("tools")
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }
}

/// The message item that a bare input string stands for.
pub fn user_message(text: &str) -> Value {
    serde_json::json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn missing(field: &str) -> Box<ErrorFrame> {
    let message = format!("Missing required parameter: '{field}'.");
    Box::new(ErrorFrame::invalid(
        "missing_required_parameter",
        message,
        Some(field),
    ))
}

fn wrong_type(field: &str, expected: &str) -> Box<ErrorFrame> {
    let message = format!("Invalid type for '{field}': expected {expected}.");
    Box::new(ErrorFrame::invalid("invalid_type", message, Some(field)))
}

fn text(body: &Map<String, Value>, field: &str) -> Result<Option<String>, Box<ErrorFrame>> {
    match body.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong_type(field, "a string")),
    }
}

fn flag(body: &Map<String, Value>, field: &str, absent: bool) -> Result<bool, Box<ErrorFrame>> {
    match body.get(field) {
        None | Some(Value::Null) => Ok(absent),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(wrong_type(field, "a boolean")),
    }
}
