//! Which account a key is pinned to, for `affinity.ttl` after its last turn (KEY-40..KEY-42).

use super::compact::Compact;
use super::key::Hash16;
use super::ownership::AccountId;

/// A key's account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    pub account: AccountId,
    /// A response or an account-bound item of the key's lives with the account.
    pub bound: bool,
    /// Unix seconds.
    pub expires_at: u64,
}

#[derive(Clone, Copy)]
struct Packed {
    account: AccountId,
    bound: bool,
    expires_at: u32,
    /// When the row on disk expires; 0 where there is none, or one that says something else.
    written: u32,
}

/// The bounded mirror of all pins, least recently used out first.
pub struct Pins {
    pins: Compact<Packed>,
    ttl: u64,
}

impl Pins {
    /// An empty mirror of at most `cap` pins (at least one), each kept for `ttl` seconds after its key's last turn.
    pub fn new(cap: usize, ttl: u64) -> Self {
        Pins {
            pins: Compact::new(cap),
            ttl: ttl.max(1),
        }
    }

    /// Another cap, or another ttl: each pin ends by today's ttl after its key's last turn (REL-14).
    pub fn reconfigure(&mut self, cap: usize, ttl: u64) {
        self.pins.set_cap(cap);
        let (before, ttl) = (std::mem::replace(&mut self.ttl, ttl.max(1)), ttl.max(1));
        if before != ttl {
            self.pins.change_all(|pin| {
                let last_turn = u64::from(pin.expires_at).saturating_sub(before);
                pin.expires_at = seconds(last_turn.saturating_add(ttl));
            });
        }
    }

    /// What an earlier process left. `now` is in unix seconds. A pin ends by today's ttl at the latest, whatever the ttl
    /// was when it was written.
    pub fn restore(&mut self, key: Hash16, pin: Pin, now: u64) {
        let expires_at = seconds(pin.expires_at.min(now.saturating_add(self.ttl)));
        let packed = Packed {
            account: pin.account,
            bound: pin.bound,
            expires_at,
            written: seconds(pin.expires_at),
        };
        self.pins.put(key, packed);
    }

    /// The pin of a key, unless it has expired.
    pub fn of(&mut self, key: Hash16, now: u64) -> Option<Pin> {
        let packed = self.pins.get(key)?;
        if u64::from(packed.expires_at) <= now {
            self.pins.remove(key);
            return None;
        }
        Some(Pin {
            account: packed.account,
            bound: packed.bound,
            expires_at: packed.expires_at.into(),
        })
    }

    /// The account was chosen for the key: turns that come before this one is accepted go there, too. Nothing is to be
    /// written yet. What a key leaves behind when it moves is not bound to where it goes.
    pub fn choose(&mut self, key: Hash16, account: AccountId, now: u64) {
        let known = self.pins.peek(key).filter(|pin| pin.account == account);
        let pin = known.unwrap_or(Packed {
            account,
            bound: false,
            expires_at: 0,
            written: 0,
        });
        let expires_at = seconds(now.saturating_add(self.ttl));
        self.pins.put(key, Packed { expires_at, ..pin });
    }

    /// A turn of the key was accepted by the account. `bound`: it left something there. Gives the pin where it is to be
    /// written: when it says something new, or an eighth of the ttl has passed since it was written last.
    pub fn accepted(&mut self, key: Hash16, account: AccountId, bound: bool, now: u64) -> Option<Pin> {
        let known = self.pins.peek(key).filter(|pin| pin.account == account);
        let was_bound = known.is_some_and(|pin| pin.bound);
        let bound = bound || was_bound;
        let expires_at = now.saturating_add(self.ttl);
        let written = known.filter(|_| bound == was_bound).map_or(0, |pin| pin.written);
        let due = u64::from(written) <= expires_at.saturating_sub((self.ttl / 8).max(1));
        let packed = Packed {
            account,
            bound,
            expires_at: seconds(expires_at),
            written: if due { seconds(expires_at) } else { written },
        };
        self.pins.put(key, packed);
        due.then_some(Pin {
            account,
            bound,
            expires_at,
        })
    }

    /// Pins held, for the gauge.
    pub fn len(&self) -> usize {
        self.pins.len()
    }

    /// True when no key is pinned.
    pub fn is_empty(&self) -> bool {
        self.pins.is_empty()
    }
}

