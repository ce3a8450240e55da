//! The body's bytes for either transport: members dropped, added or replaced, all else as it came.

use std::collections::HashSet;
use std::ops::Range;

use bytes::Bytes;

use super::{Create, Field};
use crate::wire::json;

/// Fixed bytes that a frame may have beyond its body and metadata.
const FRAME_OVERHEAD: usize = 64;
/// The longest a byte of text becomes in JSON: `\u00XX`.
const ESCAPED: usize = 6;

impl Create {
    /// The frame of this turn: `{"type":"response.create",` and the members as they came, but for `type`, `stream` and
    /// `background`, which mean nothing on a socket. `metadata` is added to `client_metadata`, which is made where there
    /// is none; a name that the client has sent itself keeps the client's value [WIRE-14, WIRE-15].
    pub fn frame(&self, metadata: &[(&str, &str)]) -> Bytes {
        self.spliced(metadata, None, self.frame_len_bound(metadata))
    }

    /// The frame of a turn that continues the response `anchor`: like [`Create::frame`], but with `anchor` as
    /// `previous_response_id`, and with the items of the list `input` from number `skip` on alone. An `input` whose items
    /// are not known stays whole [CONT-2].
    pub fn delta_frame(&self, skip: usize, anchor: &str, metadata: &[(&str, &str)]) -> Bytes {
        let delta = Delta {
            anchor: anchored(anchor),
            input: self.input_from(skip),
        };
        let saved = match (&self.input, &delta.input) {
            (Some(whole), Some((_, items))) => whole.len() - items.len(),
            _ => 0,
        };
        let capacity = self.frame_len_bound(metadata) - saved + delta.anchor.len() + 1;
        self.spliced(metadata, Some(delta), capacity)
    }

