//! What the model sees: the items of earlier responses and of this create, and what they say.

use std::sync::Arc;

use serde_json::Value;

use super::words::Markers;

/// The items that the model sees, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Transcript(pub Vec<Arc<Value>>);

impl Transcript {
    /// The text of the last user message.
    pub fn last_prompt(&self) -> String {
        self.last_user()
            .map(|at| text_of(&self.0[at]))
            .unwrap_or_default()
    }

    /// The name in the latest `sim:conv=NAME` of any item.
    pub fn conversation(&self) -> Option<String> {
        self.0
            .iter()
            .rev()
            .find_map(|item| Markers::find(&text_of(item)).conversation)
    }

    /// How many rounds of tool calls were answered since the last user message. Calls of one round stand side by
    /// side, so a round is counted where outputs begin.
    pub fn rounds(&self) -> u32 {
        let since = self.last_user().map_or(0, |at| at + 1);
        let mut rounds = 0;
        let mut in_outputs = false;
        for item in &self.0[since..] {
            let output = kind(item).ends_with("_call_output");
            rounds += u32::from(output && !in_outputs);
            in_outputs = output;
        }
        rounds
    }

    /// A short hash of what the items say. Two tellings of the same conversation, one resent by a client that
    /// dropped ids and reordered keys and one from a socket's memory, have the same hash.
    pub fn meaning(&self) -> String {
        let mut hash = blake3::Hasher::new();
        for item in self.0.iter().filter(|item| kind(item) != "reasoning") {
            let words = ["role", "call_id", "name", "arguments", "output", "input"];
            hash.update(kind(item).as_bytes()).update(&[0]);
            for word in words {
                if let Some(value) = item.get(word) {
                    hash.update(plain(value).as_bytes());
                }
                hash.update(&[0]);
            }
            hash.update(text_of(item).as_bytes()).update(&[0]);
        }
        hash.finalize().to_hex()[..8].to_owned()
    }

    /// About how many tokens the items are, a quarter of their JSON bytes, and how many of them come before the
    /// last user message.
    pub fn tokens(&self) -> (u64, u64) {
        let tokens = |items: &[Arc<Value>]| {
            items
                .iter()
                .map(|item| item.to_string().len() as u64)
                .sum::<u64>()
                / 4
        };
        (
            tokens(&self.0).max(1),
            tokens(&self.0[..self.last_user().unwrap_or(0)]),
        )
    }

    fn last_user(&self) -> Option<usize> {
        self.0
            .iter()
            .rposition(|item| kind(item) == "message" && item.get("role").is_some_and(|r| r == "user"))
    }
}

/// The type of an item; an item with a role and no type is a message.
pub fn kind(item: &Value) -> &str {
    item.get("type").and_then(Value::as_str).unwrap_or("message")
}

/// All text in an item's content.
fn text_of(item: &Value) -> String {
    match item.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part.get("text")?.as_str())
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
