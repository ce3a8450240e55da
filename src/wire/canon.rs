//! Bytes that two JSON texts share when they mean the same, for comparing what clients write anew each turn [CONT-4].
//!
//! The form is a tree of tagged, counted pieces, keys sorted, so that no two different values have the same bytes:
//! `s` length text, `n` length digits, `l` count values, `o` count (key value)…, `t`, `f`, `z` for null, and `a` before
//! the value of a call's arguments. Lengths and counts are 32 bits, little-endian. What is not certain to be understood
//! (a key that stands twice, half a surrogate pair, nesting beyond [`MAX_DEPTH`], no JSON) has no canonical form, and
//! neither has what is longer than [`LONGEST`].

use serde_json::value::RawValue;

use super::json;
use super::request::MAX_DEPTH;
use strings::Scan;

mod item;
mod strings;

/// The buffers of canonicalisation, to be used again for value after value. They grow to the size of the longest one.
#[derive(Default)]
pub struct Canon {
    out: Vec<u8>,
    /// The members of the objects that are being read, innermost last.
    members: Vec<Member>,
    /// Where members are put in order.
    sorted: Vec<u8>,
    /// The item's `id`.
    id: Vec<u8>,
}

/// The canonical form of one item of an `input` or of an output.
pub struct Item<'a> {
    /// All of it but its `id`, which not every client sends back. In the few items whose id is all they say, it is in.
    pub form: &'a [u8],
    /// Its `id`, where it has one that is not in the form.
    pub id: Option<&'a [u8]>,
    /// Its role is `user`.
    pub user: bool,
}

/// A member of an object in `Canon::out`.
#[derive(Clone, Copy)]
struct Member {
    start: usize,
    /// Where the key's encoding ends and the value's begins.
    value: usize,
    end: usize,
    /// It is as if it were not there.
    dropped: bool,
}

/// What surrounds a value: which members count as absent depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A value that is an item's member; `parts` for its `content`.
    InItem { parts: bool },
    /// An element of such a list.
    InList { parts: bool },
    /// Anywhere else: every member counts.
    Plain,
}

/// The longest text that is brought to its form, in bytes. Forms of odd texts (a million empty keys) are several times
/// as long as the text; what is longer than this, an image, say, is compared by its raw bytes alone.
pub const LONGEST: usize = 4 << 20;

const TAG: usize = 1;
const COUNT: usize = 4;
const NULL: &[u8] = b"z";
const EMPTY_LIST: &[u8] = b"l\0\0\0\0";

impl Canon {
    /// With room for a value of so many bytes: one allocation where growing takes many.
    pub fn sized(length: usize) -> Self {
        let length = length.min(LONGEST);
        Canon {
            // Tags and lengths, beside what the value itself says.
            out: Vec::with_capacity(length + length / 4),
            members: Vec::with_capacity(16),
            ..Canon::default()
        }
    }

