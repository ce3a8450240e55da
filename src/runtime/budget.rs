//! One budget for all bytes that the bridge holds for its clients: decoded bodies, client buffers, write buffers
//! (`server.body_budget`, INV-7).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The budget. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Budget {
    limit: usize,
    used: Arc<AtomicUsize>,
}

/// Bytes taken from a [`Budget`]; given back on drop.
#[derive(Debug)]
pub struct Held {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    /// `limit` is in bytes.
    pub fn new(limit: usize) -> Self {
        Budget { limit, used: Arc::default() }
    }

    /// Bytes in use now, for the gauge.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes `bytes`, or `None` when the budget would be overrun: the caller refuses the request.
    pub fn hold(&self, bytes: usize) -> Option<Held> {
        let mut held = self.nothing();
        held.grow(bytes).then_some(held)
    }

    /// A holder of no bytes, to be grown.
    pub fn nothing(&self) -> Held {
        Held { budget: self.clone(), bytes: 0 }
    }
}

impl Held {
    /// Takes `more` bytes; `false` (and nothing taken) when that would overrun the budget.
    pub fn grow(&mut self, more: usize) -> bool {
        let used = &self.budget.used;
        let fits = |now: usize| now.checked_add(more).filter(|total| *total <= self.budget.limit);
        let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if taken {
            self.bytes += more;
        }
        taken
    }

    /// Sets the bytes held to `bytes`, whatever the limit: for bytes that are already here and must not be lost. The
    /// overrun is bounded by the buffers' own caps, and new requests are refused meanwhile.
    pub fn set(&mut self, bytes: usize) {
        if bytes >= self.bytes {
            self.budget.used.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            self.budget.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [INV-7] the budget is exact at its cap, refuses at cap + 1, and is whole again after every holder is gone.
    #[test]
    fn cap_and_cap_plus_one() {
        let budget = Budget::new(10);
        let mut a = budget.hold(6).unwrap();
        assert!(a.grow(4));
        assert!(!a.grow(1));
        assert!(budget.hold(1).is_none());
        a.set(12);
        assert_eq!(budget.used(), 12);
        drop(a);
        assert_eq!(budget.used(), 0);
        assert!(budget.hold(10).is_some());
    }
}
