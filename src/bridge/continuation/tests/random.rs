//! Random conversations, written anew or edited.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use super::*;

/// Numbers from a seed, so that a failure is told by one.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % sides as u64) as usize
    }

    fn coin(&mut self) -> bool {
        self.roll(2) == 0
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.roll(of.len())]
    }
}

fn text(dice: &mut Dice) -> String {
    let pieces = [
        "a",
        "\"",
        "\\",
        "/",
        "\n",
        "é",
        "😀",
        "\u{1}",
        "completed",
        "{\"a\":1}",
        "null",
        " ",
    ];
    (0..dice.roll(5)).map(|_| *dice.one(&pieces)).collect()
}

/// Any JSON, nulls and empty lists included.
fn anything(dice: &mut Dice, depth: usize) -> Value {
    match dice.roll(if depth == 0 { 5 } else { 8 }) {
        0 => Value::Null,
        1 => Value::from(dice.coin()),
        2 => Value::from(dice.roll(1000)),
        3 | 4 => Value::from(text(dice)),
        5 => (0..dice.roll(4)).map(|_| anything(dice, depth - 1)).collect(),
        _ => (0..dice.roll(4))
            .map(|_| {
                let key = *dice.one(&["a", "id", "type", "status", "annotations", "content", "é\""]);
                (key.to_owned(), anything(dice, depth - 1))
            })
            .collect(),
    }
}

fn text_part(role: &str) -> &'static str {
    match role {
        "assistant" => "output_text",
        "user" | "system" | "developer" => "input_text",
        _ => "none",
    }
}

/// One item; `name` makes it unlike any other.
fn item(dice: &mut Dice, name: usize) -> Value {
    let id = format!("id_{name}");
    match dice.roll(6) {
        0 => {
            json!({"type": "function_call", "id": id, "status": "completed", "call_id": format!("c{name}"), "name": "n",
            "arguments": anything(dice, 3).to_string()})
        }
        1 => {
            json!({"type": "function_call_output", "call_id": format!("c{name}"), "output": text(dice), "status": null})
        }
        2 => json!({"type": "reasoning", "id": id, "summary": [{"type": "summary_text", "text": text(dice)}],
            "content": null, "encrypted_content": format!("sealed {name}")}),
        3 => {
            json!({"type": "odd", "name": name, "it": anything(dice, 4), "status": *dice.one(&["completed", "incomplete"])})
        }
        4 => json!({"type": "item_reference", "id": id}),
        _ => {
            let role = *dice.one(&["user", "system", "developer", "assistant"]);
            let kind = if role == "assistant" {
                "output_text"
            } else {
                "input_text"
            };
            let mut parts = vec![json!({"type": kind, "text": format!("{name} {}", text(dice))})];
            for _ in 0..dice.roll(3) {
                parts.push(
                    json!({"type": kind, "text": text(dice), "annotations": [], "detail": anything(dice, 2)}),
                );
            }
            json!({"type": "message", "id": id, "role": role, "content": parts})
        }
    }
}

/// The same item by other members: every change that says nothing, or some of them.
fn rewritten(mut item: Value, dice: &mut Dice) -> Value {
    let kind = item["type"].as_str().unwrap_or("message").to_owned();
    let role = item["role"].as_str().unwrap_or_default().to_owned();
    let members = item.as_object_mut().unwrap();
    if kind != "item_reference" && dice.coin() {
        members.remove("id");
    }
    if members
        .get("status")
        .is_none_or(|status| status.is_null() || status == "completed")
    {
        match dice.roll(3) {
            0 => drop(members.remove("status")),
            1 => drop(members.insert("status".to_owned(), "completed".into())),
            _ => drop(members.insert("status".to_owned(), Value::Null)),
        }
    }
    if kind == "message" && !role.is_empty() && dice.coin() {
        members.remove("type");
    }
    if kind == "function_call"
        && let Some(arguments) = members["arguments"].as_str()
        && let Ok(value) = serde_json::from_str::<Value>(arguments)
    {
        members["arguments"] = written(&value, dice).into();
    }
    if kind == "message" {
        rewrite_content(members, text_part(&role), dice);
    }
    nulls(members, dice);
    for value in members.values_mut() {
        match value {
            Value::Object(inner) => nulls(inner, dice),
            Value::Array(elements) => elements
                .iter_mut()
                .filter_map(Value::as_object_mut)
                .for_each(|inner| nulls(inner, dice)),
            _ => {}
        }
    }
    item
}

