//! What survives a restart: who owns which response, which account a key is pinned to, and which keys are in quarantine.
//!
//! The room does I/O and decides nothing. Its callers hold the truth in memory, write it there first, and [`record`]
//! every change; a writer thread of its own makes the changes durable in groups. A terminal event is passed on when
//! the [`Ticket`] of its owner is [`durable`], or when the caller is tired of waiting (invariant 11).
//!
//! Whatever happens to the disk, recording never blocks and never fails: serving goes on from memory, and [`Health`]
//! says what is at stake.
//!
//! [`record`]: Store::record
//! [`durable`]: Standing::durable

mod change;
mod directory;
mod fault;
mod inbox;
mod install_key;
pub mod journal;
mod ledger;
mod load;
mod memory;
mod place;
mod schema;
mod sqlite;
mod standing;
mod writer;

pub use change::{Before, Change, Loaded, OwnerRow, PinRow, QuarantineRow, Ticket};
pub use directory::{Directory, Holder};
pub use fault::{Reason, StateFault};
pub use install_key::InstallKey;
pub use memory::Memory;
pub use place::default_directory;
pub use sqlite::{Opened, Options, Sqlite};
pub use standing::{Degradation, Health, NotDurable, Standing};

use std::time::Duration;

use crate::journal::Entry;

/// Where changes go to outlive the process (STATE-1).
pub trait Store: Send + Sync {
    /// Hands a change over. Never blocks and never fails: a change that cannot be taken is counted as lost, and its
    /// ticket says so at once (STATE-6).
    fn record(&self, change: Change) -> Ticket;

    /// How far the store has come and how it is. Wait here for a ticket: `store.standing().durable(ticket).await`.
    fn standing(&self) -> &Standing;

    /// Keeps a journal entry, some time soon. Never blocks and never fails: under pressure it is dropped and counted
    /// (JRN-3).
    fn journal(&self, entry: Entry);

    /// Journal entries dropped since the start of the process.
    fn journal_lost(&self) -> u64;

    /// What is recorded and not yet durable (STATE-15).
    fn lag(&self) -> Lag;

    /// Writes what is left and stops; later changes are lost. Blocks for at most `within`, so an async caller runs it
    /// on a blocking thread. Returns how many changes could not be written (STATE-14).
    fn close(&self, within: Duration) -> usize;
}

/// What a crash at this moment would lose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lag {
    /// Changes recorded and not yet committed.
    pub changes: usize,
    /// Since when the oldest of them has been waiting; zero when there is none.
    pub age: Duration,
}
