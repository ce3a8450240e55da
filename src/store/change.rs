//! The rows, and the changes to them.

use std::sync::Arc;

/// The account that made a response (STATE-1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerRow {
    /// Keyed hash of tenant and response id; the ids themselves are never written.
    pub hash: [u8; 16],
    /// `provider/account`. Shared: rows of one account point to one string.
    pub account: Arc<str>,
    /// The session that made it. Numbers of an earlier process mean nothing to this one unless they carry its
    /// [`Loaded::epoch`].
    pub session: u64,
    /// Upstream keeps the response (`store: true`), so that any socket of the account can continue it.
    pub stored: bool,
    /// Unix seconds from which on the row no longer counts.
    pub expires_at: u64,
}

/// A key's quarantine, or what is remembered of it. It is forgotten once both times have passed (STATE-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuarantineRow {
    /// The hashed affinity key.
    pub key: [u8; 16],
    /// From the process-wide counter; an older one never replaces or removes a newer one (STATE-4).
    pub generation: u64,
    /// Whether the key's turns go by direct HTTP; false for a cleared key whose level is still remembered.
    pub open: bool,
    /// How often the window has been doubled.
    pub level: u32,
    /// Unix milliseconds at which the window ends.
    pub until_ms: u64,
    /// Unix milliseconds until which the level is remembered.
    pub level_until_ms: u64,
}

/// Which account a key is pinned to (STATE-18).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinRow {
    /// Keyed hash of tenant and affinity key.
    pub key: [u8; 16],
    /// `provider/account`, shared as in [`OwnerRow::account`].
    pub account: Arc<str>,
    /// A response or an account-bound item of the key's lives there.
    pub bound: bool,
    /// Unix seconds from which on the row no longer counts.
    pub expires_at: u64,
}

/// One thing that must outlive the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A new owner, or a newer fact about a known one: the latest row of a hash counts.
    Owner(OwnerRow),
    /// No row of this hash recorded so far counts any more.
    OwnerRemoved([u8; 16]),
    /// A key's account: the latest row of a key counts.
    Pin(PinRow),
    /// A key's quarantine as it is now.
    Quarantine(QuarantineRow),
    /// The quarantine of a key is forgotten, unless a newer generation has been recorded.
    QuarantineRemoved {
        /// The hashed affinity key.
        key: [u8; 16],
        /// The generation that is removed.
        generation: u64,
    },
}

/// How the process before this one ended (STATE-20).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Before {
    /// There was none that would have said so: the file is new, or of an earlier version.
    #[default]
    None,
    /// After a drain, or it had nothing to drain.
    Drained,
    /// It was killed, ran into a fault, or could not write any more: its last turns may have left no trace.
    Cut,
    /// There is a file that would say so, and it could not be read.
    Unknown,
}

impl Before {
    /// As events say it.
    pub fn label(self) -> &'static str {
        match self {
            Before::None => "none",
            Before::Drained => "drained",
            Before::Cut => "cut",
            Before::Unknown => "unknown",
        }
    }
}

/// What an earlier process left (STATE-2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Unexpired owners, newest last, at most [`Options::max_owners`](super::Options::max_owners). A hash may occur
    /// more than once: the last one counts.
    pub owners: Vec<OwnerRow>,
    /// Unexpired pins, newest last, at most [`Options::max_pins`](super::Options::max_pins), one for each key.
    pub pins: Vec<PinRow>,
    /// Quarantines that are not over, oldest generation first, at most
    /// [`Options::max_quarantine`](super::Options::max_quarantine).
    pub quarantine: Vec<QuarantineRow>,
    /// The highest generation ever recorded; the counter goes on from here.
    pub generation: u64,
    /// The number of this process: above that of every earlier one that wrote to the file, about the unix seconds of
    /// the start. Session numbers that begin with it never meet those of a dead process (STATE-5).
    pub epoch: u64,
    /// How the process before this one ended.
    pub before: Before,
    /// When the latest journal entry is from, in unix milliseconds; none where there is none.
    pub journal_until: Option<u64>,
}

/// The place of a change in the order of all changes of this process. Costs eight bytes; waiting for it is
/// [`Standing::durable`](super::Standing::durable).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(pub(super) u64);

impl Ticket {
    /// The ticket of a change that was not taken.
    pub(super) const LOST: Ticket = Ticket(u64::MAX);
    /// The ticket of a change for which nothing has to be written.
    pub(super) const NOTHING: Ticket = Ticket(0);
}
