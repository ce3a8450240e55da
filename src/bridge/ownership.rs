//! Which account, and which session, made which response (INV-6, KEY-10..KEY-13).

use lru::LruCache;

use super::key::{AffinityKey, Hash16};

/// Names a session within this process. Never reused, and greater than every number of an earlier process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// Names an account: its place in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(pub u16);

/// Who made a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub account: AccountId,
    /// The session on whose socket it was made; `None` for direct HTTP.
    pub session: Option<SessionId>,
    /// The key that the turn had, so that a chain of anchors keeps its key when the session is gone. Lost by a restart.
    pub key: Option<AffinityKey>,
    /// Upstream keeps the response; otherwise it lives in the socket's memory only.
    pub stored: bool,
    /// Unix seconds.
    pub expires_at: u64,
}

/// The bounded mirror of all owners, least recently used out first. It grows as it is filled.
pub struct Owners {
    entries: LruCache<Hash16, Owner>,
    cap: usize,
}

impl Owners {
    /// An empty index of at most `cap` entries (at least one).
    pub fn new(cap: usize) -> Self {
        Owners {
            entries: LruCache::unbounded(),
            cap: cap.max(1),
        }
    }

    /// Records the maker of a response. True when another owner made room for it.
    pub fn record(&mut self, response: Hash16, owner: Owner) -> bool {
        self.entries.put(response, owner);
        let over = self.entries.len() > self.cap;
        if over {
            self.entries.pop_lru();
        }
        over
    }

    /// The owner of a response, unless it has expired. `now` is in unix seconds.
    pub fn of(&mut self, response: Hash16, now: u64) -> Option<Owner> {
        let owner = *self.entries.get(&response)?;
        if owner.expires_at <= now {
            self.entries.pop(&response);
            return None;
        }
        Some(owner)
    }

    /// Forgets a response (it was deleted upstream).
    pub fn forget(&mut self, response: Hash16) -> bool {
        self.entries.pop(&response).is_some()
    }

    /// Entries held, for the gauge.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when no owner is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(expires_at: u64) -> Owner {
        Owner {
            account: AccountId(0),
            session: Some(SessionId(7)),
            key: None,
            stored: false,
            expires_at,
        }
    }

    fn response(n: u8) -> Hash16 {
        Hash16([n; 16])
    }

    /// [KEY-10] [INV-6] what was recorded is known, the later record counts, and nothing else is guessed.
    #[test]
    fn the_latest_record_counts() {
        let mut owners = Owners::new(8);
        assert!(owners.is_empty());
        assert!(!owners.record(response(1), owner(100)));
        let moved = Owner {
            account: AccountId(3),
            session: None,
            stored: true,
            ..owner(200)
        };
        owners.record(response(1), moved);
        assert_eq!(owners.of(response(1), 150), Some(moved));
        assert_eq!(owners.of(response(2), 0), None);
        assert_eq!(owners.len(), 1);
        assert!(!owners.is_empty());
    }

    /// [KEY-13] a response that was deleted upstream is forgotten.
    #[test]
    fn a_deleted_response_is_forgotten() {
        let mut owners = Owners::new(8);
        owners.record(response(1), owner(100));
        assert!(owners.forget(response(1)));
        assert!(!owners.forget(response(1)));
        assert_eq!(owners.of(response(1), 0), None);
    }

    /// [KEY-12] an owner is known until it expires and no longer.
    #[test]
    fn an_owner_expires() {
        let mut owners = Owners::new(8);
        owners.record(response(1), owner(100));
        assert_eq!(owners.of(response(1), 99), Some(owner(100)));
        assert_eq!(owners.of(response(1), 100), None);
        assert!(owners.is_empty());
    }

    /// [KEY-13] [INV-7] at cap + 1 the least recently used owner makes room.
    #[test]
    fn cap_and_cap_plus_one() {
        let mut owners = Owners::new(2);
        assert!(!owners.record(response(1), owner(100)));
        assert!(!owners.record(response(2), owner(100)));
        assert!(owners.of(response(1), 0).is_some());
        assert!(owners.record(response(3), owner(100)));
        assert_eq!(owners.len(), 2);
        assert!(
            owners.of(response(2), 0).is_none(),
            "the least recently used one goes"
        );
        assert!(owners.of(response(1), 0).is_some());
        let mut none = Owners::new(0);
        assert!(!none.record(response(1), owner(100)), "a cap is at least one");
        assert_eq!(none.len(), 1);
    }
}
