//! Words for every label that a row can have (EXP-5). Each is over a closed enum, so that a new member without words does
//! not compile; a word of another version is shown as it is.

use crate::bridge::availability::Reason;
use crate::bridge::plan::Direct;
use crate::bridge::route::Why;
use crate::bridge::session::Retired;
use crate::bridge::watchdog::Shape;
use crate::refusal::Kind;
use crate::store;
use crate::upstream::CloseClass;
use crate::wire::error::ErrorClass;

/// The row of the table of refusals and failures with this label.
pub fn kind(label: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.label() == label)
}

/// What a refusal or a failure means.
pub fn of_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::InvalidBody => "its body was not a valid request",
        Kind::BodyCut => "its client left, or was cut off, before its body was complete",
        Kind::UnsupportedEncoding => "its body had a content-encoding that the bridge does not know",
        Kind::BodyTooLarge => "its body was larger than server.max_body",
        Kind::HeadersTooLarge => "its headers were larger than the bridge accepts",
        Kind::MissingCredential => "it carried no credential",
        Kind::UnknownClientKey => "its key is none of the configured clients'",
        Kind::OriginNotAllowed => {
            "it came from a web page, or by a Host, that server.allow_origins does not name"
        }
        Kind::NotFound => "there is no such path",
        Kind::MethodNotAllowed => "its path does not take its method",
        Kind::UpgradeNotSupported => "it asked for a WebSocket, which the bridge does not speak to clients",
        Kind::NoAccount => "none, or more than one, of the accounts can serve its path",
        Kind::NotAdmin => "it did not carry the admin token",
        Kind::UnknownAnchor => "it named a previous response that is not known here",
        Kind::UnknownResponse => "it named a response that is not known here",
        Kind::ModelNotServed => "no account serves its model",
        Kind::OwnerConflict => "it named things of two accounts",
        Kind::BadParameter => "one of its parameters was wrong",
        Kind::NothingThere => "it named something that was not there",
        Kind::ForgedChange => "it was a change that did not come from the status page itself",
        Kind::BodyTimeout => "its body stopped arriving",
        Kind::BodyBudget => "the bridge held as many request bytes as server.body_budget allows",
        Kind::TooManyConnections => "the bridge had as many connections open as its file limit allows",
        Kind::Draining => "it took no new turns, since an operator had drained it or it was shutting down",
        Kind::SessionBusy => "the session that remembers its previous response was busy",
        Kind::NoSocket => "no WebSocket could be had, and its provider is configured for nothing else",
        Kind::OwnerUnavailable => "the account that holds what it builds on was unavailable",
        Kind::TooManyAttempts => "it carried a wrong admin token, as too many before it",
        Kind::TooManyStreams => "as many event streams were open as may be",
        Kind::ConnectFailed => "the upstream could not be reached",
        Kind::ConnectTimeout => "the upstream did not take the connection within its deadline",
        Kind::ProxyFailed => "the account's proxy failed",
        Kind::WriteStalled => "the upstream stopped taking the request's bytes",
        Kind::CreatedTimeout => "the upstream never sent response.created",
        Kind::IdleTimeout => "the upstream went silent in the middle of the response",
        Kind::SocketDead => "the upstream connection stopped answering",
        Kind::FirstByteTimeout => "the upstream did not begin to answer over HTTP within http.first_byte",
        Kind::FirstEventTimeout => "the upstream sent no event over HTTP within http.first_event",
        Kind::RequestDeadline => "the whole request took longer than watchdog.request_deadline",
        Kind::UpstreamClosed => "the upstream closed the connection before the response was complete",
        Kind::FrameTooLarge => "the upstream closed the connection because of the request's size",
        Kind::Truncated => "the upstream ended the stream without a terminal event",
        Kind::UpstreamNonsense => "the upstream's answer could not be understood",
        Kind::HoldOverflow => "the upstream sent more before response.created than the bridge keeps",
        Kind::SlowClient => "the client did not take the response's bytes in time",
        Kind::Drained => "the bridge was shut down while the response was running",
        Kind::Internal => "a fault inside the bridge ended it",
    }
}