fn rewrite_content(members: &mut serde_json::Map<String, Value>, plain: &str, dice: &mut Dice) {
    let Some(parts) = members.get_mut("content").and_then(Value::as_array_mut) else {
        return;
    };
    if let [part] = &parts[..]
        && part.as_object().is_some_and(|part| part.len() == 2)
        && part["type"] == plain
        && dice.coin()
    {
        let text = part["text"].clone();
        members.insert("content".to_owned(), text);
        return;
    }
    for part in parts.iter_mut().filter_map(Value::as_object_mut) {
        for note in ["annotations", "logprobs"] {
            match part.get(note).is_none_or(|note| note == &json!([])) {
                true if dice.coin() => drop(part.insert(note.to_owned(), json!([]))),
                true => drop(part.remove(note)),
                false => {}
            }
        }
    }
}

/// Drops members that are null, or adds one.
fn nulls(members: &mut serde_json::Map<String, Value>, dice: &mut Dice) {
    members.retain(|_, value| !value.is_null() || dice.coin());
    if dice.roll(3) == 0 {
        members.insert(format!("nothing{}", dice.roll(10)), Value::Null);
    }
}

/// The value as JSON, keys in any order, with white space and escapes at random.
fn written(value: &Value, dice: &mut Dice) -> String {
    let gap = |dice: &mut Dice| *dice.one(&["", "", "", " ", "\n", "\t \r"]);
    let listed = |mut parts: Vec<String>, open: &str, close: &str, dice: &mut Dice, shuffle: bool| {
        for at in (1..parts.len()).rev().filter(|_| shuffle) {
            parts.swap(at, dice.roll(at + 1));
        }
        let mut out = format!("{open}{}", gap(dice));
        for (at, part) in parts.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(out, "{}{comma}{}{part}", gap(dice), gap(dice)).unwrap();
        }
        format!("{out}{}{close}", gap(dice))
    };
    match value {
        Value::Object(members) => {
            let parts = members
                .iter()
                .map(|(key, value)| {
                    let key = written(&Value::from(key.as_str()), dice);
                    format!("{key}{}:{}{}", gap(dice), gap(dice), written(value, dice))
                })
                .collect();
            listed(parts, "{", "}", dice, true)
        }
        Value::Array(elements) => {
            let parts = elements.iter().map(|element| written(element, dice)).collect();
            listed(parts, "[", "]", dice, false)
        }
        Value::String(text) => {
            let mut out = "\"".to_owned();
            for char in text.chars() {
                match char {
                    '\n' if dice.coin() => out.push_str("\\n"),
                    '/' if dice.coin() => out.push_str("\\/"),
                    '"' | '\\' if dice.coin() => write!(out, "\\{char}").unwrap(),
                    '"' | '\\' | '\0'..' ' => write!(out, "\\u{:04X}", u32::from(char)).unwrap(),
                    _ if dice.roll(4) == 0 => {
                        for unit in char.encode_utf16(&mut [0; 2]) {
                            write!(out, "\\u{unit:04x}").unwrap();
                        }
                    }
                    _ => out.push(char),
                }
            }
            out + "\""
        }
        plain => plain.to_string(),
    }
}

