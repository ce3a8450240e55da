//! What every reply gets on its way out.

use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_TYPE, HeaderName, UPGRADE, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};

use super::ids::X_REQUEST_ID;
use super::origin::Page;
use crate::refusal::{Kind, Refusal};
use crate::runtime::call::{self, Reply, ReplyBody};

/// What the upstream calls the request: for its own support.
const X_UPSTREAM_REQUEST_ID: HeaderName = HeaderName::from_static("x-upstream-request-id");

/// A refusal with the headers that its status obliges to.
pub(super) fn refused(refusal: &Refusal) -> Reply {
    let mut reply = call::refuse(refusal);
    let (name, value) = match refusal.kind {
        Kind::MissingCredential | Kind::UnknownClientKey | Kind::NotAdmin => (WWW_AUTHENTICATE, "Bearer"),
        Kind::UpgradeNotSupported => (UPGRADE, "HTTP/1.1"),
        Kind::UnsupportedEncoding => (ACCEPT_ENCODING, "zstd, gzip, deflate"),
        _ => return reply,
    };
    reply.headers_mut().insert(name, HeaderValue::from_static(value));
    reply
}

/// A reply without a body.
pub(super) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(ReplyBody::Whole(None));
    *reply.status_mut() = status;
    reply
}

/// A short text that nobody may keep.
pub(super) fn text(status: StatusCode, content_type: &'static str, body: impl Into<bytes::Bytes>) -> Reply {
    let mut reply = Response::new(ReplyBody::Whole(Some(body.into())));
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// Names the request as the bridge's log does, keeps the upstream's own name of it beside that (COR-1), and opens the reply to
/// an allowed page.
pub(super) fn finish(mut reply: Reply, id: &str, page: Option<&Page>) -> Reply {
    let headers = reply.headers_mut();
    if let Ok(id) = HeaderValue::from_str(id)
        && let Some(upstream) = headers.insert(X_REQUEST_ID, id)
    {
        headers.insert(X_UPSTREAM_REQUEST_ID, upstream);
    }
    if let Some(page) = page {
        page.open(headers);
    }
    reply
}
