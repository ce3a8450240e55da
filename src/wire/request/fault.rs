//! What can be wrong with a create body, told without repeating any of it.

use thiserror::Error;

use super::{MAX_DEPTH, MAX_MEMBERS};

/// Why a create body was refused. Each one is a 400; the message is for the client.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BodyFault {
    /// Nothing but white space.
    #[error("the request body is empty; a JSON object is expected")]
    Empty,
    /// Bytes that are no UTF-8.
    #[error("the request body is not valid UTF-8 at byte {offset}")]
    InvalidUtf8 {
        /// Of the first bad byte.
        offset: usize,
    },
    /// Not JSON.
    #[error("the request body is not valid JSON at line {line}, column {column} (byte {offset})")]
    Malformed {
        /// From 1.
        line: usize,
        /// In bytes, from 1.
        column: usize,
        /// In bytes, from 0.
        offset: usize,
    },
    /// JSON that stops in the middle.
    #[error("the request body is truncated: its JSON is not finished at byte {offset}, where it ends")]
    Truncated {
        /// The body's length.
        offset: usize,
    },
    /// JSON, but a list, string, number, or such.
    #[error("the request body must be a JSON object")]
    NotAnObject,
    /// No `model`, or `null`.
    #[error("missing required field 'model'")]
    MissingModel,
    /// A `model` without a visible character.
    #[error("'model' must not be empty")]
    EmptyModel,
    /// A field of the wrong type.
    #[error("'{field}' must be {expected}")]
    WrongType {
        /// The field, with its parent where it has one.
        field: &'static str,
        /// What it may be.
        expected: &'static str,
    },
    /// A field that stands twice at the top level: parsers differ in which one counts.
    #[error("{} stands twice in the request body (byte {offset})", named(.field.as_deref()))]
    DuplicateKey {
        /// Its name, if it looks like a field name; anything else could be content.
        field: Option<Box<str>>,
        /// Of the second one.
        offset: usize,
    },
    /// Nesting deeper than [`MAX_DEPTH`].
    #[error("the request body nests deeper than {MAX_DEPTH} levels at byte {offset}")]
    TooDeep {
        /// Of the bracket that opens the level beyond the limit.
        offset: usize,
    },
    /// More than [`MAX_MEMBERS`] fields at the top level.
    #[error("the request body has more than {MAX_MEMBERS} fields")]
    TooManyMembers,
}

fn named(field: Option<&str>) -> String {
    field.map_or_else(|| "a field".to_owned(), |field| format!("field '{field}'"))
}

impl BodyFault {
    pub(super) fn duplicate(name: &str, offset: usize) -> Self {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let safe = (1..=64).contains(&name.len()) && name.bytes().all(plain);
        Self::DuplicateKey {
            field: safe.then(|| name.into()),
            offset,
        }
    }

    /// The field at fault, for `error.param`.
    pub fn param(&self) -> Option<&str> {
        match self {
            Self::MissingModel | Self::EmptyModel => Some("model"),
            Self::WrongType { field, .. } => Some(field),
            Self::DuplicateKey { field, .. } => field.as_deref(),
            Self::Empty
            | Self::InvalidUtf8 { .. }
            | Self::Malformed { .. }
            | Self::Truncated { .. }
            | Self::NotAnObject
            | Self::TooDeep { .. }
            | Self::TooManyMembers => None,
        }
    }

    /// A short word for `error.code` and for labels, from a closed set.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty_body",
            Self::InvalidUtf8 { .. } => "invalid_utf8",
            Self::Malformed { .. } => "invalid_json",
            Self::Truncated { .. } => "truncated_json",
            Self::NotAnObject => "invalid_body",
            Self::MissingModel => "missing_required_parameter",
            Self::EmptyModel => "invalid_value",
            Self::WrongType { .. } => "invalid_type",
            Self::DuplicateKey { .. } => "duplicate_field",
            Self::TooDeep { .. } => "nesting_too_deep",
            Self::TooManyMembers => "too_many_fields",
        }
    }
}
