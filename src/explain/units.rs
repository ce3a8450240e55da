//! Times as people read them.

use std::time::{Duration, UNIX_EPOCH};

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

    /// [EXP-3] Times are in UTC.
    #[test]
    fn times() {
        assert_eq!(time(1_790_000_021_500), "14:13:41");
        assert_eq!(stamp(u64::MAX), "9999-12-31T23:59:59.999Z");
    }
}
