//! The writer thread: the only one that touches the database after the start. It commits everything that is waiting
//! in one transaction, and on trouble keeps trying with longer and longer pauses.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;

use super::change::Change;
use super::directory::Directory;
use super::fault::{Reason, Trouble};
use super::inbox::Inbox;
use super::journal::Keeping;
use super::ledger::Ledger;
use super::schema::{self, ENDED, FileId, RAISE_COUNTER};
use super::sqlite::Options;
use super::standing::Standing;

/// Changes of one transaction at most: a backlog of a long outage becomes durable piece by piece.
const MOST: usize = 4096;
/// How often what has expired is looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// Pauses between tries while the disk is in trouble: short at first, since most locks are gone in a moment.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Makes a connection. A closure, so that tests make one that is truly full or read-only.
pub(super) type Connector = Box<dyn Fn() -> rusqlite::Result<Connection> + Send>;

pub(super) struct Writer {
    pub(super) connect: Connector,
    pub(super) path: PathBuf,
    /// The file that is being written, or was found damaged.
    pub(super) file: Option<FileId>,
    /// The file was found damaged: it is left alone until another one is in its place (STATE-9).
    pub(super) damaged: bool,
    /// None while the disk is in trouble.
    pub(super) ledger: Option<Ledger>,
    pub(super) journal: Keeping,
    pub(super) inbox: Arc<Inbox>,
    pub(super) standing: Arc<Standing>,
    pub(super) options: Options,
    pub(super) epoch: u64,
    /// Locked until the last write is done.
    pub(super) _directory: Option<Directory>,
}

impl Writer {
    /// Runs until the inbox is closed and written out, or closed while the disk is in trouble.
    pub(super) fn run(mut self) {
        // However this thread ends, a panic included, nobody goes on waiting for it.
        let _end = End {
            inbox: self.inbox.clone(),
            standing: self.standing.clone(),
        };
        let mut batch = Vec::new();
        let mut next_sweep = Instant::now() + SWEEP_EVERY;
        let mut pause = FIRST_PAUSE;
        loop {
            if self.ledger.is_some() {
                let next = next_sweep.min(self.journal.tidy_at());
                self.inbox.wait(next.saturating_duration_since(Instant::now()));
                self.linger();
            }
            // Read before the drain: what came before the close is then in this batch or in one after it.
            let closed = self.inbox.is_closed();
            match self.write(&mut batch, &mut next_sweep) {
                Ok(written) => {
                    pause = FIRST_PAUSE;
                    let more = self.keep_journal(closed);
                    if closed && written == 0 && !more {
                        self.sign_off();
                        return;
                    }
                }
                Err(trouble) => {
                    self.ledger = None;
                    self.journal.forget();
                    self.damaged |= trouble.reason == Reason::Corrupt;
                    self.standing.degrade(trouble.reason);
                    if closed {
                        return;
                    }
                    self.inbox.rest(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Tells the next process that this one came to its end (STATE-20). Where that cannot be written, the next one takes it
    /// for cut, which asks for a look at the disk.
    fn sign_off(&mut self) {
        if let Some(ledger) = &mut self.ledger
            && self.inbox.is_ended()
        {
            let _ = ledger
                .connection()
                .execute(RAISE_COUNTER, (ENDED, self.epoch.cast_signed()));
        }
    }

    /// After the changes, and apart from them. True while there are entries to be written at once.
    fn keep_journal(&mut self, closed: bool) -> bool {
        let Some(ledger) = &mut self.ledger else {
            return false;
        };
        self.journal.run(ledger.connection(), &self.inbox, closed)
    }

    /// Gives others the time to join the batch, so that a busy bridge commits once for many turns.
    fn linger(&self) {
        if !self.options.linger.is_zero() && !self.inbox.is_closed() && self.inbox.lag().changes < MOST {
            std::thread::sleep(self.options.linger);
        }
    }

    /// Commits what the batch still holds from a failed try, or else what is waiting. Returns the number of changes.
    fn write(&mut self, batch: &mut Vec<Change>, next_sweep: &mut Instant) -> Result<usize, Trouble> {
        let ledger = match &mut self.ledger {
            Some(ledger) => ledger,
            none => {
                if self.damaged && self.file == FileId::of(&self.path)? {
                    return Err(Trouble {
                        reason: Reason::Corrupt,
                        detail: "it is still damaged".to_owned(),
                    });
                }
                self.damaged = false;
                let mut connection = (self.connect)()?;
                self.file = FileId::of(&self.path)?;
                let found = schema::examine(&connection)?;
                schema::claim(&mut connection, found, self.epoch)?;
                none.insert(Ledger::new(
                    connection,
                    self.options.max_owners,
                    self.options.max_pins,
                ))
            }
        };
        let room = MOST.saturating_sub(batch.len());
        let through = self.inbox.take(batch, room);
        ledger.commit(batch)?;
        let written = batch.len();
        batch.clear();
        self.inbox.settle();
        self.standing.advance(through);
        self.standing.recover();
        if ledger.sweep_is_due() || Instant::now() >= *next_sweep {
            *next_sweep = Instant::now() + SWEEP_EVERY;
            if self.file != FileId::of(&self.path)? {
                return Err(Trouble {
                    reason: Reason::Io,
                    detail: "the file was moved or replaced".to_owned(),
                });
            }
            ledger.sweep(unix_ms(SystemTime::now()))?;
        }
        Ok(written)
    }
}

struct End {
    inbox: Arc<Inbox>,
    standing: Arc<Standing>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.inbox.close();
        self.inbox.journal(|queue| queue.abandon());
        let unwritten = self.inbox.lag().changes;
        self.standing.count_lost(unwritten as u64);
        if std::thread::panicking() {
            self.standing.degrade(Reason::Io);
        }
        self.standing.end();
    }
}

pub(super) fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
