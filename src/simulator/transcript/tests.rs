use serde_json::json;

use super::*;

fn transcript(items: Value) -> Transcript {
    Transcript(items.as_array().unwrap().iter().cloned().map(Arc::new).collect())
}

/// [SIM-12] Two tellings of one conversation have the same hash: ids, key order, nulls and reasoning do not count.
#[test]
fn a_resend_means_the_same() {
    let memory = transcript(json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
         "content": [{"type": "output_text", "text": "ho", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}]));
    let resent = transcript(json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"text": "ho", "type": "output_text"}]},
        {"arguments": "{}", "name": "f", "call_id": "c", "type": "function_call"}]));
    assert_eq!(memory.meaning(), resent.meaning());
    let other = transcript(json!([{"role": "user", "content": "hi!"}]));
    assert_ne!(
        other.meaning(),
        transcript(json!([{"role": "user", "content": "hi"}])).meaning()
    );
}

/// [SIM-13] Rounds are counted since the last user message; outputs that stand together are one round.
#[test]
fn rounds_are_counted_since_the_last_prompt() {
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "x"});
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let user = json!({"role": "user", "content": "go"});
    assert_eq!(transcript(json!([user, call, output, user])).rounds(), 0);
    assert_eq!(transcript(json!([user, call, call, output, output])).rounds(), 1);
    assert_eq!(transcript(json!([user, call, output, call, output])).rounds(), 2);
}
