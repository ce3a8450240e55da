//! Paths to routes: a pure function over the path as the client wrote it (EDGE-10 to EDGE-14).
//!
//! Paths are never normalised. One that another server could read differently (dot segments, empty segments, encoded
//! slashes) is refused, so that what was checked here is what is sent upstream.

use std::borrow::Cow;

use http::header::UPGRADE;
use http::{HeaderMap, Method};

use crate::refusal::{Kind, Refusal};
use crate::runtime::call::Base;
use crate::wire::percent::decoded;

/// Longest response id in bytes. Upstreams' own have 50 to 70.
const LONGEST_ID: usize = 256;

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    /// For operators and their probes; no tenant.
    Look(Look),
    /// For clients; every request has a tenant.
    Api(Api<'a>),
}

/// What operators look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Live,
    Ready,
    Metrics,
}

impl Look {
    /// What `path` is, if it is for looking.
    pub(super) fn at(path: &str) -> Option<Look> {
        match path {
            "/health/live" => Some(Look::Live),
            "/health/ready" => Some(Look::Ready),
            "/metrics" => Some(Look::Metrics),
            _ => None,
        }
    }
}

/// What clients call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Api<'a> {
    Create,
    Lookup {
        /// Percent-decoded, and free of anything that would have to be encoded in a path.
        id: Cow<'a, str>,
        tail: Tail,
    },
    Pass {
        base: Base,
        /// With a leading slash.
        path: &'a str,
    },
}

/// What follows the id of a [`Api::Lookup`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    Nothing,
    Cancel,
    InputItems,
}

impl Tail {
    /// As it stands in the path.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Tail::Nothing => "",
            Tail::Cancel => "/cancel",
            Tail::InputItems => "/input_items",
        }
    }
}

/// The methods that a route takes, as an `Allow` header lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Methods {
    Only(&'static str),
    /// What a passed-through path takes is for its upstream to say.
    All,
}

impl Methods {
    pub(super) const LOOK: Methods = Methods::Only("GET, HEAD");

    /// Whether `method` is among them. A tunnel (CONNECT) or an echo (TRACE) never is.
    pub(super) fn take(self, method: &Method) -> bool {
        match self {
            Methods::Only(list) => list.split(", ").any(|one| one == method.as_str()),
            Methods::All => *method != Method::CONNECT && *method != Method::TRACE,
        }
    }
}

impl Api<'_> {
    pub(super) fn methods(&self) -> Methods {
        match self {
            Api::Create
            | Api::Lookup {
                tail: Tail::Cancel, ..
            } => Methods::Only("POST"),
            Api::Lookup {
                tail: Tail::Nothing, ..
            } => Methods::Only("GET, DELETE"),
            Api::Lookup {
                tail: Tail::InputItems,
                ..
            } => Methods::Only("GET"),
            Api::Pass { .. } => Methods::All,
        }
    }
}

impl Route<'_> {
    /// The route of `path`, or the refusal of one that leads nowhere.
    pub(super) fn of(path: &str) -> Result<Route<'_>, Refusal> {
        Look::at(path).map_or_else(|| api(path).map(Route::Api), |look| Ok(Route::Look(look)))
    }
}

fn api(path: &str) -> Result<Api<'_>, Refusal> {
    let (base, path) = relative(path).ok_or(Kind::NotFound)?;
    if is_crooked(path) {
        let why = "This path has dot segments, empty segments or encoded separators; write it plainly.";
        return Err(Refusal::because(Kind::NotFound, why));
    }
    if is_disguised(path) {
        return Err(Refusal::because(Kind::NotFound, "Write this path plainly."));
    }
    match (base, path.strip_prefix("/responses")) {
        (Base::Provider, Some("")) => Ok(Api::Create),
        (Base::Provider, Some("/compact" | "/input_tokens")) => Ok(Api::Pass { base, path }),
        (Base::Provider, Some(rest)) if rest.starts_with('/') => lookup(&rest[1..]),
        _ => Ok(Api::Pass { base, path }),
    }
}

/// Whether a client wants to change the protocol. On a POST only `websocket` counts: some HTTP clients offer `h2c` with
/// every request, which a server may ignore, and then expect the ordinary answer.
pub(super) fn is_upgrade(method: &Method, headers: &HeaderMap) -> bool {
    let mut offers = headers.get_all(UPGRADE).iter().peekable();
    match *method {
        Method::GET => offers.peek().is_some(),
        _ => offers.any(|value| value.as_bytes().to_ascii_lowercase().starts_with(b"websocket")),
    }
}

/// The base that a path belongs to and the path below it.
fn relative(path: &str) -> Option<(Base, &str)> {
    let below = |prefix: &str| {
        path.strip_prefix(prefix)
            .filter(|rest| rest.starts_with('/') && rest.len() > 1)
    };
    if let Some(rest) = below("/v1")
        .or_else(|| below("/openai/v1"))
        .or_else(|| below("/backend-api/codex"))
    {
        Some((Base::Provider, rest))
    } else if let Some(rest) = below("/backend-api") {
        Some((Base::BesideCodex, rest))
    } else if path == "/responses" || path.starts_with("/responses/") {
        Some((Base::Provider, path))
    } else {
        None
    }
}

/// What follows `/responses/`.
fn lookup(rest: &str) -> Result<Api<'_>, Refusal> {
    let (id, tail) = match rest.split_once('/') {
        None => (rest, Tail::Nothing),
        Some((id, "cancel")) => (id, Tail::Cancel),
        Some((id, "input_items")) => (id, Tail::InputItems),
        Some(_) => return Err(Kind::NotFound.into()),
    };
    let id = decoded(id).and_then(|id| match id {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    });
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~' | b':');
    id.filter(|id| (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(plain))
        .map(|id| Api::Lookup { id, tail })
        .ok_or_else(|| Refusal::because(Kind::NotFound, "This is not a response id.").about("response_id"))
}

/// Whether servers could differ over where a path leads.
fn is_crooked(path: &str) -> bool {
    let suspicious = |byte: u8| matches!(byte, b'%' | b'.' | b';' | b'\\');
    if !path.bytes().any(suspicious) && !path.contains("//") {
        return false;
    }
    let mut segments = path[1..].split('/').peekable();
    while let Some(segment) = segments.next() {
        // One empty segment, the last, is only a trailing slash.
        let empty = segment.is_empty() && segments.peek().is_some();
        let Some(segment) = decoded(segment) else {
            return true;
        };
        let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
        let hidden = |byte: &u8| matches!(byte, b'/' | b'\\' | b'%') || byte.is_ascii_control();
        if empty || name == b"." || name == b".." || segment.iter().any(hidden) {
            return true;
        }
    }
    false
}

/// Whether a segment means `responses` or `codex` to some servers (percent-encoded, in other letters, with parameters)
/// without being written so: passed on, it would lead around the ownership of responses.
fn is_disguised(path: &str) -> bool {
    path.split('/').any(|segment| {
        let meant = decoded(segment).unwrap_or_default();
        let name = meant.split(|byte| *byte == b';').next().unwrap_or_default();
        ["responses", "codex"]
            .iter()
            .any(|plain| name.eq_ignore_ascii_case(plain.as_bytes()) && segment != *plain)
    })
}

#[cfg(test)]
mod tests;
