use proptest::prelude::*;
use serde_json::Value;

use super::*;

mod delta;

fn create(body: &str) -> Create {
    read_create(Bytes::copy_from_slice(body.as_bytes())).unwrap()
}

fn fault(body: impl AsRef<[u8]>) -> BodyFault {
    read_create(Bytes::copy_from_slice(body.as_ref())).unwrap_err()
}

fn frame(body: &str, metadata: &[(&str, &str)]) -> String {
    let create = create(body);
    let frame = create.frame(metadata);
    assert!(frame.len() <= create.frame_len_bound(metadata));
    String::from_utf8(frame.to_vec()).unwrap()
}

/// [WIRE-12] All the facts, wherever they stand and however the keys are written.
#[test]
fn the_facts_of_a_body() {
    let body = r#"{"input":[{"role":"user"}],"m\u006fdel":"gpt-\u0035","stream":true,"background":true,"store":false,
        "generate":false,"previous_response_id":"resp_1","conversation":{"id":"conv_1","x":1},"prompt_cache_key":"k",
        "client_metadata":{"turn_id":"t","thread_id":"th","n":1}}"#;
    let create = create(body);
    assert_eq!(create.model, "gpt-5");
    assert_eq!((create.stream, create.background), (true, true));
    assert_eq!((create.store, create.generate), (Some(false), Some(false)));
    assert_eq!(create.previous_response_id.as_deref(), Some("resp_1"));
    assert_eq!(create.conversation.as_deref(), Some("conv_1"));
    assert_eq!(create.prompt_cache_key.as_deref(), Some("k"));
    assert_eq!(create.thread_id.as_deref(), Some("th"));
    assert_eq!(create.input_interior(), Some(&br#"{"role":"user"}"#[..]));
    let pairs =
        [("turn_id", "t"), ("thread_id", "th")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(create.client_metadata(), pairs);
    assert_eq!(create.body(), body.as_bytes());
}

/// [WIRE-12] `null` and absent are the same; a conversation may be a bare id, an input a string.
#[test]
fn null_counts_as_absent() {
    let nulls = r#"{"model":"m","stream":null,"background":null,"store":null,"generate":null,"conversation":null,
        "previous_response_id":null,"prompt_cache_key":null,"client_metadata":null,"input":null}"#;
    for body in [nulls, r#"{"model":"m"}"#] {
        let create = create(body);
        assert_eq!((create.stream, create.background), (false, false));
        assert_eq!(
            (create.store, create.generate, &create.input),
            (None, None, &None)
        );
        assert_eq!(
            (&create.previous_response_id, &create.conversation),
            (&None, &None)
        );
        assert_eq!((&create.prompt_cache_key, &create.thread_id), (&None, &None));
        assert_eq!(
            (create.input_interior(), create.client_metadata()),
            (None, Vec::new())
        );
    }
    let short =
        create(r#"{"model":"m","conversation":"c","input":"h\"i","client_metadata":{"thread_id":7}}"#);
    assert_eq!(short.conversation.as_deref(), Some("c"));
    assert_eq!(short.input_interior(), Some(&br#"h\"i"#[..]));
    assert_eq!(short.thread_id, None);
}

/// [WIRE-13] What is not JSON, or not an object, is placed exactly.
#[test]
fn broken_bodies_are_placed() {
    assert_eq!(fault(""), BodyFault::Empty);
    assert_eq!(fault(" \n\t"), BodyFault::Empty);
    assert_eq!(
        fault(b"{\"model\":\"\xc3\x28\"}"),
        BodyFault::InvalidUtf8 { offset: 10 }
    );
    assert_eq!(
        fault("{\"model\":\"m\"\n\"input\":1}"),
        BodyFault::Malformed {
            line: 2,
            column: 1,
            offset: 13
        }
    );
    assert_eq!(
        fault(r#"{"model":"m",}"#),
        BodyFault::Malformed {
            line: 1,
            column: 14,
            offset: 13
        }
    );
    assert_eq!(
        fault(r#"{"model":tru }"#),
        BodyFault::Malformed {
            line: 1,
            column: 13,
            offset: 12
        }
    );
    assert_eq!(
        fault(r#"{"model":"m"} {}"#),
        BodyFault::Malformed {
            line: 1,
            column: 15,
            offset: 14
        }
    );
    assert_eq!(
        fault("\u{feff}{}"),
        BodyFault::Malformed {
            line: 1,
            column: 1,
            offset: 0
        }
    );
    for whole in ["[]", "\"x\"", "7", "null", "true"] {
        assert_eq!(fault(whole), BodyFault::NotAnObject, "{whole}");
    }
}

/// [WIRE-13] A body cut anywhere is told as cut, never as something else.
#[test]
fn truncated_bodies_are_told() {
    let whole = r#"{"model":"m","input":[{"text":"a\"b\u00e9","n":-1.5e3,"t":true}],"x":null}"#;
    for cut in 1..whole.len() {
        assert_eq!(
            fault(&whole[..cut]),
            BodyFault::Truncated { offset: cut },
            "{}",
            &whole[..cut]
        );
    }
}

/// [WIRE-13] Wrong types and missing fields are named.
#[test]
fn wrong_fields_are_named() {
    for (field, values) in [
        ("model", &["7", "[]", "{}", "true"][..]),
        ("stream", &["1", "\"true\"", "{}"]),
        ("background", &["0", "\"x\""]),
        ("store", &["\"false\"", "[]"]),
        ("generate", &["0"]),
        ("previous_response_id", &["7", "{}", "[\"r\"]"]),
        ("prompt_cache_key", &["7", "{}"]),
        ("conversation", &["7", "[]", "true"]),
        ("conversation.id", &["{}", "{\"id\":7}", "{\"id\":null}"]),
        ("client_metadata", &["\"x\"", "[]", "7"]),
        ("input", &["7", "{}", "true"]),
    ] {
        for value in values {
            let key = field.split('.').next().unwrap();
            let model = if field == "model" { "" } else { r#""model":"m","# };
            let fault = fault(format!(r#"{{{model}"{key}":{value}}}"#));
            assert!(
                matches!(fault, BodyFault::WrongType { .. }),
                "{field}: {value}: {fault:?}"
            );
            assert_eq!(fault.param(), Some(field));
            assert!(
                fault.to_string().contains(&format!("'{field}' must be ")),
                "{fault}"
            );
        }
    }
    for body in ["{}", r#"{"model":null}"#, r#"{"input":"x"}"#] {
        assert_eq!(fault(body), BodyFault::MissingModel);
    }
    assert_eq!(fault(r#"{"model":" "}"#), BodyFault::EmptyModel);
    assert_eq!(BodyFault::EmptyModel.param(), Some("model"));
}

/// [WIRE-13] A field that stands twice, also when one of the two is written with an escape.
#[test]
fn duplicate_fields_are_named() {
    let twice = fault(r#"{"model":"m","model":"m"}"#);
    assert_eq!(twice.param(), Some("model"));
    assert_eq!(
        twice.to_string(),
        "field 'model' stands twice in the request body (byte 13)"
    );
    assert_eq!(
        fault(r#"{"model":"m","st\u006fre":true,"store":true}"#).param(),
        Some("store")
    );
    assert_eq!(
        fault(r#"{"model":"m","stream":null,"stream":true}"#).param(),
        Some("stream")
    );
    let content = fault(r#"{"model":"m","my secret text":1,"my secret text":2}"#);
    assert_eq!(
        (content.param(), content.to_string().contains("secret")),
        (None, false)
    );
    assert_eq!(create(r#"{"model":"m","metadata":{"a":1,"a":2}}"#).model, "m");
}

/// [WIRE-13] Depth and number of fields have a limit, at limit and limit + 1.
#[test]
fn limits_at_and_beyond() {
    let nested = |levels: usize| {
        let inner = levels - 1; // the object itself is one
        format!(
            r#"{{"model":"m","input":{}{}}}"#,
            "[".repeat(inner),
            "]".repeat(inner)
        )
    };
    assert!(read_create(Bytes::from(nested(MAX_DEPTH))).is_ok());
    assert_eq!(
        fault(nested(MAX_DEPTH + 1)),
        BodyFault::TooDeep {
            offset: 21 + MAX_DEPTH - 1
        }
    );
    assert!(matches!(fault("[".repeat(1_000_000)), BodyFault::TooDeep { .. }));
    assert!(matches!(
        fault(r#"{"a":"#.repeat(1_000_000)),
        BodyFault::TooDeep { .. }
    ));

    let wide = |members: usize| {
        let rest: Vec<String> = (1..members).map(|n| format!(r#""f{n}":0"#)).collect();
        format!(r#"{{"model":"m",{}}}"#, rest.join(","))
    };
    assert!(read_create(Bytes::from(wide(MAX_MEMBERS))).is_ok());
    assert_eq!(fault(wide(MAX_MEMBERS + 1)), BodyFault::TooManyMembers);
}

/// [WIRE-13] A fault of syntax outranks one of meaning: a body that is no JSON is told so.
#[test]
fn syntax_comes_first() {
    assert!(matches!(
        fault(r#"{"model":7,"input":x}"#),
        BodyFault::Malformed { .. }
    ));
    assert!(matches!(fault(r#"{"model":7,"#), BodyFault::Truncated { .. }));
}

/// [WIRE-9] Neither a fault nor a body shows content.
#[test]
fn nothing_is_repeated() {
    for body in [
        r#"{"model":"m","previous_response_id":{"SECRET":1}}"#,
        r#"{"SECRET":"SECRET" SECRET}"#,
        r#"{"model":"m","SECRET SECRET":1,"SECRET SECRET":1}"#,
        r#"["SECRET"]"#,
    ] {
        let fault = fault(body);
        assert!(
            !format!("{fault} {fault:?} {:?}", fault.param()).contains("SECRET"),
            "{body}"
        );
        assert!(!fault.code().is_empty());
    }
    let body =
        r#"{"model":"SECRET","input":"SECRET","previous_response_id":"SECRET","prompt_cache_key":"SECRET"}"#;
    assert!(!format!("{:?}", create(body)).contains("SECRET"));
}

/// [WIRE-14] Order, number forms, escapes, white space and unknown fields stay; three members go.
#[test]
fn a_frame_is_the_body_spliced() {
    for (body, expected) in [
        (r#"{"model":"m"}"#, r#"{"type":"response.create","model":"m"}"#),
        (
            r#"{"stream":true,"model":"m","x":1.0E+2,"background":false,"input":"\u00e9 é" , "type":"other","y":[ ]}"#,
            r#"{"type":"response.create","model":"m","x":1.0E+2,"input":"\u00e9 é","y":[ ]}"#,
        ),
        (
            "{\n  \"type\": \"response.create\",\n  \"model\": \"m\",\n  \"generate\": false,\n  \"stream\": true\n}\n",
            "{\"type\":\"response.create\",\"model\": \"m\",\n  \"generate\": false}",
        ),
        (
            r#"{"model":"m","\u0073tream":true,"nested":{"stream":true,"type":"x"}}"#,
            r#"{"type":"response.create","model":"m","nested":{"stream":true,"type":"x"}}"#,
        ),
        (
            r#"{"model":"m","input":"\ud83d"}"#,
            r#"{"type":"response.create","model":"m","input":"\ud83d"}"#,
        ),
    ] {
        assert_eq!(frame(body, &[]), expected);
    }
}

/// [WIRE-15] Metadata is added after the client's own, and never in place of it.
#[test]
fn metadata_is_added() {
    let pairs = [("a", "1"), ("b\"", "é\n")];
    for (body, expected) in [
        (
            r#"{"model":"m"}"#,
            r#""model":"m","client_metadata":{"a":"1","b\"":"é\n"}}"#,
        ),
        (
            r#"{"client_metadata":null,"model":"m"}"#,
            r#""client_metadata":{"a":"1","b\"":"é\n"},"model":"m"}"#,
        ),
        (
            r#"{"client_metadata":{ },"model":"m"}"#,
            r#""client_metadata":{"a":"1","b\"":"é\n"},"model":"m"}"#,
        ),
        (
            r#"{"client_metadata":{"x": 1.0 },"model":"m"}"#,
            r#""client_metadata":{"x": 1.0,"a":"1","b\"":"é\n"},"model":"m"}"#,
        ),
        (
            r#"{"model":"m","client_metadata":{"\u0061":null}}"#,
            r#""model":"m","client_metadata":{"\u0061":null,"b\"":"é\n"}}"#,
        ),
        (
            r#"{"model":"m","client_metadata":{ "a":"x", "b\u0022":[] }}"#,
            r#""model":"m","client_metadata":{ "a":"x", "b\u0022":[] }}"#,
        ),
    ] {
        assert_eq!(
            frame(body, &pairs),
            format!(r#"{{"type":"response.create",{expected}"#)
        );
    }
}

/// [WIRE-16] Over HTTP: the same bytes, but for what belongs to sockets and a forced `stream`.
#[test]
fn the_body_for_http() {
    let http = |body: &str, stream| String::from_utf8(create(body).http_body(stream).to_vec()).unwrap();
    let plain = r#"{ "model":"m","stream":true,"background":true }"#;
    let whole = create(plain);
    for asked in [None, Some(true)] {
        assert_eq!(
            whole.http_body(asked).as_ptr(),
            whole.body().as_ptr(),
            "copied for nothing"
        );
    }
    assert_eq!(
        http(plain, Some(false)),
        r#"{"model":"m","stream":false,"background":true}"#
    );
    assert_eq!(
        http(r#"{"model":"m"}"#, Some(true)),
        r#"{"model":"m","stream":true}"#
    );
    assert_eq!(http(r#"{"model":"m"}"#, Some(false)), r#"{"model":"m"}"#);
    assert_eq!(
        http(r#"{"stream":null,"model":"m"}"#, Some(true)),
        r#"{"stream":true,"model":"m"}"#
    );
    assert_eq!(
        http(
            r#"{"type":"response.create","model":"m","generate":false, "x" : 1.0}"#,
            None
        ),
        r#"{"model":"m","x" : 1.0}"#
    );
}

fn member() -> impl Strategy<Value = (String, String)> {
    let key = prop_oneof![
        proptest::sample::select(vec![
            "type",
            "stream",
            "background",
            "generate",
            "client_metadata",
            "input",
            "tools"
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    (key, any::<String>(), any::<f64>(), 0..5_u8).prop_map(|(key, text, number, shape)| {
        let text = serde_json::to_string(&text).unwrap();
        let value = match (key.as_str(), shape) {
            ("stream" | "background" | "generate", _) => (shape % 2 == 0).to_string(),
            ("client_metadata", 0) => "null".to_owned(),
            ("client_metadata", _) => format!(r#"{{"k": {text}}}"#),
            ("input", _) => format!("[{text} , {{}}]"),
            ("store" | "model" | "conversation" | "previous_response_id" | "prompt_cache_key", _) => {
                "null".to_owned()
            }
            (_, 0) => text,
            (_, 1) if number.is_finite() => format!("{number:e}"),
            (_, 2) => format!("[ [ {text} ],\n null]"),
            (_, 3) => format!(r#"{{"type":{text},"stream":{{}} }}"#),
            _ => "true".to_owned(),
        };
        (key, value)
    })
}

proptest! {
    /// [WIRE-14] [WIRE-15] [WIRE-16] Whatever the body, kept members keep order and bytes.
    #[test]
    fn splices_keep_order_and_bytes(
        members in proptest::collection::vec(member(), 0..12),
        place in 0_usize..12,
        gap in "[ \n\t]{0,3}",
        extra in any::<String>(),
        asked in proptest::option::of(any::<bool>()),
    ) {
        let mut members = members;
        members.insert(place.min(members.len()), ("model".to_owned(), "\"m\"".to_owned()));
        let mut seen = HashSet::new();
        members.retain(|(key, _)| seen.insert(key.clone()));
        prop_assume!(members.iter().any(|(key, value)| key == "model" && value != "null"));
        let written: Vec<(String, String)> = members
            .iter()
            .map(|(key, value)| (key.clone(), format!("{}{gap}:{gap}{value}", serde_json::to_string(key).unwrap())))
            .collect();
        let all: Vec<&str> = written.iter().map(|(_, whole)| whole.as_str()).collect();
        let body = format!("{gap}{{{gap}{}{gap}}}{gap}", all.join(&format!("{gap},{gap}")));
        let create = create(&body);

        let kept = |gone: &[&str]| -> Vec<&str> {
            written.iter().filter(|(key, _)| !gone.contains(&key.as_str())).map(|(_, whole)| whole.as_str()).collect()
        };
        let squeeze = |text: &str| text.split(&format!("{gap},{gap}")).collect::<Vec<_>>().join(",");
        let frame = create.frame(&[]);
        let frame = std::str::from_utf8(&frame).unwrap();
        let parts = kept(&["type", "stream", "background"]).join(",");
        prop_assert_eq!(squeeze(frame), squeeze(&format!(r#"{{"type":"response.create",{parts}}}"#)));

        let added = create.frame(&[("extra", &extra), ("k", "never")]);
        prop_assert!(added.len() <= create.frame_len_bound(&[("extra", &extra), ("k", "never")]));
        let added: Value = serde_json::from_slice(&added).unwrap();
        prop_assert_eq!(&added["client_metadata"]["extra"], &Value::from(extra));
        let before: Value = serde_json::from_str(&body).unwrap();
        if before["client_metadata"].is_object() {
            prop_assert_eq!(&added["client_metadata"]["k"], &before["client_metadata"]["k"]);
        }

        let http: Value = serde_json::from_slice(&create.http_body(asked)).unwrap();
        let mut expected = before;
        let object = expected.as_object_mut().unwrap();
        object.remove("type");
        object.remove("generate");
        if let Some(asked) = asked.filter(|asked| *asked != create.stream) {
            object.insert("stream".to_owned(), asked.into());
        }
        prop_assert_eq!(http, expected);
    }

    /// [WIRE-13] No bytes make reading panic, and what is read is JSON by another parser's lights.
    #[test]
    fn no_body_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80), head in any::<bool>()) {
        let mut body = if head { br#"{"model":"m","input":"#.to_vec() } else { Vec::new() };
        body.extend(bytes);
        if let Ok(create) = read_create(Bytes::from(body.clone())) {
            prop_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_ok());
            prop_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&create.frame(&[("a", "b")])).is_ok());
        }
    }
}
