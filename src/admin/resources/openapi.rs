//! `/admin/openapi.json`: this API, for programs.

use serde_json::{Map, Value};

use crate::admin::answers::json;
use crate::admin::asked::now;
use crate::admin::table::{Gives, Operation, Verb};

pub const OPERATIONS: &[Operation] = &[Operation {
    method: Verb::Get,
    path: "/openapi.json",
    id: "read_openapi",
    summary: "This document",
    parameters: &[],
    body: None,
    gives: Gives::Json(|schemas| schemas.subschema_for::<Map<String, Value>>()),
    refusals: &[],
    run: |_| now(Ok(json(&crate::admin::document()))),
}];
