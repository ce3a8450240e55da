//! Writing: a batch of changes in one transaction, and the slow sweep over what no longer counts.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::change::{Change, OwnerRow, PinRow, QuarantineRow};
use super::fault::Trouble;
use super::schema::RAISE_COUNTER;

/// Owner rows that one sweep looks at. At about 0.2 µs each a sweep stays below a millisecond.
pub(super) const SWEPT: i64 = 4096;
/// Rows that a pin may have: one is written when it says something new, and once in an eighth of its time.
pub(super) const ROWS_OF_A_PIN: usize = 4;
/// Owner rows after which a sweep is due even if its time has not come: half of what it looks at, so the sweep goes
/// round faster than the table grows and the file stays below twice its bound.
const APPENDED: usize = 2048;

/// A connection that may write. After an error it is to be dropped: what it remembers of the file may be wrong.
pub(super) struct Ledger {
    connection: Connection,
    /// Ids of account names. As many as were ever configured.
    accounts: HashMap<Arc<str>, i64>,
    owners: Swept,
    pins: Swept,
    /// Rows appended since the last sweep.
    appended: usize,
}

/// An append-only table whose rows expire.
struct Swept {
    ends: &'static str,
    delete: &'static str,
    /// Rows beyond this many newer ones are swept away.
    most: i64,
    /// Where the next sweep begins.
    cursor: i64,
}

impl Swept {
    fn owners(most: usize) -> Self {
        Swept {
            ends: "SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM (
                SELECT min(seq) AS seq FROM owners UNION ALL SELECT max(seq) FROM owners)",
            delete: "DELETE FROM owners WHERE seq >= ?1 AND seq < ?2 AND (expires_at <= ?3 OR seq <= ?4)",
            most: i64::try_from(most).unwrap_or(i64::MAX),
            cursor: 0,
        }
    }

    fn pins(most: usize) -> Self {
        Swept {
            ends: "SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM (
                SELECT min(seq) AS seq FROM pins UNION ALL SELECT max(seq) FROM pins)",
            delete: "DELETE FROM pins WHERE seq >= ?1 AND seq < ?2 AND (expires_at <= ?3 OR seq <= ?4)",
            ..Swept::owners(most.saturating_mul(ROWS_OF_A_PIN))
        }
    }

    /// Deletes what is over of the next few rows. Gives where the sweep after this one begins.
    fn sweep(&self, transaction: &Transaction<'_>, now: i64) -> Result<i64, Trouble> {
        let (oldest, newest): (i64, i64) = transaction
            .prepare_cached(self.ends)?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let begin = self.cursor.max(oldest);
        let end = begin.saturating_add(SWEPT);
        let surplus = newest.saturating_sub(self.most);
        transaction
            .prepare_cached(self.delete)?
            .execute((begin, end, now, surplus))?;
        Ok(if end > newest { 0 } else { end })
    }
}

impl Ledger {
    pub(super) fn new(connection: Connection, max_owners: usize, max_pins: usize) -> Self {
        Ledger {
            connection,
            accounts: HashMap::new(),
            owners: Swept::owners(max_owners),
            pins: Swept::pins(max_pins),
            appended: 0,
        }
    }

    /// For what else is written in this thread.
    pub(super) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Writes all or nothing.
    pub(super) fn commit(&mut self, batch: &[Change]) -> Result<(), Trouble> {
        if batch.is_empty() {
            return Ok(());
        }
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut generation = 0;
        for change in batch {
            match change {
                Change::Owner(row) => {
                    let account = account(&transaction, &mut self.accounts, &row.account)?;
                    append_owner(&transaction, row, account)?;
                    self.appended += 1;
                }
                Change::OwnerRemoved(hash) => {
                    append_removal(&transaction, hash)?;
                    self.appended += 1;
                }
                Change::Pin(row) => {
                    let account = account(&transaction, &mut self.accounts, &row.account)?;
                    append_pin(&transaction, row, account)?;
                    self.appended += 1;
                }
                Change::Quarantine(row) => {
                    put_quarantine(&transaction, row)?;
                    generation = generation.max(row.generation);
                }
                Change::QuarantineRemoved {
                    key,
                    generation: removed,
                } => {
                    remove_quarantine(&transaction, key, *removed)?;
                    generation = generation.max(*removed);
                }
            }
        }
        if generation > 0 {
            transaction
                .prepare_cached(RAISE_COUNTER)?
                .execute(("generation", generation.cast_signed()))?;
        }
        Ok(transaction.commit()?)
    }

