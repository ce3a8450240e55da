use bytes::Bytes;

use super::*;
use crate::wire::request::read_create;

fn create(members: &str) -> Create {
    read_create(Bytes::from(format!(r#"{{"model":"m",{members}}}"#))).unwrap()
}

fn found(members: &str) -> (Vec<String>, Vec<String>) {
    let create = create(members);
    let bound = of_create(&create);
    let own = |list: &[Cow<'_, str>]| list.iter().map(|text| text.to_string()).collect();
    (own(&bound.sealed), own(&bound.ids))
}

/// [KEY-43] each kind of account-bound item is found where it stands.
#[test]
fn each_kind_is_found() {
    let sealed = r#""input":[{"type":"reasoning","id":"rs_1","encrypted_content":"one"},{"type":"message","content":"x"},
        {"encrypted_content" : "t\/wo","type":"compaction"},{"type":"reasoning","encrypted_content":null}]"#;
    assert_eq!(found(sealed), (vec!["t/wo".into(), "one".into()], vec![]));
    for (members, id) in [
        (r#""input":[{"type":"item_reference","id":"rs_1"}]"#, "rs_1"),
        (r#""input":[{"id":"msg_1","type":"item_reference"}]"#, "msg_1"),
        (
            r#""input":[{"role":"user","content":[{"type":"input_file","file_id":"file_1"}]}]"#,
            "file_1",
        ),
        (
            r#""input":[{"type":"code_interpreter_call","container_id":"cntr_1"}]"#,
            "cntr_1",
        ),
        (
            r#""tools":[{"type":"code_interpreter","container":"cntr_1"}],"input":[]"#,
            "cntr_1",
        ),
        (
            r#""input":"x","tools":[{"container":{"type":"auto","file_ids":["file_1"]}}]"#,
            "file_1",
        ),
        (
            r#""tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]"#,
            "vs_1",
        ),
        (r#""conversation":"conv_1""#, "conv_1"),
        (r#""conversation":{"id":"conv_1"}"#, "conv_1"),
        (r#""prompt":{"version":"2","id":"pmpt_1"}"#, "pmpt_1"),
        (
            r#""prompt":{"variables":{"f":{"type":"input_file","file_id":"file_1"}}}"#,
            "file_1",
        ),
        (
            r#""input":[{"type":"input_image","file_id":"file_\u0031"}]"#,
            "file_1",
        ),
        (r#""input":[{"id":"msg_1"}]"#, "msg_1"),
        (r#""input":[{"type":null,"id":"msg_1"}]"#, "msg_1"),
        (r#""input":[{"type":"item\u005freference","id":"rs_1"}]"#, "rs_1"),
        (
            r#""input":[{"type":"input_image","file\u005fid":"file_1"}]"#,
            "file_1",
        ),
        (
            r#""tools":[{"type":"image_generation","input_image_mask":{"file_id":"file_1"}}]"#,
            "file_1",
        ),
        (
            r#""tools":[{"type":"namespace","tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]}]"#,
            "vs_1",
        ),
    ] {
        assert_eq!(found(members), (vec![], vec![id.to_owned()]), "{members}");
    }
}

/// [KEY-43] what only looks like one is none: names within text, schemas of tools, values instead of keys, empty ones.
#[test]
fn what_only_looks_like_one() {
    for members in [
        r#""input":"\"encrypted_content\":\"x\" \"file_id\":\"y\"""#,
        r#""input":[{"role":"user","content":"{\"encrypted_content\":\"x\",\"file_id\":\"y\",\"type\":\"item_reference\"}"}]"#,
        r#""input":[{"type":"function_call","call_id":"c","arguments":"{\"container\":\"y\"}"}]"#,
        r#""input":[{"item_reference":"x","type":"y","id":"z"}]"#,
        r#""input":[{"role":"user","content":"item_reference"},{"name":"encrypted_content","id":"a"}]"#,
        r#""tools":[{"parameters":{"properties":{"file_id":{"type":"string"},"container":{"type":"string"},"prompt":{"type":"string"},"file_ids":{"type":"array"}},"required":["file_id"]}}]"#,
        r#""input":[{"encrypted_content":"","file_id":"","container_id":null}]"#,
        r#""input":[{"my_file_id":"x","profile_id":"y"}]"#,
        r#""prompt":null"#,
        r#""prompt":{"variables":{"file_id":"x","container":"y"}}"#,
        r#""tools":[{"type":"function","parameters":{"examples":[{"file_id":"x","container":"y","file_ids":["z"],"prompt":{"id":"p"}}]}}]"#,
        r#""tools":[{"type":"mcp","headers":{"container":"y"},"x":{"container":"main"}}]"#,
        r#""text":{"format":{"type":"json_schema","schema":{"const":{"file_id":"x"}}}}"#,
        r#""metadata":{"file_id":"x"},"client_metadata":{"container_id":"y"}"#,
        r#""input":[{"role":"user","content":"x","id":"msg_1"},{"type":"message","id":"msg_2"}]"#,
    ] {
        assert_eq!(found(members), (vec![], vec![]), "{members}");
    }
}

/// [KEY-43] encrypted content is found however its name is written.
#[test]
fn an_escaped_name() {
    let (sealed, _) = found(r#""input":[{"type":"reasoning","encrypted\u005fcontent":"one"}]"#);
    assert_eq!(sealed, ["one"]);
    let (sealed, _) = found(r#""input":[{"type":"message","content":"\\u005f \u001b"}]"#);
    assert!(sealed.is_empty());
}

/// [KEY-43] [INV-7] at most sixteen of each, the last encrypted ones and distinct ids.
#[test]
fn caps_and_caps_plus_one() {
    let items: Vec<_> = (0..17)
        .map(|n| format!(r#"{{"encrypted_content":"s{n}","file_id":"f{}"}}"#, n % 9))
        .collect();
    let (sealed, ids) = found(&format!(r#""input":[{}]"#, items.join(",")));
    assert_eq!((sealed.len(), ids.len()), (16, 9));
    assert_eq!((sealed[0].as_str(), sealed[15].as_str()), ("s16", "s1"));
    let ids: Vec<_> = (0..17).map(|n| format!(r#""f{n}""#)).collect();
    let (_, ids) = found(&format!(r#""tools":[{{"file_ids":[{}]}}]"#, ids.join(",")));
    assert_eq!(ids.len(), 16);
}

/// [KEY-44] of an answer the last encrypted content, and an item's id.
#[test]
fn of_an_answer() {
    let frame = br#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","encrypted_content":"abc"}}"#;
    assert_eq!(last_sealed(frame).as_deref(), Some("abc"));
    assert_eq!(item_id(frame).as_deref(), Some("rs_1"));
    let whole =
        br#"{"object":"response","output":[{"encrypted_content":"a"},{"encrypted_content":"b"},{"id":"x"}]}"#;
    assert_eq!(last_sealed(whole).as_deref(), Some("b"));
    assert_eq!(
        (last_sealed(b"{}"), item_id(b"{}"), item_id(b"[")),
        (None, None, None)
    );
}
