use super::*;

/// [SIM-9] One line of `data:` per line of JSON, and the line ends that were asked for.
#[test]
fn sse_forms() {
    let form = SseForm::default();
    assert_eq!(sse_event(form, "a", "{}"), "event: a\ndata: {}\n\n");
    assert_eq!(sse_event(form, "", "{\n}"), "data: {\ndata: }\n\n");
    let cr = SseForm {
        eol: Eol::Cr,
        comments: true,
        ids: true,
        ..form
    };
    assert_eq!(
        sse_event(cr, "a", "{}"),
        ": scripted comment\rid: 7\revent: a\rdata: {}\r\r"
    );
    let crlf = SseForm {
        eol: Eol::CrLf,
        ..form
    };
    assert_eq!(sse_event(crlf, "a", "{}"), "event: a\r\ndata: {}\r\n\r\n");
}
