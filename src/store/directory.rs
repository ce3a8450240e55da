//! The state directory: made private, locked for one process, with the installation's key in it.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::fault::StateFault;
use super::install_key::InstallKey;

const LOCK: &str = "lock";
pub(super) const KEY: &str = "install.key";
pub(super) const DATABASE: &str = "state.db";

/// A state directory of this process alone (STATE-11). The lock is the system's: it goes with the process, however
/// that ends, so the lock of a dead holder is free.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    key: InstallKey,
    /// Open for as long as the lock is to be held.
    _lock: File,
}

impl Directory {
    /// Makes the directory if need be (mode 0700, parents included), locks it, and reads or makes `install.key`.
    ///
    /// # Errors
    /// [`StateFault::Held`] where another process is alive in it; a fault about the key; [`StateFault::Directory`]
    /// where something cannot be made or opened, after which serving goes on from memory.
    pub fn open(path: &Path) -> Result<Directory, StateFault> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|source| StateFault::Directory {
                path: path.to_owned(),
                source,
            })?;
        let lock = lock(path)?;
        let key = own_key(path)?;
        Ok(Directory {
            path: path.to_owned(),
            key,
            _lock: lock,
        })
    }

    /// The key of this installation.
    pub fn key(&self) -> &InstallKey {
        &self.key
    }

    /// Where the database is.
    pub(super) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }
}

/// The key that is there, or a new one where nothing depends on one yet.
fn own_key(directory: &Path) -> Result<InstallKey, StateFault> {
    let (key, database) = (directory.join(KEY), directory.join(DATABASE));
    let depends = fs::metadata(&database).is_ok_and(|facts| facts.len() > 0);
    if depends && !fs::exists(&key).unwrap_or(true) {
        return Err(StateFault::KeyGone { key, database });
    }
    InstallKey::load_or_create(&key)
}

/// Who holds a directory, in the holder's own words: its process id and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder(Option<String>);

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("one that has not yet said who it is"))
    }
}

fn lock(directory: &Path) -> Result<File, StateFault> {
    let path = directory.join(LOCK);
    let unusable = |source| StateFault::Directory {
        path: path.clone(),
        source,
    };
    // Not truncated at opening: until the lock is ours, the words in it are another's.
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(StateFault::Held {
                path: directory.to_owned(),
                holder: holder(&path),
            });
        }
        Err(TryLockError::Error(source)) => return Err(unusable(source)),
    }
    // For people only: on a full disk it stays empty, and the lock is held all the same.
    let _ = sign(&mut file);
    Ok(file)
}

fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    let now = humantime::format_rfc3339_seconds(SystemTime::now());
    writeln!(file, "process {} since {now}", std::process::id())
}

fn holder(path: &Path) -> Holder {
    let words = fs::read_to_string(path).unwrap_or_default();
    // What is quoted in a message is one short line of plain text, whatever the file holds.
    let line: String = words.chars().take_while(|c| !c.is_control()).take(80).collect();
    Holder(Some(line).filter(|line| !line.is_empty()))
}

#[cfg(test)]
mod tests;
