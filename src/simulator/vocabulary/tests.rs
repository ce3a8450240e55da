use super::*;

fn message(text: &str) -> String {
    Part::parse(text).unwrap_err().to_string()
}

/// [SIM-5] A wrong behaviour, parameter, choice or value is named together with what would be right.
#[test]
fn wrong_words_are_named_with_the_nearest_right_one() {
    assert_eq!(
        message("slient"),
        "unknown behaviour `slient`; did you mean `silent`?"
    );
    assert_eq!(
        message("close(cod=1011)"),
        "unknown parameter `cod`; did you mean `code`?"
    );
    assert_eq!(
        message("error(shape=nestd)"),
        "unknown shape `nestd`; did you mean `nested`?"
    );
    assert_eq!(
        message("text(n=many)"),
        "`n=many`: expected a whole number up to 200000"
    );
    assert_eq!(
        message("silent(for=2)"),
        "`for=2`: expected a time such as 10ms, 2s or 1m"
    );
    assert_eq!(
        message("silent(on=tcp)"),
        "unknown on `tcp`; did you mean `http`?"
    );
}

/// [SIM-5] What a turn may produce is bounded: 20 MiB per delta, 200,000 deltas, 256 MiB in all.
#[test]
fn a_turn_is_bounded() {
    assert!(Part::parse("big(size=20MiB)").is_ok());
    assert!(Part::parse("big(size=20971521)").is_err());
    assert!(Part::parse("text(n=200000, size=1)").is_ok());
    assert!(Part::parse("text(n=200001)").is_err());
    assert!(Part::parse("text(n=13, size=20MiB)").is_err());
}

/// [SIM-4] Every word of the printed list is a word of the language, with its usual values.
#[test]
fn every_listed_word_can_be_used() {
    for (word, _) in WORDS {
        assert!(Part::parse(word).is_ok(), "{word}");
    }
}

/// [SIM-3] `times`, `nth` and `on` decide when a part applies.
#[test]
fn gates_open_and_close() {
    let gate = |text: &str| Part::parse(text).unwrap().gate;
    let open = |text: &str| (1..=4).filter(|hit| gate(text).open(*hit)).collect::<Vec<_>>();
    assert_eq!(open("silent"), [1, 2, 3, 4]);
    assert_eq!(open("silent(times=2)"), [1, 2]);
    assert_eq!(open("silent(nth=3)"), [3]);
    assert_eq!(gate("silent(on=ws)").on, Some(Transport::Websocket));
    assert_eq!(gate("redirect").on, Some(Transport::Http));
}
