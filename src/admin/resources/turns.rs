//! `/admin/turns`: the turns that are running.

use crate::admin::answers::{Many, many};
use crate::admin::asked::{Answering, Asked, now};
use crate::admin::parameters::{LIMIT, OF_ACCOUNT};
use crate::admin::table::{Gives, Operation, Verb};
use crate::runtime::operate::TurnView;

pub const OPERATIONS: &[Operation] = &[Operation {
    method: Verb::Get,
    path: "/turns",
    id: "list_turns",
    summary: "The turns that are running, the longest running first",
    parameters: &[LIMIT, OF_ACCOUNT],
    body: None,
    gives: Gives::Json(|schemas| schemas.subschema_for::<Many<TurnView>>()),
    refusals: &[],
    run: list,
}];

fn list(asked: Asked) -> Answering {
    let mut views = asked.runtime().turns_view();
    views.retain(|view| asked.given.is_of(&view.account));
    now(Ok(many(views, asked.given.limit())))
}
