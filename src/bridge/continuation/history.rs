//! What a socket's last response rests on: the settings, and every item that went in or came out.

use std::fmt;

use super::digest::Digest;

/// What a socket remembers, as digests. 40 bytes for each item.
#[derive(Clone)]
pub struct History {
    pub(super) settings: [Known; 4],
    pub(super) window: Digest,
    pub(super) items: Vec<Entry>,
}

/// A group of settings.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) raw: Digest,
    pub(super) canonical: Digest,
}

/// One item.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) raw: Digest,
    /// `NONE` where the item has no canonical form.
    pub(super) canonical: Digest,
    /// Zero where no id of it is known.
    pub(super) id: u64,
}

impl History {
    /// Items, in and out.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True without an item.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.items.capacity() * size_of::<Entry>()
    }
}

/// Shows sizes only (INV-9).
impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History")
            .field("items", &self.len())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
