//! `/admin/queues`: keys whose turns wait for a session.

use crate::admin::answers::{Many, many};
use crate::admin::asked::{Answering, Asked, now};
use crate::admin::parameters::LIMIT;
use crate::admin::table::{Gives, Operation, Verb};
use crate::runtime::operate::QueueView;

pub const OPERATIONS: &[Operation] = &[Operation {
    method: Verb::Get,
    path: "/queues",
    id: "list_queues",
    summary: "Keys whose turns wait for a session, or have one opened, the longest waiting first",
    parameters: &[LIMIT],
    body: None,
    gives: Gives::Json(|schemas| schemas.subschema_for::<Many<QueueView>>()),
    refusals: &[],
    run: list,
}];

fn list(asked: Asked) -> Answering {
    now(Ok(many(asked.runtime().queues_view(), asked.given.limit())))
}
