//! [CONT-5] [CONT-6] which changes of an item matter.

use super::*;

/// Whether an item that comes back as `back` is the one that went in or came out as `item`.
fn same(item: &str, back: &str) -> bool {
    let came_out = remembered(&request(&[ASKED]), &[item]);
    let went_in = remembered(&request(&[ASKED, item]), &[]);
    let next = request(&[ASKED, back, MORE]);
    let found = continues(&next, &came_out);
    assert_eq!(found, continues(&next, &went_in));
    match found {
        Ok(skip) => assert_eq!(skip, 2),
        Err(reason) => assert_eq!(reason, Rejected::Edited),
    }
    found.is_ok()
}

#[track_caller]
fn alike(item: &str, back: &str) {
    assert!(same(item, back), "{item}\n{back}");
    assert!(same(back, item), "the other way round: {item}\n{back}");
}

#[track_caller]
fn unlike(item: &str, back: &str) {
    assert!(same(item, item));
    assert!(!same(item, back), "{item}\n{back}");
    assert!(!same(back, item), "the other way round: {item}\n{back}");
}

/// [CONT-5] an `id` that is dropped, and [CONT-6] one that is another.
#[test]
fn ids() {
    alike(
        r#"{"type":"reasoning","id":"rs_1","summary":[]}"#,
        r#"{"type":"reasoning","summary":[]}"#,
    );
    alike(
        r#"{"type":"reasoning","id":"rs_1","summary":[]}"#,
        r#"{"summary":[],"id":"rs_\u0031","type":"reasoning"}"#,
    );
    alike(r#"{"role":"user","id":null}"#, r#"{"role":"user","id":"m"}"#);
    unlike(
        r#"{"type":"reasoning","id":"rs_1"}"#,
        r#"{"type":"reasoning","id":"rs_2"}"#,
    );
    unlike(
        r#"{"type":"reasoning","id":"rs_1"}"#,
        r#"{"type":"reasoning","id":1}"#,
    );
    unlike(r#"{"type":"reasoning","id":1}"#, r#"{"type":"reasoning"}"#);
    unlike(
        r#"{"type":"x","action":{"id":"1"}}"#,
        r#"{"type":"x","action":{}}"#,
    );
}

/// [CONT-6] an item that is nothing but an id is compared by it.
#[test]
fn references() {
    alike(
        r#"{"type":"item_reference","id":"m1"}"#,
        r#"{"id":"m1", "type":"item_reference"}"#,
    );
    unlike(
        r#"{"type":"item_reference","id":"m1"}"#,
        r#"{"type":"item_reference","id":"m2"}"#,
    );
    unlike(
        r#"{"type":"item_reference","id":"m1"}"#,
        r#"{"type":"item_reference"}"#,
    );
    alike(r#"{"type":null,"id":"m1"}"#, r#"{"id":"m1"}"#);
    unlike(r#"{"id":"m1"}"#, r#"{"id":"m2"}"#);
    unlike(r#"{"id":"m1"}"#, "{}");
}

/// [CONT-5] `completed` says nothing; [CONT-6] another status does.
#[test]
fn statuses() {
    alike(r#"{"type":"x","status":"completed"}"#, r#"{"type":"x"}"#);
    alike(
        r#"{"type":"x","status":null}"#,
        r#"{"type":"x","status":"completed"}"#,
    );
    unlike(r#"{"type":"x","status":"incomplete"}"#, r#"{"type":"x"}"#);
    unlike(
        r#"{"type":"x","status":"incomplete"}"#,
        r#"{"type":"x","status":"completed"}"#,
    );
    unlike(
        r#"{"type":"x","a":{"status":"completed"}}"#,
        r#"{"type":"x","a":{}}"#,
    );
}

/// [CONT-5] members that are null, where items have them; [CONT-6] not where they are content.
#[test]
fn nulls() {
    alike(r#"{"type":"x","a":null}"#, r#"{"type":"x"}"#);
    alike(r#"{"type":"x","a":{"b":null}}"#, r#"{"type":"x","a":{}}"#);
    alike(
        r#"{"type":"x","a":[{"b":null,"c":1}]}"#,
        r#"{"type":"x","a":[{"c":1}]}"#,
    );
    unlike(
        r#"{"type":"x","a":{"b":{"c":null}}}"#,
        r#"{"type":"x","a":{"b":{}}}"#,
    );
    unlike(
        r#"{"type":"x","a":[{"b":[null]}]}"#,
        r#"{"type":"x","a":[{"b":[]}]}"#,
    );
    unlike(r#"{"type":"x","a":[null]}"#, r#"{"type":"x","a":[]}"#);
    unlike(r#"{"type":"x","a":[[{"b":null}]]}"#, r#"{"type":"x","a":[[{}]]}"#);
    unlike(r#"{"type":"x","a":{}}"#, r#"{"type":"x"}"#);
    unlike(r#"{"type":"x","a":false}"#, r#"{"type":"x"}"#);
    unlike(r#"{"type":"x","a":""}"#, r#"{"type":"x"}"#);
}

/// [CONT-5] empty notes of a content part; [CONT-6] notes that say something, and empty lists elsewhere.
#[test]
fn notes() {
    let part = |rest: &str| {
        format!(r#"{{"role":"assistant","content":[{{"type":"output_text","text":"a"{rest}}}]}}"#)
    };
    alike(&part(r#","annotations":[],"logprobs":[ ]"#), &part(""));
    alike(&part(r#","annotations":null"#), &part(""));
    unlike(&part(r#","annotations":[1]"#), &part(""));
    unlike(&part(r#","logprobs":[{}]"#), &part(""));
    unlike(&part(r#","other":[]"#), &part(""));
    unlike(r#"{"type":"x","annotations":[]}"#, r#"{"type":"x"}"#);
    unlike(
        r#"{"type":"x","a":[{"annotations":[]}]}"#,
        r#"{"type":"x","a":[{}]}"#,
    );
    unlike(r#"{"type":"reasoning","summary":[]}"#, r#"{"type":"reasoning"}"#);
}

/// [CONT-5] a message's content as a string, by the role that it has.
#[test]
fn string_contents() {
    for (role, part) in [
        ("user", "input_text"),
        ("system", "input_text"),
        ("developer", "input_text"),
        ("assistant", "output_text"),
    ] {
        let text = format!(r#"{{"role":"{role}","content":"a\nb"}}"#);
        let parts = |part: &str, text: &str| {
            format!(r#"{{"content":[{{"type":"{part}","text":"{text}"}}],"type":"message","role":"{role}"}}"#)
        };
        alike(&text, &parts(part, "a\\u000ab"));
        unlike(&text, &parts(part, "a b"));
        let other = if role == "user" { "output_text" } else { "refusal" };
        unlike(&text, &parts(other, "a\\nb"));
        let two = parts(part, "a\\nb").replace("}]", r#"},{"type":"input_text","text":""}]"#);
        unlike(&text, &two);
        let noted = parts(part, "a\\nb").replace("}]", r#","annotations":[]}]"#);
        alike(&text, &noted);
        let more = parts(part, "a\\nb").replace("}]", r#","detail":"low"}]"#);
        unlike(&text, &more);
    }
    alike(
        r#"{"role":"user","content":""}"#,
        r#"{"role":"user","content":[{"type":"input_text","text":""}]}"#,
    );
    unlike(
        r#"{"role":"user","content":""}"#,
        r#"{"role":"user","content":[]}"#,
    );
    unlike(
        r#"{"role":"tool","content":"a"}"#,
        r#"{"role":"tool","content":[{"type":"input_text","text":"a"}]}"#,
    );
    unlike(
        r#"{"type":"x","content":"a"}"#,
        r#"{"type":"x","content":[{"type":"input_text","text":"a"}]}"#,
    );
    unlike(
        r#"{"type":"x","role":"user","content":"a"}"#,
        r#"{"type":"x","role":"user","content":[{"type":"input_text","text":"a"}]}"#,
    );
}

/// [CONT-5] a message needs no type where it has a role.
#[test]
fn message_types() {
    alike(
        r#"{"type":"message","role":"user","content":"a"}"#,
        r#"{"role":"user","content":"a"}"#,
    );
    alike(
        r#"{"type":null,"role":"user"}"#,
        r#"{"type":"message","role":"user"}"#,
    );
    unlike(r#"{"type":"message","content":"a"}"#, r#"{"content":"a"}"#);
    unlike(r#"{"type":"other","role":"user"}"#, r#"{"role":"user"}"#);
}

/// [CONT-5] arguments are compared as the value that they are, [CONT-6] and by their text where they are none.
#[test]
fn arguments() {
    let call = |arguments: &str| {
        let arguments = Value::from(arguments);
        format!(r#"{{"type":"function_call","call_id":"c","name":"n","arguments":{arguments}}}"#)
    };
    alike(
        &call(r#"{"a":1,"b":[true,"x"]}"#),
        &call(r#" { "b" : [true, "\u0078"], "a":1 } "#),
    );
    alike(&call("1"), &call(" 1"));
    unlike(&call(r#"{"a":1}"#), &call(r#"{"a":1.0}"#));
    unlike(&call(r#"{"a":1}"#), &call(r#"{"a":"1"}"#));
    unlike(&call(r#"{"a":null}"#), &call("{}"));
    unlike(&call(""), &call("{}"));
    unlike(&call("{a:1}"), &call("{a: 1}"));
    unlike(&call(r#"{"a":1} x"#), &call(r#"{"a":1}  x"#));
    unlike(&call(r#"{"a":1,"a":1}"#), &call(r#"{"a":1, "a":1}"#));
    unlike(&call(r#""x""#), &call("x"));
    // A value, not a text.
    unlike(
        &call(r#"{"a":1}"#),
        r#"{"type":"function_call","call_id":"c","name":"n","arguments":{"a":1}}"#,
    );
    // Of function calls alone.
    unlike(
        r#"{"type":"x","arguments":"{\"a\":1}"}"#,
        r#"{"type":"x","arguments":"{\"a\": 1}"}"#,
    );
    unlike(
        r#"{"type":"custom_tool_call","input":"{}"}"#,
        r#"{"type":"custom_tool_call","input":"{ }"}"#,
    );
}

/// [CONT-5] order of keys, white space and escapes, at any depth.
#[test]
fn writing() {
    alike(
        r#"{"type":"x","a":{"k":[{"m":1,"n":"caf\u00e9 \/ \ud83d\ude00"}],"l":-1.5e+3}}"#,
        "\n{ \"a\" :{\"l\":-1.5e+3 ,\"k\":[ {\"n\":\"café / 😀\",\"\\u006d\":1}]},\t\"type\":\"x\"}",
    );
}

/// [CONT-6] whatever else is another.
#[test]
fn everything_else() {
    let call = r#"{"type":"function_call","call_id":"c1","name":"ls","namespace":"fs","arguments":"{}"}"#;
    for (old, new) in [
        ("c1", "c2"),
        ("\"ls\"", "\"rm\""),
        ("fs", "net"),
        ("\"{}\"", "\"[]\""),
    ] {
        unlike(call, &call.replace(old, new));
    }
    unlike(call, &call.replace(r#""namespace":"fs","#, ""));
    unlike(call, &call.replace("function_call", "custom_tool_call"));
    unlike(RESULT, &RESULT.replace("a\\nb", "a\\nb "));
    unlike(RESULT, &RESULT.replace("c1", "c2"));
    let message = r#"{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"b"}]}"#;
    unlike(message, &message.replace("\"a\"", "\"A\""));
    unlike(message, &message.replace("user", "developer"));
    unlike(
        message,
        r#"{"role":"user","content":[{"type":"input_image","image_url":"b"},{"type":"input_text","text":"a"}]}"#,
    );
    unlike(r#"{"type":"x","a":1}"#, r#"{"type":"x","a":1e0}"#);
    unlike(r#"{"type":"x","a":"1"}"#, r#"{"type":"x","a":1}"#);
    unlike(r#"{"type":"x","a":[1,2]}"#, r#"{"type":"x","a":[2,1]}"#);
    unlike(
        r#"{"type":"reasoning","encrypted_content":"p"}"#,
        r#"{"type":"reasoning","encrypted_content":"q"}"#,
    );
}

/// [CONT-4] what has no canonical form is the same item by the same bytes only.
#[test]
fn items_without_a_canonical_form() {
    let deep = |space: &str| {
        format!(
            r#"{{"type":"x",{space}"a":{}{}}}"#,
            "[".repeat(124),
            "]".repeat(124)
        )
    };
    alike(&deep(""), &deep(" "));
    for (item, back) in [
        (r#"{"type":"x","a":1,"a":1}"#, r#"{"type":"x","a":1, "a":1}"#),
        (
            r#"{"type":"x","a":null,"a":1}"#,
            r#"{"type":"x","a":null, "a":1}"#,
        ),
        (
            r#"{"type":"x","a":{"b":1,"\u0062":1}}"#,
            r#"{"type":"x","a":{"b":1,"\u0062": 1}}"#,
        ),
        (r#"{"type":"x","a":"\ud83d"}"#, r#"{"type":"x", "a":"\ud83d"}"#),
        (
            r#"{"type":"x","a":"\ude00\ud83d"}"#,
            r#"{"type":"x", "a":"\ude00\ud83d"}"#,
        ),
        (r#""text""#, r#""te\u0078t""#),
        ("[1]", "[ 1]"),
    ] {
        unlike(item, back);
    }
    // Output that is no JSON, or no text, harms nothing.
    let d = digester();
    let first = request(&[ASKED]);
    for odd in [&b"{"[..], b"", b"\xff{}", b"{\"type\":\"x\"} {}"] {
        let mut draft = Draft::new(&d, &first, &outline(&first), None);
        draft.output(&d, odd);
        let history = draft.finish().unwrap();
        let next = request(&[ASKED, r#"{"type":"x"}"#, MORE]);
        assert_eq!(continues(&next, &history), Err(Rejected::Edited));
    }
}

/// [CONT-6] an item that is dropped, doubled, moved or inserted.
#[test]
fn order_counts() {
    let history = remembered(&request(&[ASKED, CALL, RESULT]), &[ANSWER]);
    let edited = |items: &[&str]| assert_eq!(continues(&request(items), &history), Err(Rejected::Edited));
    edited(&[CALL, RESULT, ANSWER, MORE]);
    edited(&[ASKED, CALL, ANSWER, MORE, MORE]);
    edited(&[ASKED, RESULT, CALL, ANSWER, MORE]);
    edited(&[ASKED, ASKED, CALL, RESULT, ANSWER, MORE]);
    edited(&[ASKED, CALL, RESULT, MORE, ANSWER]);
    edited(&[ASKED, CALL, RESULT, MORE]);
    edited(&[MORE, CALL, RESULT, ANSWER, MORE]);
    assert_eq!(
        continues(&request(&[ASKED, CALL, RESULT, ANSWER, MORE]), &history),
        Ok(4)
    );
}

/// [CONT-5] the ways in which Codex, opencode, pi and the Agents SDK were seen to write what upstream sent them.
#[test]
fn what_clients_send_back() {
    let message = r#"{"type":"message","id":"msg_1","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"na\u00efve, 東京"}],"role":"assistant","phase":"commentary"}"#;
    for back in [
        r#"{"type":"message","status":"completed","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"naïve, 東京","annotations":[],"logprobs":[]}],"phase":"commentary"}"#,
        r#"{"role":"assistant","content":[{"type":"output_text","text":"naïve, 東京"}],"phase":"commentary"}"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"naïve, 東京","annotations":[]}],"status":"completed","id":"msg_1","phase":"commentary"}"#,
        r#"{"id":"msg_1","content":[{"annotations":[],"text":"naïve, 東京","type":"output_text","logprobs":[]}],"role":"assistant","status":"completed","type":"message","phase":"commentary"}"#,
    ] {
        alike(message, back);
    }
    unlike(message, &message.replace(r#","phase":"commentary""#, ""));
    let call = r#"{"type":"function_call","id":"fc_1","status":"completed","arguments":"{\"command\": \"echo 1\"}","call_id":"call_1","name":"bash"}"#;
    for back in [
        r#"{"type":"function_call","status":"completed","id":"fc_1","name":"bash","arguments":"{\"command\": \"echo 1\"}","call_id":"call_1"}"#,
        r#"{"type":"function_call","call_id":"call_1","name":"bash","arguments":"{\"command\":\"echo 1\"}"}"#,
        r#"{"type":"function_call","id":"fc_1","call_id":"call_1","name":"bash","arguments":"{\"command\":\"echo 1\"}"}"#,
    ] {
        alike(call, back);
    }
    let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"sealed"}"#;
    for back in [
        r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"content":null,"encrypted_content":"sealed"}"#,
        r#"{"type":"reasoning","encrypted_content":"sealed","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]}"#,
    ] {
        alike(reasoning, back);
    }
    // opencode sends the last part of a summary alone: not what upstream remembers, so it is sent in full.
    unlike(
        reasoning,
        r#"{"type":"reasoning","encrypted_content":"sealed","summary":[{"type":"summary_text","text":"b"}]}"#,
    );
}