    pub(super) fn sweep_is_due(&self) -> bool {
        self.appended >= APPENDED
    }

    /// Looks at the next few rows of owners and of pins, and at all quarantines, and deletes what is over at `now_ms`.
    pub(super) fn sweep(&mut self, now_ms: u64) -> Result<(), Trouble> {
        self.appended = 0;
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let now = (now_ms / 1000).cast_signed();
        let owners = self.owners.sweep(&transaction, now)?;
        let pins = self.pins.sweep(&transaction, now)?;
        transaction
            .prepare_cached("DELETE FROM quarantine WHERE max(until_ms, level_until_ms) <= ?1")?
            .execute([now_ms.cast_signed()])?;
        transaction.commit()?;
        (self.owners.cursor, self.pins.cursor) = (owners, pins);
        Ok(())
    }
}

fn account(
    transaction: &Transaction<'_>,
    known: &mut HashMap<Arc<str>, i64>,
    name: &Arc<str>,
) -> Result<i64, Trouble> {
    if let Some(id) = known.get(name) {
        return Ok(*id);
    }
    transaction
        .prepare_cached("INSERT INTO accounts (name) VALUES (?1) ON CONFLICT (name) DO NOTHING")?
        .execute([&**name])?;
    let id = transaction
        .prepare_cached("SELECT id FROM accounts WHERE name = ?1")?
        .query_row([&**name], |row| row.get(0))?;
    known.insert(name.clone(), id);
    Ok(id)
}

fn append_owner(transaction: &Transaction<'_>, row: &OwnerRow, account: i64) -> Result<(), Trouble> {
    transaction
        .prepare_cached(
            "INSERT INTO owners (hash, account, session, stored, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((
            &row.hash,
            account,
            row.session.cast_signed(),
            row.stored,
            signed_time(row.expires_at),
        ))?;
    Ok(())
}

fn append_pin(transaction: &Transaction<'_>, row: &PinRow, account: i64) -> Result<(), Trouble> {
    transaction
        .prepare_cached("INSERT INTO pins (key, account, bound, expires_at) VALUES (?1, ?2, ?3, ?4)")?
        .execute((&row.key, account, row.bound, signed_time(row.expires_at)))?;
    Ok(())
}

/// It expires never: it is swept away when it is older than any owner that may be kept, and so than all it removes.
fn append_removal(transaction: &Transaction<'_>, hash: &[u8; 16]) -> Result<(), Trouble> {
    transaction
        .prepare_cached(
            "INSERT INTO owners (hash, account, session, stored, expires_at) VALUES (?1, NULL, 0, 0, ?2)",
        )?
        .execute((hash, i64::MAX))?;
    Ok(())
}

fn put_quarantine(transaction: &Transaction<'_>, row: &QuarantineRow) -> Result<(), Trouble> {
    transaction
        .prepare_cached(
            "INSERT INTO quarantine (key, generation, open, level, until_ms, level_until_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (key) DO UPDATE SET generation = excluded.generation, open = excluded.open,
                 level = excluded.level, until_ms = excluded.until_ms, level_until_ms = excluded.level_until_ms
             WHERE excluded.generation >= quarantine.generation",
        )?
        .execute((
            &row.key,
            row.generation.cast_signed(),
            row.open,
            row.level,
            signed_time(row.until_ms),
            signed_time(row.level_until_ms),
        ))?;
    Ok(())
}

fn remove_quarantine(transaction: &Transaction<'_>, key: &[u8; 16], generation: u64) -> Result<(), Trouble> {
    transaction
        .prepare_cached("DELETE FROM quarantine WHERE key = ?1 AND generation <= ?2")?
        .execute((key, generation.cast_signed()))?;
    Ok(())
}

/// "Never" (`u64::MAX`) stays in the future when SQLite compares it as a signed number.
fn signed_time(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
