//! How far the store has come and how it is: shared by the writer, by those who record, and by those who wait.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use tokio::sync::{Notify, watch};

use super::change::Ticket;
use super::fault::Reason;

/// Whether changes become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Nothing has gone wrong so far.
    Healthy,
    /// Changes are kept in memory, as far as there is room, and tried again.
    Degraded(Degradation),
    /// As good as healthy; carries what was, for a reader who missed it.
    Recovered(Degradation),
}

/// One time of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Degradation {
    /// What is wrong at the moment, or was at last.
    pub reason: Reason,
    /// When it began.
    pub since: SystemTime,
    /// Changes dropped in it, which will never be written.
    pub lost: u64,
}

/// Why a change is not known to be durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotDurable {
    /// The store is degraded; the change waits in memory and may yet be written.
    #[error("the state is degraded ({})", .0.label())]
    Degraded(Reason),
    /// The change was dropped.
    #[error("the change was dropped")]
    Lost,
}

/// The committed watermark and the health (STATE-6, STATE-7). Recording and waiting allocate nothing.
#[derive(Debug)]
pub struct Standing {
    /// Every ticket up to this one is committed.
    committed: AtomicU64,
    degraded: AtomicBool,
    /// No writer is left that could commit anything.
    ended: AtomicBool,
    lost: AtomicU64,
    /// `lost` at the beginning of the current degradation.
    lost_before: AtomicU64,
    health: watch::Sender<Health>,
    /// Rung after every change to the fields above.
    moved: Notify,
}

impl Standing {
    pub(super) fn new() -> Self {
        Standing {
            committed: AtomicU64::new(0),
            degraded: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            lost: AtomicU64::new(0),
            lost_before: AtomicU64::new(0),
            health: watch::Sender::new(Health::Healthy),
            moved: Notify::new(),
        }
    }

    /// Resolves when the change is committed, and with an error as soon as that cannot be expected soon: at once
    /// while the store is degraded, so that terminals are not held for nothing. Cancel-safe.
    pub async fn durable(&self, ticket: Ticket) -> Result<(), NotDurable> {
        loop {
            // Enlisted before looking, or a commit between the look and the wait would go unheard.
            let moved = self.moved.notified();
            if let Some(verdict) = self.verdict(ticket) {
                return verdict;
            }
            moved.await;
        }
    }

    fn verdict(&self, ticket: Ticket) -> Option<Result<(), NotDurable>> {
        if ticket == Ticket::LOST {
            return Some(Err(NotDurable::Lost));
        }
        // Read in the opposite order of `close`: a writer that committed and ended has committed.
        let ended = self.ended.load(Ordering::Acquire);
        if self.committed.load(Ordering::Acquire) >= ticket.0 {
            return Some(Ok(()));
        }
        if ended {
            return Some(Err(NotDurable::Lost));
        }
        if self.degraded.load(Ordering::Acquire)
            && let Health::Degraded(degradation) = *self.health.borrow()
        {
            return Some(Err(NotDurable::Degraded(degradation.reason)));
        }
        None
    }

    /// How the store is now.
    pub fn health(&self) -> Health {
        match *self.health.borrow() {
            Health::Degraded(mut degradation) => {
                degradation.lost = self.lost_since();
                Health::Degraded(degradation)
            }
            other => other,
        }
    }

    /// Wakes at every change from well to ill, from ill to well, and of the reason (STATE-7). The count of losses in
    /// a `Degraded` that comes this way is that of the moment it was sent.
    pub fn watch(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    /// Changes dropped since the start of the process.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn lost_since(&self) -> u64 {
        self.lost()
            .saturating_sub(self.lost_before.load(Ordering::Relaxed))
    }

    pub(super) fn advance(&self, through: Ticket) {
        self.committed.store(through.0, Ordering::Release);
        self.moved.notify_waiters();
    }

    pub(super) fn count_lost(&self, changes: u64) {
        self.lost.fetch_add(changes, Ordering::Relaxed);
    }

    pub(super) fn is_degraded(&self) -> bool {
        self.degraded.load(Ordering::Acquire)
    }

    pub(super) fn degrade(&self, reason: Reason) {
        self.health.send_if_modified(|health| match health {
            Health::Degraded(now) => {
                // A queue that fills up because the disk is full is the disk's fault.
                let changed = now.reason != reason && reason != Reason::QueueFull;
                if changed {
                    now.reason = reason;
                }
                changed
            }
            Health::Healthy | Health::Recovered(_) => {
                self.lost_before.store(self.lost(), Ordering::Relaxed);
                *health = Health::Degraded(Degradation {
                    reason,
                    since: SystemTime::now(),
                    lost: 0,
                });
                true
            }
        });
        self.degraded.store(true, Ordering::Release);
        self.moved.notify_waiters();
    }

    pub(super) fn recover(&self) {
        if !self.is_degraded() {
            return;
        }
        self.degraded.store(false, Ordering::Release);
        self.health.send_if_modified(|health| {
            let Health::Degraded(was) = *health else {
                return false;
            };
            *health = Health::Recovered(Degradation {
                lost: self.lost_since(),
                ..was
            });
            true
        });
    }

    /// Nothing will be committed any more: whoever waits, waits in vain.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.moved.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
