//! `/admin/status`: what fits on one screen, in one look.

use schemars::JsonSchema;
use serde::Serialize;

use crate::admin::answers::{One, one};
use crate::admin::asked::{Answering, Asked, now};
use crate::admin::table::{Gives, Operation, Verb};
use crate::runtime::operate::{AccountView, BreakerView, HealthView, Overview, QuarantineView};

/// Quarantined keys that are told.
const KEYS: usize = 100;

/// One screen.
#[derive(Debug, Serialize, JsonSchema)]
struct StatusView {
    /// The version of the bridge.
    version: &'static str,
    uptime_ms: u64,
    overview: Overview,
    health: HealthView,
    accounts: Vec<AccountView>,
    breakers: Vec<BreakerView>,
    /// The first hundred.
    quarantine: Vec<QuarantineView>,
}

pub const OPERATIONS: &[Operation] = &[Operation {
    method: Verb::Get,
    path: "/status",
    id: "read_status",
    summary: "What fits on one screen: numbers, health, accounts, breakers and the first quarantined keys",
    parameters: &[],
    body: None,
    gives: Gives::Json(|schemas| schemas.subschema_for::<One<StatusView>>()),
    refusals: &[],
    run: read,
}];

fn read(asked: Asked) -> Answering {
    let runtime = asked.runtime();
    let mut quarantine = runtime.quarantine_view();
    quarantine.truncate(KEYS);
    now(Ok(one(StatusView {
        version: env!("CARGO_PKG_VERSION"),
        uptime_ms: runtime.uptime_ms(),
        overview: runtime.overview(),
        health: runtime.health_view(),
        accounts: runtime.accounts_view(),
        breakers: runtime.breakers_view(),
        quarantine,
    })))
}
