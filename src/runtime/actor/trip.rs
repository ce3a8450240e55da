//! A session went silent: who pays for it (QUA-1).

use std::time::Instant;

use super::Actor;
use crate::store::{Change, Ticket};

impl Actor {
    /// The key, and perhaps the account's transport, pays for a silent session. Decided before the client hears of it, so
    /// that its retry finds the quarantine in place.
    pub(super) fn trip(&mut self, now: Instant) -> Option<Ticket> {
        let (tripped, change) = {
            let mut registry = self.runtime.registry();
            let change = registry.transport(self.account).silent(self.key, now);
            let tripped = registry.quarantine.trip(self.key, now);
            // Session and turn are gone when an operator looks.
            registry.quarantine.tripped_at(&self.key, self.account);
            (tripped, change)
        };
        self.runtime.breaker_changed(self.account, change);
        self.tripped = tripped;
        let tripped = tripped?;
        if let Some(evicted) = tripped.evicted {
            // What memory has forgotten must not come back with the next start.
            self.runtime.store.record(Change::QuarantineRemoved {
                key: evicted.hash.0,
                generation: tripped.entry.generation.0,
            });
        }
        Some(self.runtime.persist_quarantine(&self.key, &tripped.entry))
    }
}
