//! Looks at a configuration file and at what it names, without ever waiting for it, and says when it has come to rest.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::config::{self, Found};
use secrecy::ExposeSecret;

/// A configuration of a thousand clients takes a tenth of it.
pub const LARGEST: u64 = 1 << 20;

/// What a look found, as one number: equal for equal contents.
pub type Mark = [u8; 32];

/// Why there is nothing to read. Closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    Missing,
    Denied,
    /// A directory, a pipe, a device.
    NoFile,
    TooLarge,
    NotUtf8,
    Failed,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unreadable::Missing => "it is not there; put it back, or restart without it",
            Unreadable::Denied => "this user may not read it; correct its owner or mode",
            Unreadable::NoFile => "it is no regular file; put one in its place",
            Unreadable::TooLarge => "it is larger than 1MiB; name the right file",
            Unreadable::NotUtf8 => "it is not UTF-8; write it as such",
            Unreadable::Failed => {
                "the system could not read it; see to the disk or the network that it lies on"
            }
        })
    }
}

/// One look at the configuration's file, and at those for clients' keys and the admin token that it names.
pub struct Seen {
    /// The configuration's text.
    pub text: Result<String, Unreadable>,
    pub mark: Mark,
}

/// Takes a look. Blocks for as long as reading a few small files takes.
pub fn look(path: &Path) -> Seen {
    let text = read(path);
    let mut hasher = blake3::Hasher::new();
    match &text {
        Ok(text) => {
            hasher.update(text.as_bytes());
            for file in config::followed(text, path) {
                hasher.update(&of_secret(&file));
            }
        }
        Err(unreadable) => {
            hasher.update(&[0, *unreadable as u8]);
        }
    }
    Seen {
        text,
        mark: *hasher.finalize().as_bytes(),
    }
}

fn of_secret(file: &Path) -> Mark {
    match config::secret_in(file) {
        Ok(Found { secret, .. }) => *blake3::hash(secret.expose_secret().as_bytes()).as_bytes(),
        Err(none) => *blake3::hash(none.label().as_bytes()).as_bytes(),
    }
}

/// The text of a regular file of at most [`LARGEST`] bytes.
pub fn read(path: &Path) -> Result<String, Unreadable> {
    let because = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Unreadable::Missing,
        ErrorKind::PermissionDenied => Unreadable::Denied,
        ErrorKind::InvalidData => Unreadable::NotUtf8,
        _ => Unreadable::Failed,
    };
    // Before it is opened: opening a pipe would wait for its writer.
    let meta = std::fs::metadata(path).map_err(because)?;
    if !meta.is_file() {
        return Err(Unreadable::NoFile);
    }
    if meta.len() > LARGEST {
        return Err(Unreadable::TooLarge);
    }
    let mut text = String::new();
    let file = File::open(path).map_err(because)?;
    file.take(LARGEST + 1)
        .read_to_string(&mut text)
        .map_err(because)?;
    if text.len() as u64 > LARGEST {
        return Err(Unreadable::TooLarge);
    }
    Ok(text)
}

/// What two looks find alike that are so far apart is whole.
pub const SETTLED: Duration = Duration::from_millis(100);

/// Whether what was seen has come to rest. Told once for each content.
#[derive(Debug, Default)]
pub struct Settling {
    /// What was acted upon last.
    known: Option<Mark>,
    /// What else was seen, and since when.
    moving: Option<(Mark, Instant)>,
}

impl Settling {
    /// Takes a look. True when it is time to act.
    pub fn saw(&mut self, now: Instant, mark: Mark) -> bool {
        if self.known == Some(mark) {
            self.moving = None;
            return false;
        }
        match self.moving {
            Some((seen, since)) if seen == mark => {
                let whole = now.saturating_duration_since(since) >= SETTLED;
                if whole {
                    self.known = Some(mark);
                    self.moving = None;
                }
                whole
            }
            _ => {
                self.moving = Some((mark, now));
                false
            }
        }
    }

    /// Whether the latest look has come to rest, acted upon or not.
    pub fn is_settled(&self) -> bool {
        self.moving.is_none()
    }
}

#[cfg(test)]
mod tests;
