//! Entries on their way to the file. Whoever finds it full counts a loss and goes on.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::journal::Entry;

/// Entries that wait at most, those in the writer's hands included: about 6 MB, and several seconds of a busy bridge.
const MOST: usize = 8192;
/// So many are written at once, without waiting for more: about two milliseconds of writing.
pub(in crate::store) const MANY: usize = 256;
/// How long an entry waits for others to join it.
const PATIENCE: Duration = Duration::from_millis(250);

/// Lies under the inbox's lock.
#[derive(Debug, Default)]
pub(in crate::store) struct Queue {
    waiting: VecDeque<Entry>,
    /// In the writer's hands and not yet committed.
    taken: usize,
    /// When the oldest one waiting came.
    since: Option<Instant>,
    /// After trouble: not to be tried before.
    not_before: Option<Instant>,
    lost: u64,
}

impl Queue {
    /// Takes an entry in, or counts it as lost (JRN-3). Whether the writer has to be woken: by the first one, so that it
    /// knows until when to sleep, and by the one that makes them many.
    pub(in crate::store) fn put(&mut self, entry: Entry) -> bool {
        if self.waiting.len() + self.taken >= MOST {
            self.lost += 1;
            return false;
        }
        self.waiting.push_back(entry);
        let count = self.waiting.len();
        if count == 1 {
            self.since = Some(Instant::now());
        }
        count == 1 || count == MANY
    }

    /// When the writer should come for what is here; none where there is nothing.
    pub(in crate::store) fn due(&self) -> Option<Instant> {
        let since = self.since?;
        let due = if self.waiting.len() >= MANY {
            since
        } else {
            since + PATIENCE
        };
        Some(self.not_before.map_or(due, |not_before| not_before.max(due)))
    }

    /// Moves some of the oldest entries into `batch`, so that it has [`MANY`] at most.
    pub(in crate::store) fn take(&mut self, batch: &mut Vec<Entry>) {
        let count = MANY.saturating_sub(batch.len()).min(self.waiting.len());
        batch.extend(self.waiting.drain(..count));
        self.taken = batch.len();
        if self.waiting.is_empty() {
            self.since = None;
        }
    }

    /// What was taken is in the file.
    pub(in crate::store) fn settle(&mut self) {
        (self.taken, self.not_before) = (0, None);
    }

    /// What was taken is still in the writer's hands, which tries again after a pause.
    pub(in crate::store) fn rest(&mut self, until: Instant) {
        self.not_before = Some(until);
        // There is something to come for, though none may be waiting.
        self.since = self.since.or(Some(until));
    }

    /// All that waits is lost, and what comes later.
    pub(in crate::store) fn abandon(&mut self) {
        self.lost += (self.waiting.len() + self.taken) as u64;
        self.waiting.clear();
        (self.taken, self.since) = (0, None);
    }

    pub(in crate::store) fn lose(&mut self) {
        self.lost += 1;
    }

    /// Entries that were dropped, since the start of the process.
    pub(in crate::store) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether there is room again for what comes: a loss that is over can be told.
    pub(in crate::store) fn is_calm(&self) -> bool {
        self.waiting.len() < MANY
    }

    pub(in crate::store) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.taken == 0
    }
}
