//! [CONT-3] which members are compared.

use super::*;

/// A body with every compared and every other member.
fn base() -> Value {
    json!({
        "model": "gpt-5", "stream": true, "store": false, "instructions": "be brief",
        "tools": [{"type": "function", "name": "ls", "parameters": {"type": "object", "default": null, "max": 1}}],
        "tool_choice": "auto", "parallel_tool_calls": true, "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"verbosity": "low"}, "include": ["reasoning.encrypted_content"], "truncation": "disabled",
        "service_tier": "auto", "prompt_cache_key": "k", "max_output_tokens": 100, "temperature": 0.5,
        "top_p": 1, "x_unknown": {"a": 1},
        "client_metadata": {"thread_id": "t"}, "metadata": {"a": "b"}, "user": "u", "safety_identifier": "s",
        "stream_options": {"include_obfuscation": false}, "type": "response.create",
        "input": [{"role": "user", "content": "hi"}],
    })
}

fn grown(mut body: Value) -> Value {
    body["input"] = json!([{"role": "user", "content": "hi"}, {"role": "user", "content": "more"}]);
    body
}

fn next(body: &Value) -> Result<usize, Rejected> {
    continues(&request_of(body), &remembered(&request_of(&base()), &[]))
}

/// [CONT-3] [CONT-6] each compared member, by name: changed, gone, and newly there.
#[test]
fn each_compared_member_is_compared() {
    assert_eq!(next(&grown(base())), Ok(1));
    for (name, changed, reason) in [
        ("model", json!("gpt-6"), Rejected::Model),
        ("instructions", json!("be brief "), Rejected::Instructions),
        ("tools", json!([]), Rejected::Tools),
        ("tool_choice", json!("none"), Rejected::Settings),
        ("parallel_tool_calls", json!(false), Rejected::Settings),
        (
            "reasoning",
            json!({"effort": "high", "summary": "auto"}),
            Rejected::Settings,
        ),
        ("text", json!({"verbosity": "high"}), Rejected::Settings),
        ("include", json!([]), Rejected::Settings),
        ("truncation", json!("auto"), Rejected::Settings),
        ("service_tier", json!("flex"), Rejected::Settings),
        ("prompt_cache_key", json!("other"), Rejected::Settings),
        ("max_output_tokens", json!(101), Rejected::Settings),
        ("temperature", json!(0.25), Rejected::Settings),
        ("top_p", json!(1.0), Rejected::Settings),
        ("x_unknown", json!({"a": 2}), Rejected::Settings),
        ("x_unknown", json!({"a": 1, "b": null}), Rejected::Settings),
    ] {
        let mut body = grown(base());
        body[name] = changed;
        assert_eq!(next(&body), Err(reason), "{name}");
        if name != "model" {
            body.as_object_mut().unwrap().remove(name);
            assert_eq!(next(&body), Err(reason), "{name} is gone");
        }
    }
    let mut body = grown(base());
    body.as_object_mut().unwrap().remove("store");
    assert_eq!(next(&body), Err(Rejected::Settings), "store is gone");
    body = grown(base());
    body["x_new"] = json!(false);
    assert_eq!(next(&body), Err(Rejected::Settings));
}

/// [CONT-3] the members that are about the caller or the transport may change, come and go.
#[test]
fn what_is_not_compared_may_change() {
    for (name, changed) in [
        ("client_metadata", json!({"thread_id": "t", "turn": "2"})),
        ("metadata", json!({})),
        ("user", json!("w")),
        ("safety_identifier", json!("other")),
        ("stream", json!(false)),
        ("stream_options", json!({})),
        ("type", json!("x")),
    ] {
        let mut body = grown(base());
        body[name] = changed;
        assert_eq!(next(&body), Ok(1), "{name}");
        body.as_object_mut().unwrap().remove(name);
        assert_eq!(next(&body), Ok(1), "{name} is gone");
    }
}