    /// The form of one item, read as the API reads it (`canon/item.rs` says what counts). `None` where it has none.
    pub fn item(&mut self, json: &str) -> Option<Item<'_>> {
        self.clear();
        let mut scan = bounded(json)?;
        let facts = self.read_item(&mut scan)?;
        scan.end()?;
        Some(Item {
            form: &self.out,
            id: facts.has_id.then_some(&self.id),
            user: facts.user,
        })
    }

    /// The form of the item that a string `input` stands for: one message of the user's.
    pub fn user_text(&mut self, json: &str) -> Option<Item<'_>> {
        self.clear();
        let mut scan = bounded(json)?;
        self.read_user_text(&mut scan)?;
        scan.end()?;
        Some(Item {
            form: &self.out,
            id: None,
            user: true,
        })
    }

    /// The form of an object with these members: raw keys with their quotes, and raw values, in any order. Every member
    /// counts, at any depth.
    pub fn members<'t>(&mut self, pairs: impl IntoIterator<Item = (&'t str, &'t str)>) -> Option<&[u8]> {
        self.clear();
        self.open(b'o');
        for (key, value) in pairs {
            let start = self.out.len();
            let mut scan = Scan::new(key.as_bytes());
            self.text(&mut scan)?;
            scan.end()?;
            let at = self.out.len();
            let mut scan = bounded(value).filter(|_| at <= LONGEST)?;
            self.value(&mut scan, Place::Plain, 1)?;
            scan.end()?;
            self.members.push(Member {
                start,
                value: at,
                end: self.out.len(),
                dropped: false,
            });
        }
        self.close_object(0, 0)?;
        Some(&self.out)
    }

    fn clear(&mut self) {
        self.out.clear();
        self.members.clear();
        self.id.clear();
    }

    fn value(&mut self, scan: &mut Scan<'_>, place: Place, depth: usize) -> Option<()> {
        match scan.peek()? {
            b'"' => self.text(scan),
            b'{' => self.object(scan, place, depth),
            b'[' => self.list(scan, place, depth),
            b't' => self.word(scan, b"true", b't'),
            b'f' => self.word(scan, b"false", b'f'),
            b'n' => self.word(scan, b"null", b'z'),
            _ => {
                let number = scan.number()?;
                self.open(b'n');
                self.out.extend_from_slice(number);
                self.patch(self.out.len() - number.len() - COUNT, number.len())
            }
        }
    }

    fn word(&mut self, scan: &mut Scan<'_>, word: &[u8], tag: u8) -> Option<()> {
        scan.word(word)?;
        self.out.push(tag);
        Some(())
    }

    fn text(&mut self, scan: &mut Scan<'_>) -> Option<()> {
        self.open(b's');
        let start = self.out.len();
        scan.string(&mut self.out)?;
        self.patch(start - COUNT, self.out.len() - start)
    }

    fn list(&mut self, scan: &mut Scan<'_>, place: Place, depth: usize) -> Option<()> {
        let inner = match place {
            Place::InItem { parts } => Place::InList { parts },
            Place::InList { .. } | Place::Plain => Place::Plain,
        };
        let depth = deeper(depth)?;
        scan.byte(b'[')?;
        self.open(b'l');
        let at = self.out.len() - COUNT;
        let mut count = 0;
        if !scan.takes(b']') {
            loop {
                self.value(scan, inner, depth)?;
                count += 1;
                if scan.closes(b']')? {
                    break;
                }
            }
        }
        self.patch(at, count)
    }

    fn object(&mut self, scan: &mut Scan<'_>, place: Place, depth: usize) -> Option<()> {
        let (start, first) = (self.out.len(), self.members.len());
        self.read_members(scan, depth, |_| Place::Plain)?;
        if place != Place::Plain {
            let parts = place == Place::InList { parts: true };
            self.drop_absent(first, parts);
        }
        self.close_object(start, first)
    }

    /// Reads an object's members to the end of `out` and of `members`. `within` says where the values of a key stand.
    fn read_members(
        &mut self,
        scan: &mut Scan<'_>,
        depth: usize,
        within: impl Fn(&[u8]) -> Place,
    ) -> Option<()> {
        let depth = deeper(depth)?;
        scan.byte(b'{')?;
        self.open(b'o');
        if scan.takes(b'}') {
            return Some(());
        }
        loop {
            let start = self.out.len();
            self.text(scan)?;
            scan.byte(b':')?;
            let value = self.out.len();
            let place = within(self.out.get(start + TAG + COUNT..)?);
            self.value(scan, place, depth)?;
            self.members.push(Member {
                start,
                value,
                end: self.out.len(),
                dropped: false,
            });
            if scan.closes(b'}')? {
                return Some(());
            }
        }
    }

    /// Members that are null, and in content parts empty lists of notes about the text, are as if they were not there.
    fn drop_absent(&mut self, first: usize, parts: bool) {
        let out = &self.out;
        for member in self.members.iter_mut().skip(first) {
            let value = out.get(member.value..member.end);
            let note = || parts && matches!(key(out, member), b"annotations" | b"logprobs");
            member.dropped |= value == Some(NULL) || (value == Some(EMPTY_LIST) && note());
        }
    }

    /// Puts the members from number `first` on in order, checks that none stands twice, and counts them. The object's
    /// encoding begins at `start`.
    fn close_object(&mut self, start: usize, first: usize) -> Option<()> {
        let out = &self.out;
        let members = self.members.get_mut(first..)?;
        let first_in_place = members
            .first()
            .is_none_or(|member| member.start == start + TAG + COUNT);
        let in_place = first_in_place
            && members.windows(2).all(|pair| match pair {
                [a, b] => a.end == b.start && key(out, a) < key(out, b),
                _ => true,
            });
        let count = members.iter().filter(|member| !member.dropped).count();
        if !in_place || count < members.len() || members.last().is_some_and(|last| last.end < out.len()) {
            members.sort_unstable_by(|a, b| key(out, a).cmp(key(out, b)));
            let twice = |pair: &[Member]| matches!(pair, [a, b] if key(out, a) == key(out, b));
            if members.windows(2).any(twice) {
                return None;
            }
            self.sorted.clear();
            for member in members.iter().filter(|member| !member.dropped) {
                self.sorted
                    .extend_from_slice(out.get(member.start..member.value)?);
                self.sorted.extend_from_slice(out.get(member.value..member.end)?);
            }
            self.out.truncate(start + TAG + COUNT);
            self.out.extend_from_slice(&self.sorted);
        }
        self.members.truncate(first);
        self.patch(start + TAG, count)
    }

    /// A tag, and room for the length or count that [`Canon::patch`] fills in.
    fn open(&mut self, tag: u8) {
        self.out.extend_from_slice(&[tag, 0, 0, 0, 0]);
    }

    fn patch(&mut self, at: usize, count: usize) -> Option<()> {
        let count = u32::try_from(count).ok()?;
        self.out
            .get_mut(at..at + COUNT)?
            .copy_from_slice(&count.to_le_bytes());
        Some(())
    }
}

/// Whether an item, in or out, compacts the history before it. In doubt (it is no object) it does not; where `type` stands
/// twice, either counts.
pub fn is_compaction(item: &str) -> bool {
    // Nearly no item does: one that does not have the word, nor any letter spelt otherwise, need not be read.
    let has = |word: &[u8]| memchr::memmem::find(item.as_bytes(), word).is_some();
    if !has(b"compaction") && !has(b"\\u") {
        return false;
    }
    let mut found = false;
    // What is no object names no type.
    let _ = json::each_member(item, |key: &RawValue, value: &RawValue| {
        let named = || json::text(value).is_some_and(|kind| kind.contains("compaction"));
        found |= json::text(key).as_deref() == Some("type") && named();
    });
    found
}

/// The text of a member's key.
fn key<'a>(out: &'a [u8], member: &Member) -> &'a [u8] {
    out.get(member.start + TAG + COUNT..member.value)
        .unwrap_or_default()
}

fn bounded(json: &str) -> Option<Scan<'_>> {
    (json.len() <= LONGEST).then(|| Scan::new(json.as_bytes()))
}

fn deeper(depth: usize) -> Option<usize> {
    (depth < MAX_DEPTH).then_some(depth + 1)
}

#[cfg(test)]
mod tests;
