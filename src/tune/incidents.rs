//! Each quarantine from its opening to its end, as its probes saw it.

use std::collections::HashMap;

/// What one probe found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Milliseconds since the quarantine was opened.
    pub after_ms: u64,
    /// `response.created` came. Otherwise the session was silent again.
    pub answered: bool,
}

/// One quarantine of one key: between two probes nothing is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Incident {
    /// Those that proved something, oldest first.
    pub probes: Vec<Probe>,
}

#[derive(Debug)]
struct Open {
    since_ms: u64,
    /// The latest probe, while nothing is known of what became of it.
    pending: Option<u64>,
    incident: Incident,
}

/// All quarantines of a journal. Feed it with the events in their order.
#[derive(Debug, Default)]
pub struct Incidents {
    open: HashMap<String, Open>,
    over: Vec<Incident>,
}

impl Incidents {
    /// A session of `key` went silent.
    pub fn opened(&mut self, key: String, at_ms: u64) {
        let fresh = Open {
            since_ms: at_ms,
            pending: None,
            incident: Incident::default(),
        };
        let open = self.open.entry(key).or_insert(fresh);
        match open.pending.take() {
            Some(after_ms) => open.incident.probes.push(Probe {
                after_ms,
                answered: false,
            }),
            // A sibling that had been sent before: the window begins anew with it.
            None if open.incident.probes.is_empty() => open.since_ms = at_ms,
            None => {}
        }
    }

    /// A turn of `key` tries a session.
    pub fn probed(&mut self, key: &str, at_ms: u64) {
        // One that was freed has proved nothing, and is forgotten for this one.
        let told = self.open.get_mut(key).map(|open| {
            let after = at_ms.checked_sub(open.since_ms);
            open.pending = after;
            after.is_some()
        });
        if told == Some(false) {
            // The clock was set back: its times mean nothing.
            self.open.remove(key);
        }
    }

    /// The probe of `key` was answered.
    pub fn cleared(&mut self, key: &str) {
        let Some(mut open) = self.open.remove(key) else {
            return;
        };
        if let Some(after_ms) = open.pending {
            open.incident.probes.push(Probe {
                after_ms,
                answered: true,
            });
        }
        self.keep(open);
    }

    /// Nothing more will be learnt of `key`: an operator cleared it, or it made room.
    pub fn ended(&mut self, key: &str) {
        if let Some(open) = self.open.remove(key) {
            self.keep(open);
        }
    }

    /// The same of all keys.
    pub fn ended_all(&mut self) {
        let open = std::mem::take(&mut self.open);
        open.into_values().for_each(|open| self.keep(open));
    }

    fn keep(&mut self, open: Open) {
        // One that was never probed says nothing about any window.
        if !open.incident.probes.is_empty() {
            self.over.push(open.incident);
        }
    }

    /// Those that were probed, ended or not.
    pub fn all(mut self) -> Vec<Incident> {
        self.ended_all();
        self.over
    }
}

#[cfg(test)]
mod tests;
