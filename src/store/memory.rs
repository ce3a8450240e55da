//! The store of a bridge that keeps nothing: by wish, or because there is no directory to keep it in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::change::{Change, Ticket};
use super::fault::Reason;
use super::standing::Standing;
use super::{Lag, Store};
use crate::journal::Entry;

/// Keeps nothing beyond the process. Beside the standing, the journal entries that were lost.
#[derive(Debug)]
pub struct Memory(Standing, AtomicU64);

impl Memory {
    /// Nothing is meant to outlive the process: every change is as durable as it will be, at once.
    pub fn new() -> Self {
        Memory(Standing::new(), AtomicU64::new(0))
    }

    /// Stands in for a directory that could not be used: degraded for good, every change is lost (STATE-8).
    pub fn standing_in(reason: Reason) -> Self {
        let standing = Standing::new();
        standing.degrade(reason);
        Memory(standing, AtomicU64::new(0))
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory::new()
    }
}

impl Store for Memory {
    fn record(&self, _change: Change) -> Ticket {
        if self.0.is_degraded() {
            self.0.count_lost(1);
            return Ticket::LOST;
        }
        Ticket::NOTHING
    }

    fn standing(&self) -> &Standing {
        &self.0
    }

    fn journal(&self, _entry: Entry) {
        if self.0.is_degraded() {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn journal_lost(&self) -> u64 {
        self.1.load(Ordering::Relaxed)
    }

    fn lag(&self) -> Lag {
        Lag::default()
    }

    fn close(&self, _within: Duration) -> usize {
        0
    }
}
