//! Which account, and which session, made which response (INV-6, KEY-10..KEY-13).

use super::compact::Compact;
use super::key::{AffinityKey, Hash16, KeyKind};

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

/// An owner in 32 bytes: a million of them is what a busy bridge mirrors.
#[derive(Clone, Copy)]
struct Packed {
    key: Hash16,
    session: u64,
    /// Unix seconds; the last of them is in 2106.
    expires_at: u32,
    account: AccountId,
    /// `None` where there is no key.
    kind: Option<KeyKind>,
    flags: u8,
}

const STORED: u8 = 1;
const ON_A_SESSION: u8 = 2;

impl From<Owner> for Packed {
    fn from(owner: Owner) -> Packed {
        let flag = |set, flag| if set { flag } else { 0 };
        Packed {
            key: owner.key.map_or(Hash16([0; 16]), |key| key.hash),
            session: owner.session.map_or(0, |session| session.0),
            expires_at: u32::try_from(owner.expires_at).unwrap_or(u32::MAX),
            account: owner.account,
            kind: owner.key.map(|key| key.kind),
            flags: flag(owner.stored, STORED) | flag(owner.session.is_some(), ON_A_SESSION),
        }
    }
}

impl From<Packed> for Owner {
    fn from(packed: Packed) -> Owner {
        let hash = packed.key;
        Owner {
            account: packed.account,
            session: (packed.flags & ON_A_SESSION != 0).then_some(SessionId(packed.session)),
            key: packed.kind.map(|kind| AffinityKey { kind, hash }),
            stored: packed.flags & STORED != 0,
            expires_at: packed.expires_at.into(),
        }
    }
}

/// The bounded mirror of all owners, least recently used out first. It grows as it is filled, to at most 128 bytes for
/// each owner (KEY-14).
pub struct Owners(Compact<Packed>);

impl Owners {
    /// An empty index of at most `cap` entries (at least one).
    pub fn new(cap: usize) -> Self {
        Owners(Compact::new(cap))
    }

    /// Makes room for so many more, as far as the cap allows.
    pub fn reserve(&mut self, more: usize) {
        self.0.reserve(more);
    }

    /// Records the maker of a response. True when another owner made room for it.
    pub fn record(&mut self, response: Hash16, owner: Owner) -> bool {
        self.0.put(response, owner.into())
    }

    /// The owner of a response, unless it has expired. `now` is in unix seconds.
    pub fn of(&mut self, response: Hash16, now: u64) -> Option<Owner> {
        let owner = Owner::from(self.0.get(response)?);
        if owner.expires_at <= now {
            self.0.remove(response);
            return None;
        }
        Some(owner)
    }

    /// Forgets a response (it was deleted upstream).
    pub fn forget(&mut self, response: Hash16) -> bool {
        self.0.remove(response)
    }

    /// Entries held, for the gauge.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when no owner is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes that all of it takes.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
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

    /// [KEY-14] at most 128 bytes for each owner, index and all, from a thousand to a million: also right after the index
    /// has grown.
    #[test]
    fn an_owner_is_small() {
        let mut owners = Owners::new(2_000_000);
        for n in 0..1_000_000_u64 {
            let mut hash = [0; 16];
            hash[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
            owners.record(Hash16(hash), owner(100));
            if n >= 1000 && (n.is_power_of_two() || (n * 7 / 8).is_power_of_two() || n % 100_000 == 0) {
                let each = owners.bytes() as u64 / (n + 1);
                assert!(each <= 128, "{each} bytes each for {n}");
            }
        }
    }

    /// [KEY-10] what is packed comes out as it was.
    #[test]
    fn packing_loses_nothing() {
        let key = AffinityKey {
            kind: KeyKind::PromptCache,
            hash: Hash16([9; 16]),
        };
        let mut owners = Owners::new(8);
        let all = [
            owner(100),
            Owner {
                session: None,
                ..owner(100)
            },
            Owner {
                session: Some(SessionId(0)),
                stored: true,
                ..owner(100)
            },
            Owner {
                key: Some(key),
                account: AccountId(u16::MAX),
                ..owner(u64::from(u32::MAX))
            },
        ];
        for one in all {
            owners.record(response(1), one);
            assert_eq!(owners.of(response(1), 0), Some(one));
        }
        owners.record(response(1), owner(u64::MAX));
        assert!(
            owners.of(response(1), 4_000_000_000).is_some(),
            "never is far away"
        );
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