/// Changes one thing in the value that always says something. False where there was nothing to change.
fn changed(value: &mut Value, dice: &mut Dice, name: usize) -> bool {
    match value {
        Value::Null => *value = Value::from(false),
        Value::Bool(flag) => *flag = !*flag,
        Value::Number(number) => *value = Value::from(number.as_u64().unwrap_or_default() + 1),
        Value::String(text) => text.insert(0, '~'),
        Value::Array(elements) => match dice.roll(4) {
            0 if !elements.is_empty() => drop(elements.remove(dice.roll(elements.len()))),
            1 => elements.insert(dice.roll(elements.len() + 1), json!({"name": name})),
            _ if elements.is_empty() => elements.push(Value::Null),
            _ => {
                let at = dice.roll(elements.len());
                return changed(&mut elements[at], dice, name);
            }
        },
        Value::Object(members) => match dice.roll(4) {
            0 => drop(members.insert(format!("new{name}"), json!([name]))),
            _ if members.is_empty() => drop(members.insert("new".to_owned(), json!(0))),
            _ => {
                let at = dice.roll(members.len());
                let (key, value) = members.iter_mut().nth(at).unwrap();
                if key == "arguments"
                    && dice.coin()
                    && let Some(Ok(mut inner)) = value.as_str().map(serde_json::from_str)
                {
                    changed(&mut inner, dice, name);
                    *value = inner.to_string().into();
                    return true;
                }
                return changed(value, dice, name);
            }
        },
    }
    true
}

fn strings(values: &[Value], dice: &mut Dice) -> Vec<String> {
    values.iter().map(|value| written(value, dice)).collect()
}

fn asks(items: &[String]) -> Create {
    request(&items.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The history of a turn in which some of these items went in and the others came out.
fn history_of(items: &[Value], dice: &mut Dice) -> History {
    let written = strings(items, dice);
    let (went_in, came_out) = written.split_at(dice.roll(written.len() + 1));
    remembered(
        &asks(went_in),
        &came_out.iter().map(String::as_str).collect::<Vec<_>>(),
    )
}

fn seeded(cases: u32) -> Config {
    Config {
        cases,
        rng_seed: RngSeed::Fixed(3),
        failure_persistence: None,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(seeded(1000))]

    /// [CONT-4] [CONT-5] [CONT-7] any items, written anew by every change that says nothing, are all found; and found
    /// again by their bytes when they come a second time.
    #[test]
    fn what_is_written_anew_is_found(seed: u64, count in 1..8_usize) {
        let dice = &mut Dice(seed);
        let items: Vec<_> = (0..count).map(|name| item(dice, name)).collect();
        let history = history_of(&items, dice);
        let mut anew = Vec::new();
        for item in items {
            let item = rewritten(item, dice);
            anew.push(written(&item, dice));
        }
        anew.push(MORE.to_owned());
        let next = asks(&anew);
        prop_assert_eq!(continues(&next, &history), Ok(count), "{:?}", anew);

        let (d, its) = (digester(), outline(&next));
        let extension = extends(&d, &next, &its, &history).unwrap();
        let history = Draft::new(&d, &next, &its, Some((&history, &extension))).finish().unwrap();
        prop_assert!(history.items.iter().zip(&its.items).all(|(entry, raw)| entry.raw.same(*raw)));
        anew.push(MORE.to_owned());
        prop_assert_eq!(continues(&asks(&anew), &history), Ok(count + 1));
    }

    /// [CONT-4] [CONT-6] any one edit of any one item is seen, however the rest is written.
    #[test]
    fn an_edit_is_seen(seed: u64, count in 1..8_usize, kind in 0..8_usize) {
        let dice = &mut Dice(seed);
        let mut items: Vec<_> = (0..count).map(|name| item(dice, name)).collect();
        let history = history_of(&items, dice);
        let at = dice.roll(count);
        match kind {
            0 => drop(items.remove(at)),
            1 => items.insert(at, item(dice, count + 1)),
            // One that is doubled at the end is a new item like another.
            2 if at + 1 < count => items.insert(at, items[at].clone()),
            3 if count > 1 => items.swap(at, (at + 1) % count),
            4 if items[at].get("id").is_some() => items[at]["id"] = "id_other".into(),
            _ => {
                // An id that has been changed must not be dropped: that alone is no edit.
                let id = items[at].as_object_mut().unwrap().remove("id");
                prop_assume!(changed(&mut items[at], dice, count));
                if let Some(id) = id {
                    items[at]["id"] = id;
                }
            }
        }
        // What is new is unlike all that was there.
        items.push(json!({"role": "user", "content": "more"}));
        let mut anew = Vec::new();
        for item in items {
            let item = if kind == 4 { item } else { rewritten(item, dice) };
            anew.push(written(&item, dice));
        }
        prop_assert_eq!(continues(&asks(&anew), &history), Err(Rejected::Edited), "{:?}", anew);
    }
}
