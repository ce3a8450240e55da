//! What all connections of one simulator share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::broadcast;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::behaviour::{Ending, Gate, Part, Transport};
use super::book::Book;
use super::script::Script;
use super::storage::Storage;

/// What a sealed content begins with, as real ones do, and then a mark that no real one has.
const SEAL: &str = "gAAAAABsim";

/// Beyond so many counted words all counts start again; scripts count a handful.
const MAX_HITS: usize = 100_000;

/// Shared by all connections of one simulator.
#[derive(Debug)]
pub struct State {
    /// The script; it can be replaced while turns run.
    pub script: ArcSwap<Script>,
    /// What was seen.
    pub book: Book,
    /// Stored responses.
    pub storage: Storage,
    /// Ends every open socket in the same way.
    pub endings: broadcast::Sender<Ending>,
    /// Cancelled when the simulator stops.
    pub stopping: CancellationToken,
    /// Every task of the simulator.
    pub tasks: TaskTracker,
    secret: [u8; 32],
    responses: AtomicU64,
    upgrades: AtomicU64,
    hits: Mutex<HashMap<String, u32>>,
}

impl State {
    /// The state of a new simulator. No other simulator makes the same ids.
    pub fn new(script: Script) -> State {
        State {
            script: ArcSwap::from_pointee(script),
            book: Book::new(Instant::now()),
            storage: Storage::default(),
            endings: broadcast::channel(16).0,
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
            secret: *blake3::hash(uuid::Uuid::now_v7().as_bytes()).as_bytes(),
            responses: AtomicU64::new(0),
            upgrades: AtomicU64::new(0),
            hits: Mutex::default(),
        }
    }

    /// The hash that all ids of the next response are derived from.
    pub fn seed(&self) -> blake3::Hash {
        let number = self.responses.fetch_add(1, Ordering::Relaxed);
        blake3::keyed_hash(&self.secret, &number.to_le_bytes())
    }

    /// The number of the next upgrade, counted from 1.
    pub fn next_upgrade(&self) -> u64 {
        self.upgrades.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Encrypted content that only this account can use, about as long as a real one.
    pub fn seal(&self, account: &str, id: &str) -> String {
        let filling = blake3::keyed_hash(&self.secret, id.as_bytes()).to_hex();
        format!("{SEAL}{}{}", self.mark(account), filling.as_str().repeat(6))
    }

    /// Whether this content was sealed by another simulator or for another account.
    pub fn is_foreign(&self, account: &str, content: &str) -> bool {
        content
            .strip_prefix(SEAL)
            .is_some_and(|rest| !rest.starts_with(&self.mark(account)))
    }

    fn mark(&self, account: &str) -> String {
        blake3::keyed_hash(&self.secret, account.as_bytes()).to_hex()[..16].to_owned()
    }

    /// The parts whose gates are open, for one more create of this conversation.
    pub fn open_parts(
        &self,
        conversation: &str,
        source: &str,
        parts: &[Part],
        transport: Transport,
    ) -> Vec<Part> {
        let here = parts
            .iter()
            .filter(|part| part.gate.on.is_none_or(|on| on == transport));
        let open =
            here.filter(|part| self.passes(&part.gate, &format!("{conversation} {source} {}", part.label)));
        open.cloned().collect()
    }

    /// Counts one more hit of a gate, and says whether it is still open.
    pub fn passes(&self, gate: &Gate, key: &str) -> bool {
        let mut hits = self.hits.lock().unwrap_or_else(PoisonError::into_inner);
        if hits.len() >= MAX_HITS {
            hits.clear();
        }
        let hit = hits.entry(key.to_owned()).or_default();
        *hit += 1;
        gate.open(*hit)
    }

    /// Forgets all counts and pages; stored responses and open sockets stay.
    pub fn reset(&self) {
        self.hits.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.book.reset();
    }

    /// Replaces the script; what it counts starts again.
    pub fn rescript(&self, script: Script) {
        self.hits.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.script.store(std::sync::Arc::new(script));
    }
}
