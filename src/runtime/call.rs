//! What passes between `downstream` and `runtime`: one client call in, one reply out.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Method, Response};
use http_body::{Body, Frame};

use crate::event::Ids;
use crate::journal::Names;
use crate::refusal::Refusal;
use crate::runtime::budget::Held;
use crate::wire::request::Create;
use crate::wire::trace::Trace;

/// Whom a request belongs to. Every key, session, owner and cache entry is scoped by it (KEY-1).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Tenant {
    /// A keyed hash; never anything that could be reversed to a credential.
    pub hash: [u8; 16],
    /// The configured client's name, where clients are configured.
    pub client: Option<Arc<str>>,
}

impl std::fmt::Debug for Tenant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tenant({})", self.client.as_deref().unwrap_or("by credential"))
    }
}

/// What every kind of call has.
#[derive(Clone, Debug)]
pub struct Caller {
    pub tenant: Tenant,
    /// The client's own, where it is safe, else a UUIDv7: a log field, never a label.
    pub request_id: Arc<str>,
    /// The trace that the call belongs to.
    pub trace: Option<Arc<Trace>>,
    /// What the journal can find the call by beside those two.
    pub names: Names,
    /// The client's own headers, before any allow-list. Credentials in it are marked sensitive.
    pub headers: HeaderMap,
    /// The client chose the ChatGPT backend: a `chatgpt-account-id` header or a `/backend-api/` path.
    pub chatgpt: bool,
    pub arrived: Instant,
}

impl Caller {
    /// The ids by which events name the call.
    pub fn ids(&self) -> Ids<'_> {
        let trace = self.trace.as_deref();
        Ids {
            request_id: &self.request_id,
            trace_id: trace.map(Trace::id),
            parent_id: trace.and_then(Trace::parent),
            names: &self.names,
        }
    }
}

/// A create: `POST /v1/responses` or one of its aliases.
#[derive(Debug)]
pub struct Call {
    pub caller: Caller,
    pub create: Create,
    /// The body's bytes in the budget; given back as soon as the body is no longer needed.
    pub held: Held,
}

/// A request that names a response in its path: GET, DELETE, `…/cancel`, `…/input_items`.
#[derive(Debug)]
pub struct Lookup {
    pub caller: Caller,
    pub method: Method,
    pub response_id: String,
    /// What follows the id: empty, `/cancel` or `/input_items`.
    pub tail: String,
    pub query: Option<String>,
    pub body: Bytes,
}

/// What the path of a [`Pass`] is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The provider's base URL: `/v1/embeddings` is `/embeddings`, `/backend-api/codex/models` is `/models`.
    Provider,
    /// One segment above the ChatGPT provider's base URL, which ends in `/codex`: `/backend-api/wham/usage` is
    /// `/wham/usage` beside it.
    BesideCodex,
}

/// Any other path, passed through untouched.
pub struct Pass {
    pub caller: Caller,
    pub method: Method,
    pub base: Base,
    /// Relative to `base`, with a leading slash: `/embeddings`, `/models`. As the client wrote it (percent-encodings
    /// kept), and free of dot segments, empty segments and encoded slashes.
    pub path: String,
    pub query: Option<String>,
    /// Responses that the body names, where that is known to matter: it goes to their owner, or nowhere (INV-6).
    pub names: Vec<String>,
    pub body: PassBody,
}

/// The request body of a [`Pass`], streamed.
pub type PassBody = Pin<Box<dyn Body<Data = Bytes, Error = std::io::Error> + Send>>;

/// The bridge's reply to a call.
pub type Reply = Response<ReplyBody>;

/// A reply's body. Dropping it before its end tells the turn that its client has gone.
pub enum ReplyBody {
    /// All of it, at once.
    Whole(Option<Bytes>),
    /// A stream; an `Err` tears the connection, which is the last resort of INV-2.
    Stream(Pin<Box<dyn Body<Data = Bytes, Error = std::io::Error> + Send>>),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            ReplyBody::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            ReplyBody::Stream(stream) => stream.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ReplyBody::Whole(bytes) => bytes.is_none(),
            ReplyBody::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            ReplyBody::Whole(bytes) => {
                http_body::SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            ReplyBody::Stream(stream) => stream.size_hint(),
        }
    }
}

/// The reply that a refusal makes: the one place where a [`Refusal`] becomes HTTP.
pub fn refuse(refusal: &Refusal) -> Reply {
    let mut reply = Response::new(ReplyBody::Whole(Some(refusal.body().into())));
    *reply.status_mut() = refusal.kind.status();
    *reply.headers_mut() = refusal.headers();
    reply
}

/// The bridge as `downstream` sees it.
pub trait Bridge: Send + Sync + 'static {
    /// Runs one turn. Dropping the future, or the reply's body, cancels it.
    fn create(&self, call: Call) -> impl Future<Output = Reply> + Send;
    /// Forwards a request that names a response to that response's owner.
    fn lookup(&self, lookup: Lookup) -> impl Future<Output = Reply> + Send;
    /// Passes any other request through to the one account that can serve it.
    fn pass(&self, pass: Pass) -> impl Future<Output = Reply> + Send;
    /// False while draining, and where requests are not welcome: `/health/ready` answers 503.
    fn ready(&self) -> bool;
    /// False where the runtime does not turn over any more: `/health/live` answers 503.
    fn live(&self) -> bool {
        true
    }
    /// The Prometheus text of `/metrics`.
    fn metrics(&self) -> String;
}
