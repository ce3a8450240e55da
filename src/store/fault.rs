//! What can be wrong with the state on disk, in a closed set of reasons and in words that name the way out.

use std::io;
use std::path::PathBuf;

use rusqlite::ErrorCode;

use super::directory::Holder;

/// Why changes are not becoming durable. A closed set: it is a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No space is left.
    Full,
    /// The file or its file system cannot be written.
    ReadOnly,
    /// Another program holds the database's own lock.
    Locked,
    /// The file is damaged, or not a database of ours.
    Corrupt,
    /// The file was written by a newer version of this program.
    Newer,
    /// This user may not open it.
    Denied,
    /// Any other failure of the disk.
    Io,
    /// More changes came than could be kept waiting.
    QueueFull,
}

impl Reason {
    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Reason::Full => "full",
            Reason::ReadOnly => "read_only",
            Reason::Locked => "locked",
            Reason::Corrupt => "corrupt",
            Reason::Newer => "newer",
            Reason::Denied => "denied",
            Reason::Io => "io",
            Reason::QueueFull => "queue_full",
        }
    }

    /// What an operator can do about it.
    pub fn way_out(self) -> &'static str {
        match self {
            Reason::Full => "free some space on that disk; writing resumes by itself",
            Reason::ReadOnly => {
                "make the file and its folder writable for this user; writing resumes by itself"
            }
            Reason::Locked => "end the program that has the database open; writing resumes by itself",
            Reason::Corrupt => {
                "move the file away (a new one is made at once), or restore a copy and restart"
            }
            Reason::Newer => "run the newer version again, or move the file away (a new one is made at once)",
            Reason::Denied => "give this user the right to read and write the file and its folder",
            Reason::Io => "look at the disk; writing resumes by itself",
            Reason::QueueFull => "the disk is slower than the changes come; writing goes on by itself",
        }
    }

    pub(super) fn of_io(error: &io::Error) -> Reason {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Reason::Full,
            io::ErrorKind::ReadOnlyFilesystem => Reason::ReadOnly,
            io::ErrorKind::PermissionDenied => Reason::Denied,
            _ => Reason::Io,
        }
    }
}

/// A failure inside the database, before it is known whether it meets a start or a running process.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) reason: Reason,
    /// SQLite's own words; bound values are never part of them.
    pub(super) detail: String,
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        let reason = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Reason::Full,
            Some(ErrorCode::ReadOnly) => Reason::ReadOnly,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Reason::Locked,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Reason::Corrupt,
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Reason::Denied,
            Some(_) => Reason::Io,
            // Not SQLite's but rusqlite's: a value of another type or size than the schema allows.
            None => Reason::Corrupt,
        };
        Trouble {
            reason,
            detail: error.to_string(),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble {
            reason: Reason::of_io(&error),
            detail: error.to_string(),
        }
    }
}

/// Why the state on disk cannot be used, or not fully. Nothing on disk was changed (STATE-9).
#[derive(Debug, thiserror::Error)]
pub enum StateFault {
    /// Another live process uses the directory.
    #[error(
        "another process uses the state directory {}: {holder}. Stop it, or give this one a directory of its own \
         (state.path)", path.display()
    )]
    Held {
        /// The directory.
        path: PathBuf,
        /// Who holds it, as far as it is known.
        holder: Holder,
    },
    /// The key file is not 32 bytes long.
    #[error(
        "{} has {bytes} bytes and not 32: restore it from a copy; or, to begin anew, move it and the database beside \
         it away (every hash in the database depends on the key)", path.display()
    )]
    KeyLength {
        /// The key file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// The key file is gone, and what depends on it is there.
    #[error(
        "{} is gone, and {} beside it cannot be used without it: restore the key from a copy; or, to begin anew, move the \
         database away too (every hash in it depends on the key)", key.display(), database.display()
    )]
    KeyGone {
        /// Where the key file was.
        key: PathBuf,
        /// The database file.
        database: PathBuf,
    },
    /// The key file is open to other users.
    #[error("{} can be read by other users (mode {mode:04o}): run `chmod 600` on it", path.display())]
    KeyExposed {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The directory, its lock or its key cannot be made, read or written.
    #[error(
        "state cannot be kept in {}: {source}. Make it a folder that this user can write to, or set state.path, and \
         restart", path.display()
    )]
    Directory {
        /// What was touched.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The database cannot be read or written.
    #[error("the state file {} cannot be used ({}): {detail}; {}", path.display(), reason.label(), reason.way_out())]
    Database {
        /// The database file.
        path: PathBuf,
        /// The kind of failure.
        reason: Reason,
        /// SQLite's words.
        detail: String,
    },
    /// No environment variable tells where state may be kept.
    #[error("none of STATE_DIRECTORY, XDG_STATE_HOME and HOME is an absolute path: set state.path")]
    Nowhere,
}

impl StateFault {
    /// Whether to serve at all would be wrong: two processes would share one state, or hashes would rest on a key
    /// that is not secret. All other faults leave serving from memory (STATE-8).
    pub fn forbids_serving(&self) -> bool {
        matches!(
            self,
            StateFault::Held { .. }
                | StateFault::KeyLength { .. }
                | StateFault::KeyGone { .. }
                | StateFault::KeyExposed { .. }
        )
    }

    /// The reason for events and metrics, where serving goes on.
    pub fn reason(&self) -> Reason {
        match self {
            StateFault::Held { .. } => Reason::Locked,
            StateFault::KeyLength { .. } | StateFault::KeyGone { .. } => Reason::Corrupt,
            StateFault::KeyExposed { .. } => Reason::Denied,
            StateFault::Directory { source, .. } => Reason::of_io(source),
            StateFault::Database { reason, .. } => *reason,
            StateFault::Nowhere => Reason::Io,
        }
    }
}
