//! What of a request or of an answer only one account can read or use: encrypted content, and ids of things that live
//! there (KEY-43). Found by looking for the few names under which it stands, without reading what lies between: most
//! bodies have none of it. A name that is itself written with escapes (`\u0066ile_id`) is not seen: no client writes one so,
//! and one that did would harm only its own turn.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::json;
use super::request::Create;

/// Encrypted items that are looked at, from the last one backwards.
pub const MOST_SEALED: usize = 16;
/// Distinct ids that are looked at.
pub const MOST_IDS: usize = 16;

/// What a create carries that is bound to an account.
#[derive(Default)]
pub struct Bound<'a> {
    /// Encrypted contents of its input, the last one first, at most [`MOST_SEALED`].
    pub sealed: Vec<Cow<'a, str>>,
    /// Distinct ids of items, files, containers, conversations, prompts and vector stores, at most [`MOST_IDS`].
    pub ids: Vec<Cow<'a, str>>,
}

impl Bound<'_> {
    /// Nothing of it is bound.
    pub fn is_empty(&self) -> bool {
        self.sealed.is_empty() && self.ids.is_empty()
    }
}

const SEALED: &str = r#""encrypted_content""#;
static SEALED_KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(SEALED));
static REFERENCE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#""item_reference""#));
/// The end of `file_id` and `container_id`: one pass instead of two.
static ID_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#"_id""#));
/// The end of `file_ids` and `vector_store_ids`.
static IDS_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#"_ids""#));
static CONTAINER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#""container""#));
static PROMPT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#""prompt""#));

/// What a create carries that is bound to an account.
pub fn of_create(create: &Create) -> Bound<'_> {
    let body = &create.body()[..];
    let input = create.input.clone().unwrap_or(body.len()..body.len());
    let (before, rest) = body.split_at(input.start);
    let (inside, after) = rest.split_at(input.len());
    let mut bound = Bound::default();
    if let Some(conversation) = &create.conversation {
        bound.id(Cow::Borrowed(conversation));
    }
    // A string has no items.
    if inside.first() == Some(&b'[') {
        bound.sealed = sealed(inside, MOST_SEALED);
        bound.references(inside);
        bound.singles(inside);
    }
    for part in [before, after] {
        bound.singles(part);
        bound.outside(part);
        bound.lists(part);
    }
    bound
}

/// The last encrypted content of an event or answer.
pub fn last_sealed(frame: &[u8]) -> Option<Cow<'_, str>> {
    sealed(frame, 1).pop()
}

/// The id of the item of a `response.output_item.done`.
pub fn item_id(frame: &[u8]) -> Option<Cow<'_, str>> {
    let [item] = json::fields(std::str::from_utf8(frame).ok()?, ["item"])?;
    let [id] = json::fields(item?.get(), ["id"])?;
    json::text(id?)
}

fn sealed(bytes: &[u8], most: usize) -> Vec<Cow<'_, str>> {
    // All are found first: looking backwards is many times slower.
    let all: Vec<_> = SEALED_KEY.find_iter(bytes).collect();
    let content = |at: usize| value_after(bytes, at, at + SEALED.len()).and_then(string);
    let all = all.into_iter().rev().filter_map(content);
    all.filter(|content| !content.is_empty()).take(most).collect()
}

impl<'a> Bound<'a> {
    fn id(&mut self, id: Cow<'a, str>) {
        if !id.is_empty() && self.ids.len() < MOST_IDS && !self.ids.contains(&id) {
            self.ids.push(id);
        }
    }

    /// `{"type":"item_reference","id":"…"}`: the id stands beside the name, so the items have to be read.
    fn references(&mut self, input: &'a [u8]) {
        let named = |at: usize| value_after(input, at, at + REFERENCE.needle().len()).is_none();
        if !REFERENCE.find_iter(input).any(named) {
            return;
        }
        let items: Vec<&'a RawValue> = serde_json::from_slice(input).unwrap_or_default();
        for item in items {
            let Some([kind, id]) = json::fields(item.get(), ["type", "id"]) else {
                continue;
            };
            if kind.and_then(json::text).as_deref() == Some("item_reference")
                && let Some(id) = id.and_then(json::text)
            {
                self.id(id);
            }
        }
    }

    /// Ids that stand alone, wherever they stand: `file_id`, `container_id`.
    fn singles(&mut self, bytes: &'a [u8]) {
        for value in values_of(bytes, ["\"file", "\"container"], &ID_END) {
            if let Some(id) = string(value) {
                self.id(id);
            }
        }
    }

    /// The ids of a tool's container and of the prompt, which stand outside of the input.
    fn outside(&mut self, bytes: &'a [u8]) {
        for at in CONTAINER.find_iter(bytes) {
            let value = value_after(bytes, at, at + CONTAINER.needle().len());
            if let Some(id) = value.and_then(string) {
                self.id(id);
            }
        }
        for at in PROMPT.find_iter(bytes) {
            let value = value_after(bytes, at, at + PROMPT.needle().len());
            let object = value
                .filter(|value| value.first() == Some(&b'{'))
                .and_then(one::<&RawValue>);
            if let Some([Some(id)]) = object.and_then(|object| json::fields(object.get(), ["id"]))
                && let Some(id) = json::text(id)
            {
                self.id(id);
            }
        }
    }

    /// Lists of ids: `file_ids`, `vector_store_ids`.
    fn lists(&mut self, bytes: &'a [u8]) {
        for value in values_of(bytes, ["\"file", "\"vector_store"], &IDS_END) {
            for id in one::<Vec<String>>(value).unwrap_or_default() {
                self.id(Cow::Owned(id));
            }
        }
    }
}

/// The bytes from each value on whose key begins with one of these beginnings and has this end.
fn values_of<'a>(
    bytes: &'a [u8],
    beginnings: [&'static str; 2],
    end: &'static Finder<'static>,
) -> impl Iterator<Item = &'a [u8]> {
    end.find_iter(bytes).filter_map(move |at| {
        let before = &bytes[..at];
        let beginning = beginnings.iter().find(|name| before.ends_with(name.as_bytes()))?;
        value_after(bytes, at - beginning.len(), at + end.needle().len())
    })
}

/// The bytes from the value on, where the name between `start` and `end` (with its quotes) is a key. In valid JSON that is
/// so when its first quote is not escaped and a colon follows: within a string both its quotes would be escaped.
fn value_after(bytes: &[u8], start: usize, end: usize) -> Option<&[u8]> {
    if start.checked_sub(1).is_some_and(|before| bytes[before] == b'\\') {
        return None;
    }
    let rest = bytes[end..].trim_ascii_start().strip_prefix(b":")?;
    Some(rest.trim_ascii_start())
}

/// The JSON string that `bytes` begin with.
fn string(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let rest = bytes.strip_prefix(b"\"")?;
    let end = memchr::memchr2(b'"', b'\\', rest)?;
    if rest[end] == b'"' {
        return std::str::from_utf8(&rest[..end]).ok().map(Cow::Borrowed);
    }
    one::<String>(bytes).map(Cow::Owned)
}

/// The one value that `bytes` begin with.
fn one<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    serde_json::Deserializer::from_slice(bytes)
        .into_iter()
        .next()?
        .ok()
}

#[cfg(test)]
mod tests;
