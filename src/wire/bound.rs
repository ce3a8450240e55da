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
use super::request::{Create, Setting};

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
/// The longest item that is looked at for being a reference without a type, in bytes: it holds little more than an id.
const BARE: usize = 256;
static LETTER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r"\u00"));
/// Lists of tools within tools that are read at most.
const NESTED_TOOLS: usize = 4;

/// What a create carries that is bound to an account.
pub fn of_create(create: &Create) -> Bound<'_> {
    let body = &create.body()[..];
    let inside = create.input.clone().and_then(|input| body.get(input));
    let inside = inside.unwrap_or_default();
    let mut bound = Bound::default();
    if let Some(conversation) = &create.conversation {
        bound.id(Cow::Borrowed(conversation));
    }
    // A string has no items.
    if inside.first() == Some(&b'[') {
        match plainly_written(inside) {
            Some(plain) => bound.add_owned(of_list(&plain, &listed(&plain))),
            None => bound.add(of_list(inside, &items(create, inside))),
        }
    }
    // What belongs to the caller, as its metadata, is not among these.
    for (setting, key, value) in create.compared() {
        match (setting, key) {
            (Setting::Tools, _) => bound.tools(value, 0),
            (_, r#""prompt""#) => bound.prompt(value),
            // The answer's form: a schema, and names in it are no ids.
            (_, r#""text""#) => {}
            _ => {
                bound.singles(value.as_bytes());
                bound.lists(value.as_bytes());
            }
        }
    }
    bound
}

/// The items of a list; their places are known but where there are very many.
fn items<'a>(create: &'a Create, input: &'a [u8]) -> Vec<&'a str> {
    match create.items() {
        Some(places) => places
            .iter()
            .filter_map(|place| create.text(place.clone()))
            .collect(),
        None => listed(input),
    }
}

fn listed(input: &[u8]) -> Vec<&str> {
    let items: Vec<&RawValue> = serde_json::from_slice(input).unwrap_or_default();
    items.into_iter().map(RawValue::get).collect()
}

/// What a list of input items carries.
fn of_list<'a>(input: &'a [u8], items: &[&'a str]) -> Bound<'a> {
    let mut bound = Bound {
        sealed: sealed(input, MOST_SEALED),
        ids: Vec::new(),
    };
    bound.references(input, items);
    bound.singles(input);
    bound
}

/// The input with the names in it written as everybody writes them, where some letter of it is escaped, which no
/// serialiser does.
fn plainly_written(input: &[u8]) -> Option<Vec<u8>> {
    let letter = |at: usize| {
        let digits = input
            .get(at + 4..at + 6)
            .and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        byte.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
    };
    if !LETTER.find_iter(input).any(letter) {
        return None;
    }
    let value: serde_json::Value = serde_json::from_slice(input).ok()?;
    serde_json::to_vec(&value).ok()
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

    fn add(&mut self, other: Bound<'a>) {
        self.sealed = other.sealed;
        for id in other.ids {
            self.id(id);
        }
    }

    fn add_owned(&mut self, other: Bound<'_>) {
        let owned = |list: Vec<Cow<'_, str>>| {
            list.into_iter()
                .map(|text| Cow::Owned(text.into_owned()))
                .collect()
        };
        self.add(Bound {
            sealed: owned(other.sealed),
            ids: owned(other.ids),
        });
    }

    /// `{"type":"item_reference","id":"…"}`, also without the type, which may be left out. The id stands beside the name, so
    /// the items have to be read.
    fn references(&mut self, input: &'a [u8], items: &[&'a str]) {
        let named = |at: usize| value_after(input, at, at + REFERENCE.needle().len()).is_none();
        let typed = REFERENCE.find_iter(input).any(named);
        let bare = |item: &str| item.len() <= BARE && item.contains(r#""id""#);
        for item in items.iter().filter(|item| typed || bare(item)) {
            let Some([kind, id]) = json::fields(item, ["type", "id"]) else {
                continue;
            };
            let refers = match kind {
                Some(kind) => json::text(kind).as_deref() == Some("item_reference"),
                None => says_nothing_else(item),
            };
            if refers && let Some(id) = id.and_then(json::text) {
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

    /// What the tools use. Functions of the client's own use nothing there, and names in a schema are no ids.
    fn tools(&mut self, list: &'a str, depth: usize) {
        let tools: Vec<&'a RawValue> = serde_json::from_str(list).unwrap_or_default();
        for tool in tools {
            let kind = json::fields(tool.get(), ["type"]).and_then(|[kind]| kind.and_then(json::text));
            if matches!(kind.as_deref(), Some("function" | "custom")) {
                continue;
            }
            let mut inner = None;
            // What is no object is no tool.
            let _ = json::each_member(tool.get(), |key, value| match json::text(key).as_deref() {
                Some("container" | "container_id" | "file_id") if value.get().starts_with('"') => {
                    if let Some(id) = json::text(value) {
                        self.id(id);
                    }
                }
                Some("file_ids" | "vector_store_ids") => self.list(value.get().as_bytes()),
                Some("tools") => inner = Some(value.get()),
                Some("parameters" | "input_schema" | "output_schema" | "format" | "headers" | "filters") => {}
                _ => {
                    self.singles(value.get().as_bytes());
                    self.lists(value.get().as_bytes());
                }
            });
            if let Some(inner) = inner.filter(|_| depth < NESTED_TOOLS) {
                self.tools(inner, depth + 1);
            }
        }
    }

    /// A prompt's id, and the files among its variables.
    fn prompt(&mut self, value: &'a str) {
        let Some([id, variables]) = json::fields(value, ["id", "variables"]) else {
            return;
        };
        if let Some(id) = id.and_then(json::text) {
            self.id(id);
        }
        let Some(variables) = variables else { return };
        // Variables that are text may have any name.
        let _ = json::each_member(variables.get(), |_, value| {
            if json::is_object(value) {
                self.singles(value.get().as_bytes());
            }
        });
    }

    /// Lists of ids: `file_ids`, `vector_store_ids`.
    fn lists(&mut self, bytes: &'a [u8]) {
        for value in values_of(bytes, ["\"file", "\"vector_store"], &IDS_END) {
            self.list(value);
        }
    }

    /// The list of ids that `bytes` begin with.
    fn list(&mut self, bytes: &[u8]) {
        for id in one::<Vec<String>>(bytes).unwrap_or_default() {
            self.id(Cow::Owned(id));
        }
    }
}

/// Whether an item has no member but `id` and `type`.
fn says_nothing_else(item: &str) -> bool {
    let mut nothing = true;
    let read = json::each_member(item, |key, value| {
        let known = matches!(json::text(key).as_deref(), Some("id" | "type"));
        nothing &= known || value.get() == "null";
    });
    nothing && read.is_ok()
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