/// Why a turn went by direct HTTP.
pub fn of_direct(direct: Direct) -> &'static str {
    match direct {
        Direct::Configured => "its provider is configured so",
        Direct::Background => "it asked for background work",
        Direct::TooBig => "it is too big for a WebSocket frame",
        Direct::Quarantined => "its conversation was in quarantine",
        Direct::Unsupported => "the upstream offers no WebSocket there",
        Direct::SickTransport => "the account's WebSocket transport was not trusted",
        Direct::Ceiling => "the account had refused a further socket while others were open",
        Direct::Handshakes => "too many handshakes were under way",
        Direct::Busy => "all sessions of its conversation stayed busy",
        Direct::NoRoom => "there was no room for another session",
        Direct::UpgradeRefused => "the upgrade to a WebSocket was refused or failed",
        Direct::UpgradeSlow => "the upgrade to a WebSocket took too long",
        Direct::ConnectionLimit => "the upstream would not take it on that connection",
    }
}

/// How an attempt was planned, as `turn_finished` says it.
pub fn plan(label: &str) -> String {
    match label {
        "reused" => "by a live session".to_owned(),
        "opened" => "by a session opened for it".to_owned(),
        "none" | "" => "nothing was tried yet".to_owned(),
        label => match Direct::of(label) {
            Some(direct) => format!("over HTTP, because {}", of_direct(direct)),
            None => label.to_owned(),
        },
    }
}

/// Why a call went to its account.
pub fn of_why(why: Why) -> &'static str {
    match why {
        Why::Named => "it made the response that the request names",
        Why::Item => "the request carries items that only it can read",
        Why::Pin => "its conversation lives there",
        Why::Strategy(_) => "routing.strategy chose it",
        Why::Only => "no other could serve it",
        Why::Moved => "the conversation's own account was unavailable",
        Why::Failover => "another account had rejected the call",
    }
}

pub fn route(label: &str) -> String {
    match Why::ALL.into_iter().find(|why| why.label() == label) {
        Some(why) => of_why(why).to_owned(),
        None => format!("chosen by strategy {label}"),
    }
}

/// Why a session was retired.
pub fn of_retired(retired: Retired) -> &'static str {
    match retired {
        Retired::Silent(Shape::Eventless) => "it was silent",
        Retired::Silent(Shape::EventsWithoutCreated) => "it sent events without response.created",
        Retired::TurnFailed(kind) => of_kind(kind),
        Retired::ClientGone => "the client of its turn had left",
        Retired::Unfit => "it did not answer a ping before reuse",
        Retired::Dead => "it stopped answering pings",
        Retired::ClosedByUpstream => "the upstream closed it",
        Retired::UnexpectedFrame => "it sent data that no turn was waiting for",
        Retired::Refused => "the upstream refused further turns on it",
        Retired::IdleTtl => "it was idle for longer than session.idle_ttl",
        Retired::MaxAge => "it was older than session.max_age",
        Retired::Evicted => "its place was needed",
        Retired::CredentialRotated => "its account's credential was replaced",
        Retired::ClientRemoved => "its client's key was removed from the configuration",
        Retired::Operator => "an operator closed it",
        Retired::Drained => "the bridge was shutting down",
    }
}

pub fn retired(label: &str) -> &str {
    let known = Retired::ALL
        .into_iter()
        .find(|retired| retired.label() == label)
        .map(of_retired);
    known.or_else(|| kind(label).map(of_kind)).unwrap_or(label)
}

/// Why an account is left alone.
pub fn of_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Unreachable => "it could not be reached",
        Reason::Credential => "its credential was rejected",
        Reason::RateLimit => "the upstream limits its rate",
        Reason::Quota => "its quota is used up",
    }
}

pub fn reason(label: &str) -> &str {
    let known = Reason::ALL.into_iter().find(|reason| reason.label() == label);
    known.map(of_reason).unwrap_or(label)
}

