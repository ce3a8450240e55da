//! The one table of everything that the bridge answers by itself: refusal or failure -> status, code, Retry-After, label.
//!
//! A *refusal* means that nothing was sent upstream; a *failure* that the work was begun and did not end well. Both
//! become either an HTTP error in the API's shape (before the response is committed) or the `error` of a
//! `response.failed` event (after it). No other room chooses a status (SES-20, EDGE-1).

use std::time::Duration;

use http::StatusCode;

mod answer;
mod operators;
mod strangers;

pub use answer::Refusal;

/// Why the bridge answers by itself. Closed: the variant's [`Kind::label`] is a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    // Faults of the request: repeating it unchanged cannot help.
    InvalidBody,
    BodyCut,
    UnsupportedEncoding,
    BodyTooLarge,
    HeadersTooLarge,
    MissingCredential,
    UnknownClientKey,
    OriginNotAllowed,
    NotFound,
    MethodNotAllowed,
    UpgradeNotSupported,
    NoAccount,
    NotAdmin,
    UnknownAnchor,
    UnknownResponse,
    ModelNotServed,
    OwnerConflict,
    // Of operators' requests.
    BadParameter,
    NothingThere,
    ForgedChange,
    // The request is good, the moment is not.
    BodyTimeout,
    BodyBudget,
    TooManyConnections,
    Draining,
    SessionBusy,
    NoSocket,
    OwnerUnavailable,
    TooManyAttempts,
    TooManyStreams,
    // Failures: the work was begun, and something was, or may have been, sent; but for the three of connecting.
    ConnectFailed,
    ConnectTimeout,
    ProxyFailed,
    WriteStalled,
    CreatedTimeout,
    IdleTimeout,
    SocketDead,
    FirstByteTimeout,
    FirstEventTimeout,
    RequestDeadline,
    UpstreamClosed,
    FrameTooLarge,
    Truncated,
    UpstreamNonsense,
    HoldOverflow,
    SlowClient,
    Drained,
    Internal,
}

/// What a row of the table says.
struct Row {
    status: u16,
    code: &'static str,
    retry_after: u64,
    message: &'static str,
}

const fn row(status: u16, code: &'static str, retry_after: u64, message: &'static str) -> Row {
    Row {
        status,
        code,
        retry_after,
        message,
    }
}

impl Kind {
    /// Every kind, for tests and for the documentation of the labels.
    pub const ALL: [Kind; 47] = [
        Kind::InvalidBody,
        Kind::BodyCut,
        Kind::UnsupportedEncoding,
        Kind::BodyTooLarge,
        Kind::HeadersTooLarge,
        Kind::MissingCredential,
        Kind::UnknownClientKey,
        Kind::OriginNotAllowed,
        Kind::NotFound,
        Kind::MethodNotAllowed,
        Kind::UpgradeNotSupported,
        Kind::NoAccount,
        Kind::NotAdmin,
        Kind::UnknownAnchor,
        Kind::UnknownResponse,
        Kind::ModelNotServed,
        Kind::OwnerConflict,
        Kind::BadParameter,
        Kind::NothingThere,
        Kind::ForgedChange,
        Kind::BodyTimeout,
        Kind::BodyBudget,
        Kind::TooManyConnections,
        Kind::Draining,
        Kind::SessionBusy,
        Kind::NoSocket,
        Kind::OwnerUnavailable,
        Kind::TooManyAttempts,
        Kind::TooManyStreams,
        Kind::ConnectFailed,
        Kind::ConnectTimeout,
        Kind::ProxyFailed,
        Kind::WriteStalled,
        Kind::CreatedTimeout,
        Kind::IdleTimeout,
        Kind::SocketDead,
        Kind::FirstByteTimeout,
        Kind::FirstEventTimeout,
        Kind::RequestDeadline,
        Kind::UpstreamClosed,
        Kind::FrameTooLarge,
        Kind::Truncated,
        Kind::UpstreamNonsense,
        Kind::HoldOverflow,
        Kind::SlowClient,
        Kind::Drained,
        Kind::Internal,
    ];

