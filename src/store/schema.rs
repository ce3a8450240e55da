//! The database file: how it is opened, told apart from others, and made.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::fault::{Reason, Trouble};
use super::journal;

/// Raised with every change to the tables; a file above it belongs to a newer program.
const VERSION: i64 = 3;
/// The version that brought the pins.
pub(super) const SINCE_PINS: i64 = 2;
/// "RBst" in the file's header: ours, and not any other database.
const APPLICATION: i64 = 0x5242_7374;

/// An owner without an account says that older rows of its hash no longer count: rows are only appended, since a
/// random key as the primary one costs seven times as much per row at a million rows. So there is no index on the
/// hash either, the caller has it in memory.
const TABLES: &str = "
    CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE owners (
        seq INTEGER PRIMARY KEY,
        hash BLOB NOT NULL,
        account INTEGER,
        session INTEGER NOT NULL,
        stored INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE quarantine (
        key BLOB PRIMARY KEY,
        generation INTEGER NOT NULL,
        open INTEGER NOT NULL,
        level INTEGER NOT NULL,
        until_ms INTEGER NOT NULL,
        level_until_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
";

/// Since version 2. Append-only, like the owners.
const PINS: &str = "
    CREATE TABLE pins (
        seq INTEGER PRIMARY KEY,
        key BLOB NOT NULL,
        account INTEGER NOT NULL,
        bound INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT;
";

/// A counter never goes back.
pub(super) const RAISE_COUNTER: &str = "
    INSERT INTO counters (name, value) VALUES (?1, ?2)
    ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)";

/// The counter of the last process that ended as it should: its epoch (STATE-20).
pub(super) const ENDED: &str = "ended";

/// What an opened file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing in it yet.
    Fresh,
    /// Ours, of this version.
    Ours,
    /// Ours, of this earlier version: readable, and brought up to date when it is claimed.
    Older(i64),
}

/// Opens the file, making an empty one (mode 0600) where there is none. Writes nothing into it.
///
/// `patience` bounds how long one statement waits for another program's lock.
pub(super) fn open(path: &Path, patience: Duration) -> rusqlite::Result<Connection> {
    // SQLite would make it readable for all; where this fails, SQLite's own attempt tells why.
    let _ = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    open_with(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        patience,
    )
}

pub(super) fn open_with(path: &Path, flags: OpenFlags, patience: Duration) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(patience)?;
    // Until the file is known to be ours and sound, closing it must not fold its journal into it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Which file a path names: it changes when somebody moves the file away or puts another one in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// None where there is no file.
    pub(super) fn of(path: &Path) -> io::Result<Option<FileId>> {
        match fs::metadata(path) {
            Ok(facts) => Ok(Some(FileId {
                device: facts.dev(),
                inode: facts.ino(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Tells what the file is, and refuses what is not ours to write to (STATE-9).
pub(super) fn examine(connection: &Connection) -> Result<Found, Trouble> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (version, application) = (pragma("user_version")?, pragma("application_id")?);
    if application == APPLICATION && version > VERSION {
        let detail = format!("its format is {version}, this program knows formats up to {VERSION}");
        return Err(Trouble {
            reason: Reason::Newer,
            detail,
        });
    }
    if application == APPLICATION && version == VERSION {
        return Ok(Found::Ours);
    }
    if application == APPLICATION && version > 0 {
        return Ok(Found::Older(version));
    }
    let objects: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application == 0 && version == 0 && objects == 0 {
        return Ok(Found::Fresh);
    }
    let detail = "it is a database of another program".to_owned();
    Err(Trouble {
        reason: Reason::Corrupt,
        detail,
    })
}

/// Makes the tables if need be, brings those of an earlier version up to date (STATE-19), and enters this process's
/// epoch: the first write, so it also shows whether writing works at all.
pub(super) fn claim(connection: &mut Connection, found: Found, epoch: u64) -> Result<(), Trouble> {
    // A commit then survives the death of the process without an fsync, and that of the machine mostly.
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if found == Found::Fresh {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
    }
    if matches!(found, Found::Fresh | Found::Older(..SINCE_PINS)) {
        transaction.execute_batch(PINS)?;
    }
    if found != Found::Ours {
        // All that version 2 lacks.
        transaction.execute_batch(journal::TABLES)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.execute(RAISE_COUNTER, ("epoch", epoch.cast_signed()))?;
    // That it is there says that this process would have raised it.
    transaction.execute(RAISE_COUNTER, (ENDED, 0))?;
    transaction.commit()?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}
