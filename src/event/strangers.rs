//! How much of the journal goes to those who have shown nothing: a program with an old token, a port scan, a web page. Each of
//! their refusals is a line and a count; but rows push out older ones, and whoever needs no credential for it could push out
//! all that happened (JRN-19).

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Rows at once: what a person does wrong while setting a thing up, many times over.
const BURST: u64 = 256;
/// Then one for each of these: in the seven days that a journal is kept, less than a tenth of what it may hold.
const EVERY: Duration = Duration::from_secs(8);

/// The allowance. A std mutex: held for a few numbers.
#[derive(Debug, Default)]
pub(super) struct Strangers(Mutex<Option<Bucket>>);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: u64,
    /// Since when the next one is on its way.
    since: Instant,
    /// Rows that were not granted since the last one that was.
    skipped: u64,
}

impl Strangers {
    /// Grants a row, and tells how many before it were not granted; or does not.
    pub(super) fn grant(&self, now: Instant) -> Option<u64> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = held.get_or_insert(Bucket {
            left: BURST,
            since: now,
            skipped: 0,
        });
        let passed = now.saturating_duration_since(bucket.since);
        let more = u32::try_from(passed.as_nanos() / EVERY.as_nanos()).unwrap_or(u32::MAX);
        bucket.left = bucket.left.saturating_add(u64::from(more)).min(BURST);
        bucket.since = if bucket.left == BURST {
            now
        } else {
            bucket.since + EVERY.saturating_mul(more)
        };
        if bucket.left == 0 {
            bucket.skipped += 1;
            return None;
        }
        bucket.left -= 1;
        Some(std::mem::take(&mut bucket.skipped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [JRN-19] A burst, then one now and then, which says how many there were between; after a pause a burst again.
    #[test]
    fn an_allowance() {
        let (strangers, start) = (Strangers::default(), Instant::now());
        let granted = |now, tries: u64| {
            (0..tries)
                .filter_map(|_| strangers.grant(now))
                .collect::<Vec<_>>()
        };
        assert_eq!(granted(start, 1000), vec![0; 256]);
        assert_eq!(granted(start + EVERY, 5), [744]);
        assert!(granted(start + EVERY * 3 / 2, 5).is_empty());
        assert_eq!(granted(start + EVERY * 2, 1), [9]);
        assert_eq!(granted(start + EVERY * 1000, 300).len(), 256);
    }
}
