//! Which of a key's sessions may carry a turn, and what they remember.

use std::time::Instant;

use super::fit::fit;
use super::{Ask, OfKey, Registry};
use crate::bridge::continuation::Remembered;
use crate::bridge::key::AffinityKey;
use crate::bridge::ownership::SessionId;
use crate::bridge::plan::{Candidate, Fit};

impl Registry {
    /// What the key's idle sessions remember.
    pub fn remembered(&self, key: &AffinityKey) -> Vec<Remembered> {
        let sessions = self.keys.get(key).map_or(&[][..], |of_key| &of_key.sessions);
        let remembered = |id: &SessionId| {
            let slot = self.sessions.get(id)?;
            Some(Remembered {
                session: *id,
                last_used: slot.idle_since?,
                history: slot.memory.as_ref()?.history.clone()?,
            })
        };
        sessions.iter().filter_map(remembered).collect()
    }

    /// Whether a session is there that may still remember a response of its: one at work, or an idle one that may be used for
    /// it. One that is too old for any other turn, and remembers another response, does not.
    pub(super) fn may_remember(&self, session: SessionId, idle: &[Candidate]) -> bool {
        self.sessions.get(&session).is_some_and(|slot| {
            slot.idle_since.is_none() || idle.iter().any(|candidate| candidate.session == session)
        })
    }

    pub(super) fn candidates(&self, of_key: &OfKey, now: Instant, ask: &Ask<'_>) -> Vec<Candidate> {
        let mut candidates = Vec::with_capacity(of_key.sessions.len());
        for id in &of_key.sessions {
            let Some(slot) = self.sessions.get(id) else {
                continue;
            };
            let Some(last_used) = slot.idle_since.filter(|_| slot.serves(ask.model)) else {
                continue;
            };
            let fit = fit(*id, slot, ask);
            let alone = slot.memory.as_ref().is_some_and(|memory| !memory.stored);
            if now < slot.too_old_at || (fit == Fit::Named && alone) {
                candidates.push(Candidate {
                    session: *id,
                    fit,
                    last_used,
                });
            }
        }
        candidates
    }

    /// Idle sessions of the key that serve another model, or are too old to serve any turn. Where that is all it has, they count
    /// for nothing, and one leaves if there is no room for a new one.
    pub(super) fn useless(&self, of_key: &OfKey, now: Instant, ask: &Ask<'_>) -> usize {
        let slots = of_key.sessions.iter().filter_map(|id| self.sessions.get(id));
        slots
            .filter(|slot| slot.idle_since.is_some())
            .filter(|slot| now >= slot.too_old_at || !slot.serves(ask.model))
            .count()
    }
}
