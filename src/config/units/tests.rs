use proptest::prelude::*;

use super::*;

fn lapse(text: &str) -> Result<Duration, Wrong> {
    Lapse::parse(text).map(|lapse| lapse.0)
}

/// [CFG-7] What people write, up to both bounds.
#[test]
fn durations_are_read() {
    let cases = [
        ("0s", 0),
        ("1ms", 1),
        ("250ms", 250),
        (" 60s ", 60_000),
        ("1m 30s", 90_000),
        ("1h30m", 5_400_000),
        ("30d", 2_592_000_000),
    ];
    for (text, millis) in cases {
        assert_eq!(lapse(text), Ok(Duration::from_millis(millis)), "{text}");
    }
    assert!(lapse("30d 1ms").is_err());
    assert!(lapse("999us").is_err());
    assert!(lapse("99999999999999999999999y").is_err());
}

/// [CFG-7] A bare number gets the unit that it lacks; months are not minutes.
#[test]
fn wrong_durations_are_told_what_to_write() {
    assert_eq!(
        lapse("60"),
        Err(wrong("a duration needs a unit", "write \"60s\" for 60 seconds"))
    );
    assert_eq!(
        lapse("15M").map_err(|wrong| wrong.hint),
        Err("M stands for months: write \"15m\" for 15 minutes".into())
    );
}

/// [CFG-8] Binary and decimal units, with and without a space.
#[test]
fn sizes_are_read() {
    let cases = [
        ("0B", 0),
        ("1000B", 1000),
        ("1KiB", 1024),
        ("1 KB", 1000),
        ("4MiB", 4 << 20),
        ("4MB", 4_000_000),
        (" 1 GiB ", 1 << 30),
        ("1GB", 1_000_000_000),
    ];
    for (text, bytes) in cases {
        assert_eq!(ByteSize::parse(text), Ok(ByteSize(bytes)), "{text}");
    }
}

/// [CFG-8] A wrong unit is told the right one; nothing wraps around.
#[test]
fn wrong_sizes_are_told_what_to_write() {
    let hint = |text: &str| ByteSize::parse(text).map_err(|wrong| wrong.hint);
    assert_eq!(hint("128mib"), Err("did you mean \"128MiB\"?".into()));
    assert_eq!(hint("128M"), Err("did you mean \"128MB\"?".into()));
    assert_eq!(hint("128"), Err("write \"128B\" for bytes, or \"128MiB\"".into()));
    for text in [
        "",
        "MiB",
        "-1MiB",
        "1.5MiB",
        "1TiB",
        "17179869184GiB",
        "99999999999999999999B",
    ] {
        assert!(ByteSize::parse(text).is_err(), "{text}");
    }
}

/// [CFG-7] Durations are shown as people would write them.
#[test]
fn durations_are_shown_in_plain_units() {
    let shown = |seconds| Lapse(Duration::from_secs(seconds)).to_string();
    assert_eq!(
        [0, 60, 90, 120, 280, 300, 2700, 7200].map(shown),
        ["0s", "60s", "90s", "2m", "280s", "5m", "45m", "2h"]
    );
}

proptest! {
    /// [CFG-7] [CFG-8] What is shown can be written, and means the same.
    #[test]
    fn shown_values_read_back(millis in 0..=LONGEST.as_millis() as u64, bytes: usize) {
        let lapse = Lapse(Duration::from_millis(millis));
        prop_assert_eq!(Lapse::parse(&lapse.to_string()), Ok(lapse));
        prop_assert_eq!(ByteSize::parse(&ByteSize(bytes).to_string()), Ok(ByteSize(bytes)));
    }

    /// [CFG-7] [CFG-8] No text makes the readers panic.
    #[test]
    fn any_text_is_answered(text in "\\PC{0,12}|[0-9]{0,30} ?[a-zA-Zµ]{0,4}") {
        let _ = (Lapse::parse(&text), ByteSize::parse(&text));
    }
}
