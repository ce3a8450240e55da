//! Opening a journal that may be another process's, or nobody's any more.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::{ReadFault, Reader, View};
use crate::bridge::key::Hasher;
use crate::store::directory::{DATABASE, KEY};
use crate::store::fault::{Reason, StateFault, Trouble};
use crate::store::install_key::InstallKey;
use crate::store::schema::{self, FileId, Found};

/// How long a statement waits where the file is being recovered or moved by others.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn open(directory: &Path) -> Result<Reader, ReadFault> {
    let path = directory.join(DATABASE);
    let key = directory.join(KEY);
    for file in [&path, &key] {
        File::open(file).map_err(|source| match source.kind() {
            // The database, which is looked for first, is there.
            io::ErrorKind::NotFound if *file == key => ReadFault::Key(StateFault::KeyGone {
                key: key.clone(),
                database: path.clone(),
            }),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                ReadFault::Nothing(directory.to_owned())
            }
            _ => ReadFault::Closed {
                path: file.clone(),
                source,
            },
        })?;
    }
    let key = InstallKey::load(&key).map_err(ReadFault::Key)?;
    let file = FileId::of(&path).ok().flatten();
    let fault = |trouble| ReadFault::of(&path, trouble);
    let (connection, view) = connect(&path).map_err(fault)?;
    match schema::examine(&connection).map_err(fault)? {
        Found::Ours => {}
        Found::Older(version) => return Err(ReadFault::Older { path, version }),
        Found::Fresh => return Err(ReadFault::Empty(path)),
    }
    let reader = Reader {
        path: path.clone(),
        file,
        connection,
        hasher: Hasher::new(*key.bytes()),
        shapes: RefCell::default(),
        view,
    };
    reader.read_shapes().map_err(fault)?;
    Ok(reader)
}

/// A connection to the file; where its folder takes no files, to the file alone if that is all there is, else to a copy.
fn connect(path: &Path) -> Result<(Connection, View), Trouble> {
    let first = usable(path.to_path_buf(), OpenFlags::empty());
    let trouble = match first {
        Ok(connection) => return Ok((connection, View::Live)),
        Err(trouble) => trouble,
    };
    if !matches!(trouble.reason, Reason::Denied | Reason::ReadOnly | Reason::Io) {
        return Err(trouble);
    }
    let log = beside(path, "-wal");
    if fs::metadata(&log).map_or(0, |facts| facts.len()) == 0 {
        let address = format!("file:{}?immutable=1", escaped(path));
        return Ok((usable(address.into(), OpenFlags::SQLITE_OPEN_URI)?, View::Still));
    }
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join(DATABASE);
    fs::copy(path, &copy)?;
    fs::copy(&log, beside(&copy, "-wal"))?;
    Ok((usable(copy, OpenFlags::empty())?, View::Copy { _folder: folder }))
}

/// Opened, and looked into: only then SQLite says what it cannot do.
fn usable(path: PathBuf, flags: OpenFlags) -> Result<Connection, Trouble> {
    let connection = schema::open_with(&path, OpenFlags::SQLITE_OPEN_READ_ONLY | flags, PATIENCE)?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// A path as a part of SQLite's addresses.
fn escaped(path: &Path) -> String {
    let text = path.to_string_lossy();
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '%' => escaped.push_str("%25"),
            '?' => escaped.push_str("%3f"),
            '#' => escaped.push_str("%23"),
            c => escaped.push(c),
        }
    }
    escaped
}
