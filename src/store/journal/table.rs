//! The tables of the journal, and how rows get into them.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::pages::{PAGES, Pages, ROWS};
use super::{names, shape};
use crate::journal::Entry;
use crate::store::fault::{Reason, Trouble};
use crate::store::load;

/// Since version 3 of the file. Rows, shapes and pages are appended, and the oldest rows and pages deleted; a shape stays.
///
/// `pages.id` is the last row of the indexed ones times sixteen, and the page's number; `indexed` says from when to when
/// those rows are, so that a look at ten minutes passes the rest over.
pub(in crate::store) const TABLES: &str = "
    CREATE TABLE journal_shapes (
        id INTEGER PRIMARY KEY,
        event TEXT NOT NULL,
        account TEXT,
        shape TEXT NOT NULL
    ) STRICT;
    CREATE TABLE journal (
        seq INTEGER PRIMARY KEY,
        at_ms INTEGER NOT NULL,
        shape INTEGER NOT NULL,
        names BLOB NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE TABLE journal_indexed (
        last INTEGER PRIMARY KEY,
        first INTEGER NOT NULL,
        from_ms INTEGER NOT NULL,
        until_ms INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE journal_pages (id INTEGER PRIMARY KEY, entries BLOB NOT NULL) STRICT;
";

/// The counter of the last row that was deleted: numbers are never used twice, though all rows be gone.
pub(super) const COUNTER: &str = "journal";

/// Shapes that are told apart. Whatever goes beyond is written as a whole, at several times the size: a row may cost more,
/// but there is an end to what shapes cost.
const SHAPES: usize = 4096;

/// When the latest entry is from, in unix milliseconds.
pub(in crate::store) fn until(connection: &Connection) -> Result<Option<u64>, Trouble> {
    let latest = connection
        .query_row("SELECT at_ms FROM journal ORDER BY seq DESC LIMIT 1", [], |row| {
            row.get::<_, i64>(0)
        })
        .optional()?;
    Ok(latest.map(i64::cast_unsigned))
}

/// What is known of the tables of a file. After an error it no longer counts.
pub(super) struct Table {
    /// The number of the next row.
    pub(super) next: i64,
    /// Rows up to this one are indexed.
    pub(super) indexed: i64,
    /// Ids by event, account and shape.
    shapes: HashMap<Box<str>, i64>,
    // Room that is used again for every row.
    shape: String,
    values: String,
    names: Vec<u8>,
}

impl Table {
    /// What is known, read from the file if need be.
    pub(super) fn of<'a>(
        known: &'a mut Option<Table>,
        connection: &Connection,
    ) -> Result<&'a mut Table, Trouble> {
        Ok(match known {
            Some(table) => table,
            none => none.insert(Table::read(connection)?),
        })
    }

    fn read(connection: &Connection) -> Result<Table, Trouble> {
        let newest = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        let newest_row = newest("SELECT coalesce(max(seq), 0) FROM journal")?;
        let indexed = newest("SELECT coalesce(max(last), 0) FROM journal_indexed")?;
        let deleted = load::counter(connection, COUNTER)?.cast_signed();
        let mut shapes = HashMap::new();
        let mut statement = connection.prepare("SELECT id, event, account, shape FROM journal_shapes")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (event, account, shape): (String, Option<String>, String) =
                (row.get(1)?, row.get(2)?, row.get(3)?);
            let key = format!("{event}\n{}\n{shape}", account.unwrap_or_default());
            shapes.insert(key.into_boxed_str(), row.get(0)?);
        }
        Ok(Table {
            next: newest_row.max(deleted).max(indexed) + 1,
            // What was deleted before it was indexed is in no need of it.
            indexed: indexed.max(deleted),
            shapes,
            shape: String::new(),
            values: String::new(),
            names: Vec::new(),
        })
    }

    /// Writes all or nothing.
    pub(super) fn append<'a>(
        &mut self,
        connection: &mut Connection,
        entries: impl Iterator<Item = &'a Entry>,
    ) -> Result<(), Trouble> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO journal (seq, at_ms, shape, names, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            for entry in entries {
                let shape = self.taken_apart(&transaction, entry)?;
                names::written(&entry.names, &mut self.names);
                let at = entry.at_ms.cast_signed();
                insert.execute((self.next, at, shape, &self.names, &self.values))?;
                self.next += 1;
            }
        }
        Ok(transaction.commit()?)
    }

    /// Leaves the entry's values in `self.values`, and gives the id of its shape.
    fn taken_apart(&mut self, transaction: &Transaction<'_>, entry: &Entry) -> Result<i64, Trouble> {
        let account = entry.at.map(|at| at.to_string());
        self.begin_shape(entry, account.as_deref());
        let begin = self.shape.len();
        shape::split(&entry.body, &mut self.shape, &mut self.values);
        if let Some(id) = self.shapes.get(self.shape.as_str()) {
            return Ok(*id);
        }
        // A text of several lines is none of the bridge's events, but it comes back as it was, less its line ends.
        if self.shapes.len() >= SHAPES || entry.body.contains('\n') {
            self.begin_shape(entry, account.as_deref());
            self.shape.push_str(shape::WHOLE);
            self.values.push_str(&entry.body.replace('\n', " "));
            if let Some(id) = self.shapes.get(self.shape.as_str()) {
                return Ok(*id);
            }
        }
        let shape = self.shape.get(begin..).unwrap_or_default();
        transaction
            .prepare_cached("INSERT INTO journal_shapes (event, account, shape) VALUES (?1, ?2, ?3)")?
            .execute((entry.event, &account, shape))?;
        let id = transaction.last_insert_rowid();
        self.shapes.insert(self.shape.as_str().into(), id);
        Ok(id)
    }

    fn begin_shape(&mut self, entry: &Entry, account: Option<&str>) {
        self.values.clear();
        self.shape.clear();
        for part in [entry.event, account.unwrap_or_default()] {
            self.shape.push_str(part);
            self.shape.push('\n');
        }
    }

    /// Indexes the next few thousand rows, if there are as many.
    pub(super) fn index(&mut self, connection: &mut Connection) -> Result<(), Trouble> {
        if self.next - 1 - self.indexed < ROWS {
            return Ok(());
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (first, last) = (self.indexed + 1, self.indexed + ROWS);
        let mut pages = Pages::new(last);
        let mut times: Option<(i64, i64)> = None;
        {
            let mut statement = transaction
                .prepare_cached("SELECT seq, at_ms, names FROM journal WHERE seq BETWEEN ?1 AND ?2")?;
            let mut rows = statement.query((first, last))?;
            while let Some(row) = rows.next()? {
                let (seq, at) = (row.get(0)?, row.get(1)?);
                let (from, until) = times.unwrap_or((at, at));
                times = Some((from.min(at), until.max(at)));
                let bytes = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
                names::read(bytes)
                    .ok_or_else(|| damaged("a row's names are cut"))?
                    .for_each(|name| pages.add(seq, name));
            }
        }
        if let Some((from, until)) = times {
            transaction
                .prepare_cached(
                    "INSERT INTO journal_indexed (last, first, from_ms, until_ms) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute((last, first, from, until))?;
        }
        for (page, entries) in pages.finish() {
            transaction
                .prepare_cached("INSERT INTO journal_pages (id, entries) VALUES (?1, ?2)")?
                .execute((last * PAGES + page, entries))?;
        }
        transaction.commit()?;
        self.indexed = last;
        Ok(())
    }
}

/// The oldest row there is.
pub(super) fn oldest(connection: &Connection) -> Result<Option<i64>, Trouble> {
    let mut statement = connection.prepare_cached("SELECT seq FROM journal ORDER BY seq LIMIT 1")?;
    Ok(statement.query_row([], |row| row.get(0)).optional()?)
}

pub(super) fn damaged(detail: &str) -> Trouble {
    Trouble {
        reason: Reason::Corrupt,
        detail: detail.to_owned(),
    }
}