    fn spliced(&self, metadata: &[(&str, &str)], mut delta: Option<Delta>, capacity: usize) -> Bytes {
        let mut out = Splice::new(&self.body, capacity);
        out.add(br#""type":"response.create""#);
        let mut addition = Addition::new(self.metadata_text(), metadata);
        if let Some(delta) = &delta {
            out.add(&delta.anchor);
        }
        for member in &self.members {
            match member.field {
                Field::Type | Field::Stream | Field::Background => out.skip(),
                Field::Anchor if delta.is_some() => out.skip(),
                Field::Input => match delta.as_mut().and_then(|delta| delta.input.take()) {
                    Some((opening, items)) => out.cut(opening, items),
                    None => out.keep(&member.whole),
                },
                Field::ClientMetadata => match addition.take() {
                    Some(value) => out.add(&value),
                    None => out.keep(&member.whole),
                },
                Field::Generate | Field::Anchor | Field::Aside | Field::Compared(_) => {
                    out.keep(&member.whole)
                }
            }
        }
        if let Some(value) = addition.take() {
            out.add(&value);
        }
        out.finish()
    }

    /// The member `input` without its first `skip` items: from its key to the opening bracket, and from the first item
    /// that stays to the closing bracket.
    fn input_from(&self, skip: usize) -> Option<(Range<usize>, Range<usize>)> {
        let (items, input) = (self.items()?, self.input.clone()?);
        let member = self.members.iter().find(|member| member.field == Field::Input)?;
        let first = items.get(skip).map_or(input.end - 1, |item| item.start);
        Some((member.whole.start..input.start + 1, first..input.end))
    }

    /// An upper bound of the length of [`Create::frame`], for the choice of transport before anything is built. In bytes.
    pub fn frame_len_bound(&self, metadata: &[(&str, &str)]) -> usize {
        let added: usize = metadata
            .iter()
            .map(|(name, value)| ESCAPED * (name.len() + value.len()) + 6)
            .sum();
        self.body.len() + added + FRAME_OVERHEAD
    }

    /// The body for direct HTTP: as it came, but without `type` and `generate`, which belong to sockets, and with
    /// `stream` as asked. The very same bytes where nothing has to change [WIRE-16].
    pub fn http_body(&self, stream: Option<bool>) -> Bytes {
        let socket_only = |field| matches!(field, Field::Type | Field::Generate);
        let forced = stream.filter(|wanted| *wanted != self.stream);
        if forced.is_none() && !self.members.iter().any(|member| socket_only(member.field)) {
            return self.body.clone();
        }
        let mut forced = forced.map(|wanted| format!(r#""stream":{wanted}"#));
        let mut out = Splice::new(&self.body, self.body.len() + FRAME_OVERHEAD);
        for member in &self.members {
            match member.field {
                Field::Type | Field::Generate => out.skip(),
                Field::Stream => match forced.take() {
                    Some(value) => out.add(value.as_bytes()),
                    None => out.keep(&member.whole),
                },
                _ => out.keep(&member.whole),
            }
        }
        if let Some(value) = forced {
            out.add(value.as_bytes());
        }
        out.finish()
    }
}

/// What a frame that continues a response has instead of the body's members.
struct Delta {
    /// The member `previous_response_id`.
    anchor: Vec<u8>,
    /// The two pieces of the body that make the member `input`.
    input: Option<(Range<usize>, Range<usize>)>,
}

fn anchored(anchor: &str) -> Vec<u8> {
    let mut member = br#""previous_response_id":"#.to_vec();
    push_text(&mut member, anchor);
    member
}

/// What `client_metadata` becomes, once: the member as a whole, or nothing where nothing is to be added.
struct Addition(Option<Vec<u8>>);

impl Addition {
    fn new(sent: Option<&str>, metadata: &[(&str, &str)]) -> Self {
        let sent = sent.unwrap_or("{}");
        let mut names = HashSet::new();
        // What the client sent was checked when the body was read.
        let _ = json::each_member(sent, |key, _| names.extend(json::text(key)));
        let mut pairs = metadata
            .iter()
            .filter(|(name, _)| !names.contains(*name))
            .peekable();
        if pairs.peek().is_none() {
            return Self(None);
        }
        let mut out = br#""client_metadata":"#.to_vec();
        let open = sent.trim_end().strip_suffix('}').unwrap_or(sent);
        out.extend_from_slice(open.trim_end().as_bytes());
        let mut empty = names.is_empty();
        for (name, value) in pairs {
            if !empty {
                out.push(b',');
            }
            empty = false;
            push_text(&mut out, name);
            out.push(b':');
            push_text(&mut out, value);
        }
        out.push(b'}');
        Self(Some(out))
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        self.0.take()
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// An object under construction. Neighbours that are both kept are copied in one piece, with the comma and the white
/// space between them.
struct Splice<'a> {
    body: &'a [u8],
    out: Vec<u8>,
    /// The run of kept bytes that has not been copied yet.
    run: Option<Range<usize>>,
}

impl<'a> Splice<'a> {
    fn new(body: &'a [u8], capacity: usize) -> Self {
        let mut out = Vec::with_capacity(capacity);
        out.push(b'{');
        Self { body, out, run: None }
    }

    fn keep(&mut self, member: &Range<usize>) {
        match &mut self.run {
            Some(run) => run.end = member.end,
            None => self.run = Some(member.clone()),
        }
    }

    fn skip(&mut self) {
        if let Some(run) = self.run.take() {
            self.push(&self.body[run]);
        }
    }

    fn add(&mut self, member: &[u8]) {
        self.skip();
        self.push(member);
    }

    /// Adds a member that is two pieces of the body.
    fn cut(&mut self, opening: Range<usize>, rest: Range<usize>) {
        self.add(&self.body[opening]);
        self.out.extend_from_slice(&self.body[rest]);
    }

    fn push(&mut self, members: &[u8]) {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        self.out.extend_from_slice(members);
    }

    fn finish(mut self) -> Bytes {
        self.skip();
        self.out.push(b'}');
        Bytes::from(self.out)
    }
}
