//! What operators may do. Each is told as an `operator_action` event with who did it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::super::{Runtime, now};
use crate::bridge::key::{AffinityKey, Hash16};
use crate::bridge::ownership::SessionId;
use crate::bridge::session::Retired;
use crate::event::{At, Event};
use crate::runtime::registry::Command;
use crate::store::{Change, Ticket};

/// To how many things something was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done(pub u64);

/// Why nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// There is no such session, key or account.
    Unknown,
}

/// Whether a key has this printed form: the first 12 hexadecimal digits of its hash.
fn is(key: AffinityKey, short: &str) -> bool {
    key.to_string() == short
}

impl Runtime {
    /// Closes a session; a running turn is finished first, and no other follows.
    pub fn close_session(&self, session: u64, by: &str) -> Result<Done, NotDone> {
        let id = SessionId(session);
        let (looked, lane) = {
            let mut registry = self.registry();
            let looked = registry.look_at(id).ok_or(NotDone::Unknown)?;
            (looked, registry.close(id).ok_or(NotDone::Unknown)?)
        };
        // A full lane has a command that ends the session anyway, and a closed one has ended.
        let _ = lane.try_send(Command::Retire(Retired::Operator));
        self.events.emit(&Event::OperatorAction {
            reason: "session_closed",
            by,
            at: Some(self.at(looked.account)),
            key: None,
            session: Some(session),
            count: 1,
        });
        Ok(Done(1))
    }

    /// Puts a key into quarantine for a while. `short`: as it is printed; it must be one that has a session, a running turn or
    /// an entry. Done when that is durable, or has been waited for long enough.
    pub async fn quarantine_add(&self, short: &str, window: Duration, by: &str) -> Result<Done, NotDone> {
        let (hash, ticket) = self.hold(short, window).ok_or(NotDone::Unknown)?;
        self.durable(ticket).await;
        self.acted("quarantine_added", by, None, Some(hash), 1);
        Ok(Done(1))
    }

    fn hold(&self, short: &str, window: Duration) -> Option<(Hash16, Ticket)> {
        let now = now();
        let turns = self.live.all();
        let mut registry = self.registry();
        let keys = registry.keys().chain(turns.iter().map(|turn| turn.way().key));
        let found = keys.into_iter().find(|key| is(*key, short));
        let held = || registry.quarantine.held(now).map(|held| held.key);
        let key = found.or_else(|| held().find(|key| is(*key, short)))?;
        let held = registry.quarantine.hold(key, window, now);
        // Under the lock, so that what is written comes in the order in which it was decided.
        if let Some(evicted) = held.evicted {
            self.store.record(Change::QuarantineRemoved {
                key: evicted.hash.0,
                generation: held.entry.generation.0,
            });
        }
        Some((key.hash, self.persist_quarantine(&key, &held.entry)))
    }

    /// Ends the quarantine of a key, or of all (`None`), and forgets how often it was silent. Done when that is durable, or
    /// has been waited for long enough.
    pub async fn quarantine_clear(&self, short: Option<&str>, by: &str) -> Result<Done, NotDone> {
        let (cleared, ticket) = self.forget(short);
        if short.is_some() && cleared.is_empty() {
            return Err(NotDone::Unknown);
        }
        if let Some(ticket) = ticket {
            self.durable(ticket).await;
        }
        let key = short.and(cleared.first().copied());
        self.acted("quarantine_cleared", by, None, key, cleared.len() as u64);
        Ok(Done(cleared.len() as u64))
    }

    fn forget(&self, short: Option<&str>) -> (Vec<Hash16>, Option<Ticket>) {
        let now = now();
        let mut registry = self.registry();
        let keys: Vec<_> = registry
            .quarantine
            .held(now)
            .map(|held| held.key)
            .filter(|key| short.is_none_or(|short| is(*key, short)))
            .collect();
        let mut ticket = None;
        for key in &keys {
            if let Some(generation) = registry.quarantine.forget(key) {
                ticket = Some(self.store.record(Change::QuarantineRemoved {
                    key: key.hash.0,
                    generation: generation.0,
                }));
            }
        }
        (keys.iter().map(|key| key.hash).collect(), ticket)
    }

    /// Forgets all that is held against an account's WebSocket transport: breaker, strikes, a missing WebSocket, a ceiling,
    /// a refused size.
    pub fn breaker_reset(&self, provider: &str, account: &str, by: &str) -> Result<Done, NotDone> {
        let id = self
            .account_named(&format!("{provider}/{account}"))
            .ok_or(NotDone::Unknown)?;
        let change = self.registry().transport(id).reset();
        self.breaker_changed(id, change);
        self.acted("breaker_reset", by, Some(self.at(id)), None, 1);
        Ok(Done(1))
    }

    /// New turns are refused from now on, as in a drain, or taken again; the process stays, and so do its sessions. Lasts
    /// as long as the process. Tells whether it was otherwise before.
    pub fn set_draining(&self, draining: bool, by: &str) -> bool {
        let changed = self.held.swap(draining, Ordering::Relaxed) != draining;
        if changed {
            let reason = if draining { "drain_on" } else { "drain_off" };
            self.acted(reason, by, None, None, 1);
        }
        changed
    }

    fn acted(&self, reason: &'static str, by: &str, at: Option<At>, key: Option<Hash16>, count: u64) {
        self.events.emit(&Event::OperatorAction {
            reason,
            by,
            at,
            key,
            session: None,
            count,
        });
    }
}
