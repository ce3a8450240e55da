//! Whom a request belongs to (EDGE-20 to EDGE-24).
//!
//! Nothing unverified identifies a tenant: with client keys it is the key, without them the credential itself, which
//! the upstream will verify. Secrets are only ever compared as keyed hashes, in constant time.

use std::sync::Arc;

use blake3::Hasher;
use http::HeaderMap;
use http::header::{AUTHORIZATION, Entry, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use tokio_util::sync::CancellationToken;

use crate::config::Client;
use crate::refusal::{Kind, Refusal};
use crate::runtime::call::Tenant;
use crate::wire::headers::CALLERS_CREDENTIAL;

const API_KEY: HeaderName = HeaderName::from_static("api-key");
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The headers that can carry a credential.
const CREDENTIALS: [HeaderName; 3] = [AUTHORIZATION, API_KEY, X_API_KEY];

/// The headers whose values must not show, whoever prints them.
const SECRET: [HeaderName; 6] = [
    AUTHORIZATION,
    API_KEY,
    X_API_KEY,
    HeaderName::from_static("chatgpt-account-id"),
    http::header::COOKIE,
    http::header::PROXY_AUTHORIZATION,
];

/// What a hash is of: hashes of different kinds never meet, even over equal bytes.
#[derive(Clone, Copy)]
enum Domain {
    Credential = 1,
    ClientKey = 2,
    ClientName = 3,
    AdminToken = 4,
}

/// Tells tenants apart.
pub(super) struct Tenants {
    install_key: [u8; 32],
    clients: Vec<KnownClient>,
}

struct KnownClient {
    key: [u8; 32],
    tenant: Tenant,
}

impl Tenants {
    pub(super) fn new(install_key: &[u8; 32], clients: &[Client]) -> Self {
        let known = |client: &Client| KnownClient {
            key: hash(
                install_key,
                Domain::ClientKey,
                client.key.expose_secret().as_bytes(),
            ),
            tenant: Tenant {
                hash: short(hash(install_key, Domain::ClientName, client.name.as_bytes())),
                client: Some(Arc::from(client.name.as_str())),
            },
        };
        Tenants {
            install_key: *install_key,
            clients: clients.iter().map(known).collect(),
        }
    }

    /// The tenants of all clients that are configured.
    pub(super) fn all(&self) -> Vec<Tenant> {
        self.clients.iter().map(|client| client.tenant.clone()).collect()
    }

    /// The tenant of a request with these headers.
    pub(super) fn of(&self, headers: &HeaderMap) -> Result<Tenant, Refusal> {
        if !CREDENTIALS
            .iter()
            .flat_map(|name| headers.get_all(name))
            .any(|value| !secret_of(value).is_empty())
        {
            return Err(Kind::MissingCredential.into());
        }
        if self.clients.is_empty() {
            Ok(Tenant {
                hash: self.by_credential(headers),
                client: None,
            })
        } else {
            self.by_key(headers).ok_or(Kind::UnknownClientKey.into())
        }
    }

    /// The configured clients, by their hashes.
    pub(super) fn known(&self) -> Vec<([u8; 16], Arc<str>)> {
        let named = |client: &KnownClient| Some((client.tenant.hash, client.tenant.client.clone()?));
        self.clients.iter().filter_map(named).collect()
    }

    /// Every sent credential is compared with every configured key, always all of them: the time tells nothing.
    fn by_key(&self, headers: &HeaderMap) -> Option<Tenant> {
        let mut found = None;
        for value in CREDENTIALS.iter().flat_map(|name| headers.get_all(name)) {
            let sent = hash(&self.install_key, Domain::ClientKey, secret_of(value));
            for client in &self.clients {
                if bool::from(client.key.ct_eq(&sent)) {
                    found = Some(&client.tenant);
                }
            }
        }
        found.cloned()
    }

    /// Each header by name, number of values and length of each value, so that no two different sets of headers ever
    /// make the same bytes.
    fn by_credential(&self, headers: &HeaderMap) -> [u8; 16] {
        let mut hasher = hasher(&self.install_key, Domain::Credential);
        for name in &CALLERS_CREDENTIAL {
            let values = headers.get_all(name);
            part(&mut hasher, name.as_str().as_bytes());
            hasher.update(&(values.iter().count() as u64).to_le_bytes());
            for value in values {
                part(&mut hasher, value.as_bytes());
            }
        }
        short(*hasher.finalize().as_bytes())
    }
}

/// The operators' token.
pub(super) struct AdminToken {
    install_key: [u8; 32],
    token: Option<[u8; 32]>,
    revoked: CancellationToken,
}

impl AdminToken {
    pub(super) fn new(install_key: &[u8; 32], token: Option<&SecretString>) -> Self {
        let token =
            token.map(|token| hash(install_key, Domain::AdminToken, token.expose_secret().as_bytes()));
        AdminToken {
            install_key: *install_key,
            token,
            revoked: CancellationToken::new(),
        }
    }

    /// This one is in force from now on, in the place of `before`, which is revoked if it is another (REL-20).
    pub(super) fn replace(&mut self, before: &AdminToken) {
        if self.token == before.token {
            self.revoked = before.revoked.clone();
        } else {
            before.revoked.cancel();
        }
    }

    /// Cancelled when the token is not in force any more.
    pub(super) fn revoked(&self) -> CancellationToken {
        self.revoked.clone()
    }

    pub(super) fn is_configured(&self) -> bool {
        self.token.is_some()
    }

    /// Whether these headers carry the token, as `Authorization: Bearer`. More than one credential is none: which of them
    /// a proxy in front looked at is not known.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return false;
        };
        bearer_of(value).is_some_and(|secret| self.is(secret))
    }

    /// Whether this is the token. In constant time.
    pub(super) fn is(&self, secret: &[u8]) -> bool {
        let sent = hash(&self.install_key, Domain::AdminToken, secret);
        self.token.is_some_and(|token| sent.ct_eq(&token).into())
    }

    /// A keyed hash of the token: tells one token from the next, and nothing else.
    pub(super) fn fingerprint(&self) -> Option<[u8; 32]> {
        self.token
    }
}

