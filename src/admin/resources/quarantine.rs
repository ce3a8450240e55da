//! `/admin/quarantine`: the keys that go by direct HTTP; keys can be added and cleared.

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Number;

use crate::admin::answers::{DoneView, Many, One, many, one};
use crate::admin::asked::{Answering, Asked, now};
use crate::admin::body;
use crate::admin::parameters::{KEY, LIMIT, Parameter, Place};
use crate::admin::table::{Gives, Operation, Verb};
use crate::refusal::{Kind, Refusal};
use crate::runtime::operate::{NotDone, QuarantineView};

const OF_KEY: Parameter = Parameter {
    name: "key",
    place: Place::Path,
    shape: KEY,
    what: "The key, as it is printed in lists and events",
    example: "3f0c9a51be27",
};
const LIKE: &str = r#"{"for_s": 600}"#;
/// Longest window that an operator may set, in seconds: a day.
const LONGEST: u64 = 86_400;

/// How a key is put into quarantine.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Added {
    /// For how many seconds.
    #[schemars(range(min = 1, max = 86_400))]
    #[serde(deserialize_with = "whole")]
    for_s: u64,
}

/// A whole number, written as JSON may write one: `600.0` is an integer too.
fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let number = Number::deserialize(from)?;
    let rounded = || {
        number
            .as_f64()
            .filter(|of| of.fract() == 0.0 && (0.0..=1e9).contains(of))
    };
    number
        .as_u64()
        .or_else(|| rounded().map(|of| of as u64))
        .ok_or_else(|| D::Error::custom("not a whole number"))
}

pub const OPERATIONS: &[Operation] = &[
    Operation {
        method: Verb::Get,
        path: "/quarantine",
        id: "list_quarantine",
        summary: "Keys in quarantine, and those whose level is still remembered; the longest left first",
        parameters: &[LIMIT],
        body: None,
        gives: Gives::Json(|schemas| schemas.subschema_for::<Many<QuarantineView>>()),
        refusals: &[],
        run: list,
    },
    Operation {
        method: Verb::Delete,
        path: "/quarantine",
        id: "clear_quarantine",
        summary: "Clear every key, and forget how often each was silent",
        parameters: &[],
        body: None,
        gives: Gives::Json(|schemas| schemas.subschema_for::<One<DoneView>>()),
        refusals: &[],
        run: clear,
    },
    Operation {
        method: Verb::Put,
        path: "/quarantine/{key}",
        id: "add_to_quarantine",
        summary: "Send a conversation by direct HTTP for a while; its key must have a session, a running turn or an entry",
        parameters: &[OF_KEY],
        body: Some((|schemas| schemas.subschema_for::<Added>(), LIKE)),
        gives: Gives::Json(|schemas| schemas.subschema_for::<One<DoneView>>()),
        refusals: &[Kind::NothingThere],
        run: add,
    },
    Operation {
        method: Verb::Delete,
        path: "/quarantine/{key}",
        id: "clear_quarantined_key",
        summary: "Clear one key, and forget how often it was silent",
        parameters: &[OF_KEY],
        body: None,
        gives: Gives::Json(|schemas| schemas.subschema_for::<One<DoneView>>()),
        refusals: &[Kind::NothingThere],
        run: clear,
    },
];

const NOT_HELD: &str = "This key is not in quarantine: `GET quarantine`, or `responses-bridge quarantine ls`, shows those that are.";

fn list(asked: Asked) -> Answering {
    now(Ok(many(asked.runtime().quarantine_view(), asked.given.limit())))
}

fn add(asked: Asked) -> Answering {
    Box::pin(async move {
        let added: Added = body::json(&asked.body, LIKE)?;
        if !(1..=LONGEST).contains(&added.for_s) {
            let message = format!("for_s must be a number of seconds from 1 to {LONGEST}.");
            return Err(Refusal::because(Kind::InvalidBody, message).about("for_s"));
        }
        let (key, window) = (asked.given.required("key"), Duration::from_secs(added.for_s));
        let done = asked
            .runtime()
            .quarantine_add(key, window, asked.by.as_str())
            .await?;
        Ok(one(DoneView::from(done)))
    })
}

fn clear(asked: Asked) -> Answering {
    Box::pin(async move {
        let key = asked.given.text("key");
        let done = asked.runtime().quarantine_clear(key, asked.by.as_str()).await;
        let done = done.map_err(|NotDone::Unknown| Refusal::because(Kind::NothingThere, NOT_HELD))?;
        Ok(one(DoneView::from(done)))
    })
}
