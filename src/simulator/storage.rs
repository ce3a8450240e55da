//! Stored responses: what `store: true` keeps, readable by the account that made it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use serde_json::Value;
use tokio::time::Instant;

use super::transcript::Transcript;

/// How many responses are kept; beyond it the least recently used one is forgotten.
const KEPT: usize = 4_096;

/// One stored response.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Whose it is.
    pub account: String,
    /// The object with its output.
    pub object: Arc<str>,
    /// Its events, as a resumed stream gets them, with their types.
    pub events: Arc<Vec<(&'static str, String)>>,
    /// What the model saw.
    pub input: Transcript,
    /// What the model saw and said.
    pub transcript: Transcript,
    /// Whether it runs in the background.
    pub background: bool,
    /// When a background response is finished.
    pub ready_at: Instant,
    /// Whether it was cancelled before.
    pub cancelled: bool,
}

impl Stored {
    /// The object as it is now: a background response is unfinished until its time has come.
    pub fn object_at(&self, now: Instant) -> String {
        let status = match (self.cancelled, now < self.ready_at) {
            (true, _) => "cancelled",
            (false, true) => "in_progress",
            (false, false) => return self.object.to_string(),
        };
        let mut object: Value = serde_json::from_str(&self.object).unwrap_or_default();
        object["status"] = Value::from(status);
        object["output"] = Value::Array(Vec::new());
        object["usage"] = Value::Null;
        object.to_string()
    }
}

/// All stored responses. A std mutex: nothing is awaited while it is held.
#[derive(Debug)]
pub struct Storage(Mutex<LruCache<String, Stored>>);

impl Default for Storage {
    fn default() -> Storage {
        // Unbounded at first, so that nothing is allocated for responses that never come; `keep` bounds it.
        Storage(Mutex::new(LruCache::unbounded()))
    }
}

impl Storage {
    /// Keeps a response.
    pub fn keep(&self, id: String, stored: Stored) {
        let mut responses = self.lock();
        responses.push(id, stored);
        while responses.len() > KEPT {
            responses.pop_lru();
        }
    }

    /// A response of this account.
    pub fn find(&self, account: &str, id: &str) -> Option<Stored> {
        self.lock()
            .get(id)
            .filter(|stored| stored.account == account)
            .cloned()
    }

    /// Forgets a response of this account; false when there was none.
    pub fn remove(&self, account: &str, id: &str) -> bool {
        let mut responses = self.lock();
        let known = responses.peek(id).is_some_and(|stored| stored.account == account);
        known && responses.pop(id).is_some()
    }

    /// Cancels a background response of this account that is still running.
    pub fn cancel(&self, account: &str, id: &str, now: Instant) -> Option<Stored> {
        let mut responses = self.lock();
        let stored = responses.get_mut(id).filter(|stored| stored.account == account)?;
        stored.cancelled |= stored.background && now < stored.ready_at;
        Some(stored.clone())
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<String, Stored>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
