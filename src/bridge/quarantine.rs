//! Keys whose session went silent go by direct HTTP for a window (QUA-1..QUA-9).
//!
//! ```text
//!          trip                      window over              probe's response.created
//!  Clear --------> Open(window) ----------------> Due --probe--> Probing ----------------> Clear (level kept)
//!                    ^                             ^                |  \
//!                    |            freed (cancelled, rejected,       |   silent: trip, doubled
//!                    |                  unconnected) ---------------+        |
//!                    +-------------------------------------------------------+
//! ```
//! Every entry carries the generation of its latest trip. A result that belongs to an older generation changes nothing:
//! an old completion can never erase a newer quarantine.

use std::time::{Duration, Instant};

use lru::LruCache;

use super::key::AffinityKey;
use super::ownership::AccountId;

/// The windows. `window` zero disables quarantine.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// The first window, doubling with each consecutive trip.
    pub window: Duration,
    /// The longest window; also how long a doubling level outlives a clear.
    pub max_window: Duration,
    /// Keys held at most.
    pub max_keys: usize,
}

impl Windows {
    /// The window of the `level`th consecutive trip (the first is level 1).
    fn of(&self, level: u32) -> Duration {
        let doubled = self
            .window
            .saturating_mul(1_u32.checked_shl(level.saturating_sub(1)).unwrap_or(u32::MAX));
        doubled.min(self.max_window.max(self.window))
    }
}

/// Orders trips: from one process-wide counter that only grows, across restarts too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// What a key's next turn may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Not in quarantine.
    Clear,
    /// Direct HTTP; the window ends at the instant.
    Open(Instant),
    /// The window is over: one turn may probe.
    Due,
    /// A probe is on its way: all others stay on direct HTTP.
    Probing,
}

/// The right and duty to probe one key: give it back with [`Quarantine::cleared`], [`Quarantine::freed`] or, if the
/// probe was silent too, by another [`Quarantine::trip`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    pub key: AffinityKey,
    pub generation: Generation,
}

/// One entry, as it is persisted and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub generation: Generation,
    /// Consecutive trips, the first is 1.
    pub level: u32,
    pub state: EntryState,
    /// When the level is forgotten, if no trip comes before.
    pub level_until: Instant,
    /// When its first trip came since it was last out of quarantine. `None`: in an earlier process. For operators alone.
    pub since: Option<Instant>,
    /// The account whose session went silent last. `None`: in an earlier process. For operators alone.
    pub account: Option<AccountId>,
}

/// Where in its life an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryState {
    Open {
        until: Instant,
    },
    Probing,
    /// Cleared; only the doubling level is remembered.
    Cleared,
}

/// What a trip did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tripped {
    pub entry: Entry,
    pub window: Duration,
    /// The key that made room, if one had to.
    pub evicted: Option<AffinityKey>,
}

/// All quarantined keys.
pub struct Quarantine {
    windows: Windows,
    entries: LruCache<AffinityKey, Entry>,
    generation: u64,
}

/// An entry as an operator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub key: AffinityKey,
    pub entry: Entry,
    /// Of what is left of the window; zero where it is over, or a probe is on its way.
    pub left: Duration,
}

impl Quarantine {
    /// Starts empty; generations continue after `generation`, the highest that an earlier process used.
    pub fn new(windows: Windows, generation: u64) -> Self {
        Quarantine {
            windows,
            entries: LruCache::unbounded(),
            generation,
        }
    }

    /// Puts other windows in force (REL-13). Those that are open run to their end; returns the keys that have no place any
    /// more: the least recently used ones, or all where quarantine is disabled now.
    pub fn set_windows(&mut self, windows: Windows) -> Vec<AffinityKey> {
        self.windows = windows;
        let most = if windows.window.is_zero() {
            0
        } else {
            windows.max_keys.max(1)
        };
        let surplus = self.entries.len().saturating_sub(most);
        (0..surplus)
            .filter_map(|_| self.entries.pop_lru())
            .map(|(key, _)| key)
            .collect()
    }

    /// The highest generation so far.
    pub fn generation(&self) -> Generation {
        Generation(self.generation)
    }

    /// A session of `key` went silent. `None` when quarantine is disabled.
    pub fn trip(&mut self, key: AffinityKey, now: Instant) -> Option<Tripped> {
        if self.windows.window.is_zero() {
            return None;
        }
        let level = match self.entries.peek(&key) {
            // A sibling that went silent in the same incident: its turn had been sent before the window began.
            Some(entry) if matches!(entry.state, EntryState::Open { until } if now < until) => entry.level,
            Some(entry) if now < entry.level_until => entry.level.saturating_add(1),
            _ => 1,
        };
        let window = self.windows.of(level);
        self.generation += 1;
        let until = now + window;
        let entry = Entry {
            generation: Generation(self.generation),
            level,
            state: EntryState::Open { until },
            level_until: until + self.windows.max_window,
            since: self.since(&key, now),
            account: self.account(&key),
        };
        let evicted = self.insert(key, entry);
        Some(Tripped {
            entry,
            window,
            evicted,
        })
    }

    /// Says at which account the key tripped.
    pub fn tripped_at(&mut self, key: &AffinityKey, account: AccountId) {
        if let Some(entry) = self.entries.peek_mut(key) {
            entry.account = Some(account);
        }
    }

