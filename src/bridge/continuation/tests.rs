use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::wire::request::{Create, MAX_ITEMS, read_create};

mod items;
mod random;
mod settings;

const SETTINGS: &str = r#""model":"gpt-5","stream":true,"store":false"#;

fn digester() -> Digester {
    Digester::new(&[7; 32])
}

fn create(body: impl AsRef<str>) -> Create {
    read_create(Bytes::copy_from_slice(body.as_ref().as_bytes())).unwrap()
}

/// A request with these raw items.
fn request(items: &[&str]) -> Create {
    create(format!(r#"{{{SETTINGS},"input":[{}]}}"#, items.join(",")))
}

fn outline(create: &Create) -> Outline {
    Outline::of(&digester(), create, None).unwrap()
}

/// What a socket remembers after a first turn of this request and this output.
fn remembered(first: &Create, output: &[&str]) -> History {
    let mut draft = Draft::new(&digester(), first, &outline(first), None);
    for item in output {
        draft.output(&digester(), item.as_bytes());
    }
    draft.finish().unwrap()
}

fn continues(next: &Create, history: &History) -> Result<usize, Rejected> {
    let extension = extends(&digester(), next, &outline(next), history)?;
    assert!(extension.skip() < next.items().unwrap().len());
    Ok(extension.skip())
}

const ASKED: &str = r#"{"role":"user","content":"list the files"}"#;
const CALL: &str = r#"{"id":"fc_1","type":"function_call","status":"completed","call_id":"c1","name":"ls","arguments":"{\"path\":\".\"}"}"#;
const RESULT: &str = r#"{"type":"function_call_output","call_id":"c1","output":"a\nb"}"#;
const ANSWER: &str = r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"two","annotations":[],"logprobs":[]}]}"#;
const MORE: &str = r#"{"role":"user","content":"thanks"}"#;

/// [CONT-7] a resend of all that went in and came out, and more, is a continuation, turn after turn.
#[test]
fn a_conversation_is_continued_turn_after_turn() {
    let d = digester();
    let first = request(&[ASKED]);
    let history = remembered(&first, &[CALL]);
    assert_eq!(history.len(), 2);

    let second = request(&[ASKED, CALL, RESULT]);
    let its = outline(&second);
    let extension = extends(&d, &second, &its, &history).unwrap();
    assert_eq!(extension.skip(), 2);
    let mut draft = Draft::new(&d, &second, &its, Some((&history, &extension)));
    draft.output(&d, ANSWER.as_bytes());
    let history = draft.finish().unwrap();
    assert_eq!(history.len(), 4);

    let third = request(&[ASKED, CALL, RESULT, ANSWER, MORE, MORE]);
    assert_eq!(continues(&third, &history), Ok(4));
}

