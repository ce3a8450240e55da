//! `/admin/owners/{response_id}`: who made a response (ADM-15).

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::admin::answers::{One, one};
use crate::admin::asked::{Answering, Asked};
use crate::admin::parameters::{Parameter, Place, RESPONSE};
use crate::admin::table::{Gives, Operation, Verb};
use crate::refusal::{Kind, Refusal};
use crate::runtime::operate::OwnerView;
use crate::store::journal::{Query, Reader};

/// What cannot be known is not denied.
const UNKNOWN: &str = "Unknown to any configured client, and to the journal. A caller with a credential of their own may own it \
                       all the same: only a request of theirs can tell.";

/// Who made a response.
#[derive(Debug, Serialize, JsonSchema)]
struct OwnersView {
    owners: Vec<OwnerView>,
    /// Where it was looked for, and what that cannot know.
    looked_in: &'static str,
}

pub const OPERATIONS: &[Operation] = &[Operation {
    method: Verb::Get,
    path: "/owners/{response_id}",
    id: "find_owner",
    summary: "Who made a response: the account, the session, and for which client",
    parameters: &[Parameter {
        name: "response_id",
        place: Place::Path,
        shape: RESPONSE,
        what: "The id as its user knows it",
        example: "resp_0123456789abcdef",
    }],
    body: None,
    gives: Gives::Json(|schemas| schemas.subschema_for::<One<OwnersView>>()),
    refusals: &[Kind::NothingThere],
    run: find,
}];

fn find(asked: Asked) -> Answering {
    Box::pin(async move {
        let id = asked.given.required("response_id").to_owned();
        let known = asked.runtime().owners_of(&id, &asked.clients);
        if !known.is_empty() {
            return Ok(one(OwnersView {
                owners: known,
                looked_in: "what requests are routed by, for every configured client",
            }));
        }
        // Responses are known to their tenant alone, and the tenant of a caller with a credential of their own is a hash of
        // that credential: only the journal has what they made.
        let journal = asked.admin.journal.clone();
        let looking = journal.map(|directory| spawn_blocking(move || written_down(&directory, &id)));
        let written = match looking {
            Some(looking) => looking.await.unwrap_or_default(),
            None => None,
        };
        let owner = written.ok_or_else(|| Refusal::because(Kind::NothingThere, UNKNOWN))?;
        Ok(one(OwnersView {
            owners: vec![owner],
            looked_in: "the journal; unknown to any configured client",
        }))
    })
}

/// What the journal has of a response: the oldest turn that names it. Others that do continue from it, and never went to
/// another account (INV-6).
fn written_down(directory: &Path, id: &str) -> Option<OwnerView> {
    let journal = Reader::open(directory).ok()?;
    let query = Query {
        kind: Some("turn_finished".to_owned()),
        name: Some(journal.hasher().name(id)),
        most: 1,
        ..Query::default()
    };
    let row = journal.rows(&query).ok()?.into_iter().next()?;
    let body: Value = serde_json::from_str(&row.body).ok()?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(OwnerView {
        client: text("client"),
        account: row.account?,
        session: body.get("session").and_then(Value::as_u64),
        session_state: None,
        session_idle_ms: None,
        key: text("key"),
        stored: None,
        expires_in_s: None,
        known_by: "journal",
    })
}
