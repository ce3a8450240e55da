//! What operators see of sessions and keys, and what they may do to them.

use std::time::Instant;

use tokio::sync::mpsc;

use super::{Command, Registry, Slot};
use crate::bridge::key::AffinityKey;
use crate::bridge::ownership::{AccountId, SessionId};

/// A session, as an operator sees it.
#[derive(Clone, Copy, Debug)]
pub struct Looked {
    pub session: SessionId,
    pub key: AffinityKey,
    pub account: AccountId,
    pub opened_at: Instant,
    /// `None` while a turn is on it.
    pub idle_since: Option<Instant>,
    pub turns: u32,
    pub closing: bool,
}

impl Looked {
    /// Whether it is kept ready, and bound to no key yet.
    pub fn is_warm(&self) -> bool {
        self.key == super::ready::unbound(self.account)
    }
}

/// Turns of a key that wait for a session, and its sessions that are being opened.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    pub key: AffinityKey,
    pub waiting: usize,
    pub opening: usize,
}

impl Registry {
    /// Every session, in no order.
    pub fn look(&self) -> impl Iterator<Item = Looked> {
        self.sessions.iter().map(|(session, slot)| looked(*session, slot))
    }

    /// One session.
    pub fn look_at(&self, session: SessionId) -> Option<Looked> {
        self.sessions.get(&session).map(|slot| looked(session, slot))
    }

    /// Keys with turns that wait, or sessions that are being opened, in no order.
    pub fn waiting(&self) -> impl Iterator<Item = Waiting> {
        let keys = self.keys.iter().filter(|(_, of)| of.waiting + of.opening > 0);
        keys.map(|(key, of)| Waiting {
            key: *key,
            waiting: of.waiting,
            opening: of.opening,
        })
    }

    /// The keys of all sessions and waiting turns.
    pub fn keys(&self) -> impl Iterator<Item = AffinityKey> {
        self.keys.keys().copied()
    }

    /// An operator closes a session: gives the way to tell it. It takes no other turn.
    pub fn close(&mut self, session: SessionId) -> Option<mpsc::Sender<Command>> {
        let slot = self.sessions.get_mut(&session)?;
        slot.closing = true;
        Some(slot.lane.clone())
    }
}

fn looked(session: SessionId, slot: &Slot) -> Looked {
    Looked {
        session,
        key: slot.key,
        account: slot.account,
        opened_at: slot.opened_at,
        idle_since: slot.idle_since,
        turns: slot.turns,
        closing: slot.closing,
    }
}