/// What an upstream's error means.
pub fn of_class(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::NotFoundAnchor => "it does not know the previous response",
        ErrorClass::ConnectionLimit => "the connection had reached its age limit",
        ErrorClass::StreamLimit => "too many responses ran on the connection",
        ErrorClass::RateLimit => "rate limit",
        ErrorClass::Quota => "quota used up",
        ErrorClass::Overload => "overloaded",
        ErrorClass::ContextLength => "the input does not fit the model",
        ErrorClass::Policy => "refused for what the prompt says",
        ErrorClass::Authentication => "credential not accepted",
        ErrorClass::Invalid => "a fault of the request",
        ErrorClass::Server => "a fault of the upstream's",
        ErrorClass::Unknown => "no reason that is known here",
    }
}

pub fn class(label: &str) -> &str {
    let known = ErrorClass::ALL.into_iter().find(|class| class.label() == label);
    known.map(of_class).unwrap_or(label)
}

/// How the upstream closed a connection.
pub fn of_close(close: CloseClass) -> &'static str {
    match close {
        CloseClass::Normal => "with code 1000",
        CloseClass::GoingAway => "with code 1001, going away",
        CloseClass::Policy => "with code 1008, policy",
        CloseClass::TooBig => "with code 1009, too big",
        CloseClass::ServerError => "with code 1011, server error",
        CloseClass::Restart => "with code 1012, restart",
        CloseClass::TryLater => "with code 1013, try later",
        CloseClass::Other => "with another code",
        CloseClass::NoStatus => "without a code",
        CloseClass::Abnormal => "without a close frame",
        CloseClass::Reset => "with a reset",
        CloseClass::Protocol => "after bytes that are no WebSocket frames",
        CloseClass::FrameTooLarge => "after a frame that is too large",
        CloseClass::Io => "by a failure of the connection",
    }
}

pub fn close(label: &str) -> &str {
    let known = CloseClass::ALL.into_iter().find(|close| close.label() == label);
    known.map(of_close).unwrap_or(label)
}

/// Why there was no WebSocket.
pub fn upgrade(label: &str, status: Option<u16>) -> String {
    match (label, status) {
        ("status", Some(status)) => format!("answered with {status}"),
        ("unresolved", _) => "its name has no address".to_owned(),
        ("refused", _) => "the connection was refused".to_owned(),
        ("timeout", _) => "it took too long".to_owned(),
        ("tls", _) => "the TLS handshake failed".to_owned(),
        ("proxy", _) => "the proxy failed".to_owned(),
        ("no_files", _) => "no file was left for a connection".to_owned(),
        ("not_websocket", _) => "the answer was no WebSocket handshake".to_owned(),
        ("io", _) => "the connection broke".to_owned(),
        (label, _) => label.to_owned(),
    }
}

/// Every reason why the state is not written.
pub const STORE: [store::Reason; 8] = [
    store::Reason::Full,
    store::Reason::ReadOnly,
    store::Reason::Locked,
    store::Reason::Corrupt,
    store::Reason::Newer,
    store::Reason::Denied,
    store::Reason::Io,
    store::Reason::QueueFull,
];

/// Why the state is not written.
pub fn of_store(reason: store::Reason) -> &'static str {
    match reason {
        store::Reason::Full => "the disk is full",
        store::Reason::ReadOnly => "the file or its disk is read-only",
        store::Reason::Locked => "another program has the database open",
        store::Reason::Corrupt => "the file is damaged",
        store::Reason::Newer => "the file is of a newer version",
        store::Reason::Denied => "this user may not write the file",
        store::Reason::Io => "the disk failed",
        store::Reason::QueueFull => "changes came faster than the disk takes them",
    }
}

pub fn store(label: &str) -> &str {
    let known = STORE.into_iter().find(|reason| reason.label() == label);
    known.map(of_store).unwrap_or(label)
}

/// That the bridge ended without a finished drain, and when: after the journal's last row, at `last_ms`, and before the next start, at
/// `at_ms`.
pub fn cut(at_ms: u64, last_ms: Option<u64>, time: fn(u64) -> String) -> String {
    let before = time(at_ms);
    match last_ms {
        Some(last) => format!(
            "the bridge ended without a finished drain between {} and {before}",
            time(last)
        ),
        None => format!("the bridge ended without a finished drain before {before}"),
    }
}

/// `HTTP` or `WebSocket`.
pub fn transport(label: &str) -> &str {
    match label {
        "http" => "HTTP",
        "websocket" => "WebSocket",
        label => label,
    }
}
