//! `/admin/config`: the configuration in force, without secrets.

use serde_json::{Map, Value};

use crate::admin::answers::{One, one};
use crate::admin::asked::{Answering, Asked, now};
use crate::admin::table::{Gives, Operation, Verb};

pub const OPERATIONS: &[Operation] = &[Operation {
    method: Verb::Get,
    path: "/config",
    id: "read_config",
    summary: "The configuration in force, as `check --json` tells it: no secret, only where each comes from",
    parameters: &[],
    body: None,
    gives: Gives::Json(|schemas| schemas.subschema_for::<One<Map<String, Value>>>()),
    refusals: &[],
    run: read,
}];

fn read(asked: Asked) -> Answering {
    now(Ok(one((asked.admin.effective)())))
}