    /// When a key that trips now went into quarantine.
    fn since(&self, key: &AffinityKey, now: Instant) -> Option<Instant> {
        match self.entries.peek(key) {
            Some(entry) if entry.state != EntryState::Cleared => entry.since,
            _ => Some(now),
        }
    }

    fn account(&self, key: &AffinityKey) -> Option<AccountId> {
        self.entries.peek(key)?.account
    }

    /// Puts an entry back that an earlier process persisted. Returns the key that made room, if one had to.
    ///
    /// A probe died with its process: its place is free. Where quarantine is disabled now, the entry is dropped.
    pub fn restore(&mut self, key: AffinityKey, mut entry: Entry, now: Instant) -> Option<AffinityKey> {
        self.generation = self.generation.max(entry.generation.0);
        if self.windows.window.is_zero() {
            return None;
        }
        if entry.state == EntryState::Probing {
            entry.state = EntryState::Open { until: now };
        }
        self.insert(key, entry)
    }

    fn insert(&mut self, key: AffinityKey, entry: Entry) -> Option<AffinityKey> {
        self.entries.put(key, entry);
        if self.entries.len() <= self.windows.max_keys.max(1) {
            return None;
        }
        self.entries.pop_lru().map(|(evicted, _)| evicted)
    }

    /// What the next turn of `key` may do.
    pub fn status(&mut self, key: &AffinityKey, now: Instant) -> Status {
        let Some(entry) = self.entries.get(key) else {
            return Status::Clear;
        };
        match entry.state {
            EntryState::Open { until } if now < until => Status::Open(until),
            EntryState::Open { .. } => Status::Due,
            EntryState::Probing => Status::Probing,
            EntryState::Cleared => {
                if now >= entry.level_until {
                    self.entries.pop(key);
                }
                Status::Clear
            }
        }
    }

    /// Takes the one place for a probe, if it is free and due.
    pub fn probe(&mut self, key: &AffinityKey, now: Instant) -> Option<Probe> {
        if self.status(key, now) != Status::Due {
            return None;
        }
        let entry = self.entries.get_mut(key)?;
        entry.state = EntryState::Probing;
        Some(Probe {
            key: *key,
            generation: entry.generation,
        })
    }

    /// The probe's `response.created` came. Returns the entry as it now is, or `None` if a newer trip overtook it.
    pub fn cleared(&mut self, probe: Probe, now: Instant) -> Option<Entry> {
        let max_window = self.windows.max_window;
        let entry = self.probing(probe)?;
        entry.state = EntryState::Cleared;
        entry.level_until = now + max_window;
        Some(*entry)
    }

    /// The probe proved nothing (cancelled, rejected, unconnected): its place is free, all else stays.
    pub fn freed(&mut self, probe: Probe, now: Instant) -> bool {
        match self.probing(probe) {
            Some(entry) => {
                entry.state = EntryState::Open { until: now };
                true
            }
            None => false,
        }
    }

    fn probing(&mut self, probe: Probe) -> Option<&mut Entry> {
        self.entries
            .peek_mut(&probe.key)
            .filter(|entry| entry.generation == probe.generation && entry.state == EntryState::Probing)
    }

    /// An operator puts a key in quarantine for a window of their own, also where quarantine is disabled. A probe that is on
    /// its way changes nothing any more. A later trip inside the window keeps the level, as among siblings.
    pub fn hold(&mut self, key: AffinityKey, window: Duration, now: Instant) -> Tripped {
        let known = self.entries.peek(&key).filter(|entry| now < entry.level_until);
        let level = known.map_or(1, |entry| entry.level.max(1));
        self.generation += 1;
        let until = now + window;
        let entry = Entry {
            generation: Generation(self.generation),
            level,
            state: EntryState::Open { until },
            level_until: until + self.windows.max_window,
            since: self.since(&key, now),
            account: self.account(&key),
        };
        let evicted = self.insert(key, entry);
        Tripped {
            entry,
            window,
            evicted,
        }
    }

    /// An operator ends a key's quarantine and forgets its level. Gives the generation from which nothing older counts;
    /// `None` where nothing was known of the key.
    pub fn forget(&mut self, key: &AffinityKey) -> Option<Generation> {
        self.entries.pop(key)?;
        self.generation += 1;
        Some(Generation(self.generation))
    }

    /// Every entry that is in quarantine, or whose level still counts; the latest used first.
    pub fn held(&self, now: Instant) -> impl Iterator<Item = Held> {
        let counts = move |entry: &Entry| entry.state != EntryState::Cleared || now < entry.level_until;
        let entries = self.entries.iter().filter(move |(_, entry)| counts(entry));
        entries.map(move |(key, entry)| Held {
            key: *key,
            entry: *entry,
            left: match entry.state {
                EntryState::Open { until } => until.saturating_duration_since(now),
                EntryState::Probing | EntryState::Cleared => Duration::ZERO,
            },
        })
    }

    /// Keys in quarantine now (cleared ones, of which only the level is remembered, do not count), for the gauge.
    pub fn open(&self) -> usize {
        self.entries
            .iter()
            .filter(|(_, entry)| entry.state != EntryState::Cleared)
            .count()
    }

    /// Entries held, cleared ones too.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when no entry is held.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests;
