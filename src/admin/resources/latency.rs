//! `/admin/latency`: how long upstream took to accept turns.

use crate::admin::answers::{One, one};
use crate::admin::asked::{Answering, Asked, now};

use crate::admin::table::{Gives, Operation, Verb};
use crate::runtime::operate::LatencyView;

pub const OPERATIONS: &[Operation] = &[Operation {
    method: Verb::Get,
    path: "/latency",
    id: "read_latency",
    summary: "Time from the sent request to response.created since the process began, and the deadline in force",
    parameters: &[],
    body: None,
    gives: Gives::Json(|schemas| schemas.subschema_for::<One<LatencyView>>()),
    refusals: &[],
    run: read,
}];

fn read(asked: Asked) -> Answering {
    now(Ok(one(asked.runtime().latency_view())))
}
