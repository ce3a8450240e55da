//! `proxy`: through which alone an account's upstream is reached (CFG-20, UP-21).
use std::fmt;

use reqwest::Url;
use secrecy::ExposeSecret;

use super::credentials::secret;
use super::fault::Fault;
use super::policy::CredentialSource;
use super::raw::Text;
use super::review::Review;

/// A proxy. `Debug` and `Display` show its scheme, host and port, and never its user or password.
#[derive(Clone)]
pub struct Proxy {
    /// http, https, socks5 or socks5h, a host, and perhaps a user and a password.
    pub url: Url,
    /// What to say where it does not answer: everything but the problem.
    unreachable: Fault,
}

impl Proxy {
    /// Host and port. A host is a name or an address, IPv6 in brackets.
    pub fn address(&self) -> (&str, u16) {
        let usual = match self.url.scheme() {
            "http" => 80,
            "https" => 443,
            _ => 1080,
        };
        (
            self.url.host_str().unwrap_or_default(),
            self.url.port().unwrap_or(usual),
        )
    }

    /// The fault of a proxy that does not answer.
    pub(super) fn unreachable(&self, problem: &str) -> Fault {
        Fault {
            problem: format!("the proxy {self} does not answer: {problem}"),
            ..self.unreachable.clone()
        }
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = self.address();
        write!(f, "{}://{host}:{port}", self.url.scheme())
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

/// What stands at a `proxy` key.
pub enum Given {
    Proxy(Proxy),
    /// It lies there and is not to be read: no address can be made up for it.
    Unread(CredentialSource),
}

/// The proxy at `key`. None after a fault.
pub fn proxy(review: &mut Review<'_>, key: &str, text: &Text) -> Option<Given> {
    let parsed = match text {
        Text::Plain(text) => parse(text),
        Text::Source(source) => {
            let (secret, source) = secret(review, key, source)?;
            if !(review.reads)(key) {
                return Some(Given::Unread(source));
            }
            parse(secret.expose_secret())
        }
    };
    match parsed {
        Ok(url) => Some(Given::Proxy(Proxy {
            url,
            unreachable: review.made(
                key,
                String::new(),
                "start it, or correct its address; the account is never reached without it",
            ),
        })),
        Err((problem, hint)) => {
            review.fault(key, problem, hint);
            None
        }
    }
}

const SCHEMES: [&str; 4] = ["http", "https", "socks5", "socks5h"];

/// Never quotes the address: it may hold a password.
fn parse(text: &str) -> Result<Url, (&'static str, String)> {
    let example = "write scheme, host and port, as in \"http://proxy.example.com:3128\"";
    let Some((scheme, _)) = text.trim().split_once("://") else {
        return Err(("has no scheme", example.to_owned()));
    };
    let scheme = scheme.to_ascii_lowercase();
    if !SCHEMES.contains(&&*scheme) {
        let hint = match &*scheme {
            "socks" => "write socks5://, or socks5h:// where the proxy is to look names up".to_owned(),
            "socks4" | "socks4a" => "SOCKS 4 is not spoken here: use socks5:// or an HTTP proxy".to_owned(),
            _ => SCHEMES
                .iter()
                .find(|known| strsim::damerau_levenshtein(known, &scheme) <= 2)
                .map_or(example.to_owned(), |near| format!("did you mean {near}://?")),
        };
        return Err(("must begin with http://, https://, socks5:// or socks5h://", hint));
    }
    let url = Url::parse(text.trim()).map_err(|_| ("is not an address", example.to_owned()))?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err(("names no host", example.to_owned()));
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        let hint = "leave out what follows the port".to_owned();
        return Err(("has a path, and a proxy has none", hint));
    }
    if url.port() == Some(0) {
        return Err(("has port 0", example.to_owned()));
    }
    Ok(url)
}
