//! The table of error codes: what each means, and the status it has where upstream gave none.

use super::WireError;

/// What an upstream error means, from a closed set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorClass {
    /// The response named by `previous_response_id` is not known to upstream.
    NotFoundAnchor,
    /// The socket has reached its age limit.
    ConnectionLimit,
    /// Too many responses in flight on the socket.
    StreamLimit,
    /// Too many requests or tokens in a short time.
    RateLimit,
    /// The plan or budget is used up.
    Quota,
    /// The upstream has too much to do.
    Overload,
    /// The input does not fit the model.
    ContextLength,
    /// Refused because of what the prompt says.
    Policy,
    /// The credential is wrong, expired or not allowed to do this.
    Authentication,
    /// The request is wrong in some other way.
    Invalid,
    /// The upstream failed.
    Server,
    /// Nothing is known about it.
    Unknown,
}

impl ErrorClass {
    /// Every class.
    pub const ALL: [ErrorClass; 12] = [
        ErrorClass::NotFoundAnchor,
        ErrorClass::ConnectionLimit,
        ErrorClass::StreamLimit,
        ErrorClass::RateLimit,
        ErrorClass::Quota,
        ErrorClass::Overload,
        ErrorClass::ContextLength,
        ErrorClass::Policy,
        ErrorClass::Authentication,
        ErrorClass::Invalid,
        ErrorClass::Server,
        ErrorClass::Unknown,
    ];

    /// The label for metrics and events.
    pub fn label(self) -> &'static str {
        match self {
            Self::NotFoundAnchor => "anchor_not_found",
            Self::ConnectionLimit => "connection_limit",
            Self::StreamLimit => "stream_limit",
            Self::RateLimit => "rate_limit",
            Self::Quota => "quota",
            Self::Overload => "overload",
            Self::ContextLength => "context_length",
            Self::Policy => "policy",
            Self::Authentication => "authentication",
            Self::Invalid => "invalid",
            Self::Server => "server",
            Self::Unknown => "unknown",
        }
    }
}

/// Codes, and types that are used like codes, with their class and status. Sorted by code.
const CODES: [(&str, ErrorClass, u16); 38] = [
    ("account_deactivated", ErrorClass::Authentication, 401),
    ("authentication_error", ErrorClass::Authentication, 401),
    ("billing_hard_limit_reached", ErrorClass::Quota, 429),
    ("content_filter", ErrorClass::Policy, 400),
    ("content_policy_violation", ErrorClass::Policy, 400),
    ("context_length_exceeded", ErrorClass::ContextLength, 400),
    ("cyber_policy", ErrorClass::Policy, 400),
    ("cyber_policy_violation", ErrorClass::Policy, 400),
    ("engine_overloaded", ErrorClass::Overload, 503),
    ("expired_token", ErrorClass::Authentication, 401),
    ("insufficient_quota", ErrorClass::Quota, 429),
    ("internal_error", ErrorClass::Server, 500),
    ("internal_server_error", ErrorClass::Server, 500),
    ("invalid_api_key", ErrorClass::Authentication, 401),
    ("invalid_previous_response_id", ErrorClass::NotFoundAnchor, 400),
    ("invalid_prompt", ErrorClass::Policy, 400),
    ("invalid_request_error", ErrorClass::Invalid, 400),
    ("invalid_stream_id", ErrorClass::Invalid, 400),
    ("invalid_token", ErrorClass::Authentication, 401),
    ("model_not_found", ErrorClass::Invalid, 404),
    ("overloaded_error", ErrorClass::Overload, 503),
    ("permission_error", ErrorClass::Authentication, 403),
    ("previous_response_not_found", ErrorClass::NotFoundAnchor, 400),
    ("rate_limit_error", ErrorClass::RateLimit, 429),
    ("rate_limit_exceeded", ErrorClass::RateLimit, 429),
    ("server_error", ErrorClass::Server, 500),
    ("server_is_overloaded", ErrorClass::Overload, 503),
    ("service_unavailable", ErrorClass::Overload, 503),
    ("slow_down", ErrorClass::Overload, 429),
    ("token_expired", ErrorClass::Authentication, 401),
    ("token_invalidated", ErrorClass::Authentication, 401),
    ("token_revoked", ErrorClass::Authentication, 401),
    ("tokens", ErrorClass::RateLimit, 429),
    ("unauthorized", ErrorClass::Authentication, 401),
    ("usage_limit_reached", ErrorClass::Quota, 429),
    ("usage_not_included", ErrorClass::Quota, 429),
    (
        "websocket_connection_limit_reached",
        ErrorClass::ConnectionLimit,
        503,
    ),
    ("websocket_stream_limit_reached", ErrorClass::StreamLimit, 503),
];

