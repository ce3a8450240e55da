//! Keyed 128-bit digests. HighwayHash: several times as fast as BLAKE3 on pieces of a few kilobytes, and a client that
//! does not know the key cannot make two texts of one digest.

use std::fmt;

use highway::{HighwayHash, HighwayHasher, Key};

use crate::wire::canon::Item;

/// 128 bits of a keyed hash. Never printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Digest([u64; 2]);

impl Digest {
    /// The digest of what has no canonical form. Equal to nothing, not to itself either: see [`Digest::same`].
    pub(super) const NONE: Self = Self([0; 2]);

    /// Whether both are digests of the same bytes.
    pub(super) fn same(self, other: Self) -> bool {
        self == other && self != Self::NONE
    }

    pub(super) fn bytes(self) -> [u8; 16] {
        let [low, high] = self.0.map(u64::to_le_bytes);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&low);
        bytes[8..].copy_from_slice(&high);
        bytes
    }
}

/// Makes the digests of this installation. One key for each kind, so that a digest of one kind says nothing of another.
#[derive(Clone)]
pub struct Digester {
    raw: [u64; 4],
    canonical: [u64; 4],
    id: [u64; 4],
}

impl Digester {
    /// `key` is the content of `install.key`.
    pub fn new(key: &[u8; 32]) -> Self {
        let derived = |kind: &[u8]| {
            let hash = blake3::keyed_hash(key, kind);
            let mut words = [0; 4];
            for (word, bytes) in words.iter_mut().zip(hash.as_bytes().chunks_exact(8)) {
                *word = bytes.iter().rfold(0, |word, byte| word << 8 | u64::from(*byte));
            }
            words
        };
        Self {
            raw: derived(b"continuation raw"),
            canonical: derived(b"continuation canonical"),
            id: derived(b"continuation id"),
        }
    }

    /// Of the bytes of an item as they came.
    pub(super) fn raw(&self, bytes: &[u8]) -> Digest {
        digest(HighwayHasher::new(Key(self.raw)).hash128(bytes))
    }

    /// Of several pieces as they came. Every piece is prefixed with its length, so that no two lists of pieces collide.
    pub(super) fn raw_pieces<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let mut hasher = HighwayHasher::new(Key(self.raw));
        for piece in pieces {
            hasher.append(&(piece.len() as u64).to_le_bytes());
            hasher.append(piece);
        }
        digest(hasher.finalize128())
    }

    /// Of a canonical form.
    pub(super) fn canonical(&self, form: &[u8]) -> Digest {
        digest(HighwayHasher::new(Key(self.canonical)).hash128(form))
    }

    /// Of an item's id: 64 bits, never zero.
    pub(super) fn id(&self, id: &[u8]) -> u64 {
        HighwayHasher::new(Key(self.id)).hash64(id).max(1)
    }

    /// Of an item: its canonical digest, and its id's (zero where it has none).
    pub(super) fn item(&self, item: Option<&Item<'_>>) -> (Digest, u64) {
        item.map_or((Digest::NONE, 0), |item| {
            let id = item.id.map_or(0, |id| self.id(id));
            (self.canonical(item.form), id)
        })
    }
}

fn digest(words: [u64; 2]) -> Digest {
    match words {
        [0, 0] => Digest([1, 0]),
        words => Digest(words),
    }
}

/// Shows nothing: the keys are secret.
impl fmt::Debug for Digester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digester")
    }
}
