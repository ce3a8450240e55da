//! The items of an `input`, and frames that hold the new ones alone.

use std::collections::BTreeMap;

use super::*;

fn items(body: &str) -> Option<Vec<String>> {
    let create = create(body);
    let spans = create.items()?;
    let text = |span: &Range<usize>| create.text(span.clone()).unwrap().to_owned();
    Some(spans.iter().map(text).collect())
}

fn delta(body: &str, skip: usize) -> String {
    let frame = create(body).delta_frame(skip, "resp_\"1", &[]);
    String::from_utf8(frame.to_vec()).unwrap()
}

/// [CONT-1] every item is found where it stands, as it is written, and the list's own place is the same as ever.
#[test]
fn items_are_found() {
    let body = "{\"inp\\u0075t\" : \n[ {\"a\":[1, 2]} ,\"x\\\"]\",\n null,[ ] ,1.0 ] , \"model\":\"m\"}";
    let expected = ["{\"a\":[1, 2]}", "\"x\\\"]\"", "null", "[ ]", "1.0"];
    assert_eq!(items(body).unwrap(), expected);
    let interior = create(body);
    assert_eq!(
        interior.input_interior().unwrap(),
        b" {\"a\":[1, 2]} ,\"x\\\"]\",\n null,[ ] ,1.0 "
    );
    for (empty, interior) in [("[]", ""), ("[ \n]", " \n")] {
        let create = create(&format!(r#"{{"model":"m","input":{empty}}}"#));
        assert_eq!(create.items(), Some(&[][..]));
        assert_eq!(create.input_interior(), Some(interior.as_bytes()));
    }
}

/// [CONT-1] no list, no items; and a list of too many is read like any other.
#[test]
fn items_are_not_always_known() {
    for other in [
        r#""input":"hi","#,
        r#""input":null,"#,
        "",
        r#""x":{"input":[1]},"#,
    ] {
        assert_eq!(items(&format!(r#"{{{other}"model":"m"}}"#)), None, "{other}");
    }
    for (count, known) in [(MAX_ITEMS, true), (MAX_ITEMS + 1, false)] {
        let list = vec!["1"; count].join(",");
        let body = format!(r#"{{"model":"m","input":[{list}],"store":false}}"#);
        let create = create(&body);
        assert_eq!(create.items().map(<[_]>::len), known.then_some(count));
        assert_eq!(create.input_interior(), Some(list.as_bytes()));
        assert_eq!(create.store, Some(false));
        let whole = create.delta_frame(1, "r", &[]);
        let sent: Value = serde_json::from_slice(&whole).unwrap();
        let expected = if known { count - 1 } else { count };
        assert_eq!(sent["input"].as_array().unwrap().len(), expected);
    }
}

/// [CONT-1] two inputs are a fault, whatever they are.
#[test]
fn two_inputs_are_refused() {
    for (one, other) in [("[1]", "[2]"), ("[]", "\"x\""), ("\"x\"", "[]"), ("null", "[1]")] {
        let body = format!(r#"{{"model":"m","input":{one},"inpu\u0074":{other}}}"#);
        assert!(matches!(fault(&body), BodyFault::DuplicateKey { .. }), "{body}");
    }
}

/// [CONT-2] the anchor stands once, the items that stay keep their bytes, and the rest is the ordinary frame.
#[test]
fn a_delta_frame() {
    let body = r#"{"previous_response_id":null, "model":"m" ,"stream":true,"input" : [ {"a":1} , {"b": 2.0} ,"c" ], "top_p":1.0}"#;
    let with = |input: &str| {
        format!(
            r#"{{"type":"response.create","previous_response_id":"resp_\"1","model":"m","input" : [{input}],"top_p":1.0}}"#
        )
    };
    assert_eq!(delta(body, 0), with(r#"{"a":1} , {"b": 2.0} ,"c" "#));
    assert_eq!(delta(body, 1), with(r#"{"b": 2.0} ,"c" "#));
    assert_eq!(delta(body, 2), with(r#""c" "#));
    // Callers never ask for less than one item; what they would get is JSON all the same.
    assert_eq!(delta(body, 3), with(""));
    let named = create(r#"{"previous_response_id":"other","model":"m","input":[1,2]}"#);
    let frame = named.delta_frame(1, "r", &[("a", "b")]);
    assert_eq!(
        frame,
        br#"{"type":"response.create","previous_response_id":"r","model":"m","input":[2],"client_metadata":{"a":"b"}}"#
            .as_slice()
    );
}

/// The members of an object, raw; a key that stands twice is a test's failure.
fn members(json: &str) -> BTreeMap<String, String> {
    let mut members = BTreeMap::new();
    json::each_member(json, |key, value| {
        let key = json::text(key).unwrap().into_owned();
        let before = members.insert(key, value.get().to_owned());
        assert!(before.is_none());
    })
    .unwrap();
    members
}

fn elements(json: &str) -> Vec<String> {
    let raw: Vec<&RawValue> = serde_json::from_str(json).unwrap();
    raw.iter().map(|raw| raw.get().to_owned()).collect()
}

proptest! {
    /// [CONT-2] whatever the body: the frame is the members as they came, `input` cut and the anchor added.
    #[test]
    fn a_delta_frame_is_the_body_cut(
        others in proptest::collection::vec(member(), 0..10),
        texts in proptest::collection::vec(any::<String>(), 1..12),
        place in 0..10_usize,
        gap in "[ \n\t]{0,3}",
        skip in any::<proptest::sample::Index>(),
        anchor in any::<String>(),
        null in proptest::option::of(0..10_usize),
    ) {
        let mut others = others;
        others.retain(|(key, _)| key != "input");
        let list: Vec<_> = texts
            .iter()
            .map(|text| format!(r#"{{{gap}"content":{},"n":1.0}}"#, serde_json::to_string(text).unwrap()))
            .collect();
        others.insert(0, ("model".to_owned(), "\"m\"".to_owned()));
        let input = format!("[{gap}{}{gap}]", list.join(&format!("{gap},{gap}")));
        others.insert(place.min(others.len()), ("input".to_owned(), input));
        if let Some(null) = null {
            others.insert(null.min(others.len()), ("previous_response_id".to_owned(), "null".to_owned()));
        }
        let mut seen = HashSet::new();
        others.retain(|(key, _)| seen.insert(key.clone()));
        let others: Vec<_> = others
            .iter()
            .map(|(key, value)| format!("{}{gap}:{gap}{value}", serde_json::to_string(key).unwrap()))
            .collect();
        let body = format!("{{{gap}{}{gap}}}", others.join(&format!("{gap},{gap}")));
        let read = create(&body);
        prop_assume!(read.model == "m");

        prop_assert_eq!(items(&body).unwrap(), list.clone());
        let skip = skip.index(list.len());
        let frame = read.delta_frame(skip, &anchor, &[]);
        let mut found = members(std::str::from_utf8(&frame).unwrap());
        let sent = found.remove("previous_response_id").unwrap();
        prop_assert_eq!(serde_json::from_str::<String>(&sent).unwrap(), anchor);
        prop_assert_eq!(elements(&found.remove("input").unwrap()), &list[skip..]);
        let mut expected = members(&body);
        for gone in ["input", "previous_response_id", "stream", "background"] {
            expected.remove(gone);
        }
        expected.insert("type".to_owned(), "\"response.create\"".to_owned());
        prop_assert_eq!(found, expected);
    }

    /// [CONT-1] the fault of a bad body, and the place that it is told at, do not depend on where it stands.
    #[test]
    fn faults_are_the_same_in_a_list(at in any::<proptest::sample::Index>(), byte in "[ -~]", cut in any::<bool>()) {
        let whole = r#"{"model":"m","input":[{"a":[1,-2.5e3]}, "x\n",true ,[] ],"tools":null}"#;
        let at = at.index(whole.len());
        let body = match cut {
            true => whole[..at].to_owned(),
            false => format!("{}{byte}{}", &whole[..at], &whole[at + 1..]),
        };
        prop_assume!(!body.trim().is_empty());
        let plain = json::each_member(&body, |_, _| {}).map_err(|fault| syntax(&body, &fault));
        let read = read_create(Bytes::from(body));
        match plain {
            Err(fault) => prop_assert_eq!(read.err(), Some(fault)),
            Ok(()) => if let Err(fault) = read {
                let syntax = matches!(fault, BodyFault::Malformed { .. } | BodyFault::Truncated { .. } | BodyFault::NotAnObject);
                prop_assert!(!syntax);
            },
        }
    }
}
