//! The journal's part of the writer thread: apart from the owners' transactions, so that what goes wrong here delays and
//! endangers nothing of theirs (JRN-3).

use std::time::{Duration, Instant, SystemTime};

use rusqlite::Connection;

use super::Bounds;
use super::sweep::Sweep;
use super::table::Table;
use crate::journal::{Entry, Names};
use crate::store::fault::Trouble;
use crate::store::inbox::Inbox;
use crate::store::writer::unix_ms;

/// How often what is too old is looked for.
const TIDY_EVERY: Duration = Duration::from_secs(10);
/// And while there is more of it than one look takes away.
const TIDY_SOON: Duration = Duration::from_millis(100);
/// Entries after which a look is due though its time has not come: half of what it takes away, so that it keeps up.
const APPENDED: usize = 512;
/// Pauses between tries while the disk is in trouble.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How an entry says that there were others before it that are not there.
const LOST: &str = "journal_lost";

pub(in crate::store) struct Keeping {
    /// Taken and not yet committed.
    batch: Vec<Entry>,
    /// What is known of the file; none until it is read, and after trouble.
    table: Option<Table>,
    sweep: Sweep,
    /// Rows since the last look at what is too old.
    appended: usize,
    tidy_at: Instant,
    pause: Duration,
    /// Losses that an entry tells of.
    told: u64,
}

impl Keeping {
    pub(in crate::store) fn new(bounds: Bounds) -> Keeping {
        Keeping {
            batch: Vec::new(),
            table: None,
            sweep: Sweep::new(bounds),
            appended: 0,
            tidy_at: Instant::now() + TIDY_SOON,
            pause: FIRST_PAUSE,
            told: 0,
        }
    }

    /// The file is another one, or may have changed: what is known of it no longer counts.
    pub(in crate::store) fn forget(&mut self) {
        self.table = None;
    }

    /// When it wants to be run again though no entry is due.
    pub(in crate::store) fn tidy_at(&self) -> Instant {
        self.tidy_at
    }

    /// Writes some of what is due, all of it in several calls, and takes away some of what is too old. True while there is
    /// more to be written at once.
    pub(in crate::store) fn run(&mut self, connection: &mut Connection, inbox: &Inbox, closed: bool) -> bool {
        let now = Instant::now();
        let due = inbox.journal(|queue| {
            let due = closed || queue.due().is_some_and(|due| due <= now);
            if due {
                queue.take(&mut self.batch);
            }
            due
        });
        match self.try_all(connection, inbox, due, closed) {
            Ok(()) => {
                self.pause = FIRST_PAUSE;
                inbox.journal(|queue| !queue.is_empty() && closed)
            }
            Err(_) => {
                // The reason is the store's to tell, where it is the disk's; the loss is counted.
                self.table = None;
                if closed {
                    self.batch.clear();
                    inbox.journal(|queue| queue.abandon());
                    return false;
                }
                self.tidy_at = now + self.pause;
                inbox.journal(|queue| queue.rest(now + self.pause));
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                false
            }
        }
    }

    fn try_all(
        &mut self,
        connection: &mut Connection,
        inbox: &Inbox,
        due: bool,
        closed: bool,
    ) -> Result<(), Trouble> {
        if due && !self.batch.is_empty() {
            self.write(connection, inbox)?;
        }
        let now = Instant::now();
        if !closed && (now >= self.tidy_at || self.appended >= APPENDED) {
            self.appended = 0;
            let table = Table::of(&mut self.table, connection)?;
            let more = self
                .sweep
                .tidy(connection, table, now, unix_ms(SystemTime::now()))?;
            self.tidy_at = now + if more { TIDY_SOON } else { TIDY_EVERY };
        }
        Ok(())
    }

    fn write(&mut self, connection: &mut Connection, inbox: &Inbox) -> Result<(), Trouble> {
        let (lost, calm) = inbox.journal(|queue| (queue.lost(), queue.is_calm()));
        let table = Table::of(&mut self.table, connection)?;
        let loss = (calm && lost > self.told).then(|| loss(lost - self.told));
        table.append(connection, self.batch.iter().chain(&loss))?;
        if loss.is_some() {
            self.told = lost;
        }
        self.appended += self.batch.len();
        self.batch.clear();
        inbox.journal(|queue| queue.settle());
        Ok(())
    }
}

fn loss(lost: u64) -> Entry {
    Entry {
        at_ms: unix_ms(SystemTime::now()),
        event: LOST,
        at: None,
        names: Names::default(),
        body: format!(r#"{{"event":"{LOST}","lost":{lost}}}"#).into(),
    }
}
