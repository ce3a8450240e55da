//! `/admin/sessions`: the sessions; one of them can be closed.

use crate::admin::answers::{DoneView, Many, One, many, one};
use crate::admin::asked::{Answering, Asked, now};
use crate::admin::parameters::{LIMIT, OF_ACCOUNT, Parameter, Place, SESSION};
use crate::admin::table::{Gives, Operation, Verb};
use crate::refusal::Kind;
use crate::runtime::operate::SessionView;

pub const OPERATIONS: &[Operation] = &[
    Operation {
        method: Verb::Get,
        path: "/sessions",
        id: "list_sessions",
        summary: "The sessions, the oldest first",
        parameters: &[LIMIT, OF_ACCOUNT],
        body: None,
        gives: Gives::Json(|schemas| schemas.subschema_for::<Many<SessionView>>()),
        refusals: &[],
        run: list,
    },
    Operation {
        method: Verb::Delete,
        path: "/sessions/{session}",
        id: "close_session",
        summary: "Close a session; a running turn is finished first, and no other follows",
        parameters: &[Parameter {
            name: "session",
            place: Place::Path,
            shape: SESSION,
            what: "The session's number",
            example: "1871040274432001",
        }],
        body: None,
        gives: Gives::Json(|schemas| schemas.subschema_for::<One<DoneView>>()),
        refusals: &[Kind::NothingThere],
        run: close,
    },
];

fn list(asked: Asked) -> Answering {
    let mut views = asked.runtime().sessions_view();
    views.retain(|view| asked.given.is_of(&view.account));
    now(Ok(many(views, asked.given.limit())))
}

fn close(asked: Asked) -> Answering {
    let session = asked.given.number("session").unwrap_or_default();
    let closed = asked.runtime().close_session(session, asked.by.as_str());
    now(closed.map(|done| one(DoneView::from(done))).map_err(Into::into))
}
