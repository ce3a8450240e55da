//! `/admin/health`: each check with its value, since when, and its age (HLT-5).

use crate::admin::answers::{One, one};
use crate::admin::asked::{Answering, Asked, now};

use crate::admin::table::{Gives, Operation, Verb};
use crate::runtime::operate::HealthView;

pub const OPERATIONS: &[Operation] = &[Operation {
    method: Verb::Get,
    path: "/health",
    id: "read_health",
    summary: "Each check of the latest look, at most a second or so old",
    parameters: &[],
    body: None,
    gives: Gives::Json(|schemas| schemas.subschema_for::<One<HealthView>>()),
    refusals: &[],
    run: read,
}];

fn read(asked: Asked) -> Answering {
    now(Ok(one(asked.runtime().health_view())))
}
