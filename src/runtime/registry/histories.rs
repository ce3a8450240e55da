//! How much memory the sessions' conversations take in all, and which is forgotten first (CONT-28).

use std::collections::BTreeSet;
use std::time::Instant;

use crate::bridge::ownership::SessionId;
use crate::bridge::session::Memory;

/// All conversations together, in bytes: a thousand of two thousand items each.
const CAP: usize = 64 << 20;

/// The bytes in use, and the idle sessions that use them, the longest idle first.
pub(super) struct Histories {
    bytes: usize,
    cap: usize,
    idle: BTreeSet<(Instant, SessionId)>,
}

impl Default for Histories {
    fn default() -> Self {
        Histories {
            bytes: 0,
            cap: CAP,
            idle: BTreeSet::new(),
        }
    }
}

impl Histories {
    /// Bytes in use, for the gauge.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A session became idle with this memory.
    pub fn idle(&mut self, since: Instant, session: SessionId, memory: Option<&Memory>) {
        let bytes = weight(memory);
        self.bytes += bytes;
        if bytes > 0 {
            self.idle.insert((since, session));
        }
    }

    /// A session that had been idle since then is at work.
    pub fn busy(&mut self, since: Instant, session: SessionId) {
        self.idle.remove(&(since, session));
    }

    /// This memory is gone, or replaced.
    pub fn gone(&mut self, memory: Option<&Memory>) {
        self.bytes = self.bytes.saturating_sub(weight(memory));
    }

    /// The session whose conversation must be forgotten, where they take more than they may: its next turn is sent in full.
    pub fn beyond(&mut self) -> Option<SessionId> {
        if self.bytes <= self.cap {
            return None;
        }
        self.idle.pop_first().map(|(_, session)| session)
    }
}

fn weight(memory: Option<&Memory>) -> usize {
    memory
        .and_then(|memory| memory.history.as_ref())
        .map_or(0, |history| history.bytes())
}
