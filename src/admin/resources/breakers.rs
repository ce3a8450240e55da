//! `/admin/breakers`: the accounts' WebSocket transports; what is held against one can be forgotten.

use crate::admin::answers::{DoneView, Many, One, many, one};
use crate::admin::asked::{Answering, Asked, now};
use crate::admin::parameters::{LIMIT, NAME, Parameter, Place};
use crate::admin::table::{Gives, Operation, Verb};
use crate::refusal::Kind;
use crate::runtime::operate::BreakerView;

const fn named(name: &'static str, what: &'static str, example: &'static str) -> Parameter {
    Parameter {
        name,
        place: Place::Path,
        shape: NAME,
        what,
        example,
    }
}

pub const OPERATIONS: &[Operation] = &[
    Operation {
        method: Verb::Get,
        path: "/breakers",
        id: "list_breakers",
        summary: "The WebSocket transport of each account, in the order of the configuration",
        parameters: &[LIMIT],
        body: None,
        gives: Gives::Json(|schemas| schemas.subschema_for::<Many<BreakerView>>()),
        refusals: &[],
        run: list,
    },
    Operation {
        method: Verb::Delete,
        path: "/breakers/{provider}/{account}",
        id: "reset_breaker",
        summary: "Forget all that is held against an account's WebSocket transport: breaker, failures that count, ceiling, refused size",
        parameters: &[
            named("provider", "The provider's name in the configuration", "openai"),
            named("account", "The account's name in the configuration", "main"),
        ],
        body: None,
        gives: Gives::Json(|schemas| schemas.subschema_for::<One<DoneView>>()),
        refusals: &[Kind::NothingThere],
        run: reset,
    },
];

fn list(asked: Asked) -> Answering {
    now(Ok(many(asked.runtime().breakers_view(), asked.given.limit())))
}

fn reset(asked: Asked) -> Answering {
    let (provider, account) = (asked.given.required("provider"), asked.given.required("account"));
    let done = asked
        .runtime()
        .breaker_reset(provider, account, asked.by.as_str());
    now(done.map(|done| one(DoneView::from(done))).map_err(Into::into))
}
