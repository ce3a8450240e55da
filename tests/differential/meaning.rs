//! When two items are the same to the model. Written for this test from the requirement alone (CONT-5, CONT-6), over
//! parsed values, and without a line of what it judges.

use serde_json::{Map, Value, json};

/// Whether the model sees the same item.
pub fn same(one: &Value, other: &Value) -> bool {
    if one == other {
        return true;
    }
    let ids = [id(one), id(other)];
    let one_id = matches!(ids, [None, _] | [_, None]) || ids[0] == ids[1];
    one_id && meaning(one) == meaning(other)
}

/// The first place where two conversations differ.
pub fn difference<'a>(
    one: impl ExactSizeIterator<Item = &'a Value>,
    other: impl ExactSizeIterator<Item = &'a Value>,
) -> Option<String> {
    let lengths = (one.len(), other.len());
    for (at, (one, other)) in one.zip(other).enumerate() {
        if !same(one, other) {
            return Some(format!("item {at} is\n    {one}\n  and not\n    {other}"));
        }
    }
    (lengths.0 != lengths.1).then(|| format!("{} items and not {}", lengths.0, lengths.1))
}

fn is_reference(item: &Map<String, Value>) -> bool {
    match item.get("type") {
        None | Some(Value::Null) => item.get("role").is_none_or(Value::is_null),
        Some(kind) => kind == "item_reference",
    }
}

fn id(item: &Value) -> Option<&str> {
    let item = item.as_object().filter(|item| !is_reference(item))?;
    item.get("id")?.as_str()
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let there = object.iter().filter(|(_, value)| !value.is_null());
            Value::Object(there.map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        other => other.clone(),
    }
}

fn meaning(item: &Value) -> Value {
    let Value::Object(object) = item else {
        return item.clone();
    };
    let reference = is_reference(object);
    let mut meaning = Map::new();
    for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        let mut value = match value {
            Value::Array(list) => Value::Array(list.iter().map(without_nulls).collect()),
            other => without_nulls(other),
        };
        if key == "content" {
            for part in value.as_array_mut().into_iter().flatten() {
                if let Value::Object(part) = part {
                    part.retain(|key, value| {
                        !(["annotations", "logprobs"].contains(&key.as_str()) && *value == json!([]))
                    });
                }
            }
        }
        meaning.insert(key.clone(), value);
    }
    let role = meaning.get("role").and_then(Value::as_str).map(str::to_owned);
    let message = role.is_some() && meaning.get("type").is_none_or(|kind| kind == "message");
    if message {
        meaning.remove("type");
    }
    if meaning.get("status").is_some_and(|status| status == "completed") {
        meaning.remove("status");
    }
    if !reference && meaning.get("id").is_some_and(Value::is_string) {
        meaning.remove("id");
    }
    let part = match role.as_deref() {
        Some("user" | "system" | "developer") => Some("input_text"),
        Some("assistant") => Some("output_text"),
        _ => None,
    };
    if let (true, Some(part), Some(Value::String(text))) = (message, part, meaning.get("content")) {
        let list = json!([{"type": part, "text": text}]);
        meaning.insert("content".into(), list);
    }
    if let (Some(Value::String(kind)), Some(Value::String(text))) =
        (meaning.get("type"), meaning.get("arguments"))
        && kind == "function_call"
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        meaning.insert("arguments".into(), json!({ "as json": value }));
    }
    Value::Object(meaning)
}

/// What of a request is compared beside its items, without what says nothing: members that are null.
pub fn settings(body: &Value) -> Value {
    const ASIDE: [&str; 10] = [
        "type",
        "input",
        "previous_response_id",
        "stream",
        "stream_options",
        "background",
        "client_metadata",
        "metadata",
        "user",
        "safety_identifier",
    ];
    let mut settings = without_nulls(body);
    if let Some(object) = settings.as_object_mut() {
        object.retain(|key, _| !ASIDE.contains(&key.as_str()));
    }
    settings
}

/// The items of an `input`.
pub fn items(body: &Value) -> Vec<Value> {
    match body.get("input") {
        Some(Value::Array(items)) => items.clone(),
        Some(Value::String(text)) => {
            vec![json!({"role": "user", "content": [{"type": "input_text", "text": text}]})]
        }
        _ => Vec::new(),
    }
}

pub fn is_compaction(item: &Value) -> bool {
    let kind = item.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| kind.contains("compaction"))
}
