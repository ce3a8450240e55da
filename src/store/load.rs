//! Reading what an earlier process left. A million owners must not delay a start, so: one pass in row order, and one
//! string per account.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::change::{Before, Loaded, OwnerRow, PinRow, QuarantineRow};
use super::fault::{Reason, Trouble};
use super::journal;
use super::ledger::ROWS_OF_A_PIN;
use super::schema::{self, Found};

/// What is to be read at most, and as of when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) owners: usize,
    pub(super) pins: usize,
    pub(super) quarantine: usize,
    /// Unix milliseconds.
    pub(super) now_ms: u64,
}

/// Reads everything that still counts. The epoch is left to the caller.
pub(super) fn load(connection: &Connection, found: Found, bounds: Bounds) -> Result<Loaded, Trouble> {
    let pins = match found {
        Found::Ours | Found::Older(schema::SINCE_PINS..) => pins(connection, bounds)?,
        Found::Fresh | Found::Older(_) => Vec::new(),
    };
    Ok(Loaded {
        owners: owners(connection, bounds)?,
        pins,
        quarantine: quarantine(connection, bounds)?,
        generation: counter(connection, "generation")?,
        epoch: 0,
        before: before(connection)?,
        journal_until: match found {
            // A damaged journal endangers nothing else.
            Found::Ours => journal::until(connection).unwrap_or_default(),
            Found::Fresh | Found::Older(_) => None,
        },
    })
}

/// How the process ended that wrote to the file last.
fn before(connection: &Connection) -> Result<Before, Trouble> {
    let epoch = counter(connection, "epoch")?;
    // A program that does not know the counter left none.
    Ok(match raised(connection, schema::ENDED)? {
        None => Before::None,
        Some(ended) if ended >= epoch => Before::Drained,
        Some(_) => Before::Cut,
    })
}

/// The value of a counter; zero if it was never raised.
pub(super) fn counter(connection: &Connection, name: &str) -> Result<u64, Trouble> {
    Ok(raised(connection, name)?.unwrap_or_default())
}

fn raised(connection: &Connection, name: &str) -> Result<Option<u64>, Trouble> {
    let mut statement = connection.prepare("SELECT value FROM counters WHERE name = ?1")?;
    let mut rows = statement.query([name])?;
    rows.next()?.map(|row| unsigned(row, 0)).transpose()
}

fn owners(connection: &Connection, bounds: Bounds) -> Result<Vec<OwnerRow>, Trouble> {
    let accounts = accounts(connection)?;
    // Newest first, so that the bound keeps the newest and a removal is met before what it removes.
    let mut statement = connection.prepare(
        "SELECT hash, account, session, stored, expires_at FROM owners WHERE expires_at > ?1 ORDER BY seq DESC LIMIT ?2",
    )?;
    let now = bounds.now_ms / 1000;
    let limit = i64::try_from(bounds.owners).unwrap_or(i64::MAX);
    let mut rows = statement.query((now.cast_signed(), limit))?;
    let mut removed = HashSet::new();
    let mut owners = Vec::new();
    while let Some(row) = rows.next()? {
        let hash = key(row, 0)?;
        let Some(account) = row.get::<_, Option<i64>>(1)? else {
            removed.insert(hash);
            continue;
        };
        if !removed.is_empty() && removed.contains(&hash) {
            continue;
        }
        let account = accounts
            .get(&account)
            .ok_or_else(|| damaged("an owner names an unknown account"))?;
        owners.push(OwnerRow {
            hash,
            account: account.clone(),
            session: unsigned(row, 2)?,
            stored: row.get(3)?,
            expires_at: unsigned(row, 4)?,
        });
    }
    owners.reverse();
    Ok(owners)
}

fn pins(connection: &Connection, bounds: Bounds) -> Result<Vec<PinRow>, Trouble> {
    let accounts = accounts(connection)?;
    let mut statement = connection.prepare(
        "SELECT key, account, bound, expires_at FROM pins WHERE expires_at > ?1 ORDER BY seq DESC LIMIT ?2",
    )?;
    let limit = i64::try_from(bounds.pins.saturating_mul(ROWS_OF_A_PIN)).unwrap_or(i64::MAX);
    let mut rows = statement.query(((bounds.now_ms / 1000).cast_signed(), limit))?;
    let mut known = HashSet::new();
    let mut pins = Vec::new();
    while let Some(row) = rows.next()? {
        // Newest first: an older row of the same key says nothing any more.
        if !known.insert(key(row, 0)?) {
            continue;
        }
        if pins.len() == bounds.pins {
            break;
        }
        let account = accounts
            .get(&row.get(1)?)
            .ok_or_else(|| damaged("a pin names an unknown account"))?;
        pins.push(PinRow {
            key: key(row, 0)?,
            account: account.clone(),
            bound: row.get(2)?,
            expires_at: unsigned(row, 3)?,
        });
    }
    pins.reverse();
    Ok(pins)
}

fn accounts(connection: &Connection) -> Result<HashMap<i64, Arc<str>>, Trouble> {
    let mut statement = connection.prepare("SELECT id, name FROM accounts")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn quarantine(connection: &Connection, bounds: Bounds) -> Result<Vec<QuarantineRow>, Trouble> {
    let mut statement = connection.prepare(
        "SELECT key, generation, open, level, until_ms, level_until_ms FROM quarantine
         WHERE max(until_ms, level_until_ms) > ?1 ORDER BY generation DESC LIMIT ?2",
    )?;
    let limit = i64::try_from(bounds.quarantine).unwrap_or(i64::MAX);
    let mut rows = statement.query((bounds.now_ms.cast_signed(), limit))?;
    let mut quarantine = Vec::new();
    while let Some(row) = rows.next()? {
        quarantine.push(QuarantineRow {
            key: key(row, 0)?,
            generation: unsigned(row, 1)?,
            open: row.get(2)?,
            level: row.get(3)?,
            until_ms: unsigned(row, 4)?,
            level_until_ms: unsigned(row, 5)?,
        });
    }
    quarantine.reverse();
    Ok(quarantine)
}

fn key(row: &Row<'_>, column: usize) -> Result<[u8; 16], Trouble> {
    match row.get_ref(column)? {
        ValueRef::Blob(bytes) => bytes
            .try_into()
            .map_err(|_| damaged("a key is not 16 bytes long")),
        _ => Err(damaged("a key is not a blob")),
    }
}

/// SQLite's integers are signed; the bits are ours.
fn unsigned(row: &Row<'_>, column: usize) -> Result<u64, Trouble> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}

fn damaged(detail: &str) -> Trouble {
    Trouble {
        reason: Reason::Corrupt,
        detail: detail.to_owned(),
    }
}
