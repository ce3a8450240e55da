//! What the registry keeps to, and how that changes while sessions live (REL-12, REL-13).

use std::time::Instant;

use tokio::sync::mpsc;

use super::{Command, LANE, Registry};
use crate::bridge::key::AffinityKey;
use crate::bridge::ownership::SessionId;
use crate::bridge::{quarantine, transport};

/// The caps that the registry keeps.
#[derive(Clone, Copy, Debug)]
pub struct Caps {
    pub max_sessions: usize,
    pub max_per_key: usize,
    pub max_queue: usize,
}

/// What has no place any more.
pub struct Surplus {
    /// Idle sessions that were taken out: they are to be told.
    pub sessions: Vec<mpsc::Sender<Command>>,
    /// Keys that are in quarantine no more.
    pub keys: Vec<AffinityKey>,
    /// The quarantine's latest generation.
    pub generation: quarantine::Generation,
}

impl Registry {
    /// The caps in force.
    pub fn caps(&self) -> Caps {
        self.caps
    }

    /// Puts other caps and windows in force. What is at work stays, whatever the caps; turns that wait are planned again.
    pub fn reconfigure(
        &mut self,
        caps: Caps,
        windows: quarantine::Windows,
        transport: transport::Policy,
    ) -> Surplus {
        self.caps = caps;
        for of_account in &mut self.transports {
            of_account.set_policy(transport);
        }
        let keys = self.quarantine.set_windows(windows);
        let mut sessions = Vec::new();
        while self.sessions.len() + self.opening > caps.max_sessions
            && let Some((_, longest_idle)) = self.idle.first().copied()
        {
            sessions.extend(self.evict(longest_idle));
        }
        for of_key in self.keys.values().filter(|of_key| of_key.waiting > 0) {
            of_key.freed.notify_waiters();
        }
        Surplus {
            sessions,
            keys,
            generation: self.quarantine.generation(),
        }
    }

    /// The lanes of the idle sessions on which nothing waits to be read: to wake them. A lane keeps its room for a lease.
    pub fn idle_lanes(&self) -> Vec<mpsc::Sender<Command>> {
        let idle = self.sessions.values().filter(|slot| slot.idle_since.is_some());
        idle.filter(|slot| slot.lane.capacity() == LANE)
            .map(|slot| slot.lane.clone())
            .collect()
    }

    /// The session's age is bounded anew.
    pub fn too_old_at(&mut self, session: SessionId, at: Instant) {
        if let Some(slot) = self.sessions.get_mut(&session) {
            slot.too_old_at = at;
        }
    }
}
