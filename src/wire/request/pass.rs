//! The one pass over a body: its members, and within it the items of a list `input` [WIRE-12, CONT-1].

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{MAX_ITEMS, Reading};
use crate::wire::json;

/// Reads the object `text` into `reading`.
///
/// # Errors
/// When `text` is anything but exactly one JSON object.
pub(super) fn read<'a>(text: &'a str, reading: &mut Reading<'a>) -> serde_json::Result<()> {
    let mut reader = serde_json::Deserializer::from_str(text);
    (&mut reader).deserialize_map(Members { text, reading })?;
    reader.end()
}

struct Members<'r, 'a> {
    text: &'a str,
    reading: &'r mut Reading<'a>,
}

impl<'a> Visitor<'a> for Members<'_, 'a> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut members: M) -> Result<(), M::Error> {
        let Self { text, reading } = self;
        while let Some(key) = members.next_key::<&RawValue>()? {
            let key_end = json::span(text, key).end;
            match list_start(text, key_end).filter(|_| json::text(key).as_deref() == Some("input")) {
                Some(start) => {
                    let spans = members.next_value_seed(Items(text))?;
                    let last = spans.last_end.unwrap_or(start + 1);
                    let input = start..skip_space(text, last) + 1;
                    reading.take_list(text, key, input, spans.kept);
                }
                None => reading.take(text, key, members.next_value()?),
            }
        }
        Ok(())
    }
}

/// Where a list starts that is the value of the key which ends at `key_end`.
fn list_start(text: &str, key_end: usize) -> Option<usize> {
    let byte = |at| text.as_bytes().get(at);
    let colon = skip_space(text, key_end);
    let start = skip_space(text, colon + 1);
    (byte(colon) == Some(&b':') && byte(start) == Some(&b'[')).then_some(start)
}

fn skip_space(text: &str, from: usize) -> usize {
    let rest = text.as_bytes().iter().skip(from);
    from + rest
        .take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'))
        .count()
}

/// Room that is made at once: most inputs have more items, and growing from nothing is half the cost of a short one.
const FEW: usize = 64;

/// Reads a list to where its elements lie in the text.
struct Items<'a>(&'a str);

struct Spans {
    /// None: there are too many.
    kept: Option<Vec<Range<usize>>>,
    last_end: Option<usize>,
}

impl<'a> DeserializeSeed<'a> for Items<'a> {
    type Value = Spans;

    fn deserialize<D: Deserializer<'a>>(self, reader: D) -> Result<Spans, D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'a> Visitor<'a> for Items<'a> {
    type Value = Spans;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<S: SeqAccess<'a>>(self, mut elements: S) -> Result<Spans, S::Error> {
        let mut kept = Some(Vec::with_capacity(FEW));
        let mut last_end = None;
        while let Some(element) = elements.next_element::<&RawValue>()? {
            let span = json::span(self.0, element);
            last_end = Some(span.end);
            match &mut kept {
                Some(spans) if spans.len() < MAX_ITEMS => spans.push(span),
                _ => kept = None,
            }
        }
        Ok(Spans { kept, last_end })
    }
}
