//! Whether a request's input only adds to what a socket has seen, so that the new items alone need to be sent
//! (CONT-3..CONT-12).
//!
//! ```text
//!  body --Outline::of--> Outline --extends(History)--> Extension: skip so many items      or Rejected: send in full
//!                           |                              |
//!                           +---------> Draft::new <-------+
//!                                         | output(item)… while the turn runs
//!                                         v
//!                                      finish --> History, for the next request on this socket
//! ```
//! An item is first compared by a keyed digest of its raw bytes. Only where that is unknown is it read, brought to its
//! canonical form and compared by the digest of that. When in doubt items differ: sending in full is always right.

pub use compared::{Compared, Extends, Remembered};
pub use digest::Digester;
pub use draft::Draft;
pub use history::History;
pub use matching::{Extension, extends};
pub use outline::{Outline, window};

mod compared;
mod digest;
mod draft;
mod history;
mod matching;
mod outline;

/// Why a request does not continue what the socket remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rejected {
    /// Another `model`.
    Model,
    /// Other `instructions`.
    Instructions,
    /// Other `tools`.
    Tools,
    /// Another compared member differs.
    Settings,
    /// Another `x-codex-window-id`: the client has compacted its history.
    Window,
    /// A compaction item is among the new ones, or stands where the socket has seen another item.
    Compaction,
    /// An item that the socket has seen is another one now, stands elsewhere, or is gone.
    Edited,
    /// The input holds nothing that the socket has not seen.
    Shorter,
    /// The socket remembers no item.
    Nothing,
}

impl Rejected {
    /// Every reason, for tests and documents.
    pub const ALL: [Self; 9] = [
        Self::Model,
        Self::Instructions,
        Self::Tools,
        Self::Settings,
        Self::Window,
        Self::Compaction,
        Self::Edited,
        Self::Shorter,
        Self::Nothing,
    ];

    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Instructions => "instructions",
            Self::Tools => "tools",
            Self::Settings => "settings",
            Self::Window => "window",
            Self::Compaction => "compaction",
            Self::Edited => "edited",
            Self::Shorter => "shorter",
            Self::Nothing => "nothing",
        }
    }
}

#[cfg(test)]
mod tests;
