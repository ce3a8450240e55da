//! What conversations are made of. All of it is synthetic.

use serde_json::{Value, json};

use crate::dice::Dice;

const TEXTS: [&str; 12] = [
    "hello",
    "",
    "fn main() {\n    println!(\"hello\\n\");\n}\n",
    "tab\tand / slash \\ back",
    "größer, 日本語, \u{1F600} and \u{7}",
    "null",
    "{\"a\":1,\"b\":[1,2,{\"c\":null}]}",
    "[1, 2.50, -0]",
    "error: expected one of `!` or `::`, found `{`\n  --> src/main.rs:1:1",
    "\"quoted\"",
    "previous_response_id",
    "x-codex-window-id",
];

pub fn number(dice: &mut Dice) -> String {
    format!("{:x}", dice.below(1 << 30))
}

/// Mostly one of a few, so that texts repeat; now and then a long one.
pub fn text(dice: &mut Dice) -> String {
    let some = dice.pick(&TEXTS);
    match dice.below(10) {
        0 => format!("{some}{}", number(dice)),
        1 => some.repeat(1 + dice.below(20)),
        _ => some.to_owned(),
    }
}

pub fn tools() -> Value {
    json!([
        {"type": "function", "name": "shell", "strict": null, "parameters": {"type": "object", "properties": {"command": {"type": "array"}}, "required": ["command"]}},
        {"type": "custom", "name": "apply_patch"}
    ])
}

pub fn user(dice: &mut Dice) -> Value {
    match dice.below(8) {
        0 => json!({"role": "user", "content": text(dice)}),
        1 => json!({"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": text(dice)},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": null}]}),
        2 => {
            json!({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text(dice)}]})
        }
        _ => {
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text(dice)}]})
        }
    }
}

/// What a model answers.
pub fn output(dice: &mut Dice) -> Vec<Value> {
    let mut items = Vec::new();
    if dice.chance(40) {
        let summary = match dice.chance(50) {
            true => json!([]),
            false => json!([{"type": "summary_text", "text": text(dice)}]),
        };
        items.push(json!({"id": format!("rs_{}", number(dice)), "type": "reasoning", "summary": summary, "content": null,
            "encrypted_content": format!("gAAAA{}", number(dice)), "status": null}));
    }
    let calls = match dice.chance(50) {
        true => 1 + dice.below(3),
        false => 0,
    };
    for _ in 0..calls {
        let (id, call_id) = (format!("fc_{}", number(dice)), format!("call_{}", number(dice)));
        items.push(match dice.below(4) {
            0 => json!({"id": id, "type": "custom_tool_call", "call_id": call_id, "name": "apply_patch",
                "input": text(dice), "status": "completed"}),
            1 => json!({"id": id, "type": "function_call", "call_id": call_id, "name": "shell",
                "arguments": text(dice), "status": "completed"}),
            _ => json!({"id": id, "type": "function_call", "call_id": call_id, "name": "shell", "status": "completed",
                "arguments": json!({"command": ["cat", text(dice)], "n": dice.below(9), "f": 0.25}).to_string()}),
        });
    }
    if calls == 0 && dice.chance(90) {
        items.push(json!({"id": format!("msg_{}", number(dice)), "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text(dice), "annotations": [], "logprobs": []}]}));
    }
    if dice.chance(3) {
        items.push(
            json!({"id": format!("ws_{}", number(dice)), "type": "web_search_call", "status": "completed",
            "action": {"type": "search", "query": text(dice), "sources": null}}),
        );
    }
    items
}
