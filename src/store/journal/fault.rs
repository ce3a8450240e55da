//! Why a journal cannot be read, in words that name the way out.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::fault::{Reason, StateFault, Trouble};

/// Why there is no answer from a journal. Nothing on disk was changed.
#[derive(Debug, thiserror::Error)]
pub enum ReadFault {
    /// No bridge has kept its state there.
    #[error(
        "there is no state in {}: name the folder where a bridge keeps its own with --state, or its configuration with \
         --config", .0.display()
    )]
    Nothing(PathBuf),
    /// The file is there, and nothing was ever written into it.
    #[error(
        "{} is empty: the bridge that made it could not write to it, or it was cut to nothing afterwards; that bridge's log \
         says `store_degraded` and why. Restore a copy, or start the bridge again, which makes it anew", .0.display()
    )]
    Empty(PathBuf),
    /// The key of all names cannot be read.
    #[error(transparent)]
    Key(StateFault),
    /// The file is there and cannot be opened by this user.
    #[error("{} cannot be opened: {source}. Read it as the user that the bridge runs as", path.display())]
    Closed {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is of a program that kept no journal.
    #[error(
        "{} was written by an earlier version (format {version}), which kept no journal: the `serve` of this version \
         brings it up to date, and keeps one from then on", path.display()
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// Its format.
        version: i64,
    },
    /// The file is of a newer program, damaged, locked, or otherwise of no use.
    #[error("the journal in {} cannot be read ({}): {detail}; {}", path.display(), reason.label(), way_out(*reason))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The kind of failure.
        reason: Reason,
        /// SQLite's words, or ours.
        detail: String,
    },
}

impl ReadFault {
    pub(super) fn of(path: &Path, trouble: Trouble) -> ReadFault {
        ReadFault::Unreadable {
            path: path.to_owned(),
            reason: trouble.reason,
            detail: trouble.detail,
        }
    }
}

/// What a reader can do about it.
fn way_out(reason: Reason) -> &'static str {
    match reason {
        Reason::Newer => "read it with the program that wrote it",
        Reason::Corrupt => {
            "restore a copy; or move the file away, and the bridge makes a new one at once (what was in it is lost)"
        }
        Reason::Locked => "end the program that has the database open, and try again",
        Reason::Denied | Reason::ReadOnly => "read it as the user that the bridge runs as",
        Reason::Full => "free some space for temporary files, and try again",
        Reason::Io | Reason::QueueFull => "look at the disk, and try again",
    }
}
