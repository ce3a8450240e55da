//! Warm sockets: connected, idle and bound to no key until their first turn (SES-32).

use std::time::{Duration, Instant};

use super::{Ask, Registry, Taken};
use crate::bridge::key::{AffinityKey, Hash16, KeyKind};
use crate::bridge::ownership::{AccountId, SessionId};
use crate::bridge::transport::Permission;

/// The key under which an account's unbound sessions are kept. It is no hash, and so nobody's.
pub(super) fn unbound(account: AccountId) -> AffinityKey {
    let mut hash = [0; 16];
    hash[..2].copy_from_slice(&account.0.to_le_bytes());
    AffinityKey {
        kind: KeyKind::Keyless,
        hash: Hash16(hash),
    }
}

impl Registry {
    /// Takes a place for one more unbound session of an account, where fewer than `wanted` are there or on their way, a
    /// place is free without evicting anybody, and the account may be dialled. Then it is like that of [`Taken::Open`].
    pub fn warm(&mut self, now: Instant, account: AccountId, wanted: usize) -> Option<AffinityKey> {
        let key = unbound(account);
        let has = self.keys.get(&key).map_or(0, |of| of.sessions.len() + of.opening);
        let full = self.sessions.len() + self.opening >= self.caps.max_sessions;
        let index = usize::from(account.0);
        let dial = self.transports[index].permission(now, true, self.open[index]);
        if has >= wanted || full || self.draining || dial != Permission::Yes {
            return None;
        }
        self.keys.entry(key).or_default().opening += 1;
        self.opening += 1;
        self.transports[index].handshake_began();
        Some(key)
    }

    /// Whether the account began a turn within `lapse`.
    pub fn had_traffic(&self, account: AccountId, now: Instant, lapse: Duration) -> bool {
        self.traffic[usize::from(account.0)].within(now, lapse)
    }

    /// Binds an unbound session to the turn's key, for good, and leases it.
    pub(super) fn adopt(&mut self, now: Instant, ask: &Ask<'_>) -> Option<Taken> {
        let free = unbound(ask.account);
        let ready = &self.keys.get(&free)?.sessions;
        // The one that has been ready for the shortest time is the least likely to be stale.
        let idle_since = |id: &SessionId| {
            let slot = self.sessions.get(id).filter(|slot| now < slot.too_old_at)?;
            Some((slot.idle_since?, *id))
        };
        let (_, session) = ready.iter().filter_map(idle_since).max()?;
        if let Some(of_key) = self.keys.get_mut(&free) {
            of_key.sessions.retain(|other| *other != session);
        }
        self.forget_if_unused(&free);
        self.sessions.get_mut(&session)?.key = ask.key;
        self.keys.entry(ask.key).or_default().sessions.push(session);
        Some(self.lease(session, ask))
    }
}
