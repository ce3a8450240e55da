//! Parameters: what each may be, judged before its operation runs, and told in the OpenAPI document. Both from one place.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::HeaderMap;
use serde_json::{Value, json};

use super::table::Operation;
use crate::event;
use crate::refusal::{Kind, Refusal};
use crate::wire::percent;

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Path,
    Query,
    Header,
}

impl Place {
    /// As OpenAPI calls it.
    pub fn label(self) -> &'static str {
        match self {
            Place::Path => "path",
            Place::Query => "query",
            Place::Header => "header",
        }
    }
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A number in decimal digits.
    Whole { least: u64, most: u64 },
    /// So many of certain characters, as the pattern says.
    Text {
        pattern: &'static str,
        is: fn(&str) -> bool,
    },
    /// Anything: what is of no use is passed over.
    Any,
}

/// A parameter of an operation. Those in paths are required, all others are not.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub place: Place,
    pub shape: Shape,
    pub what: &'static str,
    pub example: &'static str,
}

fn all(text: &str, longest: usize, is: impl Fn(u8) -> bool) -> bool {
    (1..=longest).contains(&text.len()) && text.bytes().all(is)
}

fn is_configured(text: &str) -> bool {
    all(text, 32, |b| {
        b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-'
    })
}

/// A session's number. Beyond 2^53 programs whose numbers are floating-point could not tell it apart.
pub const SESSION: Shape = Shape::Whole {
    least: 0,
    most: (1 << 53) - 1,
};
/// An affinity key as it is printed.
pub const KEY: Shape = Shape::Text {
    pattern: "^[0-9a-f]{12}$",
    is: |text| text.len() == 12 && all(text, 12, |b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
};
/// A configured name.
pub const NAME: Shape = Shape::Text {
    pattern: "^[a-z0-9_-]{1,32}$",
    is: is_configured,
};
/// `account`, or `provider/account`.
pub const ACCOUNT: Shape = Shape::Text {
    pattern: "^[a-z0-9_-]{1,32}(/[a-z0-9_-]{1,32})?$",
    is: |text| match text.split_once('/') {
        Some((provider, account)) => is_configured(provider) && is_configured(account),
        None => is_configured(text),
    },
};
/// A response id as its user knows it.
pub const RESPONSE: Shape = Shape::Text {
    pattern: "^[A-Za-z0-9_.~:-]{1,256}$",
    is: |text| all(text, 256, |b| b.is_ascii_alphanumeric() || b"_.~:-".contains(&b)),
};
/// A pattern of event names: no name has anything else in it.
pub const GLOB: Shape = Shape::Text {
    pattern: "^[a-z_*]{1,64}$",
    is: |text| all(text, 64, |b| b.is_ascii_lowercase() || b"_*".contains(&b)),
};

/// How many things are wanted.
pub const LIMIT: Parameter = Parameter {
    name: "limit",
    place: Place::Query,
    shape: Shape::Whole { least: 1, most: 5000 },
    what: "How many are wanted at most; 1000 without it",
    example: "100",
};
/// Of one account only.
pub const OF_ACCOUNT: Parameter = Parameter {
    name: "account",
    place: Place::Query,
    shape: ACCOUNT,
    what: "Of this account only: its name, or provider/name",
    example: "main",
};

impl Shape {
    pub fn takes(self, text: &str) -> bool {
        match self {
            Shape::Whole { least, most } => {
                let digits = all(text, 20, |b| b.is_ascii_digit());
                digits
                    && text
                        .parse()
                        .is_ok_and(|number: u64| (least..=most).contains(&number))
            }
            Shape::Text { is, .. } => is(text),
            Shape::Any => true,
        }
    }

    /// As JSON Schema.
    pub fn schema(self) -> Value {
        match self {
            Shape::Whole { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Shape::Text { pattern, .. } => json!({ "type": "string", "pattern": pattern }),
            Shape::Any => json!({ "type": "string" }),
        }
    }
}

/// The parameters of a request, all of them as they may be.
#[derive(Debug, Default)]
pub struct Given(BTreeMap<&'static str, String>);

impl Given {
    /// A parameter, where it was sent.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A parameter that its path cannot be without.
    pub fn required(&self, name: &str) -> &str {
        self.text(name).unwrap_or_default()
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// See [`LIMIT`].
    pub fn limit(&self) -> usize {
        self.number("limit")
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(1000)
    }

    /// Whether a thing of this account (`provider/account`) is wanted.
    pub fn is_of(&self, account: &str) -> bool {
        self.text("account")
            .is_none_or(|wanted| event::is_at(account, wanted))
    }
}

/// Reads the parameters of a request for an operation. `segments` are those of the path below the root.
///
/// # Errors
/// One is unknown, comes twice, or is not as it may be; the refusal names it, and never quotes what was sent.
pub fn given(
    operation: &Operation,
    segments: &[&str],
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Given, Refusal> {
    let mut given = BTreeMap::new();
    let names = super::table::segments(operation.path);
    for (name, segment) in names.zip(segments) {
        let Some(name) = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')) else {
            continue;
        };
        let parameter = known(operation, Place::Path, name).ok_or(Kind::NotFound)?;
        take(&mut given, parameter, decoded(segment, false))?;
    }
    for pair in query
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
    {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name, true).unwrap_or_default();
        let Some(parameter) = known(operation, Place::Query, &name) else {
            let queries = operation
                .parameters
                .iter()
                .filter(|one| one.place == Place::Query);
            let names: Vec<_> = queries.map(|one| one.name).collect();
            let message = match names[..] {
                [] => "This path takes no query.".to_owned(),
                _ => format!("The query's parameters here are {}.", names.join(", ")),
            };
            return Err(Refusal::because(Kind::BadParameter, message));
        };
        take(&mut given, parameter, decoded(value, true))?;
    }
    for parameter in operation
        .parameters
        .iter()
        .filter(|one| one.place == Place::Header)
    {
        for value in headers.get_all(parameter.name) {
            take(&mut given, parameter, value.to_str().ok().map(str::to_owned))?;
        }
    }
    Ok(Given(given))
}

fn known<'a>(operation: &'a Operation, place: Place, name: &str) -> Option<&'a Parameter> {
    let mut parameters = operation.parameters.iter();
    parameters.find(|parameter| parameter.place == place && parameter.name == name)
}

fn take(
    given: &mut BTreeMap<&'static str, String>,
    parameter: &Parameter,
    value: Option<String>,
) -> Result<(), Refusal> {
    let name = parameter.name;
    let bad = |message: String| Refusal::because(Kind::BadParameter, message).about(name);
    let Some(value) = value.filter(|value| parameter.shape.takes(value)) else {
        let what = match parameter.shape {
            Shape::Whole { least, most } => format!("a whole number from {least} to {most}"),
            Shape::Text { pattern, .. } => format!("of the form {pattern}"),
            Shape::Any => "text".to_owned(),
        };
        return Err(bad(format!("{name} must be {what}.")));
    };
    match given.insert(name, value) {
        None => Ok(()),
        Some(_) => Err(bad(format!("{name} is there twice."))),
    }
}

/// Without percent-encoding; `None` where that is broken, or what comes out is no text. In a query a plus is a blank.
fn decoded(text: &str, query: bool) -> Option<String> {
    let plain = match query {
        true => Cow::Owned(text.replace('+', " ")),
        false => Cow::Borrowed(text),
    };
    String::from_utf8(percent::decoded(&plain)?.into_owned()).ok()
}

#[cfg(test)]
mod tests;
