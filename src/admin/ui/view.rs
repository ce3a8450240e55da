//! What the page shows, as plain values: whoever fills them has looked, whoever draws them only draws.
//!
//! Spans are seen from the moment of the look. Keys are short keyed hashes; nothing here can be reversed to an id.

use std::time::Duration;

pub use crate::runtime::operate::{
    AccountView, BreakerView, LatencyView, Overview as Figures, QuarantineView, SessionView, TurnView,
};

/// Everything on the first page, after the filter.
#[derive(Clone, Debug)]
pub struct Overview {
    pub version: &'static str,
    pub uptime: Duration,
    pub figures: Figures,
    pub store: Store,
    /// Running turns, the longest running first.
    pub turns: Vec<TurnView>,
    /// Those with a turn first.
    pub sessions: Vec<SessionView>,
    /// Keys in quarantine; not those of which only the level is remembered.
    pub quarantine: Vec<QuarantineView>,
    /// In the order of the configuration.
    pub accounts: Vec<Account>,
    pub latency: LatencyView,
    /// Turns whose `response.created` never came within the deadline, since the process began.
    pub silent: u64,
    /// Latest first.
    pub events: Vec<Happened>,
}

/// An account and its WebSocket transport.
#[derive(Clone, Debug)]
pub struct Account {
    pub account: AccountView,
    pub breaker: BreakerView,
}

impl Account {
    /// `provider/account`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.account.provider, self.account.account)
    }
}

/// Whether what is decided outlives the process.
#[derive(Clone, Debug, Default)]
pub struct Store {
    /// What is wrong with it, where something is.
    pub trouble: Option<Trouble>,
    /// Changes that will never be on disk.
    pub lost: u64,
    pub journal: Journal,
}

/// Why the state is not on disk, and what to do.
#[derive(Clone, Debug)]
pub struct Trouble {
    pub reason: String,
    pub way_out: String,
}

/// Whether turns and incidents are written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Journal {
    /// `journal.max` is 0.
    #[default]
    Off,
    /// Kept; `lost` rows were not written, for want of room or of a disk.
    On { lost: u64 },
}

/// One event.
#[derive(Clone, Debug)]
pub struct Happened {
    pub number: u64,
    /// RFC 3339.
    pub at: String,
    /// `info` or `warn`.
    pub level: String,
    pub event: String,
    /// `provider/account`.
    pub account: Option<String>,
    /// The other fields, name and value.
    pub fields: Vec<(String, String)>,
}

/// What the operator wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// `provider/account`, or the account alone.
    pub account: Option<String>,
    /// Kinds of events, `*` for any run of characters.
    pub kind: Option<String>,
}