/// [CONT-3] other order of members and keys, white space, escapes and `null` members say nothing.
#[test]
fn settings_are_compared_by_meaning() {
    let first = create(
        r#"{"model":"m","instructions":"caf\u00e9 a/b","tools":[{"name":"ls","parameters":{"a":1,"b":[null]}}],
        "top_p":1,"x":{"k":{"c":1,"d":2}},"input":[1]}"#,
    );
    let history = remembered(&first, &[]);
    let anew = r#"{ "input":[1, 2], "x":{"k":{"d":2, "\u0063":1}},"tools": [ {"parameters":{"b":[null],"a":1},"name":"ls"} ],
        "user":null,"service_tier":null, "instructions":"café a\/b","t\u006fp_p":1,"model":"\u006d" }"#;
    assert_eq!(continues(&create(anew), &history), Ok(1));
    for (old, new, reason) in [
        ("[null]", "[]", Rejected::Tools),
        (r#""top_p":1"#, r#""top_p":1.0"#, Rejected::Settings),
        (r#""d":2"#, r#""d":2,"e":null"#, Rejected::Settings),
        (r#""d":2"#, r#""d":2,"d":2"#, Rejected::Settings),
        ("café", "cafe", Rejected::Instructions),
    ] {
        let changed = anew.replace("t\\u006fp_p", "top_p").replace(old, new);
        assert_eq!(continues(&create(&changed), &history), Err(reason), "{new}");
    }
}

/// [CONT-3] what has no canonical form is the same setting by the same bytes only, wherever its member stands.
#[test]
fn settings_without_a_canonical_form_are_compared_by_their_bytes() {
    let history = remembered(
        &create(r#"{"model":"m","x":{"a":1,"a":2},"y":1,"input":[1]}"#),
        &[],
    );
    let same = create(r#"{"y":1,"input":[1,2],"x":{"a":1,"a":2},"model":"m"}"#);
    assert_eq!(continues(&same, &history), Ok(1));
    let spaced = create(r#"{"model":"m","x":{"a":1, "a":2},"y":1,"input":[1,2]}"#);
    assert_eq!(continues(&spaced, &history), Err(Rejected::Settings));
}

/// [CONT-3] the window is compared: changed, new or gone.
#[test]
fn the_window_is_compared() {
    let d = digester();
    let (first, second) = (request(&[ASKED]), request(&[ASKED, MORE]));
    let windows = [None, Some(&b"t:0"[..]), Some(b"t:1"), Some(b"")];
    for one in windows {
        let its = Outline::of(&d, &first, one).unwrap();
        let history = Draft::new(&d, &first, &its, None).finish().unwrap();
        for other in windows {
            let its = Outline::of(&d, &second, other).unwrap();
            let extension = extends(&d, &second, &its, &history);
            match one == other {
                true => assert_eq!(extension.unwrap().skip(), 1),
                false => assert_eq!(extension.unwrap_err(), Rejected::Window),
            }
        }
    }
}

/// [CONT-3] the window is read from the headers, or from the metadata however its name is written there, and nowhere else.
#[test]
fn the_window_is_found() {
    let body = |metadata: &str| {
        create(format!(
            r#"{{"model":"m","client_metadata":{metadata},"input":[1]}}"#
        ))
    };
    let none = http::HeaderMap::new();
    let named = |metadata: &str| window(&none, &body(metadata));
    assert_eq!(
        named(r#"{"a":"b","x-codex-window-id":"t:1"}"#),
        Some(b"t:1".to_vec())
    );
    assert_eq!(
        named(r#"{"x-codex-\u0077indow-id":"t:1"}"#),
        Some(b"t:1".to_vec())
    );
    assert_eq!(named(r#"{"a":"x-codex-window-id","b\n":"t:1"}"#), None);
    assert_eq!(named("{}"), None);
    let elsewhere = create(r#"{"model":"m","x-codex-window-id":"t:1","input":["x-codex-window-id"]}"#);
    assert_eq!(window(&none, &elsewhere), None);
    let mut headers = http::HeaderMap::new();
    headers.insert("x-codex-window-id", http::HeaderValue::from_static("t:2"));
    let both = body(r#"{"x-codex-window-id":"t:1"}"#);
    assert_eq!(window(&headers, &both), Some(b"t:2".to_vec()));
}

/// [CONT-7] settings that were written anew are known by their raw bytes afterwards.
#[test]
fn new_raw_settings_are_remembered() {
    let d = digester();
    let history = remembered(&create(r#"{"model":"m","x":{"a":1,"b":2},"input":[1]}"#), &[]);
    let second = create(r#"{"model":"m","x":{"b":2,"a":1},"input":[1,2]}"#);
    let its = outline(&second);
    let extension = extends(&d, &second, &its, &history).unwrap();
    let history = Draft::new(&d, &second, &its, Some((&history, &extension)))
        .finish()
        .unwrap();
    assert!(
        history
            .settings
            .iter()
            .zip(its.settings)
            .all(|(known, raw)| known.raw.same(raw))
    );
    assert_eq!(history.len(), 2);
}
