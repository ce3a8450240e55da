//! How often a wrong admin token is looked at with patience (ADM-4).
//!
//! One bucket for the whole bridge: on loopback, and behind a proxy, all attempts come from one address. It tells a program with
//! an old token to wait. It does not stand between the right token and the bridge: that is compared first and taken at any time,
//! or whoever wants to lock the operators out would only have to guess badly. What makes guessing hopeless is the token's
//! length.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::refusal::Kind;

/// Wrong attempts at once: a person who pastes the wrong thing, a few programs with an old token.
const BURST: u32 = 10;
/// Then one for each of these.
const EVERY: Duration = Duration::from_secs(1);

/// The bucket. A std mutex: held for a few numbers.
#[derive(Debug, Default)]
pub struct Attempts(Mutex<Option<Bucket>>);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: u32,
    /// When the next one is added.
    since: Instant,
}

impl Attempts {
    /// What a request is told whose headers do not carry the token. One without any guessed nothing.
    pub fn refusal(&self, headers: &HeaderMap, now: Instant) -> Kind {
        if !headers.contains_key(AUTHORIZATION) || self.wrong(now) {
            Kind::NotAdmin
        } else {
            Kind::TooManyAttempts
        }
    }

    /// A wrong attempt. False where there have been too many.
    pub fn wrong(&self, now: Instant) -> bool {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = held.get_or_insert(Bucket {
            left: BURST,
            since: now,
        });
        let lapse = now.saturating_duration_since(bucket.since);
        let more = u32::try_from(lapse.as_nanos() / EVERY.as_nanos()).unwrap_or(u32::MAX);
        bucket.left = bucket.left.saturating_add(more).min(BURST);
        bucket.since = if bucket.left == BURST {
            now
        } else {
            bucket.since + EVERY * more
        };
        let allowed = bucket.left > 0;
        bucket.left = bucket.left.saturating_sub(1);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [ADM-4] ten wrong attempts at once, then one a second; the bucket fills up again, and no further.
    #[test]
    fn ten_and_then_one_a_second() {
        let (attempts, began) = (Attempts::default(), Instant::now());
        let allowed = |ms: u64, tries: usize| {
            let at = began + Duration::from_millis(ms);
            (0..tries).filter(|_| attempts.wrong(at)).count()
        };
        assert_eq!(allowed(0, 100), 10);
        assert_eq!(allowed(999, 5), 0);
        assert_eq!(allowed(1000, 5), 1);
        assert_eq!(allowed(1500, 5), 0);
        assert_eq!(allowed(2000, 5), 1);
        assert_eq!(allowed(3_600_000, 100), 10);
    }
}
