//! Whether a request comes from a page of the bridge's own: the one judgement of the edge, the admin API and the status
//! page (ADM-34). Browsers say so in two headers that no page can forge.
//!
//! `Sec-Fetch-Site` goes with everything to a loopback or https address; `Origin` with every POST, to plain http on
//! another host too, where the first is missing. What is there must agree.

use http::HeaderMap;
use http::header::{HOST, HeaderName, HeaderValue, ORIGIN};

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

/// What `Sec-Fetch-Site` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Site {
    Unsaid,
    SameOrigin,
    /// A person at the address bar, or a bookmark.
    NoPage,
    /// Another site, or the header is there twice.
    Other,
}

impl Sender {
    /// From a request's headers.
    pub fn of(headers: &HeaderMap) -> Sender {
        let mut origins = headers.get_all(ORIGIN).iter();
        match (site_of(headers), origins.next(), origins.next()) {
            (Site::Other, _, _) => Sender::Foreign,
            (Site::SameOrigin, None, _) => Sender::Ours { https: false },
            (Site::Unsaid | Site::NoPage, None, _) => Sender::Nobody,
            // Nobody's page has no origin.
            (Site::NoPage, Some(_), _) => Sender::Foreign,
            (Site::Unsaid | Site::SameOrigin, Some(origin), None) => {
                own(origin, headers).map_or(Sender::Foreign, |https| Sender::Ours { https })
            }
            (_, Some(_), Some(_)) => Sender::Foreign,
        }
    }

    /// Whether it is a page of this very origin.
    pub fn is_ours(self) -> bool {
        matches!(self, Sender::Ours { .. })
    }
}

fn site_of(headers: &HeaderMap) -> Site {
    let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
    match (sites.next().map(HeaderValue::as_bytes), sites.next()) {
        (None, _) => Site::Unsaid,
        (Some(b"same-origin"), None) => Site::SameOrigin,
        (Some(b"none"), None) => Site::NoPage,
        _ => Site::Other,
    }
}

/// Whether `origin` is that of the one host that was asked, and then whether by https. Which scheme the browser used is not
/// known here otherwise: TLS ends before the bridge. No port is added or left out: browsers write one in both headers or in
/// neither, so a `Host` that differs is not the browser's.
fn own(origin: &HeaderValue, headers: &HeaderMap) -> Option<bool> {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return None;
    };
    let origin = origin.as_bytes();
    let (named, https) = match origin.strip_prefix(b"http://") {
        Some(named) => (named, false),
        None => (origin.strip_prefix(b"https://")?, true),
    };
    (!named.is_empty() && named.eq_ignore_ascii_case(host.as_bytes())).then_some(https)
}

#[cfg(test)]
mod tests;
