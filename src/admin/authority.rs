//! Who asks: an operator by token, or by a browser that has signed in with it (ADM-2 to ADM-6).

use std::sync::Arc;

use http::header::HeaderName;
use http::request::Parts as Head;
use http::{HeaderMap, Method};
use tokio_util::sync::CancellationToken;

use super::attempts::Attempts;
use super::{Admin, Declined};
use crate::refusal::Kind;
use crate::runtime;
use crate::wire::sender::Sender;

const OPERATOR: HeaderName = HeaderName::from_static("x-operator");
/// Longest name of an operator in characters.
const LONGEST: usize = 64;

/// What the edge knows of keys.
pub trait Keys: Send + Sync {
    /// Whether the headers carry the admin token, as `Authorization: Bearer`. In constant time.
    fn is_admin(&self, headers: &HeaderMap) -> bool;
    /// Tells one admin token from the next.
    fn fingerprint(&self) -> Option<[u8; 32]>;
    /// Cancelled when that token is not in force any more.
    fn revoked(&self) -> CancellationToken;
    /// The configured clients, by the hashes under which they own things.
    fn clients(&self) -> Vec<([u8; 16], Arc<str>)>;
}

/// Browsers that have signed in: the status page's sessions.
pub trait Browsers: Send + Sync {
    /// Whether the cookie in these headers is that of a session. `fingerprint` is of the token in force: a session that
    /// was opened with another one is over.
    fn is_signed_in(&self, headers: &HeaderMap, fingerprint: Option<[u8; 32]>) -> bool;
    /// Whether the headers prove that a change was made on the page of that same session (a CSRF token).
    fn proves(&self, headers: &HeaderMap) -> bool;
}

/// In whose name something is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct By(Arc<str>);

impl By {
    /// The status page.
    pub fn page() -> By {
        By("page".into())
    }

    /// As `x-operator` says, where that is of a safe alphabet; else whoever has the token.
    fn token(headers: &HeaderMap) -> By {
        let said = headers.get(OPERATOR).and_then(|value| value.to_str().ok());
        By(said.filter(|name| is_name(name)).unwrap_or("token").into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Letters, digits and what mail addresses have beside them: nothing that a log or a page would have to escape.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._@-".contains(&byte);
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(plain)
}

impl Admin {
    /// Who asks. The token is looked at first: with it a browser's cookie does not matter.
    pub(super) fn authorised(
        &self,
        head: &Head,
        keys: &(impl Keys + ?Sized),
        attempts: &Attempts,
    ) -> Result<By, Declined> {
        let headers = &head.headers;
        if keys.is_admin(headers) {
            return Ok(By::token(headers));
        }
        let browser = self.browsers.as_deref();
        if let Some(browser) = browser.filter(|known| known.is_signed_in(headers, keys.fingerprint())) {
            let reads = matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS);
            if !reads && (!Sender::of(headers).is_ours() || !browser.proves(headers)) {
                return Err(Kind::ForgedChange.into());
            }
            return Ok(By::page());
        }
        Err(attempts.refusal(headers, runtime::now()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [ADM-6] an operator is named as they say, in a safe alphabet of 64 characters; else by the token.
    #[test]
    fn operators_are_named_safely() {
        let by = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(OPERATOR, http::HeaderValue::from_bytes(value).unwrap());
            By::token(&headers).as_str().to_owned()
        };
        assert_eq!(by(b"ada.lovelace@ops-1"), "ada.lovelace@ops-1");
        assert_eq!(by("a".repeat(64).as_bytes()), "a".repeat(64));
        for bad in [
            "",
            "a b",
            "<b>",
            "'; DROP TABLE journal; --",
            "ä",
            "a\tb",
            &"a".repeat(65),
        ] {
            assert_eq!(by(bad.as_bytes()), "token", "{bad}");
        }
        assert_eq!(By::token(&HeaderMap::new()).as_str(), "token");
    }
}
