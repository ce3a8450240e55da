//! Whether a request comes from a page of our own (PAGE-6). Browsers say so in two headers that no page can forge.
//!
//! `Sec-Fetch-Site` goes with everything to a loopback or https address; `Origin` with every POST, to plain http on
//! another host too, where the first is missing. What is there must agree, and for a change one of them must be there.

use http::HeaderMap;
use http::header::{HOST, HeaderName, ORIGIN};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Who a request says that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A page of this very origin. `https`: the browser loaded it so, through a proxy that ends TLS.
    Ours { https: bool },
    /// Another page, or one that cannot be told.
    Foreign,
    /// No page: a person at the address bar, or no browser at all.
    Nobody,
}

impl Sender {
    /// From a request's headers.
    pub fn of(headers: &HeaderMap) -> Sender {
        let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
        let site = match (sites.next().map(|site| site.as_bytes()), sites.next()) {
            (None, _) => None,
            (Some(b"same-origin"), None) => Some(true),
            (Some(b"none"), None) => None,
            _ => return Sender::Foreign,
        };
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) if site.is_some() => Sender::Ours { https: false },
            (None, _) => Sender::Nobody,
            (Some(origin), None) => origin
                .to_str()
                .ok()
                .and_then(|origin| host_of(headers).and_then(|host| is(origin, host)))
                .map_or(Sender::Foreign, |https| Sender::Ours { https }),
            _ => Sender::Foreign,
        }
    }
}

/// The one host that was asked.
fn host_of(headers: &HeaderMap) -> Option<&str> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        _ => None,
    }
}

/// Whether `origin` is that of `host`, and then whether by https. A scheme's own port may be written or not.
fn is(origin: &str, host: &str) -> Option<bool> {
    let (named, port, https) = match origin.split_once("://")? {
        ("http", named) => (named, ":80", false),
        ("https", named) => (named, ":443", true),
        _ => return None,
    };
    let bare = |name: &'_ str| name.strip_suffix(port).unwrap_or(name).to_ascii_lowercase();
    (!named.is_empty() && bare(named) == bare(host)).then_some(https)
}

#[cfg(test)]
mod tests;