/// [CONT-7] what a client has written anew is known by its raw bytes afterwards, also where they have no canonical form.
#[test]
fn new_raw_bytes_and_ids_are_remembered() {
    let d = digester();
    let history = remembered(
        &request(&[ASKED]),
        &[r#"{"type":"message","role":"assistant","content":[]}"#],
    );
    let anew = r#"{"content":[],"id":"msg_9","role":"assistant"}"#;
    let second = request(&[ASKED, anew, MORE]);
    let its = outline(&second);
    let extension = extends(&d, &second, &its, &history).unwrap();
    let history = Draft::new(&d, &second, &its, Some((&history, &extension)))
        .finish()
        .unwrap();
    assert!(history.items[1].raw.same(its.items[1]));
    assert_eq!(continues(&request(&[ASKED, anew, MORE, MORE]), &history), Ok(3));
    // The id that it brought counts from now on.
    let renamed = anew.replace("msg_9", "msg_8");
    assert_eq!(
        continues(&request(&[ASKED, &renamed, MORE, MORE]), &history),
        Err(Rejected::Edited)
    );
    let nameless = r#"{"role":"assistant","content":[]}"#;
    assert_eq!(
        continues(&request(&[ASKED, nameless, MORE, MORE]), &history),
        Ok(3)
    );
}

/// [CONT-10] what is told again is known as if it had been read anew: what is the same by its digests, the rest by reading it.
#[test]
fn what_is_told_again_is_known() {
    let d = digester();
    let known = remembered(&request(&[ASKED, CALL]), &[ANSWER]);
    for items in [
        &[ASKED, CALL][..],
        &[ASKED, CALL, RESULT],
        &[ASKED, RESULT, CALL],
        &[MORE],
    ] {
        let again = request(items);
        let its = outline(&again);
        let retold = Draft::retold(&d, &again, &its, &known).finish().unwrap();
        let anew = Draft::new(&d, &again, &its, None).finish().unwrap();
        assert_eq!(retold.len(), anew.len());
        // Written in another way, so that only the canonical digests can tell.
        let spaced: Vec<_> = items.iter().map(|item| item.replace("\":", "\" :")).collect();
        let mut spaced: Vec<_> = spaced.iter().map(String::as_str).collect();
        spaced.push(MORE);
        let next = create(format!(
            r#"{{ "model" : "gpt-5","stream":true,"store":false,"input":[{}]}}"#,
            spaced.join(",")
        ));
        assert_eq!(continues(&next, &retold), Ok(items.len()));
        assert_eq!(continues(&next, &anew), Ok(items.len()));
    }
}

/// [CONT-6] no more than what is known, or less, is no continuation.
#[test]
fn nothing_new_is_no_continuation() {
    let history = remembered(&request(&[ASKED]), &[ANSWER]);
    for items in [&[ASKED, ANSWER][..], &[ASKED], &[]] {
        assert_eq!(continues(&request(items), &history), Err(Rejected::Shorter));
    }
    let text = create(format!(r#"{{{SETTINGS},"input":"list the files"}}"#));
    assert_eq!(continues(&text, &history), Err(Rejected::Shorter));
    let nothing = remembered(&request(&[]), &[]);
    assert!(nothing.is_empty());
    assert_eq!(continues(&request(&[ASKED]), &nothing), Err(Rejected::Nothing));
}

/// [CONT-8] a compaction among the new items, or in the output, ends it; one that the socket has seen does not.
#[test]
fn a_compaction_ends_it() {
    let d = digester();
    for kind in [
        "compaction",
        "compaction_trigger",
        "compaction_summary",
        "comp\\u0061ction",
    ] {
        let compaction = format!(r#"{{"encrypted_content":"x","type":"{kind}"}}"#);
        let history = remembered(&request(&[ASKED]), &[ANSWER]);
        let next = request(&[ASKED, ANSWER, MORE, &compaction]);
        assert_eq!(continues(&next, &history), Err(Rejected::Compaction));

        let instead = request(&[&compaction, MORE, MORE]);
        assert_eq!(continues(&instead, &history), Err(Rejected::Compaction));

        let seen = remembered(&request(&[&compaction, ASKED]), &[ANSWER]);
        assert_eq!(
            continues(&request(&[&compaction, ASKED, ANSWER, MORE]), &seen),
            Ok(3)
        );

        let first = request(&[ASKED]);
        let mut draft = Draft::new(&d, &first, &outline(&first), None);
        draft.output(&d, compaction.as_bytes());
        draft.output(&d, ANSWER.as_bytes());
        assert!(draft.finish().is_none());
    }
    let about = r#"{"role":"user","content":"type: compaction","note":{"type":"compaction"}}"#;
    let history = remembered(&request(&[ASKED]), &[ANSWER]);
    assert_eq!(continues(&request(&[ASKED, ANSWER, about]), &history), Ok(2));
}

/// [CONT-9] what names a response or a conversation, is stored, in the background or a warm-up, or has no input.
#[test]
fn some_requests_are_left_alone() {
    let left = |members: &str| {
        let create = create(format!(r#"{{"model":"m",{members}}}"#));
        Outline::of(&digester(), &create, None).is_none()
    };
    for member in [
        r#""previous_response_id":"resp_1""#,
        r#""conversation":"conv_1""#,
        r#""conversation":{"id":"conv_1"}"#,
        r#""store":true"#,
        r#""background":true"#,
        r#""generate":false"#,
        r#""generate":true"#,
    ] {
        assert!(left(&format!(r#"{member},"input":[]"#)), "{member}");
    }
    assert!(left(r#""tools":[]"#));
    assert!(left(r#""input":null"#));
    let list = |count: usize| format!(r#""input":[{}]"#, vec!["1"; count].join(","));
    assert!(left(&list(MAX_ITEMS + 1)));
    assert!(!left(&list(MAX_ITEMS)));
    for member in [
        r#""previous_response_id":null"#,
        r#""store":false"#,
        r#""store":null"#,
        r#""background":false"#,
        r#""generate":null"#,
    ] {
        assert!(!left(&format!(r#"{member},"input":"hi""#)), "{member}");
    }
}

/// [CONT-9] a string input is the user message that it stands for, in any form, and no other item.
#[test]
fn a_string_input_is_a_user_message() {
    let text = create(format!(r#"{{{SETTINGS},"input":"list the\u0020files"}}"#));
    let history = remembered(&text, &[ANSWER]);
    assert_eq!(history.len(), 2);
    let parts =
        r#"{"type":"message","role":"user","content":[{"text":"list the files","type":"input_text"}]}"#;
    for same in [ASKED, parts] {
        assert_eq!(continues(&request(&[same, ANSWER, MORE]), &history), Ok(2));
    }
    for other in [
        r#""list the\u0020files""#,
        r#"{"role":"system","content":"list the files"}"#,
        MORE,
    ] {
        let next = request(&[other, ANSWER, MORE]);
        assert_eq!(continues(&next, &history), Err(Rejected::Edited), "{other}");
    }
}

/// [CONT-10] two thousand items cost at most 96 KiB, and more than the cap are not remembered.
#[test]
fn memory_is_bounded() {
    let items: Vec<_> = (0..2000)
        .map(|n| format!(r#"{{"role":"user","content":"{n}"}}"#))
        .collect();
    let items: Vec<_> = items.iter().map(String::as_str).collect();
    let history = remembered(&request(&items[..1999]), &[ANSWER]);
    assert_eq!(history.len(), 2000);
    assert!(history.bytes() <= 96 * 1024, "{} bytes", history.bytes());

    let full = request(&vec!["1"; MAX_ITEMS]);
    let d = digester();
    let mut draft = Draft::new(&d, &full, &outline(&full), None);
    assert!(Draft::new(&d, &full, &outline(&full), None).finish().is_some());
    draft.output(&d, ANSWER.as_bytes());
    assert!(draft.finish().is_none());
    assert_eq!(
        remembered(&request(&vec!["1"; MAX_ITEMS - 1]), &[ANSWER]).len(),
        MAX_ITEMS
    );
}

/// [CONT-11] another key, other digests; nothing of the content or of the key is shown.
#[test]
fn digests_are_keyed_and_not_shown() {
    let (here, there) = (Digester::new(&[1; 32]), Digester::new(&[2; 32]));
    let body = request(&[ASKED, RESULT]);
    let of = |d: &Digester| Outline::of(d, &body, None).unwrap();
    assert!(of(&here).items[0].same(of(&here).items[0]));
    assert!(!of(&here).items[0].same(of(&there).items[0]));
    assert!(!here.raw(b"x").same(here.canonical(b"x")));
    assert_ne!(of(&here).opening(&here, &body), of(&there).opening(&there, &body));

    let history = remembered(&body, &[ANSWER]);
    let its = outline(&request(&[ASKED, RESULT, ANSWER, MORE]));
    let extension = extends(
        &digester(),
        &request(&[ASKED, RESULT, ANSWER, MORE]),
        &its,
        &history,
    );
    let draft = Draft::new(&digester(), &body, &outline(&body), None);
    assert_eq!(format!("{here:?}"), "Digester");
    assert_eq!(format!("{its:?}"), "Outline { items: 4, .. }");
    assert_eq!(format!("{:?}", extension.unwrap()), "Extension { skip: 3, .. }");
    assert_eq!(format!("{draft:?}"), "Draft { items: 2, ended: false }");
    let bytes = history.bytes();
    assert_eq!(
        format!("{history:?}"),
        format!("History {{ items: 3, bytes: {bytes}, .. }}")
    );
}

/// [CONT-12] a later turn has the same opening, however its first items are written; another conversation has not.
#[test]
fn a_conversation_is_known_by_its_beginning() {
    let opening = |body: &Create| outline(body).opening(&digester(), body);
    let system = r#"{"role":"system","content":"be brief"}"#;
    let first = opening(&request(&[system, ASKED]));
    assert!(first.is_some());
    let anew = r#"{"id":"m1","content":[{"text":"list the files","type":"input_text"}],"role":"user","type":"message"}"#;
    assert_eq!(opening(&request(&[system, anew, CALL, RESULT])), first);
    for other in [
        &[ASKED, system][..],
        &[system, MORE],
        &[ASKED],
        &[system, system, ASKED],
    ] {
        assert_ne!(opening(&request(other)), first);
    }
    let text = create(format!(r#"{{{SETTINGS},"input":"list the files"}}"#));
    assert_eq!(opening(&text), opening(&request(&[ASKED])));
    let other_model = create(format!(r#"{{"model":"o","input":[{system},{ASKED}]}}"#));
    assert_ne!(opening(&other_model), first);
    assert_eq!(opening(&request(&[])), None);
    // Eight items are read and no more; what has no canonical form is known by its bytes.
    let many = [system; 8];
    assert_eq!(
        opening(&request(&[&many[..], &[ASKED]].concat())),
        opening(&request(&[&many[..], &[MORE]].concat()))
    );
    assert_ne!(opening(&request(&["1"])), opening(&request(&["2"])));
}

/// [CONT-7] the reasons are labels.
#[test]
fn reasons_are_labels() {
    let labels: std::collections::BTreeSet<_> = Rejected::ALL.map(Rejected::label).into();
    assert_eq!(labels.len(), Rejected::ALL.len());
    assert!(
        labels
            .iter()
            .all(|label| label.bytes().all(|byte| byte.is_ascii_lowercase()))
    );
}

/// What runs through several threads.
#[test]
fn all_of_it_may_travel() {
    fn travels<T: Send + Sync>() {}
    travels::<(Digester, Outline, History, Draft, Extension)>();
}

/// A request whose members are given as a value, in the order that serde_json writes.
fn request_of(members: &Value) -> Create {
    create(members.to_string())
}
