//! Web pages are kept out (EDGE-30 to EDGE-33): a page that a user happens to have open must not spend their account.
//!
//! What tells a page from an agent, as browsers behave: `Origin` goes with every cross-origin fetch and every POST;
//! `Sec-Fetch-Site` goes with everything that a browser sends to a loopback address, navigations and images included,
//! and a page can neither forge nor drop either. Agents send neither, with one trap: Node's `fetch` sends
//! `sec-fetch-mode: cors`, so that header says nothing. A page that rebinds its own name to 127.0.0.1 is of the same
//! origin in its browser's eyes; only its `Host` gives it away.

use std::net::{IpAddr, SocketAddr};

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HOST, HeaderName, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};

use super::reply;
use crate::refusal::{Kind, Refusal};
use crate::runtime::call::Reply;
use crate::wire::sender::Sender;

const PRIVATE_NETWORK_REQUEST: HeaderName = HeaderName::from_static("access-control-request-private-network");
const PRIVATE_NETWORK_ALLOW: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// The origins that the operator has allowed.
pub(super) struct Origins {
    allowed: Vec<String>,
}

/// An allowed page: its origin goes into the answer.
pub(super) struct Page(HeaderValue);

impl Origins {
    pub(super) fn new(allowed: &[String]) -> Self {
        Origins {
            allowed: allowed.to_vec(),
        }
    }

    /// Lets a request in that came to `listen`: from no page (`None`), or from an allowed one. `ours`: the path is one at
    /// which the bridge has pages of its own, which come from the very origin that they call (ADM-5).
    pub(super) fn judge<T>(
        &self,
        listen: SocketAddr,
        request: &Request<T>,
        ours: bool,
    ) -> Result<Option<Page>, Refusal> {
        let headers = request.headers();
        if listen.ip().to_canonical().is_loopback() {
            let named = request
                .uri()
                .authority()
                .map(|authority| authority.as_str().as_bytes());
            let hosts = headers.get_all(HOST).iter().map(HeaderValue::as_bytes);
            if !hosts.chain(named).all(|host| self.is_own(host)) {
                let why = "This Host is no loopback address; if it is yours, list http://<host> in server.allow_origins.";
                return Err(Refusal::because(Kind::OriginNotAllowed, why).about("Host"));
            }
        }
        let sender = Sender::of(headers);
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (Some(origin), None)
                if self
                    .allowed
                    .iter()
                    .any(|allowed| allowed.as_bytes() == origin.as_bytes()) =>
            {
                Ok(Some(Page(origin.clone())))
            }
            // A name that was rebound to this listener is of the same origin too: it has no cookie of ours and no token.
            (Some(_), _) if ours && sender.is_ours() => Ok(None),
            (Some(_), _) => Err(Refusal::from(Kind::OriginNotAllowed).about("Origin")),
            // Without an origin a page can still fetch images and navigate: `cross-site` and `same-site` (another port
            // of this very host, say) are pages; `none` is a person at the address bar.
            (None, _) if sender == Sender::Foreign => {
                Err(Refusal::from(Kind::OriginNotAllowed).about("Sec-Fetch-Site"))
            }
            (None, _) => Ok(None),
        }
    }

    /// Whether a loopback listener may be called by this name: `localhost`, a loopback address, or the host of an
    /// allowed origin (a container's `host.docker.internal`, a proxy that keeps the name).
    fn is_own(&self, host: &[u8]) -> bool {
        let Some(name) = std::str::from_utf8(host).ok().map(without_port) else {
            return false;
        };
        let bare = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .unwrap_or(name);
        name.eq_ignore_ascii_case("localhost")
            || bare
                .parse::<IpAddr>()
                .is_ok_and(|ip| ip.to_canonical().is_loopback())
            || self
                .allowed
                .iter()
                .filter_map(|origin| origin.split_once("://"))
                .any(|(_, allowed)| {
                    // The scheme says nothing here, and a port that is not listed is the scheme's own.
                    without_port(allowed).eq_ignore_ascii_case(name)
                })
    }
}

impl Page {
    /// The answer to a preflight. It opens nothing by itself: the request that follows is judged anew.
    pub(super) fn preflight(&self, headers: &HeaderMap) -> Reply {
        let mut reply = reply::empty(StatusCode::NO_CONTENT);
        let answer = reply.headers_mut();
        answer.insert(
            ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, POST, DELETE, PUT, PATCH, HEAD"),
        );
        answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        if let Some(wanted) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        if headers.contains_key(PRIVATE_NETWORK_REQUEST) {
            answer.insert(PRIVATE_NETWORK_ALLOW, HeaderValue::from_static("true"));
        }
        reply
    }

    /// Lets the page read an answer. Only this origin: never `*`, never with cookies.
    pub(super) fn open(&self, headers: &mut HeaderMap) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0.clone());
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
}

/// Whether a request asks a browser's question before the real request.
pub(super) fn is_preflight<T>(request: &Request<T>) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The host of `host[:port]`, where an IPv6 address stands in brackets.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.ends_with(':') => {
            if host.contains(':') && !host.ends_with(']') {
                authority
            } else {
                host
            }
        }
        _ => authority,
    }
}