/// The last second that is told apart is in 2106.
fn seconds(at: u64) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: u64 = 800;
    const A: AccountId = AccountId(0);
    const B: AccountId = AccountId(1);

    fn key(n: u8) -> Hash16 {
        Hash16([n; 16])
    }

    fn pin(account: AccountId, bound: bool, expires_at: u64) -> Pin {
        Pin {
            account,
            bound,
            expires_at,
        }
    }

    /// [KEY-40] a key keeps its account for the ttl after its last turn, and no longer.
    #[test]
    fn a_pin_lasts_for_its_ttl() {
        let mut pins = Pins::new(8, TTL);
        assert!(pins.is_empty());
        pins.choose(key(1), A, 1000);
        assert_eq!(pins.of(key(1), 1799), Some(pin(A, false, 1800)));
        assert_eq!(pins.of(key(2), 1000), None);
        pins.accepted(key(1), A, false, 1500);
        assert_eq!(pins.of(key(1), 2299), Some(pin(A, false, 2300)));
        assert_eq!(pins.of(key(1), 2300), None);
        assert!(pins.is_empty());
    }

    /// [KEY-41] a pin is written when it says something new, and otherwise once in an eighth of its ttl.
    #[test]
    fn nothing_is_written_for_nothing() {
        let mut pins = Pins::new(8, TTL);
        pins.choose(key(1), A, 1000);
        assert_eq!(
            pins.accepted(key(1), A, false, 1000),
            Some(pin(A, false, 1800)),
            "new"
        );
        assert_eq!(pins.accepted(key(1), A, false, 1099), None);
        assert_eq!(
            pins.accepted(key(1), A, true, 1099),
            Some(pin(A, true, 1899)),
            "bound"
        );
        assert_eq!(pins.accepted(key(1), A, false, 1100), None, "it stays bound");
        assert_eq!(
            pins.accepted(key(1), A, true, 1199),
            Some(pin(A, true, 1999)),
            "an eighth"
        );
        pins.choose(key(1), A, 1210);
        assert_eq!(pins.accepted(key(1), A, true, 1220), None);
        assert_eq!(
            pins.accepted(key(1), B, false, 1220),
            Some(pin(B, false, 2020)),
            "moved"
        );
    }

    /// [KEY-42] what was bound to the account that a key has left is not bound to the new one.
    #[test]
    fn a_move_binds_nothing() {
        let mut pins = Pins::new(8, TTL);
        pins.accepted(key(1), A, true, 1000);
        pins.choose(key(1), B, 1001);
        assert_eq!(pins.of(key(1), 1001), Some(pin(B, false, 1801)));
    }

    /// [KEY-41] what was restored counts as written, and a ttl that was shortened counts at once.
    #[test]
    fn what_was_restored() {
        let mut pins = Pins::new(8, TTL);
        pins.restore(key(1), pin(A, true, 1790), 1000);
        assert_eq!(pins.accepted(key(1), A, true, 1050), None);
        pins.restore(key(2), pin(A, false, 9000), 1000);
        assert_eq!(pins.of(key(2), 1799), Some(pin(A, false, 1800)));
        assert_eq!(pins.of(key(2), 1800), None);
    }

    /// [KEY-40] [INV-7] at cap + 1 the least recently used pin makes room.
    #[test]
    fn cap_and_cap_plus_one() {
        let mut pins = Pins::new(2, TTL);
        pins.choose(key(1), A, 0);
        pins.choose(key(2), A, 0);
        assert!(pins.of(key(1), 0).is_some());
        pins.choose(key(3), A, 0);
        assert_eq!(pins.len(), 2);
        assert!(pins.of(key(2), 0).is_none());
        assert!(pins.of(key(1), 0).is_some());
    }

    /// [REL-14] another ttl counts from each key's last turn; with a smaller cap the least recently used pins leave.
    #[test]
    fn reconfigured() {
        let mut pins = Pins::new(8, TTL);
        for n in 1..=3 {
            pins.accepted(key(n), A, true, 1000);
        }
        pins.reconfigure(8, 100);
        assert_eq!(pins.of(key(1), 1099), Some(pin(A, true, 1100)));
        assert_eq!(pins.of(key(2), 1100), None);
        pins.reconfigure(8, 2 * TTL);
        assert_eq!(pins.of(key(1), 1500), Some(pin(A, true, 1000 + 2 * TTL)));
        assert_eq!(
            pins.accepted(key(1), A, true, 1500),
            Some(pin(A, true, 1500 + 2 * TTL)),
            "the row on disk ends too early"
        );
        pins.reconfigure(1, 2 * TTL);
        assert_eq!(pins.len(), 1);
        assert!(pins.of(key(1), 1500).is_some());
    }
}
