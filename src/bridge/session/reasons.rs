//! Why a socket is not used again.

use super::Retired;
use crate::bridge::turn::{Outcome, TurnEnd};
use crate::bridge::watchdog::Verdict;
use crate::refusal::Kind;
use crate::wire::error::ErrorClass;
use crate::wire::head::Head;

/// Errors after which the socket is of no use, whatever the turn makes of them.
pub(super) fn retires(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::ConnectionLimit | ErrorClass::StreamLimit | ErrorClass::Authentication
    )
}

/// What a frame that no turn is waiting for says about its socket: nothing, or that it must not be used again.
pub(super) fn unexpected(head: &Head) -> Option<Retired> {
    match head {
        Head::Telemetry | Head::Metadata | Head::Keepalive => None,
        Head::Error(_) => Some(Retired::Refused),
        _ => Some(Retired::UnexpectedFrame),
    }
}

/// Why a session is retired whose turn the upstream did not end.
pub(super) fn blame(end: TurnEnd) -> Retired {
    match (end.verdict, end.outcome) {
        (Some(Verdict::Silent(shape)), _) => Retired::Silent(shape),
        (_, Outcome::ClientGone) => Retired::ClientGone,
        (_, Outcome::Bridge(Kind::Drained)) => Retired::Drained,
        (_, Outcome::Bridge(kind)) => Retired::TurnFailed(kind),
        _ => Retired::ClosedByUpstream,
    }
}