/// Reasons of an incomplete response that share a name with an error code but are ordinary ends.
const ORDINARY_REASONS: [&str; 1] = ["content_filter"];

/// The class and status of an error code that is used as the reason of an incomplete response.
pub(super) fn known(reason: &str) -> Option<(ErrorClass, u16)> {
    if ORDINARY_REASONS.contains(&reason) {
        return None;
    }
    look_up(reason)
}

fn look_up(code: &str) -> Option<(ErrorClass, u16)> {
    let place = CODES.binary_search_by(|(known, ..)| (*known).cmp(code)).ok()?;
    let (_, class, status) = CODES[place];
    Some((class, status))
}

/// An error's class, and the status it has where upstream gave none.
pub(super) fn classify(error: &WireError) -> (ErrorClass, u16) {
    let code = error.code.as_deref();
    if code == Some("stream_incomplete") && error.param.as_deref() == Some("previous_response_id") {
        return (ErrorClass::NotFoundAnchor, 400);
    }
    let by_code = code.and_then(look_up);
    // Both are said by many errors that have a better name in the message or the status.
    let vague = |found: &(ErrorClass, u16)| matches!(found.0, ErrorClass::Invalid | ErrorClass::Server);
    if let Some(found) = by_code.filter(|found| !vague(found)) {
        return found;
    }
    if error.message.as_deref().is_some_and(says_anchor_not_found) {
        return (ErrorClass::NotFoundAnchor, 400);
    }
    by_code
        .or_else(|| {
            error
                .kind
                .as_deref()
                .and_then(look_up)
                .filter(|found| !vague(found))
        })
        .or_else(|| error.status.and_then(of_status))
        .or_else(|| error.kind.as_deref().and_then(look_up))
        .unwrap_or((ErrorClass::Unknown, 502))
}

/// The status for the client. See [`WireError::http_status`].
pub(super) fn status(error: &WireError) -> u16 {
    let (class, usual) = classify(error);
    let given = error.status.filter(|status| (400..600).contains(status));
    match (class, given) {
        // Upstream documents 400 for both; another socket cures them.
        (ErrorClass::ConnectionLimit | ErrorClass::StreamLimit, _) => usual,
        (_, Some(400)) if usual == 429 || usual >= 500 => usual,
        (_, Some(given)) => given,
        (_, None) => usual,
    }
}

fn of_status(status: u16) -> Option<(ErrorClass, u16)> {
    let class = match status {
        401 | 403 => ErrorClass::Authentication,
        408 => ErrorClass::Server,
        429 => ErrorClass::RateLimit,
        503 | 529 => ErrorClass::Overload,
        400..=499 => ErrorClass::Invalid,
        500..=599 => ErrorClass::Server,
        _ => return None,
    };
    Some((class, status))
}

/// "Previous response with id 'resp_…' not found." and its relatives.
fn says_anchor_not_found(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let names_it = message.contains("previous response") || message.contains("previous_response");
    names_it
        && (message.contains("not found")
            || message.contains("not_found")
            || message.contains("does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(CODES.is_sorted_by(|a, b| a.0 < b.0));
    }
}
