//! Reading one level of a JSON object without building a tree.
//!
//! A value stays the raw text it came as. Both this and serde_json's skipping of a value are iterative, so that no
//! nesting, however deep, can exhaust the stack.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Calls `visit` with the raw key (quotes and escapes as they came) and raw value of each member of the object `json`.
///
/// # Errors
/// When `json` is anything but exactly one JSON object; some members may have been visited by then.
pub(super) fn each_member<'a>(
    json: &'a str,
    visit: impl FnMut(&'a RawValue, &'a RawValue),
) -> serde_json::Result<()> {
    let mut reader = serde_json::Deserializer::from_str(json);
    Members(visit).deserialize(&mut reader)?;
    reader.end()
}

struct Members<F>(F);

impl<'a, F: FnMut(&'a RawValue, &'a RawValue)> DeserializeSeed<'a> for Members<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'a, F: FnMut(&'a RawValue, &'a RawValue)> Visitor<'a> for Members<F> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'a>>(mut self, mut members: M) -> Result<(), M::Error> {
        while let Some((key, value)) = members.next_entry()? {
            (self.0)(key, value);
        }
        Ok(())
    }
}

/// The raw values of the members called `names`. A key that stands twice counts with its last value, as JavaScript
/// and Python read it; `null` counts as absent. `None` when `json` is not one whole JSON object.
pub(super) fn fields<'a, const N: usize>(
    json: &'a str,
    names: [&str; N],
) -> Option<[Option<&'a RawValue>; N]> {
    let mut found = [None; N];
    each_member(json, |key, value| {
        let Some(key) = text(key) else { return };
        if let Some(place) = names.iter().position(|name| *name == key) {
            found[place] = Some(value).filter(|value| value.get() != "null");
        }
    })
    .ok()?;
    Some(found)
}

/// The text of a JSON string, `None` for any other value. Half a surrogate pair becomes U+FFFD: legal JSON, which
/// JavaScript clients do produce, must not make a whole frame unreadable.
pub(super) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let inner = value.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    let mut reader = serde_json::Deserializer::from_str(value.get());
    let bytes = reader.deserialize_bytes(TextBytes).ok()?;
    Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Asking serde_json for bytes, not for a `str`, is what makes it accept half a surrogate pair.
struct TextBytes;

impl Visitor<'_> for TextBytes {
    type Value = Vec<u8>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON string")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }
}

/// Owned text of a JSON string; a number, too, since codes and parameters come as either.
pub(super) fn loose_text(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => text(value).map(Cow::into_owned),
        b'-' | b'0'..=b'9' | b't' | b'f' => Some(value.get().to_owned()),
        _ => None,
    }
}

/// A whole number, also where it is written as a string or with a fraction of zero.
pub(super) fn loose_number(value: &RawValue) -> Option<u64> {
    let written = loose_text(value)?;
    let whole = written
        .split_once('.')
        .map_or(written.as_str(), |(whole, _)| whole);
    whole.parse().ok()
}

/// `true` or `false`, `None` for any other value.
pub(super) fn boolean(value: &RawValue) -> Option<bool> {
    match value.get() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// How many items a list has; `None` for any other value.
pub(super) fn list_len(json: &str) -> Option<usize> {
    let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    Some(items.len())
}

pub(super) fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

/// Where `part`, a piece of `whole`, lies in it. In bytes.
pub(super) fn span(whole: &str, part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.get().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field<'a>(json: &'a str, name: &str) -> Option<&'a str> {
        fields(json, [name]).and_then(|[value]| value).map(RawValue::get)
    }

    #[test]
    fn the_last_of_two_equal_keys_counts_however_it_is_written() {
        assert_eq!(field(r#"{"a":1,"\u0061":2}"#, "a"), Some("2"));
        assert_eq!(field(r#"{"a":1,"a":null}"#, "a"), None);
        assert_eq!(field(r#"{"a":1} x"#, "a"), None);
        assert_eq!(field(r#"[{"a":1}]"#, "a"), None);
    }

    #[test]
    fn half_a_surrogate_pair_hides_nothing() {
        assert_eq!(field(r#"{"\ud83d":0,"a":"\ud83d"}"#, "a"), Some(r#""\ud83d""#));
        let [value] = fields(r#"{"a":"x\ud83d\n"}"#, ["a"]).unwrap();
        assert!(text(value.unwrap()).unwrap().starts_with('x'));
        assert!(text(value.unwrap()).unwrap().ends_with('\n'));
    }

    #[test]
    fn a_span_gives_back_the_same_bytes() {
        let json = r#" { "a" : [1, 2] } "#;
        let [value] = fields(json, ["a"]).unwrap();
        assert_eq!(&json[span(json, value.unwrap())], "[1, 2]");
    }

    #[test]
    fn nesting_does_not_exhaust_the_stack() {
        let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert!(field(&deep, "a").is_some());
    }
}
