//! The create body: its facts, read in one pass, and its bytes, spliced and never re-serialised.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::json;
pub use fault::BodyFault;

mod depth;
mod fault;
mod pass;
mod splice;
mod strip;

/// Deepest nesting of objects and lists that a body may have.
pub const MAX_DEPTH: usize = 128;
/// Most members that the top level of a body may have. The API knows about forty; each one costs memory here.
pub const MAX_MEMBERS: usize = 1024;
/// Most items of an `input` whose places are kept. A conversation has hundreds, a very long one thousands.
pub const MAX_ITEMS: usize = 16_384;

/// A checked create body. Keeps the bytes as they came and knows where the members lie in them.
#[derive(Clone)]
pub struct Create {
    /// `model`, never empty.
    pub model: String,
    /// `stream`: whether the client wants SSE.
    pub stream: bool,
    /// `background`.
    pub background: bool,
    /// `store`.
    pub store: Option<bool>,
    /// `generate`: `false` for a warm-up.
    pub generate: Option<bool>,
    /// `previous_response_id`.
    pub previous_response_id: Option<String>,
    /// `conversation`, given as an id or as an object with one.
    pub conversation: Option<String>,
    /// `prompt_cache_key`.
    pub prompt_cache_key: Option<String>,
    /// `client_metadata.thread_id`.
    pub thread_id: Option<String>,
    /// Where the value of `input` lies in the body.
    pub input: Option<Range<usize>>,
    body: Bytes,
    members: Vec<Member>,
    items: Option<Vec<Range<usize>>>,
}

/// One member of the body's top level.
#[derive(Clone)]
struct Member {
    field: Field,
    /// From the key's opening quote to the end of the value.
    whole: Range<usize>,
    value: Range<usize>,
}

/// The members that some splice treats differently, or that continuation does not compare.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Type,
    Stream,
    Background,
    Generate,
    ClientMetadata,
    Input,
    Anchor,
    /// About the caller or the transport, not about what the model sees.
    Aside,
    Compared(Setting),
}

/// A member that continuation compares [CONT-3].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `model`.
    Model,
    /// `instructions`.
    Instructions,
    /// `tools`.
    Tools,
    /// Any other, known or not.
    Other,
}

impl Field {
    fn named(name: &str) -> Self {
        match name {
            "type" => Self::Type,
            "stream" => Self::Stream,
            "background" => Self::Background,
            "generate" => Self::Generate,
            "client_metadata" => Self::ClientMetadata,
            "input" => Self::Input,
            "previous_response_id" => Self::Anchor,
            "stream_options" | "metadata" | "user" | "safety_identifier" => Self::Aside,
            "model" => Self::Compared(Setting::Model),
            "instructions" => Self::Compared(Setting::Instructions),
            "tools" => Self::Compared(Setting::Tools),
            _ => Self::Compared(Setting::Other),
        }
    }
}

/// Reads and checks a create body [WIRE-12].
///
/// # Errors
/// The first fault found, named by field or offset, without any of the body's content [WIRE-13].
pub fn read_create(body: Bytes) -> Result<Create, BodyFault> {
    let text = std::str::from_utf8(&body).map_err(|fault| BodyFault::InvalidUtf8 {
        offset: fault.valid_up_to(),
    })?;
    if text.trim_ascii().is_empty() {
        return Err(BodyFault::Empty);
    }
    if let Some(offset) = depth::beyond(text.as_bytes(), MAX_DEPTH) {
        return Err(BodyFault::TooDeep { offset });
    }
    let mut reading = Reading::default();
    pass::read(text, &mut reading).map_err(|fault| syntax(text, &fault))?;
    if let Some(fault) = reading.fault {
        return Err(fault);
    }
    let Facts {
        model,
        stream,
        background,
        store,
        generate,
        anchor,
        conversation,
        cache_key,
        thread_id,
        input,
        items,
    } = reading.facts;
    let members = reading.members;
    Ok(Create {
        model: model.ok_or(BodyFault::MissingModel)?,
        stream: stream.unwrap_or(false),
        background: background.unwrap_or(false),
        store,
        generate,
        previous_response_id: anchor,
        conversation,
        prompt_cache_key: cache_key,
        thread_id,
        input,
        members,
        items,
        body,
    })
}

