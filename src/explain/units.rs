//! Times and durations as people read them.

use std::time::{Duration, UNIX_EPOCH};

/// A duration: `310 ms`, `2.1 s`, `60 s`, `2 min 5 s`, `10 min`, `3 h 2 min`.
pub fn lapse(ms: u64) -> String {
    let seconds = ms / 1000;
    // What is long is told in whole seconds, and those are rounded: an hour's step of the clock is measured to be a little less.
    let rounded = ms.saturating_add(500) / 1000;
    let (minutes, hours) = (rounded / 60, rounded / 3600);
    match ms {
        0 => "under 1 ms".to_owned(),
        1..1_000 => format!("{ms} ms"),
        1_000..120_000 => match ms % 1000 / 100 {
            0 => format!("{seconds} s"),
            tenths => format!("{seconds}.{tenths} s"),
        },
        120_000..3_599_500 => with(minutes, "min", rounded % 60, "s"),
        _ => with(hours, "h", minutes % 60, "min"),
    }
}

fn with(much: u64, unit: &str, rest: u64, of: &str) -> String {
    match rest {
        0 => format!("{much} {unit}"),
        rest => format!("{much} {unit} {rest} {of}"),
    }
}

/// So many of something, in its words for one and for any other number: `1 call`, `0 calls`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The time of day in UTC: `12:03:41`.
pub(super) fn time(at_ms: u64) -> String {
    let stamp = stamp(at_ms);
    stamp.get(11..19).unwrap_or_default().to_owned()
}

/// Date and time in UTC with milliseconds, as RFC 3339 has it.
pub(super) fn stamp(at_ms: u64) -> String {
    // Beyond the year 9999 there is no such text; no journal is of then.
    let at = Duration::from_millis(at_ms.min(253_402_300_799_999));
    humantime::format_rfc3339_millis(UNIX_EPOCH + at).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [EXP-3] durations are short, and never more exact than they are known.
    #[test]
    fn durations() {
        let read = [
            0, 310, 1_000, 2_149, 60_000, 119_999, 125_499, 600_000, 3_599_999, 10_920_000,
        ]
        .map(lapse);
        assert_eq!(
            read,
            [
                "under 1 ms",
                "310 ms",
                "1 s",
                "2.1 s",
                "60 s",
                "119.9 s",
                "2 min 5 s",
                "10 min",
                "1 h",
                "3 h 2 min"
            ]
        );
        assert_eq!(time(1_790_000_021_500), "14:13:41");
        assert_eq!(stamp(u64::MAX), "9999-12-31T23:59:59.999Z");
    }
}
