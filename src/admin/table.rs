//! Every operation there is. Routing and the OpenAPI document are made from this table and from nothing else (ADM-7).

use http::Method;
use schemars::{Schema, SchemaGenerator};

use super::asked::{Answering, Asked};
use super::parameters::Parameter;
use super::resources;
use crate::refusal::Kind;

/// Where the admin API lives.
pub const ROOT: &str = "/admin";

/// All of them. A resource is one file and one line here.
const TABLE: &[&[Operation]] = &[
    resources::status::OPERATIONS,
    resources::health::OPERATIONS,
    resources::turns::OPERATIONS,
    resources::sessions::OPERATIONS,
    resources::quarantine::OPERATIONS,
    resources::breakers::OPERATIONS,
    resources::accounts::OPERATIONS,
    resources::owners::OPERATIONS,
    resources::queues::OPERATIONS,
    resources::latency::OPERATIONS,
    resources::drain::OPERATIONS,
    resources::config::OPERATIONS,
    resources::events::OPERATIONS,
    resources::openapi::OPERATIONS,
];

/// A method that changes nothing, or something. HEAD goes with GET, and OPTIONS with every path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    Put,
    Delete,
}

impl Verb {
    /// Whether it is this method.
    pub fn is(self, method: &Method) -> bool {
        *method == self.method()
    }

    fn method(self) -> Method {
        match self {
            Verb::Get => Method::GET,
            Verb::Put => Method::PUT,
            Verb::Delete => Method::DELETE,
        }
    }

    /// As OpenAPI spells it.
    pub fn label(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::Put => "put",
            Verb::Delete => "delete",
        }
    }
}

/// A schema, with what it refers to left in the generator.
pub type OfType = fn(&mut SchemaGenerator) -> Schema;

/// What comes back when all is well.
#[derive(Clone, Copy)]
pub enum Gives {
    Json(OfType),
    /// Server-sent events.
    Stream,
}

/// One operation.
pub struct Operation {
    pub method: Verb,
    /// Below [`ROOT`], with `{name}` for a parameter.
    pub path: &'static str,
    /// Its name for programs that are made from the document.
    pub id: &'static str,
    /// One line for people.
    pub summary: &'static str,
    pub parameters: &'static [Parameter],
    /// The schema of its body, if it takes one, and an example.
    pub body: Option<(OfType, &'static str)>,
    pub gives: Gives,
    /// What it refuses beside what all do.
    pub refusals: &'static [Kind],
    pub run: fn(Asked) -> Answering,
}

/// All operations.
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    TABLE.iter().copied().flatten()
}

/// The segments of a path below the root.
pub fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').skip(1)
}

/// The operations of a path, and its segments below the root. Two templates never fit one path: a test sees to it.
pub fn find(path: &str) -> Option<(Vec<&'static Operation>, Vec<&str>)> {
    let given: Vec<_> = segments(path.strip_prefix(ROOT)?).collect();
    let found: Vec<_> = operations()
        .filter(|operation| fits(operation.path, &given))
        .collect();
    (!found.is_empty()).then_some((found, given))
}

fn fits(template: &str, given: &[&str]) -> bool {
    let fits =
        |(wanted, given): (&str, &&str)| wanted == *given || (wanted.starts_with('{') && !given.is_empty());
    segments(template).count() == given.len() && segments(template).zip(given).all(fits)
}

/// The methods of these operations, as `Allow` lists them.
pub fn allow(operations: &[&Operation]) -> String {
    let mut methods = vec!["OPTIONS"];
    for operation in operations {
        match operation.method {
            Verb::Get => methods.extend(["GET", "HEAD"]),
            Verb::Put => methods.push("PUT"),
            Verb::Delete => methods.push("DELETE"),
        }
    }
    methods.sort_unstable();
    methods.join(", ")
}

#[cfg(test)]
mod tests;
