//! The bounded queue between those who record and the writer. It is also the backlog: while the disk is in trouble
//! changes stay here, up to the cap.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Lag;
use super::change::{Change, Ticket};
use super::journal::Queue;
use crate::journal::Entry;

/// One lock, held for a push or a drain only, never during I/O. A std mutex: recording must work in and out of async.
#[derive(Debug)]
pub(super) struct Inbox {
    /// Most changes that may be uncommitted, those in the writer's hands included.
    cap: usize,
    state: Mutex<State>,
    /// Rung when the queue ceases to be empty, and at the close.
    rang: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Change>,
    /// Taken by the writer and not yet settled.
    taken: usize,
    /// The ticket given out last.
    last: u64,
    /// When the oldest one waiting came.
    waiting_since: Option<Instant>,
    /// When the oldest one taken came.
    taken_since: Option<Instant>,
    /// Journal entries: a queue of their own, that never makes a change wait or fail.
    journal: Queue,
    closed: bool,
    /// It was closed as it should be, and not because it was dropped.
    ended: bool,
}

/// Why a change was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Full,
    Closed,
}

impl Inbox {
    pub(super) fn new(cap: usize) -> Self {
        Inbox {
            cap,
            state: Mutex::default(),
            rang: Condvar::new(),
        }
    }

    /// Takes a change in. `refused` runs under the lock, so that the writer's next drain comes after it.
    pub(super) fn put(&self, change: Change, refused: impl FnOnce(Refused)) -> Ticket {
        let mut state = self.lock();
        if state.closed {
            refused(Refused::Closed);
            return Ticket::LOST;
        }
        if state.waiting.len() + state.taken >= self.cap {
            refused(Refused::Full);
            return Ticket::LOST;
        }
        state.last += 1;
        let ticket = Ticket(state.last);
        if state.waiting_since.is_none() {
            state.waiting_since = Some(Instant::now());
        }
        state.waiting.push_back(change);
        let first = state.waiting.len() == 1;
        drop(state);
        // The writer sleeps only on an empty queue, so the first change alone has to wake it: one system call per
        // batch instead of one per change.
        if first {
            self.rang.notify_one();
        }
        ticket
    }

    /// Takes a journal entry in, or counts it as lost.
    pub(super) fn note(&self, entry: Entry) {
        let mut state = self.lock();
        if state.closed {
            state.journal.lose();
            return;
        }
        let wake = state.journal.put(entry);
        drop(state);
        if wake {
            self.rang.notify_one();
        }
    }

    /// A look at the journal's queue, or a change to it.
    pub(super) fn journal<T>(&self, act: impl FnOnce(&mut Queue) -> T) -> T {
        act(&mut self.lock().journal)
    }

    /// Waits until there are changes to write, journal entries have waited long enough, the close has come, or `at_most` has
    /// passed.
    pub(super) fn wait(&self, at_most: Duration) {
        let until = Instant::now() + at_most;
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.closed {
            let until = state.journal.due().map_or(until, |due| until.min(due));
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return;
            }
            let woken = self.rang.wait_timeout(state, rest);
            (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for `pause`, or until the close, whatever comes in meanwhile.
    pub(super) fn rest(&self, pause: Duration) {
        let state = self.lock();
        let waited = self.rang.wait_timeout_while(state, pause, |s| !s.closed);
        drop(waited);
    }

    /// Moves at most `most` changes into `batch`, oldest first, and returns the ticket of the last one.
    pub(super) fn take(&self, batch: &mut Vec<Change>, most: usize) -> Ticket {
        let mut state = self.lock();
        let count = most.min(state.waiting.len());
        batch.extend(state.waiting.drain(..count));
        state.taken += count;
        state.taken_since = state.taken_since.or(state.waiting_since);
        if state.waiting.is_empty() {
            state.waiting_since = None;
        }
        Ticket(state.last - state.waiting.len() as u64)
    }

    /// What was taken is committed.
    pub(super) fn settle(&self) {
        let mut state = self.lock();
        state.taken = 0;
        state.taken_since = None;
    }

    pub(super) fn lag(&self) -> Lag {
        let state = self.lock();
        Lag {
            changes: state.waiting.len() + state.taken,
            age: state
                .taken_since
                .or(state.waiting_since)
                .map_or(Duration::ZERO, |since| since.elapsed()),
        }
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.rang.notify_all();
    }

    /// Closes it for the good end of a process, all of whose turns are over.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.close();
    }

    pub(super) fn is_ended(&self) -> bool {
        self.lock().ended
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
