//! The secret of this installation: 32 random bytes, made once, on which every hash rests.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::fault::StateFault;

const LENGTH: usize = 32;
const OTHERS: u32 = 0o077;

/// The key of every keyed hash (STATE-10). Never printed, not in Debug either.
#[derive(Clone, PartialEq, Eq)]
pub struct InstallKey([u8; LENGTH]);

impl InstallKey {
    /// The bytes, for a keyed hash.
    pub fn bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }

    /// A key for one process, where nothing can be kept.
    ///
    /// # Errors
    /// The system has no randomness to give.
    pub fn ephemeral() -> io::Result<InstallKey> {
        let mut bytes = [0; LENGTH];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(InstallKey(bytes))
    }

    /// Reads the key file.
    pub(super) fn load(path: &Path) -> Result<InstallKey, StateFault> {
        let file = File::open(path).map_err(|source| StateFault::Directory {
            path: path.to_owned(),
            source,
        })?;
        InstallKey::read(file, path)
    }

    /// Reads the key file, or makes it. The caller holds the directory's lock, so nobody else makes one meanwhile.
    pub(super) fn load_or_create(path: &Path) -> Result<InstallKey, StateFault> {
        let unusable = |source| StateFault::Directory {
            path: path.to_owned(),
            source,
        };
        match File::open(path) {
            Ok(file) => InstallKey::read(file, path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                InstallKey::create(path).map_err(unusable)
            }
            Err(error) => Err(unusable(error)),
        }
    }

    fn read(file: File, path: &Path) -> Result<InstallKey, StateFault> {
        let unusable = |source| StateFault::Directory {
            path: path.to_owned(),
            source,
        };
        let facts = file.metadata().map_err(unusable)?;
        let mode = facts.permissions().mode() & 0o7777;
        if mode & OTHERS != 0 {
            return Err(StateFault::KeyExposed {
                path: path.to_owned(),
                mode,
            });
        }
        let mut bytes = Vec::with_capacity(LENGTH + 1);
        file.take(LENGTH as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(unusable)?;
        let bytes = <[u8; LENGTH]>::try_from(bytes).map_err(|_| StateFault::KeyLength {
            path: path.to_owned(),
            bytes: facts.len(),
        })?;
        Ok(InstallKey(bytes))
    }

    /// Whole or not at all: under its name the file appears only with all its bytes on the disk.
    fn create(path: &Path) -> io::Result<InstallKey> {
        let key = InstallKey::ephemeral()?;
        let unfinished = path.with_extension("new");
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)?;
        file.write_all(&key.0)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        if let Some(directory) = path.parent() {
            File::open(directory)?.sync_all()?;
        }
        Ok(key)
    }
}

impl fmt::Debug for InstallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InstallKey(..)")
    }
}
