//! What the scripted model says: its output items, made from the transcript alone, so that a conversation that
//! got another one's answer is seen at once.

use serde_json::json;

use super::behaviour::{Behaviour, Text};
use super::create::Create;
use super::object::{Item, Part, Usage};
use super::tools::{self, ToolCall};
use super::transcript::{Transcript, kind};

/// One piece of output, finished, and the deltas in which it arrives.
#[derive(Debug, Clone)]
pub struct Output {
    /// The finished item.
    pub item: Item,
    /// Its text, arguments or summary in pieces.
    pub deltas: Vec<String>,
}

/// Makes ids that no other response and no other simulator has.
pub struct Ids<'a> {
    /// The hash that all ids of one response are derived from.
    pub seed: &'a blake3::Hash,
}

impl Ids<'_> {
    /// `prefix_` and 48 hexadecimal digits, the same ones for the same prefix and number.
    pub fn make(&self, prefix: &str, number: usize) -> String {
        let mut hash = blake3::Hasher::new_keyed(self.seed.as_bytes());
        hash.update(prefix.as_bytes()).update(&number.to_le_bytes());
        format!("{prefix}_{}", &hash.finalize().to_hex()[..48])
    }
}

/// All output of one turn.
pub fn compose(
    create: &Create,
    transcript: &Transcript,
    conversation: &str,
    behaviour: &Behaviour,
    ids: &Ids,
    encrypted: &str,
) -> Vec<Output> {
    let mut output = Vec::new();
    if transcript
        .0
        .last()
        .is_some_and(|item| kind(item) == "compaction_trigger")
    {
        let item = Item::Compaction {
            id: ids.make("cmp", 0),
            encrypted_content: encrypted.to_owned(),
        };
        return vec![Output {
            item,
            deltas: Vec::new(),
        }];
    }
    if behaviour.reasoning.is_some() || create.wants_encrypted_reasoning() {
        output.push(reasoning(
            create,
            behaviour.reasoning.unwrap_or(1),
            ids,
            encrypted,
        ));
    }
    let (wanted, answered) = (behaviour.tools, transcript.rounds());
    match tools::choose(create.tools(), answered.saturating_add(1), wanted.spaced) {
        Some(call) if answered < wanted.rounds => {
            if wanted.say {
                output.push(remark(answered.saturating_add(1), wanted.rounds, ids));
            }
            output.extend((0..wanted.parallel).map(|number| tool_call(&call, ids, number as usize)));
        }
        _ => output.push(message(transcript, conversation, behaviour.text, ids)),
    }
    output
}

/// Token counts of a turn. What came before the last user message counts as cached.
pub fn usage(transcript: &Transcript, output: &[Output]) -> Usage {
    let (input, cached) = transcript.tokens();
    let tokens = output
        .iter()
        .map(|output| output.deltas.len().max(1) as u64)
        .sum();
    let reasoning = output
        .iter()
        .filter(|output| matches!(output.item, Item::Reasoning { .. }))
        .count();
    Usage {
        input,
        cached,
        output: tokens,
        reasoning: reasoning as u64,
    }
}

fn reasoning(create: &Create, parts: u32, ids: &Ids, encrypted: &str) -> Output {
    let wants_summary = create
        .body
        .get("reasoning")
        .and_then(|r| r.get("summary"))
        .is_some_and(|s| !s.is_null());
    let part = |number| match number {
        0 => "**Reading** the transcript.".into(),
        _ => format!("**Thinking** about part {number}."),
    };
    let summary: Vec<String> = (0..if wants_summary { parts } else { 0 }).map(part).collect();
    let item = Item::Reasoning {
        id: ids.make("rs", 0),
        summary: summary
            .iter()
            .map(|text| Part::SummaryText { text: text.clone() })
            .collect(),
        encrypted_content: create.wants_encrypted_reasoning().then(|| encrypted.to_owned()),
    };
    Output {
        item,
        deltas: summary,
    }
}

fn tool_call(call: &ToolCall, ids: &Ids, number: usize) -> Output {
    let status = "completed";
    let call_id = ids.make("call", number);
    match call {
        ToolCall::Function { name, arguments } => Output {
            deltas: halves(arguments),
            item: Item::FunctionCall {
                id: ids.make("fc", number),
                status,
                arguments: arguments.clone(),
                call_id,
                name: name.clone(),
            },
        },
        ToolCall::Custom { name, input } => Output {
            deltas: halves(input),
            item: Item::CustomToolCall {
                id: ids.make("ctc", number),
                status,
                call_id,
                input: input.clone(),
                name: name.clone(),
            },
        },
        ToolCall::LocalShell { command } => Output {
            deltas: Vec::new(),
            item: Item::LocalShellCall {
                id: ids.make("lsh", number),
                status,
                call_id,
                action: json!({"type": "exec", "command": command, "env": {}}),
            },
        },
    }
}

fn halves(text: &str) -> Vec<String> {
    let middle = text.floor_char_boundary(text.len() / 2);
    [&text[..middle], &text[middle..]]
        .iter()
        .filter(|half| !half.is_empty())
        .map(|&half| half.into())
        .collect()
}

fn message(transcript: &Transcript, conversation: &str, text: Text, ids: &Ids) -> Output {
    let (items, meaning) = (transcript.0.len(), transcript.meaning());
    let sentence = format!("[{conversation}] {items} items, hash {meaning}. ");
    let pieces = (0..text.n).map(|number| match number {
        0 => format!(
            "{sentence}{}",
            filling(0, (text.size as usize).saturating_sub(sentence.len()))
        ),
        _ => filling(number, text.size as usize),
    });
    let deltas: Vec<String> = pieces.collect();
    let content = vec![Part::output(deltas.concat())];
    Output {
        item: Item::Message {
            id: ids.make("msg", 0),
            status: "completed",
            content,
            role: "assistant",
            phase: None,
        },
        deltas,
    }
}

/// What is said before the calls of a round, the same in every conversation.
fn remark(round: u32, rounds: u32, ids: &Ids) -> Output {
    let text = format!("Round {round} of {rounds}: naïve, 東京, \"quoted\".");
    Output {
        item: Item::Message {
            id: ids.make("msg", 1),
            status: "completed",
            content: vec![Part::output(text.clone())],
            role: "assistant",
            phase: Some("commentary"),
        },
        deltas: halves(&text),
    }
}

/// Exactly `size` bytes of text with letters of one to four bytes in it.
fn filling(number: u32, size: usize) -> String {
    let start = format!("{number:05} ");
    let mut text: String = start.chars().take(size).collect();
    let words = "naïve 東京 🙂 ok ";
    while text.len() + words.len() <= size {
        text.push_str(words);
    }
    while text.len() < size {
        text.push('.');
    }
    text
}
