//! Response objects and output items, with their keys in the order in which the real API writes them.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// An output item.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// Text of the assistant.
    Message {
        /// `msg_…`
        id: String,
        /// `in_progress` or `completed`.
        status: &'static str,
        /// At most one part.
        content: Vec<Part>,
        /// `assistant`
        role: &'static str,
        /// `commentary` for what is said on the way.
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'static str>,
    },
    /// Reasoning, encrypted where the request asked for that.
    Reasoning {
        /// `rs_…`
        id: String,
        /// Summary parts.
        summary: Vec<Part>,
        /// Bound to the account that made it.
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<String>,
    },
    /// A call of a function tool.
    FunctionCall {
        /// `fc_…`
        id: String,
        /// `in_progress` or `completed`.
        status: &'static str,
        /// JSON text.
        arguments: String,
        /// `call_…`
        call_id: String,
        /// The function.
        name: String,
    },
    /// A call of a custom tool.
    CustomToolCall {
        /// `ctc_…`
        id: String,
        /// `in_progress` or `completed`.
        status: &'static str,
        /// `call_…`
        call_id: String,
        /// Free text.
        input: String,
        /// The tool.
        name: String,
    },
    /// A call of the built-in shell.
    LocalShellCall {
        /// `lsh_…`
        id: String,
        /// `in_progress` or `completed`.
        status: &'static str,
        /// `call_…`
        call_id: String,
        /// The command.
        action: Value,
    },
    /// What a compaction leaves behind.
    Compaction {
        /// `cmp_…`
        id: String,
        /// Opaque.
        encrypted_content: String,
    },
}

/// A part of a message or of a summary.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text of a message.
    OutputText {
        /// Always empty here.
        annotations: [Value; 0],
        /// Always empty here.
        logprobs: [Value; 0],
        /// The text.
        text: String,
    },
    /// Text of a reasoning summary.
    SummaryText {
        /// The text.
        text: String,
    },
}

impl Part {
    /// Message text.
    pub fn output(text: impl Into<String>) -> Part {
        Part::OutputText {
            annotations: [],
            logprobs: [],
            text: text.into(),
        }
    }
}

/// Token counts.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// Tokens that the model saw.
    pub input: u64,
    /// How many of them came from the cache.
    pub cached: u64,
    /// Tokens that it made.
    pub output: u64,
    /// How many of them were reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// `usage` as the API writes it.
    pub fn to_json(self) -> Value {
        json!({
            "input_tokens": self.input,
            "input_tokens_details": { "cached_tokens": self.cached },
            "output_tokens": self.output,
            "output_tokens_details": { "reasoning_tokens": self.reasoning },
            "total_tokens": self.input + self.output,
        })
    }
}

/// What stays the same in a response object from `response.created` to the end.
#[derive(Debug, Clone)]
pub struct Identity {
    /// `resp_…`
    pub id: String,
    /// Seconds since 1970.
    pub created_at: u64,
    /// The model that was asked for.
    pub model: String,
    /// Whether the response is kept.
    pub store: bool,
    /// Whether it runs in the background.
    pub background: bool,
    /// The create's body; many of its fields are echoed.
    pub body: Map<String, Value>,
}

/// One state of a response object.
#[derive(Debug, Clone, Copy)]
pub struct Stage<'a> {
    /// `queued`, `in_progress`, `completed`, `failed`, `incomplete`, `cancelled`
    pub status: &'a str,
    /// `error` as code and message.
    pub error: Option<(&'a str, &'a str)>,
    /// `incomplete_details.reason`
    pub incomplete: Option<&'a str>,
    /// The finished items.
    pub output: &'a [Item],
    /// At the end only.
    pub usage: Option<Usage>,
}

impl<'a> Stage<'a> {
    /// A response without output yet.
    pub fn begun(status: &'a str) -> Stage<'a> {
        Stage {
            status,
            error: None,
            incomplete: None,
            output: &[],
            usage: None,
        }
    }
}

#[derive(Serialize)]
struct Object<'a> {
    id: &'a str,
    object: &'static str,
    created_at: u64,
    status: &'a str,
    background: bool,
    error: Value,
    incomplete_details: Value,
    instructions: Value,
    max_output_tokens: Value,
    max_tool_calls: Value,
    model: &'a str,
    output: &'a [Item],
    parallel_tool_calls: Value,
    previous_response_id: Value,
    prompt_cache_key: Value,
    reasoning: Value,
    safety_identifier: Value,
    service_tier: Value,
    store: bool,
    temperature: Value,
    text: Value,
    tool_choice: Value,
    tools: Value,
    top_logprobs: Value,
    top_p: Value,
    truncation: Value,
    usage: Value,
    user: Value,
    metadata: Value,
}

impl Identity {
    /// The JSON text of the object in one of its states.
    pub fn json(&self, stage: Stage) -> String {
        let echo = |name: &str, usual: Value| match self.body.get(name) {
            None | Some(Value::Null) => usual,
            Some(value) => value.clone(),
        };
        to_json(&Object {
            id: &self.id,
            object: "response",
            created_at: self.created_at,
            status: stage.status,
            background: self.background,
            error: stage.error.map_or(
                Value::Null,
                |(code, message)| json!({"code": code, "message": message}),
            ),
            incomplete_details: stage
                .incomplete
                .map_or(Value::Null, |reason| json!({ "reason": reason })),
            instructions: echo("instructions", Value::Null),
            max_output_tokens: echo("max_output_tokens", Value::Null),
            max_tool_calls: echo("max_tool_calls", Value::Null),
            model: &self.model,
            output: stage.output,
            parallel_tool_calls: echo("parallel_tool_calls", json!(true)),
            previous_response_id: echo("previous_response_id", Value::Null),
            prompt_cache_key: echo("prompt_cache_key", Value::Null),
            reasoning: echo("reasoning", json!({"effort": "medium", "summary": null})),
            safety_identifier: echo("safety_identifier", Value::Null),
            service_tier: echo("service_tier", json!("default")),
            store: self.store,
            temperature: echo("temperature", json!(1.0)),
            text: echo("text", json!({"format": {"type": "text"}, "verbosity": "medium"})),
            tool_choice: echo("tool_choice", json!("auto")),
            tools: echo("tools", json!([])),
            top_logprobs: echo("top_logprobs", json!(0)),
            top_p: echo("top_p", json!(1.0)),
            truncation: echo("truncation", json!("disabled")),
            usage: stage.usage.map_or(Value::Null, Usage::to_json),
            user: echo("user", Value::Null),
            metadata: echo("metadata", json!({})),
        })
    }
}

/// JSON text. Nothing here has a map with keys that are not strings, the only way in which serialising fails.
pub fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