/// Marks what must not show in any log.
pub(super) fn mark_sensitive(headers: &mut HeaderMap) {
    for name in SECRET {
        if let Entry::Occupied(mut entry) = headers.entry(name) {
            entry.iter_mut().for_each(|value| value.set_sensitive(true));
        }
    }
}

/// The secret of a `Bearer` credential; no other scheme carries a token.
fn bearer_of(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = value.as_bytes().trim_ascii().split_at_checked(6)?;
    let is_bearer = scheme.eq_ignore_ascii_case(b"bearer") && token.first() == Some(&b' ');
    is_bearer
        .then(|| token.trim_ascii())
        .filter(|token| !token.is_empty())
}

/// The secret of a credential header: without `Bearer`, where it stands, and the blanks around it.
fn secret_of(value: &HeaderValue) -> &[u8] {
    let value = value.as_bytes().trim_ascii();
    match value.split_at_checked(6) {
        Some((scheme, token))
            if scheme.eq_ignore_ascii_case(b"bearer") && token.first().is_none_or(|b| *b == b' ') =>
        {
            token.trim_ascii()
        }
        _ => value,
    }
}

fn hasher(install_key: &[u8; 32], domain: Domain) -> Hasher {
    let mut hasher = Hasher::new_keyed(install_key);
    part(&mut hasher, b"responses-bridge tenant");
    hasher.update(&[domain as u8]);
    hasher
}

fn part(hasher: &mut Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

fn hash(install_key: &[u8; 32], domain: Domain, bytes: &[u8]) -> [u8; 32] {
    let mut hasher = hasher(install_key, domain);
    part(&mut hasher, bytes);
    *hasher.finalize().as_bytes()
}

fn short(hash: [u8; 32]) -> [u8; 16] {
    std::array::from_fn(|i| hash[i])
}

#[cfg(test)]
mod tests;