fn syntax(text: &str, fault: &serde_json::Error) -> BodyFault {
    let (line, column) = (fault.line(), fault.column());
    match fault.classify() {
        Category::Eof => BodyFault::Truncated { offset: text.len() },
        Category::Data => BodyFault::NotAnObject,
        Category::Syntax | Category::Io => {
            let before: usize = text
                .split_inclusive('\n')
                .take(line.saturating_sub(1))
                .map(str::len)
                .sum();
            let offset = before + column.saturating_sub(1);
            match cut_number(text, offset) {
                true => BodyFault::Truncated { offset: text.len() },
                false => BodyFault::Malformed { line, column, offset },
            }
        }
    }
}

/// Whether the text ends in the middle of a number, which serde_json takes for a malformed one.
fn cut_number(text: &str, offset: usize) -> bool {
    let last = text.strip_suffix(['-', '+', '.', 'e', 'E']);
    let in_json = |rest: &str| serde_json::from_str::<&RawValue>(rest).is_err();
    offset + 1 == text.len() && last.is_some_and(in_json)
}

/// What has been read so far. The first fault is kept; the rest of the body is still checked for syntax, since a body
/// that is no JSON at all is best told so.
#[derive(Default)]
struct Reading<'a> {
    facts: Facts,
    members: Vec<Member>,
    names: HashSet<Cow<'a, str>>,
    fault: Option<BodyFault>,
}

#[derive(Default)]
struct Facts {
    model: Option<String>,
    stream: Option<bool>,
    background: Option<bool>,
    store: Option<bool>,
    generate: Option<bool>,
    anchor: Option<String>,
    conversation: Option<String>,
    cache_key: Option<String>,
    thread_id: Option<String>,
    input: Option<Range<usize>>,
    items: Option<Vec<Range<usize>>>,
}

impl<'a> Reading<'a> {
    fn take(&mut self, text: &str, key: &'a RawValue, value: &'a RawValue) {
        let span = json::span(text, value);
        self.take_member(text, key, span.clone(), |facts, name| match value.get() {
            "null" => Ok(()),
            _ => facts.take(name, value, span),
        });
    }

    /// Takes a list `input` whose items have been read already.
    fn take_list(
        &mut self,
        text: &str,
        key: &'a RawValue,
        span: Range<usize>,
        items: Option<Vec<Range<usize>>>,
    ) {
        self.take_member(text, key, span.clone(), |facts, _| {
            (facts.input, facts.items) = (Some(span), items);
            Ok(())
        });
    }

    fn take_member(
        &mut self,
        text: &str,
        key: &'a RawValue,
        span: Range<usize>,
        take: impl FnOnce(&mut Facts, &str) -> Result<(), BodyFault>,
    ) {
        if self.fault.is_none() {
            self.fault = self.try_take(text, key, span, take).err();
        }
    }

    fn try_take(
        &mut self,
        text: &str,
        key: &'a RawValue,
        span: Range<usize>,
        take: impl FnOnce(&mut Facts, &str) -> Result<(), BodyFault>,
    ) -> Result<(), BodyFault> {
        let start = json::span(text, key).start;
        let name = json::text(key).ok_or(BodyFault::NotAnObject)?;
        if self.members.len() == MAX_MEMBERS {
            return Err(BodyFault::TooManyMembers);
        }
        self.members.push(Member {
            field: Field::named(&name),
            whole: start..span.end,
            value: span,
        });
        take(&mut self.facts, &name)?;
        if self.names.contains(&name) {
            return Err(BodyFault::duplicate(&name, start));
        }
        self.names.insert(name);
        Ok(())
    }
}

impl Facts {
    fn take(&mut self, name: &str, value: &RawValue, span: Range<usize>) -> Result<(), BodyFault> {
        match name {
            "model" => {
                let model = string("model", "a string", value)?;
                if model.trim().is_empty() {
                    return Err(BodyFault::EmptyModel);
                }
                self.model = Some(model);
            }
            "stream" => self.stream = Some(boolean("stream", value)?),
            "background" => self.background = Some(boolean("background", value)?),
            "store" => self.store = Some(boolean("store", value)?),
            "generate" => self.generate = Some(boolean("generate", value)?),
            "previous_response_id" => {
                self.anchor = Some(string("previous_response_id", "a string or null", value)?);
            }
            "prompt_cache_key" => {
                self.cache_key = Some(string("prompt_cache_key", "a string or null", value)?)
            }
            "conversation" => self.conversation = Some(conversation(value)?),
            "client_metadata" => {
                let wrong = BodyFault::WrongType {
                    field: "client_metadata",
                    expected: "an object or null",
                };
                let [thread] = json::fields(value.get(), ["thread_id"]).ok_or(wrong)?;
                self.thread_id = thread.and_then(json::text).map(Cow::into_owned);
            }
            "input" => {
                // A list has been read item by item.
                if !value.get().starts_with('"') {
                    return Err(BodyFault::WrongType {
                        field: "input",
                        expected: "a string or a list",
                    });
                }
                self.input = Some(span);
            }
            _ => {}
        }
        Ok(())
    }
}

