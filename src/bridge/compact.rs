//! A bounded map from 16-byte hashes to small values, least recently used out first, in as few bytes as it can be.
//!
//! Entries lie in chunks that never move, linked by 32-bit numbers in the order of their use; an index of 32-bit numbers
//! finds them. So growing copies no entry, and a value of up to 40 bytes costs 64, and at most 21 of index.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;

use super::key::Hash16;

/// Entries of one chunk.
const CHUNK: usize = 256;
/// No entry.
const NONE: u32 = u32::MAX;

/// One line of the processor's cache: what is looked up is mostly not in it.
#[repr(align(64))]
struct Entry<V> {
    hash: Hash16,
    value: V,
    /// Towards the most recently used one; of a free entry, the next free one.
    newer: u32,
    older: u32,
}

/// Where an entry is, and enough of its hash to grow the index, and to pass over others, without a look at the entry.
#[derive(Clone, Copy)]
struct Slot {
    number: u32,
    short: u32,
}

impl Slot {
    /// For the index: it takes its place from the low bits and tells neighbours apart by the high ones.
    fn spread(self) -> u64 {
        spread(self.short)
    }
}

fn spread(short: u32) -> u64 {
    u64::from(short) << 32 | u64::from(short)
}

/// The map. It grows as it is filled.
pub struct Compact<V> {
    chunks: Vec<Vec<Entry<V>>>,
    index: HashTable<Slot>,
    newest: u32,
    oldest: u32,
    free: u32,
    cap: usize,
}

/// The hashes are keyed ones already: their beginning is as good as any.
fn short(hash: Hash16) -> u32 {
    let [a, b, c, d, ..] = hash.0;
    u32::from_le_bytes([a, b, c, d])
}

fn at<V>(chunks: &[Vec<Entry<V>>], number: u32) -> &Entry<V> {
    &chunks[number as usize / CHUNK][number as usize % CHUNK]
}

impl<V: Copy> Compact<V> {
    /// An empty map of at most `cap` entries, at least one and fewer than 2^32.
    pub fn new(cap: usize) -> Self {
        Compact {
            chunks: Vec::new(),
            index: HashTable::new(),
            newest: NONE,
            oldest: NONE,
            free: NONE,
            cap: cap.clamp(1, NONE as usize - 1),
        }
    }

    /// Another cap. Where more are held, the least recently used ones leave.
    pub fn set_cap(&mut self, cap: usize) {
        self.cap = cap.clamp(1, NONE as usize - 1);
        while self.index.len() > self.cap {
            self.drop_entry(self.oldest);
        }
    }

    /// Changes every value. Their order stays.
    pub fn change_all(&mut self, change: impl Fn(&mut V)) {
        // Free places too: what they hold is never read.
        for entry in self.chunks.iter_mut().flatten() {
            change(&mut entry.value);
        }
    }

    /// Makes room in the index for so many more, so that it need not grow on the way.
    pub fn reserve(&mut self, more: usize) {
        let most = self.cap.saturating_sub(self.index.len());
        self.index.reserve(more.min(most), |slot| slot.spread());
    }

    /// Entries held.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// True when nothing is held.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Bytes that all of it takes: the chunks as they were allocated, and the index.
    pub fn bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(Vec::capacity).sum();
        // One byte of control for each bucket; a bucket is an eighth more than what it holds at most, rounded up.
        let buckets = (self.index.capacity() * 8 / 7).next_power_of_two();
        chunks * size_of::<Entry<V>>()
            + self.chunks.capacity() * size_of::<Vec<Entry<V>>>()
            + buckets * (size_of::<Slot>() + 1)
    }

    /// Puts a value in, as the most recently used. True when another entry made room for it.
    pub fn put(&mut self, hash: Hash16, value: V) -> bool {
        if let Some(number) = self.find(hash) {
            self.entry(number).value = value;
            self.touch(number);
            return false;
        }
        let over = self.index.len() >= self.cap;
        if over {
            self.drop_entry(self.oldest);
        }
        let number = self.place(Entry {
            hash,
            value,
            newer: NONE,
            older: NONE,
        });
        let slot = Slot {
            number,
            short: short(hash),
        };
        self.index
            .insert_unique(slot.spread(), slot, |slot| slot.spread());
        self.link(number);
        over
    }

    /// The value of a hash, which thereby becomes the most recently used.
    pub fn get(&mut self, hash: Hash16) -> Option<V> {
        let number = self.find(hash)?;
        self.touch(number);
        Some(at(&self.chunks, number).value)
    }

    /// The value of a hash, whose place in the order stays.
    pub fn peek(&self, hash: Hash16) -> Option<V> {
        Some(at(&self.chunks, self.find(hash)?).value)
    }

    /// Takes an entry out.
    pub fn remove(&mut self, hash: Hash16) -> bool {
        let found = self.find(hash);
        if let Some(number) = found {
            self.drop_entry(number);
        }
        found.is_some()
    }

    fn find(&self, hash: Hash16) -> Option<u32> {
        let short = short(hash);
        let same = |slot: &Slot| slot.short == short && at(&self.chunks, slot.number).hash == hash;
        Some(self.index.find(spread(short), same)?.number)
    }

    fn entry(&mut self, number: u32) -> &mut Entry<V> {
        &mut self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }

    fn place(&mut self, entry: Entry<V>) -> u32 {
        if self.free != NONE {
            let number = self.free;
            self.free = at(&self.chunks, number).newer;
            *self.entry(number) = entry;
            return number;
        }
        let full = |chunk: &Vec<Entry<V>>| chunk.len() == CHUNK;
        if self.chunks.last().is_none_or(full) {
            // The first one may stay small.
            let room = if self.chunks.is_empty() { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(room));
        }
        let last = self.chunks.len() - 1;
        let chunk = &mut self.chunks[last];
        chunk.push(entry);
        // Below `NONE`, since the cap is.
        u32::try_from(last * CHUNK + chunk.len() - 1).unwrap_or(NONE)
    }

    fn drop_entry(&mut self, number: u32) {
        let hash = at(&self.chunks, number).hash;
        let same = |slot: &Slot| slot.number == number;
        let found = self.index.entry(spread(short(hash)), same, |slot| slot.spread());
        if let Place::Occupied(place) = found {
            place.remove();
        }
        self.unlink(number);
        let free = self.free;
        self.entry(number).newer = free;
        self.free = number;
    }

    fn touch(&mut self, number: u32) {
        if self.newest != number {
            self.unlink(number);
            self.link(number);
        }
    }

    fn link(&mut self, number: u32) {
        let newest = std::mem::replace(&mut self.newest, number);
        let entry = self.entry(number);
        entry.newer = NONE;
        entry.older = newest;
        match newest {
            NONE => self.oldest = number,
            newest => self.entry(newest).newer = number,
        }
    }

    fn unlink(&mut self, number: u32) {
        let Entry { newer, older, .. } = *at(&self.chunks, number);
        match newer {
            NONE => self.newest = older,
            newer => self.entry(newer).older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entry(older).newer = newer,
        }
    }
}

#[cfg(test)]
mod tests;
