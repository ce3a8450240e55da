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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::bridge::continuation::{Digester, Draft, Outline};
    use crate::wire::request::read_create;

    /// A memory with a conversation of one item.
    fn memory() -> Memory {
        let digester = Digester::new(&[7; 32]);
        let create = read_create(Bytes::from_static(br#"{"model":"m","store":false,"input":[1]}"#)).unwrap();
        let outline = Outline::of(&digester, &create, None).unwrap();
        let history = Draft::new(&digester, &create, &outline, None).finish().unwrap();
        Memory {
            response_id: "resp".into(),
            stored: false,
            history: Some(Arc::new(history)),
        }
    }

    /// [CONT-28] [INV-7] with one conversation more than fits, that of the session which has been idle longest is to be
    /// forgotten, and no other; one at work is spared, and counts.
    #[test]
    fn beyond_the_cap_the_longest_idle_goes() {
        let (known, began) = (memory(), Instant::now());
        let each = weight(Some(&known));
        let mut histories = Histories {
            cap: 3 * each,
            ..Histories::default()
        };
        let idle = |histories: &mut Histories, number: u32| {
            let since = began + number * Duration::from_secs(1);
            histories.idle(since, SessionId(number.into()), Some(&known));
            since
        };
        let since = idle(&mut histories, 1);
        histories.busy(since, SessionId(1));
        for number in [2, 3] {
            idle(&mut histories, number);
            assert_eq!(histories.beyond(), None);
        }
        idle(&mut histories, 4);
        assert_eq!(histories.beyond(), Some(SessionId(2)));
        histories.gone(Some(&known));
        assert_eq!((histories.beyond(), histories.bytes()), (None, 3 * each));
        histories.idle(began, SessionId(5), None);
        assert_eq!(histories.bytes(), 3 * each, "no conversation weighs nothing");
    }
}
