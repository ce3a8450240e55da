//! What every answer has: one envelope, and headers that keep it out of caches.

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use crate::runtime::call::{Reply, ReplyBody};
use crate::runtime::operate::{Done, unix_ms};

const NOSNIFF: HeaderName = HeaderName::from_static("x-content-type-options");

/// One thing.
#[derive(Debug, Serialize, JsonSchema)]
pub struct One<T> {
    /// When it was looked at, in Unix milliseconds.
    pub at_ms: u64,
    pub data: T,
}

/// Many things.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Many<T> {
    /// When they were looked at, in Unix milliseconds.
    pub at_ms: u64,
    /// How many there are; `data` has as many of them as were asked for.
    pub total: usize,
    pub data: Vec<T>,
}

/// What was done.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct DoneView {
    /// To how many things.
    pub done: u64,
}

impl From<Done> for DoneView {
    fn from(Done(done): Done) -> Self {
        DoneView { done }
    }
}

/// An answer with one thing.
pub fn one(data: impl Serialize) -> Reply {
    json(&One {
        at_ms: unix_ms(),
        data,
    })
}

/// An answer with the first `most` of many things.
pub fn many<T: Serialize>(mut data: Vec<T>, most: usize) -> Reply {
    let total = data.len();
    data.truncate(most);
    json(&Many {
        at_ms: unix_ms(),
        total,
        data,
    })
}

/// An answer in JSON.
pub fn json(value: &impl Serialize) -> Reply {
    // Numbers, texts and lists always serialise.
    let body = serde_json::to_vec(value).unwrap_or_default();
    let mut reply = Response::new(ReplyBody::Whole(Some(body.into())));
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(NOSNIFF, HeaderValue::from_static("nosniff"));
    reply
}

/// Which methods a path takes.
pub fn options(allow: &str) -> Reply {
    let mut reply = Response::new(ReplyBody::Whole(None));
    *reply.status_mut() = StatusCode::NO_CONTENT;
    if let Ok(allow) = HeaderValue::from_str(allow) {
        reply.headers_mut().insert(ALLOW, allow);
    }
    reply
}
