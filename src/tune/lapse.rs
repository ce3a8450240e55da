//! Times as people read them, and as the configuration takes them.

/// `ms` milliseconds as the configuration takes it: `"45s"`, `"1m 30s"`, `"250ms"`.
pub fn written(ms: u64) -> String {
    if ms == 0 {
        return "0s".to_owned();
    }
    let seconds = ms / 1000;
    // "60s" reads better beside "90s" than "1m" does.
    if ms.is_multiple_of(1000) && seconds < 120 {
        return format!("{seconds}s");
    }
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
        (ms % 1000, "ms"),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    parts.join(" ")
}

/// A measured time, as exactly as anybody wants it: `310ms`, `4.2s`, `1m 12s`, `2h 5m`.
pub fn measured(ms: u64) -> String {
    match ms {
        0 => "0s".to_owned(),
        1..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{:.1}s", ms as f64 / 1000.0),
        60_000..120_000 => format!("1m {}s", ms / 1000 - 60),
        120_000..3_600_000 => written(ms / 1000 * 1000),
        3_600_000..86_400_000 => written(ms / 60_000 * 60_000),
        _ => written(ms / 3_600_000 * 3_600_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [TUNE-10] what is written is what the configuration reads; what is measured is short.
    #[test]
    fn times() {
        for (ms, text) in [
            (0, "0s"),
            (250, "250ms"),
            (60_000, "60s"),
            (90_000, "90s"),
            (120_000, "2m"),
            (90_500, "1m 30s 500ms"),
            (3_600_000, "1h"),
            (90_000_000, "1d 1h"),
        ] {
            assert_eq!(written(ms), text);
            let read = humantime::parse_duration(text).unwrap();
            assert_eq!(read.as_millis(), u128::from(ms));
        }
        let texts = [999, 4_249, 59_999, 72_900, 7_530_000, 90_000_000].map(measured);
        assert_eq!(texts, ["999ms", "4.2s", "60.0s", "1m 12s", "2h 5m", "1d 1h"]);
    }
}
