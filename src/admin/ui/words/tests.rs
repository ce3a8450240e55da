//! Text and figures as pages show them.

use super::*;

/// [PAGE-20] control characters, ANSI sequences and marks that turn text around do not reach the page; long text is cut.
#[test]
fn text_is_tamed() {
    assert_eq!(tame("gpt-5"), "gpt-5");
    assert_eq!(
        tame("\u{1b}[31mred\u{1b}[0m\r\n"),
        "\u{fffd}[31mred\u{fffd}[0m\u{fffd}\u{fffd}"
    );
    assert_eq!(tame("a\u{202e}b\u{200b}"), "a\u{fffd}b\u{fffd}");
    assert_eq!(tame(&"é".repeat(65)), format!("{}…", "é".repeat(63)));
    assert_eq!(tame(&"x".repeat(64)), "x".repeat(64));
}

/// [PAGE-10] spans and numbers are read at a glance.
#[test]
fn figures_are_for_people() {
    let spans = [0, 1, 850, 42_000, 60_000, 185_000, 7_800_000, 273_600_000];
    assert_eq!(
        spans.map(|ms| span(Duration::from_millis(ms))),
        [
            "0 s",
            "1 ms",
            "850 ms",
            "42 s",
            "60 s",
            "3 min 5 s",
            "2 h 10 min",
            "3 d 4 h"
        ]
    );
    assert_eq!(
        [0, 999, 1_000, 1_234_567].map(count),
        ["0", "999", "1,000", "1,234,567"]
    );
    assert_eq!([several(1, "turn"), several(0, "turn")], ["1 turn", "0 turns"]);
}