fn string(field: &'static str, expected: &'static str, value: &RawValue) -> Result<String, BodyFault> {
    json::text(value)
        .map(Cow::into_owned)
        .ok_or(BodyFault::WrongType { field, expected })
}

fn boolean(field: &'static str, value: &RawValue) -> Result<bool, BodyFault> {
    json::boolean(value).ok_or(BodyFault::WrongType {
        field,
        expected: "true, false or null",
    })
}

fn conversation(value: &RawValue) -> Result<String, BodyFault> {
    if !json::is_object(value) {
        return string("conversation", "a string, an object with an id, or null", value);
    }
    let [id] = json::fields(value.get(), ["id"]).unwrap_or_default();
    let wrong = BodyFault::WrongType {
        field: "conversation.id",
        expected: "a string",
    };
    id.and_then(json::text).map(Cow::into_owned).ok_or(wrong)
}

/// The responses that a body names as `previous_response_id`, for requests that are no creates. All of them: servers
/// differ over which of two members of one name counts, and so does one that is null. A body that is not one JSON object
/// names none.
pub fn named_responses(body: &[u8]) -> Vec<String> {
    let mut named = Vec::new();
    let take = |key: &RawValue, value: &RawValue| {
        if json::text(key).as_deref() == Some("previous_response_id") {
            named.extend(json::text(value).map(Cow::into_owned));
        }
    };
    let whole = std::str::from_utf8(body).is_ok_and(|text| json::each_member(text, take).is_ok());
    if whole { named } else { Vec::new() }
}

impl Create {
    /// The body as it came.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The raw bytes between the brackets of a list `input`, or between the quotes of a string one.
    pub fn input_interior(&self) -> Option<&[u8]> {
        let span = self.input.clone()?;
        self.body.get(span.start + 1..span.end - 1)
    }

    /// Where the items of a list `input` lie in the body. `None` when it is no list or has more than [`MAX_ITEMS`]
    /// [CONT-1].
    pub fn items(&self) -> Option<&[Range<usize>]> {
        self.items.as_deref()
    }

    /// The members of the top level that continuation compares, with raw key (quotes and escapes as they came) and raw
    /// value. Not `input`, nor what belongs to the caller or the transport, nor a member that is null [CONT-3].
    pub fn compared(&self) -> impl Iterator<Item = (Setting, &str, &str)> {
        let text = |bytes| std::str::from_utf8(bytes).ok();
        self.compared_bytes()
            .filter_map(move |(setting, key, value)| Some((setting, text(key)?, text(value)?)))
    }

    /// The same as bytes: whoever only hashes them need not have them checked for text once more.
    pub fn compared_bytes(&self) -> impl Iterator<Item = (Setting, &[u8], &[u8])> {
        self.members.iter().filter_map(|member| {
            let Field::Compared(setting) = member.field else {
                return None;
            };
            let value = self.body.get(member.value.clone())?;
            let key = self.body.get(member.whole.start..member.value.start)?;
            let key = key.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end();
            (value != b"null").then_some((setting, key, value))
        })
    }

    /// The text at this place in the body.
    pub fn text(&self, span: Range<usize>) -> Option<&str> {
        std::str::from_utf8(self.body.get(span)?).ok()
    }

    /// The members of `client_metadata` that are strings, in the order they came.
    pub fn client_metadata(&self) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        if let Some(metadata) = self.metadata_text() {
            // It was checked to be an object when the body was read.
            let _ = json::each_member(metadata, |key, value| {
                if let (Some(key), Some(value)) = (json::text(key), json::text(value)) {
                    pairs.push((key.into_owned(), value.into_owned()));
                }
            });
        }
        pairs
    }

    /// The value of `client_metadata`, where it is an object.
    fn metadata_text(&self) -> Option<&str> {
        let member = self
            .members
            .iter()
            .find(|member| member.field == Field::ClientMetadata)?;
        let text = std::str::from_utf8(self.body.get(member.value.clone())?).ok()?;
        text.starts_with('{').then_some(text)
    }
}

/// Shows sizes and switches, never content (INV-9).
impl fmt::Debug for Create {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Create")
            .field("bytes", &self.body.len())
            .field("members", &self.members.len())
            .field("stream", &self.stream)
            .field("background", &self.background)
            .field("store", &self.store)
            .field("anchored", &self.previous_response_id.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
