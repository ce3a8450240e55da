//! `/admin/accounts`: the accounts, and what excludes each.

use crate::admin::answers::{Many, many};
use crate::admin::asked::{Answering, Asked, now};
use crate::admin::parameters::LIMIT;
use crate::admin::table::{Gives, Operation, Verb};
use crate::runtime::operate::AccountView;

pub const OPERATIONS: &[Operation] = &[Operation {
    method: Verb::Get,
    path: "/accounts",
    id: "list_accounts",
    summary: "The accounts in the order of the configuration, and what excludes each from new conversations",
    parameters: &[LIMIT],
    body: None,
    gives: Gives::Json(|schemas| schemas.subschema_for::<Many<AccountView>>()),
    refusals: &[],
    run: list,
}];

fn list(asked: Asked) -> Answering {
    now(Ok(many(asked.runtime().accounts_view(), asked.given.limit())))
}
