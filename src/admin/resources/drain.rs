//! `/admin/drain`: no new turns, and back (ADM-16).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::admin::answers::{One, one};
use crate::admin::asked::{Answering, Asked, now};
use crate::admin::body;
use crate::admin::table::{Gives, Operation, Verb};

const LIKE: &str = r#"{"draining": true}"#;

/// What is wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// True: new turns are refused with 503, and readiness is false; the process stays.
    draining: bool,
}

/// How it is.
#[derive(Debug, Serialize, JsonSchema)]
struct DrainView {
    /// New turns are refused.
    draining: bool,
    /// The process ends when the turns that run have ended: nobody can take that back.
    shutting_down: bool,
    /// Turns that run.
    turns: usize,
}

pub const OPERATIONS: &[Operation] = &[
    Operation {
        method: Verb::Get,
        path: "/drain",
        id: "read_drain",
        summary: "Whether new turns are taken, and how many run",
        parameters: &[],
        body: None,
        gives: Gives::Json(|schemas| schemas.subschema_for::<One<DrainView>>()),
        refusals: &[],
        run: |asked| now(Ok(one(view(&asked)))),
    },
    Operation {
        method: Verb::Put,
        path: "/drain",
        id: "set_drain",
        summary: "Take no new turns from now on, or take them again; running turns go on, the process stays",
        parameters: &[],
        body: Some((|schemas| schemas.subschema_for::<Wanted>(), LIKE)),
        gives: Gives::Json(|schemas| schemas.subschema_for::<One<DrainView>>()),
        refusals: &[],
        run: set,
    },
];

fn view(asked: &Asked) -> DrainView {
    let overview = asked.runtime().overview();
    DrainView {
        draining: overview.draining,
        shutting_down: overview.shutting_down,
        turns: overview.turns,
    }
}

fn set(asked: Asked) -> Answering {
    let set = body::json(&asked.body, LIKE).map(|wanted: Wanted| {
        asked.runtime().set_draining(wanted.draining, asked.by.as_str());
        one(view(&asked))
    });
    now(set)
}
