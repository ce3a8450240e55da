//! Events as rows.

use super::*;

fn seen(line: &str) -> Seen {
    Seen {
        number: 7,
        event: "turn_finished",
        account: Some("openai/main".into()),
        line: line.into(),
    }
}

/// [PAGE-10] a row has the time, the level in words, the kind, the account, and first of the rest what is looked for first.
#[test]
fn an_event_is_a_row() {
    let line = r#"{"ts":"2026-11-29T22:38:12.673Z","level":"info","event":"turn_finished","provider":"openai","account":"main","attempt":1,"key":"05420f42f987","key_kind":"thread","outcome":"completed","stream":true,"request_id":"req-1"}"#;
    let row = row(&Happened::of(&seen(line))).into_string();
    assert_eq!(
        row,
        "<li id=\"e-7\"><time datetime=\"2026-11-29T22:38:12.673Z\">22:38:12</time> <span class=\"level\">info</span> \
         <code class=\"kind\">turn_finished</code> <span class=\"at\">openai/main</span> \
         <small>outcome=completed key=05420f42f987 request_id=req-1 attempt=1 stream=true</small></li>"
    );
    let warn = line.replace("info", "warn");
    let row = super::row(&Happened::of(&seen(&warn))).into_string();
    assert!(row.contains("class=\"warn\"") && row.contains("▲ warn"), "{row}");
}

/// [PAGE-20] what cannot be read is shown as far as it can, and a row stays one line of bounded length.
#[test]
fn odd_lines_do_no_harm() {
    for line in ["", "null", "{", r#"{"ts":7}"#, r#"{"ts":"é€é€é€é€é€"}"#] {
        assert!(
            row(&Happened::of(&seen(line)))
                .into_string()
                .contains("turn_finished"),
            "{line}"
        );
    }
    let long = format!(
        r#"{{"reason":"{}","by":"a\r\n\ndata: b<i>"}}"#,
        "é".repeat(100_000)
    );
    let row = row(&Happened::of(&seen(&long))).into_string();
    assert!(row.len() < 1_000 && !row.contains(['\r', '\n']), "{row}");
}
