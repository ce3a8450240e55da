//! The store that outlives the process: SQLite in the state directory.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::change::{Before, Change, Loaded, Ticket};
use super::directory::Directory;
use super::fault::{Reason, StateFault, Trouble};
use super::inbox::{Inbox, Refused};
use super::journal::{Bounds as JournalBounds, Keeping};
use super::ledger::Ledger;
use super::load::{self, Bounds};
use super::schema::{self, FileId, Found};
use super::standing::Standing;
use super::writer::{Connector, Writer, unix_ms};
use super::{Lag, Store};
use crate::journal::Entry;

/// Below the 250 ms for which a terminal may be held, so a lock of another program is known before that.
const PATIENCE: Duration = Duration::from_millis(100);

/// Bounds and pace.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Owners loaded at most, and about half of the most kept in the file; the cap of the caller's own map.
    pub max_owners: usize,
    /// Pins loaded at most; the cap of the caller's own map. The file keeps a few rows for each of so many.
    pub max_pins: usize,
    /// Quarantines loaded at most; the cap of the caller's own map.
    pub max_quarantine: usize,
    /// Changes that may be uncommitted at once, about 80 bytes each: the queue, and the backlog of an outage.
    pub max_pending: usize,
    /// How long a commit waits for others to join it.
    pub linger: Duration,
    /// What the journal keeps.
    pub journal: JournalBounds,
}

impl Options {
    /// Eleven minutes of a hundred turns a second.
    pub const DEFAULT_MAX_PENDING: usize = 65_536;
    /// Nobody sees a millisecond, and a busy bridge saves most of its commits.
    pub const DEFAULT_LINGER: Duration = Duration::from_millis(1);

    /// The usual queue and pace, and a journal that nothing leaves.
    pub fn new(max_owners: usize, max_pins: usize, max_quarantine: usize) -> Self {
        Options {
            max_owners,
            max_pins,
            max_quarantine,
            max_pending: Self::DEFAULT_MAX_PENDING,
            linger: Self::DEFAULT_LINGER,
            journal: JournalBounds::NONE,
        }
    }
}

/// SQLite with a writer thread of its own. Dropped without [`Store::close`], it writes what is waiting in the
/// background, if the process lives long enough.
pub struct Sqlite {
    inbox: Arc<Inbox>,
    standing: Arc<Standing>,
    /// Disconnects when the writer has ended.
    ended: Mutex<Receiver<()>>,
}

/// A store, and what was found in it.
pub struct Opened {
    /// Usable in any case; with a fault it is degraded and keeps trying.
    pub store: Sqlite,
    /// Empty where the file could not be read; complete where it can be read and not be written.
    pub loaded: Loaded,
    /// What is wrong, to be told at the start. [`Standing::health`] has its reason.
    pub fault: Option<StateFault>,
}

impl Sqlite {
    /// Opens the database, reads what is left in it and starts the writer. Never fails: with a damaged, foreign or
    /// newer file, which stays as it is, serving goes on from memory (STATE-8, STATE-9).
    ///
    /// The directory's lock is held until the last write is done. Blocks: call it before serving.
    pub fn open(directory: Directory, options: Options, now: SystemTime) -> Opened {
        let path = directory.database();
        let file = path.clone();
        Sqlite::with(
            Box::new(move || schema::open(&file, PATIENCE)),
            path,
            Some(directory),
            options,
            now,
        )
    }

    fn with(
        connect: Connector,
        path: PathBuf,
        directory: Option<Directory>,
        options: Options,
        now: SystemTime,
    ) -> Opened {
        let now_ms = unix_ms(now);
        let bounds = Bounds {
            owners: options.max_owners,
            pins: options.max_pins,
            quarantine: options.max_quarantine,
            now_ms,
        };
        let mut loaded = Loaded {
            epoch: now_ms / 1000,
            ..Loaded::default()
        };
        let mut ledger = None;
        let mut trouble = start(&connect, bounds, options, &mut loaded)
            .map(|ready| ledger = Some(ready))
            .err();

        let inbox = Arc::new(Inbox::new(options.max_pending));
        let standing = Arc::new(Standing::new());
        let (alive, ended) = sync_channel::<()>(0);
        let writer = Writer {
            connect,
            // Unknown counts as absent; the first sweep looks again.
            file: FileId::of(&path).unwrap_or_default(),
            path: path.clone(),
            damaged: trouble
                .as_ref()
                .is_some_and(|trouble| trouble.reason == Reason::Corrupt),
            ledger,
            journal: Keeping::new(options.journal),
            inbox: inbox.clone(),
            standing: standing.clone(),
            options,
            epoch: loaded.epoch,
            _directory: directory,
        };
        if let Some(Trouble { reason, .. }) = &trouble {
            standing.degrade(*reason);
        }
        let spawned = std::thread::Builder::new()
            .name("state-writer".to_owned())
            .spawn(move || {
                writer.run();
                drop(alive);
            });
        if let Err(error) = spawned {
            inbox.close();
            standing.degrade(Reason::Io);
            standing.end();
            trouble = trouble.or(Some(Trouble {
                reason: Reason::Io,
                detail: error.to_string(),
            }));
        }
        let fault = trouble.map(|Trouble { reason, detail }| StateFault::Database { path, reason, detail });
        Opened {
            store: Sqlite {
                inbox,
                standing,
                ended: Mutex::new(ended),
            },
            loaded,
            fault,
        }
    }
}

/// Reads first and writes last, so that what can be read is served even where nothing can be written.
fn start(
    connect: &Connector,
    bounds: Bounds,
    options: Options,
    loaded: &mut Loaded,
) -> Result<Ledger, Trouble> {
    // Until it is known: a file that cannot be read is not one that is not there.
    loaded.before = Before::Unknown;
    let mut connection = connect()?;
    let found = schema::examine(&connection)?;
    if found == Found::Fresh {
        loaded.before = Before::None;
    } else {
        let epoch = loaded
            .epoch
            .max(load::counter(&connection, "epoch")?.saturating_add(1));
        *loaded = Loaded {
            epoch,
            ..load::load(&connection, found, bounds)?
        };
    }
    schema::claim(&mut connection, found, loaded.epoch)?;
    Ok(Ledger::new(connection, options.max_owners, options.max_pins))
}

impl Store for Sqlite {
    fn record(&self, change: Change) -> Ticket {
        self.inbox.put(change, |refused| {
            // First the incident, then the loss: it is part of it.
            if refused == Refused::Full {
                self.standing.degrade(Reason::QueueFull);
            }
            self.standing.count_lost(1);
        })
    }

    fn standing(&self) -> &Standing {
        &self.standing
    }

    fn journal(&self, entry: Entry) {
        self.inbox.note(entry);
    }

    fn journal_lost(&self) -> u64 {
        self.inbox.journal(|queue| queue.lost())
    }

    fn lag(&self) -> Lag {
        self.inbox.lag()
    }

    fn close(&self, within: Duration) -> usize {
        self.inbox.end();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // The writer sends nothing: its end is the message.
        let (Ok(()) | Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout)) =
            ended.recv_timeout(within);
        self.inbox.lag().changes
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.inbox.close();
    }
}

#[cfg(test)]
mod tests;
