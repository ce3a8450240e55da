//! How clients write the same conversation in ever other ways.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::dice::Dice;

/// JSON text of a value: keys in any order, white space, escapes. `plain`: as most serialisers write it.
pub fn text(value: &Value, plain: bool, dice: &mut Dice) -> String {
    let mut out = String::new();
    match plain {
        true => out = value.to_string(),
        false => write(&mut out, value, dice),
    }
    out
}

fn space(out: &mut String, dice: &mut Dice) {
    if dice.chance(8) {
        out.push_str(dice.pick(&[" ", "\n", "\t", "  ", "\r\n"]));
    }
}

fn write(out: &mut String, value: &Value, dice: &mut Dice) {
    match value {
        Value::String(text) => string(out, text, dice),
        Value::Array(list) => {
            out.push('[');
            for (at, element) in list.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                space(out, dice);
                write(out, element, dice);
                space(out, dice);
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            let mut members: Vec<_> = object.iter().collect();
            dice.shuffle(&mut members);
            for (at, (key, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                space(out, dice);
                string(out, key, dice);
                space(out, dice);
                out.push(':');
                space(out, dice);
                write(out, value, dice);
                space(out, dice);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn string(out: &mut String, text: &str, dice: &mut Dice) {
    let escaping = dice.chance(10);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => {
                out.push('\\');
                out.push(char);
            }
            '\n' if dice.chance(80) => out.push_str("\\n"),
            '/' if dice.chance(20) => out.push_str("\\/"),
            char if char < ' ' || escaping && dice.chance(30) => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04X}");
                }
            }
            char => out.push(char),
        }
    }
    out.push('"');
}

/// How a client writes items anew: always in the same way, or now so and now so.
#[derive(Clone, Copy, Default)]
pub struct Style(u32);

const DROP_ID: u32 = 1;
const DROP_STATUS: u32 = 2;
const ADD_STATUS: u32 = 4;
const DROP_NULLS: u32 = 8;
const ADD_NULLS: u32 = 16;
const DROP_NOTES: u32 = 32;
const ADD_NOTES: u32 = 64;
const DROP_TYPE: u32 = 128;
const ADD_TYPE: u32 = 256;
const AS_STRING: u32 = 512;
const AS_PARTS: u32 = 1024;
const ARGUMENTS: u32 = 2048;
const ALL: usize = 4096;

impl Style {
    pub fn any(dice: &mut Dice) -> Style {
        Style((dice.below(ALL) & dice.below(ALL)) as u32)
    }

    /// As most SDKs do: without ids and states.
    pub fn usual() -> Style {
        Style(DROP_ID | DROP_STATUS | DROP_NULLS | DROP_NOTES)
    }

    fn has(self, way: u32) -> bool {
        self.0 & way != 0
    }

    /// The same item, written so.
    pub fn item(self, item: &Value, dice: &mut Dice) -> Value {
        let mut item = item.clone();
        let Some(object) = item.as_object_mut() else {
            return item;
        };
        let kind = object.get("type").and_then(Value::as_str).map(str::to_owned);
        let role = object.get("role").and_then(Value::as_str).map(str::to_owned);
        let reference = kind.as_deref() == Some("item_reference");
        let message = role.is_some();
        if self.has(DROP_ID) && !reference {
            object.remove("id");
        }
        if self.has(DROP_STATUS) && object.get("status") == Some(&json!("completed")) {
            object.remove("status");
        }
        if self.has(ADD_STATUS) && !object.contains_key("status") && !reference {
            object.insert("status".into(), json!("completed"));
        }
        if self.has(DROP_NULLS) {
            object.retain(|_, value| !value.is_null());
        }
        if self.has(ADD_NULLS) && !object.contains_key("phase") {
            object.insert("phase".into(), Value::Null);
        }
        if self.has(DROP_TYPE) && message {
            object.remove("type");
        }
        if self.has(ADD_TYPE) && message {
            object.insert("type".into(), json!("message"));
        }
        for part in object
            .get_mut("content")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let Some(part) = part.as_object_mut() else {
                continue;
            };
            for name in ["annotations", "logprobs"] {
                if self.has(DROP_NOTES) && part.get(name) == Some(&json!([])) {
                    part.remove(name);
                }
                if self.has(ADD_NOTES) && !part.contains_key(name) {
                    part.insert(name.into(), json!([]));
                }
            }
            if self.has(DROP_NULLS) {
                part.retain(|_, value| !value.is_null());
            }
        }
        if message {
            self.content(object);
        }
        if self.has(ARGUMENTS)
            && kind.as_deref() == Some("function_call")
            && let Some(Value::String(arguments)) = object.get("arguments")
            // Numbers are compared as they are written.
            && !arguments.contains("2.50")
            && let Ok(value) = serde_json::from_str::<Value>(arguments)
        {
            let anew = text(&value, false, dice);
            object.insert("arguments".into(), json!(anew));
        }
        item
    }

    fn content(self, object: &mut serde_json::Map<String, Value>) {
        let part = match object["role"].as_str() {
            Some("assistant") => "output_text",
            _ => "input_text",
        };
        let anew = match object.get("content") {
            Some(Value::String(text)) if self.has(AS_PARTS) => Some(json!([{"type": part, "text": text}])),
            Some(Value::Array(parts)) if self.has(AS_STRING) => match &parts[..] {
                [Value::Object(only)] if only.get("type") == Some(&json!(part)) => {
                    let says_more = only.iter().any(|(key, value)| {
                        !["type", "text"].contains(&key.as_str()) && *value != json!([]) && !value.is_null()
                    });
                    only.get("text").filter(|_| !says_more).cloned()
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(anew) = anew {
            object.insert("content".into(), anew);
        }
    }
}
