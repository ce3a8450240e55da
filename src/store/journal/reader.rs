//! Reading a journal: beside the bridge that writes it, or in the file of a dead one. Takes no lock that anybody waits for.

mod open;
mod scan;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use tempfile::TempDir;

use super::fault::ReadFault;
use super::{glob, names, pages, shape, table};
use crate::bridge::key::Hasher;
use crate::event;
use crate::store::fault::Trouble;
use crate::store::schema::FileId;

/// Which rows are wanted.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Unix milliseconds: this one and later ones.
    pub since_ms: Option<u64>,
    /// Unix milliseconds: this one and earlier ones.
    pub until_ms: Option<u64>,
    /// Rows after the one of this number.
    pub after: Option<u64>,
    /// A pattern of event names: `*` is any text.
    pub kind: Option<String>,
    /// `account`, or `provider/account`.
    pub account: Option<String>,
    /// What they can be found by.
    pub name: Option<u64>,
    /// So many at most.
    pub most: usize,
    /// Of more than `most` the newest ones, else the oldest.
    pub newest: bool,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its place in the order of all events. Never used twice in a file.
    pub seq: u64,
    /// Unix milliseconds.
    pub at_ms: u64,
    /// Its name.
    pub event: String,
    /// `provider/account`.
    pub account: Option<String>,
    /// What it can be found by.
    pub names: Vec<u64>,
    /// It as a JSON object, without ids.
    pub body: String,
}

/// An open journal.
pub struct Reader {
    path: PathBuf,
    file: Option<FileId>,
    connection: Connection,
    hasher: Hasher,
    /// Shared with walks that are under way: what is given may lead to another look.
    shapes: RefCell<Arc<Shapes>>,
    view: View,
}

/// What is read.
enum View {
    /// The file, with what is written to it meanwhile.
    Live,
    /// The file, as it was at the opening: its folder takes no files.
    Still,
    /// A copy of it, for the same reason.
    Copy { _folder: TempDir },
}

type Shapes = HashMap<i64, Shape>;

/// What many rows have in common.
#[derive(Clone)]
struct Shape {
    event: String,
    account: Option<String>,
    shape: String,
}

impl Reader {
    /// Opens the journal of a state directory.
    ///
    /// # Errors
    /// [`ReadFault`]: each says what to do.
    pub fn open(directory: &Path) -> Result<Reader, ReadFault> {
        open::open(directory)
    }

    /// By which an id becomes a name.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Whether what the bridge writes is seen here: false once the file has been moved away or replaced, and where it cannot
    /// be read but as it was at the opening.
    pub fn is_current(&self) -> bool {
        matches!(self.view, View::Live)
            && FileId::of(&self.path).is_ok_and(|file| file.is_some() && file == self.file)
    }

    /// Whether both read the same file.
    pub fn is_same(&self, other: &Reader) -> bool {
        self.file == other.file
    }

    /// The rows that carry a name, oldest first: the newest `most` of them (JRN-2).
    ///
    /// # Errors
    /// The file is damaged.
    pub fn find(&self, name: u64, most: usize) -> Result<Vec<Row>, ReadFault> {
        self.rows(&Query {
            name: Some(name),
            most,
            newest: true,
            ..Query::default()
        })
    }

    /// The rows that are asked for, oldest first.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn rows(&self, query: &Query) -> Result<Vec<Row>, ReadFault> {
        let mut rows = Vec::new();
        self.each(query, |row| {
            rows.push(row);
            ControlFlow::Continue(())
        })?;
        if query.newest {
            rows.reverse();
        }
        Ok(rows)
    }

    /// The same, one after the other, and newest first where the newest ones are asked for: for more rows than should be
    /// held at once.
    ///
    /// # Errors
    /// The file is damaged; what was read before that has been given.
    pub fn each(&self, query: &Query, mut give: impl FnMut(Row) -> ControlFlow<()>) -> Result<(), ReadFault> {
        self.scan(query, &mut give)
            .map_err(|trouble| ReadFault::of(&self.path, trouble))
    }

    /// The number of the newest row; zero where there is none.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn newest(&self) -> Result<u64, ReadFault> {
        let newest = self
            .connection
            .query_row("SELECT coalesce(max(seq), 0) FROM journal", [], |row| {
                row.get::<_, i64>(0)
            });
        newest
            .map(i64::cast_unsigned)
            .map_err(|error| ReadFault::of(&self.path, error.into()))
    }

    /// The accounts that events happened at, as `provider/account`, in their order; also those whose rows have left.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn accounts(&self) -> Result<Vec<String>, ReadFault> {
        let shapes = self
            .read_shapes()
            .map_err(|trouble| ReadFault::of(&self.path, trouble))?;
        let named: BTreeSet<&String> = shapes
            .values()
            .filter_map(|shape| shape.account.as_ref())
            .collect();
        Ok(named.into_iter().cloned().collect())
    }

    /// The shapes that the bridge has come upon since they were last read.
    fn read_shapes(&self) -> Result<Arc<Shapes>, Trouble> {
        let mut shapes = self.shapes.borrow_mut();
        let known = shapes.keys().max().copied().unwrap_or_default();
        let mut statement = self
            .connection
            .prepare_cached("SELECT id, event, account, shape FROM journal_shapes WHERE id > ?1")?;
        let mut rows = statement.query([known])?;
        while let Some(row) = rows.next()? {
            let shape = Shape {
                event: row.get(1)?,
                account: row.get(2)?,
                shape: row.get(3)?,
            };
            Arc::make_mut(&mut shapes).insert(row.get(0)?, shape);
        }
        Ok(shapes.clone())
    }
}

impl Shape {
    fn is_wanted(&self, query: &Query) -> bool {
        let kind = query.kind.as_deref();
        let account = query.account.as_deref();
        kind.is_none_or(|kind| glob::matches(kind, &self.event))
            && account.is_none_or(|wanted| {
                let own = self.account.as_deref();
                own.is_some_and(|own| event::is_at(own, wanted))
            })
    }
}