    /// The table. Retry-After is in seconds, 1 to 60 on every 408, 429 and 5xx (Codex gives up on a 429 without one and
    /// turns one 5xx without one into 30 requests), 0 (none) on the rest. A 400 is terminal for agents, so it stands
    /// only where no retry could help. Every code begins with `bridge_`, so that none equals an upstream code; the one
    /// exception is in [`Kind::code`].
    const fn row(self) -> Row {
        match self {
            Kind::InvalidBody => row(
                400,
                "bridge_invalid_body",
                0,
                "The request body is not a valid request.",
            ),
            Kind::BodyCut => row(
                400,
                "bridge_body_cut",
                0,
                "The request body ended before it was complete.",
            ),
            Kind::UnsupportedEncoding => row(
                415,
                "bridge_unsupported_encoding",
                0,
                "This content-encoding is not supported; use zstd, gzip or deflate, at most two of them.",
            ),
            Kind::BodyTooLarge => row(
                413,
                "bridge_body_too_large",
                0,
                "The decoded request body is larger than server.max_body allows.",
            ),
            Kind::HeadersTooLarge => row(
                431,
                "bridge_headers_too_large",
                0,
                "The request headers are larger than the bridge accepts.",
            ),
            Kind::MissingCredential => row(
                401,
                "bridge_missing_credential",
                0,
                "No credential: send it as Authorization: Bearer, api-key or x-api-key.",
            ),
            Kind::UnknownClientKey => row(
                401,
                "bridge_unknown_client_key",
                0,
                "This bridge checks client keys, and the one sent is not among them.",
            ),
            Kind::OriginNotAllowed => row(
                403,
                "bridge_origin_not_allowed",
                0,
                "Requests from web pages are refused; list the origin in server.allow_origins if it is yours.",
            ),
            Kind::NotFound => row(404, "bridge_not_found", 0, "No such path here."),
            Kind::MethodNotAllowed => row(
                405,
                "bridge_method_not_allowed",
                0,
                "This path does not take that method.",
            ),
            Kind::UpgradeNotSupported => row(
                426,
                "bridge_upgrade_not_supported",
                0,
                "The bridge speaks HTTP to its clients; send the request as a POST.",
            ),
            Kind::NoAccount => row(
                404,
                "bridge_no_account",
                0,
                "None, or more than one, of the accounts can serve this path, and no header names a conversation whose \
                 account is known.",
            ),
            Kind::NotAdmin => row(401, "bridge_not_admin", 0, "This path needs the admin token."),
            Kind::BadParameter
            | Kind::NothingThere
            | Kind::ForgedChange
            | Kind::TooManyAttempts
            | Kind::TooManyStreams => operators::row_of(self),
            Kind::UnknownAnchor => row(
                400,
                "bridge_unknown_anchor",
                0,
                "Previous response not found: it is not one that this bridge made for you.",
            ),
            Kind::UnknownResponse => row(
                404,
                "bridge_unknown_response",
                0,
                "Response not found: it is not one that this bridge made for you.",
            ),
            Kind::ModelNotServed => row(
                404,
                "bridge_model_not_served",
                0,
                "No configured account serves this model; see the models of the providers.",
            ),
            Kind::OwnerConflict => row(
                400,
                "bridge_owner_conflict",
                0,
                "The request names things that belong to different accounts; no account could serve it.",
            ),
            Kind::BodyTimeout => row(
                408,
                "bridge_body_timeout",
                1,
                "The request body stopped arriving.",
            ),
            Kind::BodyBudget => row(
                503,
                "bridge_body_budget",
                2,
                "The bridge holds as many request bytes as server.body_budget allows.",
            ),
            Kind::TooManyConnections => row(
                503,
                "bridge_too_many_connections",
                2,
                "The bridge has as many connections open as its file limit allows.",
            ),
            Kind::Draining => row(
                503,
                "bridge_draining",
                5,
                "The bridge takes no new turns for now: an operator drained it, or it is shutting down.",
            ),
            Kind::SessionBusy => row(
                503,
                "bridge_session_busy",
                1,
                "The session that remembers this response is busy with another turn.",
            ),
            Kind::NoSocket => row(
                503,
                "bridge_no_socket",
                2,
                "No upstream session can be had now, and this provider is configured for WebSocket only.",
            ),
            Kind::OwnerUnavailable => row(
                503,
                "bridge_owner_unavailable",
                10,
                "The account that holds what this request or its conversation builds on is unavailable. Retry later, or \
                 resend in full, without account-bound items, as a new conversation.",
            ),
            Kind::ConnectFailed => row(
                502,
                "bridge_connect_failed",
                2,
                "The upstream could not be reached.",
            ),
            Kind::ConnectTimeout => row(
                504,
                "bridge_connect_timeout",
                2,
                "The upstream did not accept the connection in time.",
            ),
            Kind::ProxyFailed => row(
                502,
                "bridge_proxy_failed",
                2,
                "The account's proxy could not be reached, refused its user or password, or did not reach the upstream. Nothing was sent.",
            ),
            Kind::WriteStalled => row(
                502,
                "bridge_write_stalled",
                2,
                "The upstream stopped taking the request's bytes.",
            ),
            Kind::CreatedTimeout => row(
                504,
                "bridge_response_created_timeout",
                1,
                "The upstream did not confirm the response in time. The turn was not sent again; a retry takes another path.",
            ),
            Kind::IdleTimeout => row(
                504,
                "bridge_idle_timeout",
                1,
                "The upstream went silent in the middle of the response.",
            ),
            Kind::SocketDead => row(
                502,
                "bridge_socket_dead",
                1,
                "The upstream connection stopped answering.",
            ),
            Kind::FirstByteTimeout => row(
                504,
                "bridge_first_byte_timeout",
                2,
                "The upstream did not begin to answer in time.",
            ),
            Kind::FirstEventTimeout => row(
                504,
                "bridge_first_event_timeout",
                2,
                "The upstream began to answer and then sent no event in time.",
            ),
            Kind::RequestDeadline => row(
                504,
                "bridge_request_deadline",
                5,
                "The whole request took longer than watchdog.request_deadline.",
            ),
            Kind::UpstreamClosed => row(
                502,
                "bridge_upstream_closed",
                1,
                "The upstream closed the connection before the response was complete. The turn was not sent again.",
            ),
            Kind::FrameTooLarge => row(
                502,
                "bridge_frame_too_large",
                1,
                "The upstream refused the size of the request on this transport; a retry goes over HTTP.",
            ),
            Kind::Truncated => row(
                502,
                "bridge_truncated",
                1,
                "The upstream ended the stream without a terminal event.",
            ),
            Kind::UpstreamNonsense => row(
                502,
                "bridge_upstream_protocol",
                2,
                "The upstream's answer could not be understood.",
            ),
            Kind::HoldOverflow => row(
                502,
                "bridge_hold_overflow",
                2,
                "The upstream sent more than the bridge keeps before it confirmed the response.",
            ),
            Kind::SlowClient => row(
                503,
                "bridge_slow_client",
                1,
                "The client did not take the response's bytes in time.",
            ),
            Kind::Drained => row(
                503,
                "bridge_drained",
                2,
                "The bridge was shut down while the response was running.",
            ),
            Kind::Internal => row(
                500,
                "bridge_internal",
                1,
                "A fault inside the bridge ended this turn; the other turns are not touched.",
            ),
        }
    }

    /// The metric label and the error code without its `bridge_` prefix.
    pub fn label(self) -> &'static str {
        let code = self.row().code;
        code.strip_prefix("bridge_").unwrap_or(code)
    }

    /// The error code that the client reads. An unknown anchor is told as the upstream would tell it: agents know that
    /// code, and send the whole conversation then.
    pub fn code(self) -> &'static str {
        match self {
            Kind::UnknownAnchor => "previous_response_not_found",
            _ => self.row().code,
        }
    }

    /// The HTTP status.
    pub fn status(self) -> StatusCode {
        StatusCode::from_u16(self.row().status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The wait that the client is told, if it is told one.
    pub fn retry_after(self) -> Option<Duration> {
        match self.row().retry_after {
            0 => None,
            seconds => Some(Duration::from_secs(seconds)),
        }
    }
}

#[cfg(test)]
mod tests;
