use super::*;

/// [SIM-3] Markers are found anywhere in a text, and a longer word that ends in `sim:` is none.
#[test]
fn markers_are_found_in_running_text() {
    let found =
        Markers::find("Please (sim:conv=a-1.b), then sim:close(code=1011, after=3). xsim:silent sim: no");
    assert_eq!(found.conversation.as_deref(), Some("a-1.b"));
    assert_eq!(found.calls, ["close(code=1011, after=3)"]);
    assert_eq!(Markers::find("sim:silent").calls, ["silent"]);
    assert_eq!(Markers::find("sim:silent(unclosed").calls, ["silent"]);
    assert_eq!(Markers::find("no marker, similar: none"), Markers::default());
}

/// [SIM-3] A call has a name and parameters, and nothing else.
#[test]
fn calls_have_one_form() {
    let call = Call::parse(" text( n=2 , delay=10ms ) ").unwrap();
    assert_eq!(call.name, "text");
    assert_eq!(
        call.params,
        [("n".into(), "2".into()), ("delay".into(), "10ms".into())]
    );
    for wrong in ["", "text(n)", "text(n=1", "Text", "te xt", "text)n=1("] {
        assert!(matches!(Call::parse(wrong), Err(WordError::Form(_))), "{wrong}");
    }
}

/// [SIM-5] Times need a unit and sizes know two kinds of them.
#[test]
fn times_and_sizes() {
    assert_eq!(duration("10ms"), Some(Duration::from_millis(10)));
    assert_eq!(duration("0"), Some(Duration::ZERO));
    assert_eq!(duration("10"), None);
    assert_eq!(duration("2000years"), None);
    assert_eq!(size("512"), Some(512));
    assert_eq!(size("16MiB"), Some(16 << 20));
    assert_eq!(size("1MB"), Some(1_000_000));
    for wrong in [
        "",
        "MB",
        "1 GB",
        "-1",
        "99999999999999999999",
        "18446744073709551615MiB",
    ] {
        assert_eq!(size(wrong), None, "{wrong}");
    }
}

/// [SIM-5] Only a word that looks like the wrong one is proposed.
#[test]
fn the_nearest_word_is_proposed() {
    assert_eq!(nearest("slient", ["silent", "text"]), Some("silent".into()));
    assert_eq!(nearest("qqq", ["silent", "text"]), None);
}
