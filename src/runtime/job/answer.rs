//! Whole answers of a job: an upstream's rejection, or one JSON object.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::runtime::call::{Reply, ReplyBody};
use crate::runtime::unix;
use crate::wire::error::WireError;

/// The HTTP answer that an upstream's error becomes before commit: its status, body and headers. A 429 or 5xx that came
/// as a frame is given a Retry-After if it has none: agents give up on a 429 without one.
pub(super) fn rejection(error: &WireError) -> Reply {
    let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut headers = error.client_headers();
    let retryable = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    if retryable && !headers.contains_key(header::RETRY_AFTER) && !headers.contains_key("retry-after-ms") {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(retry_after(error)));
    }
    json(status, headers, error.body().into())
}

/// Whole seconds until the upstream's limit starts afresh, 1 to 60; 5 where it says nothing.
fn retry_after(error: &WireError) -> u64 {
    let Some(wait) = error.wait(unix().as_secs()) else {
        return 5;
    };
    let begun = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(begun).clamp(1, 60)
}

pub(super) fn json(status: StatusCode, mut headers: HeaderMap, body: Bytes) -> Reply {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut reply = Response::new(ReplyBody::Whole(Some(body)));
    *reply.status_mut() = status;
    *reply.headers_mut() = headers;
    reply
}
