//! Spans of time, as the configuration takes them and as people read them. Pure; every room may look into this one.

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// As the configuration takes it, to the last digit: `60s`, `280s`, `1m 30s 500ms`, `30d`.
pub fn written(span: Duration) -> String {
    let seconds = span.as_secs();
    if span.is_zero() {
        return "0s".to_owned();
    }
    // "60s" reads better beside "90s" than "1m" does, and "280s" beside "300s" than "4m 40s".
    let few = seconds < 2 * MINUTE || (seconds < 10 * MINUTE && !seconds.is_multiple_of(MINUTE));
    if few && span.subsec_nanos() == 0 {
        return format!("{seconds}s");
    }
    let parts = [
        (seconds / DAY, "d"),
        (seconds / HOUR % 24, "h"),
        (seconds / MINUTE % 60, "m"),
        (seconds % MINUTE, "s"),
        (u64::from(span.subsec_millis()), "ms"),
        (u64::from(span.subsec_micros() % 1000), "us"),
        (u64::from(span.subsec_nanos() % 1000), "ns"),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    parts.join(" ")
}

/// [`written`] of milliseconds.
pub fn written_ms(ms: u64) -> String {
    written(Duration::from_millis(ms))
}

/// Milliseconds in a column of a table: `340ms`, `1.2s`, `45s`, `4m 40s`, `2h 5m`, `3d 4h`.
pub fn short(ms: u64) -> String {
    rounded(ms, ["ms", "s", "m", "h", "d"])
}

/// Milliseconds in a sentence: `340 ms`, `1.2 s`, `45 s`, `4 min 40 s`, `2 h 5 min`, `3 d 4 h`.
pub fn spoken(ms: u64) -> String {
    rounded(ms, [" ms", " s", " min", " h", " d"])
}

/// No more exact than anybody wants it: a tenth of a second below ten of them, and the two largest units from two minutes on.
fn rounded(ms: u64, [milli, second, minute, hour, day]: [&str; 5]) -> String {
    let seconds = ms.saturating_add(500) / 1000;
    let two = |large: u64, unit: &str, small: u64, lesser: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit} {small}{lesser}"),
    };
    match (ms, seconds) {
        (..1000, _) => format!("{ms}{milli}"),
        (..9_950, _) => match (ms + 50) / 100 {
            tenths if tenths.is_multiple_of(10) => format!("{}{second}", tenths / 10),
            tenths => format!("{}.{}{second}", tenths / 10, tenths % 10),
        },
        (_, ..120) => format!("{seconds}{second}"),
        (_, ..HOUR) => two(seconds / MINUTE, minute, seconds % MINUTE, second),
        (_, ..DAY) => two(seconds / HOUR, hour, seconds % HOUR / MINUTE, minute),
        _ => two(seconds / DAY, day, seconds % DAY / HOUR, hour),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [TUNE-10] [CFG-7] What is written is what the configuration reads, to the last digit.
    #[test]
    fn written_is_read_back() {
        let written = [
            0, 250, 60_000, 90_000, 120_000, 280_000, 90_500, 3_600_000, 90_000_000,
        ]
        .map(|ms| written(Duration::from_millis(ms)));
        let read = [
            "0s",
            "250ms",
            "60s",
            "90s",
            "2m",
            "280s",
            "1m 30s 500ms",
            "1h",
            "1d 1h",
        ];
        assert_eq!(written, read);
        let odd = Duration::new(3_725, 1_002_003);
        assert_eq!(super::written(odd), "1h 2m 5s 1ms 2us 3ns");
    }

    /// [EXP-3] [JRN-11] [PAGE-10] What is shown is short, and never more exact than it is worth.
    #[test]
    fn shown_at_a_glance() {
        let times = [
            0,
            1,
            999,
            1_000,
            1_249,
            9_960,
            59_999,
            119_499,
            119_500,
            280_000,
            3_599_999,
            7_530_000,
            273_600_000,
        ];
        let shown = [
            "0ms", "1ms", "999ms", "1s", "1.2s", "10s", "60s", "119s", "2m", "4m 40s", "1h", "2h 5m", "3d 4h",
        ];
        assert_eq!(times.map(short), shown);
        assert_eq!(
            [280_000, 310, 2_149].map(spoken),
            ["4 min 40 s", "310 ms", "2.1 s"]
        );
        assert!(short(u64::MAX).ends_with('h'));
    }
}
