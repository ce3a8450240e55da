//! One provider account: where it is, how to authenticate there, and the clients that reach it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http_body::Body;
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};

use crate::config;
use crate::wire::ProviderKind;
use crate::wire::headers::{CALLER_BOUND, CALLERS_CREDENTIAL, WEBSOCKET_BETA};

use super::client;
use super::dial::{self, Dialed};
use super::fault::{DialFault, PostFault};
use super::http::{self as direct, Answer};

const API_KEY: HeaderName = HeaderName::from_static("api-key");
const BETA: HeaderName = HeaderName::from_static("openai-beta");
const CREATE_PATH: &str = "/responses";

/// Why an account cannot be used at all. It says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum AccountFault {
    #[error("the CA file {} cannot be used: {problem}; it must hold certificates in PEM form", path.display())]
    CaFile { path: PathBuf, problem: String },
    #[error(
        "no certificate authority is installed on this system, so no https upstream can be trusted; install your \
         system's CA certificates (package ca-certificates), point SSL_CERT_FILE at a bundle, or set the provider's ca_file"
    )]
    NoSystemCa,
    #[error(
        "the credential of account {account} cannot be sent as a header; it must be visible ASCII without spaces"
    )]
    Credential { account: String },
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
}

/// What a forwarded path is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The provider's base URL.
    Api,
    /// The ChatGPT backend beside the base URL's `/codex`: `https://chatgpt.com/backend-api`.
    ChatgptBackend,
}

/// One account, shared by all that use it. `Debug` shows no secret.
pub struct Account {
    name: Arc<str>,
    kind: ProviderKind,
    fragment: bool,
    base: Url,
    /// The account's own secret; none passes the caller's credential through.
    secret: ArcSwapOption<HeaderValue>,
    /// Which secret it is, counted from 0.
    generation: AtomicU64,
    /// What the operator adds to every request.
    headers: HeaderMap,
    trust: client::Trust,
    proxy: Option<config::Proxy>,
    clients: ArcSwap<Clients>,
}

/// What makes the connections.
#[derive(Clone)]
pub struct Clients {
    connect_deadline: Duration,
    /// Keeps no connection. A pool may finish an abandoned connect in the background, and may hand a connection that
    /// has just died to a handshake; neither must happen to a socket (UP-5).
    dialer: reqwest::Client,
    poster: reqwest::Client,
}

impl Clients {
    fn of(
        trust: &client::Trust,
        proxy: Option<&config::Proxy>,
        connect_deadline: Duration,
    ) -> Result<Clients, AccountFault> {
        Ok(Clients {
            connect_deadline,
            dialer: client::build(trust, proxy, connect_deadline, client::Pool::Off)?,
            poster: client::build(trust, proxy, connect_deadline, client::Pool::On)?,
        })
    }
}

impl Account {
    /// Reads the CA file if there is one. `connect_deadline` bounds connecting (name, TCP, TLS) on both transports, and
    /// a whole WebSocket handshake.
    pub fn new(
        provider: &config::Provider,
        account: &config::Account,
        connect_deadline: Duration,
    ) -> Result<Account, AccountFault> {
        let proxy = account.proxy.as_ref();
        let trust = client::Trust::of(provider, proxy)?;
        let made = Account {
            name: format!("{}/{}", provider.name, account.name).into(),
            kind: provider.kind,
            fragment: provider.fragment,
            base: provider.base_url.clone(),
            secret: ArcSwapOption::empty(),
            generation: AtomicU64::new(0),
            headers: account.headers.clone(),
            clients: ArcSwap::from_pointee(Clients::of(&trust, proxy, connect_deadline)?),
            proxy: proxy.cloned(),
            trust,
        };
        if let config::Credential::Secret(secret) = &account.credential {
            made.store(secret)?;
        }
        Ok(made)
    }

    /// `provider/account`: what owners in the state name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same, shared: rows of owners point to it.
    pub fn shared_name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// Whether requests carry the account's own secret, and not the caller's.
    pub fn has_own_credential(&self) -> bool {
        self.secret.load().is_some()
    }

    pub fn kind(&self) -> ProviderKind {
        self.kind
    }

    /// Puts another secret in the place of the present one, for requests and sockets from now on. Gives its generation.
    pub fn renew(&self, secret: &SecretString) -> Result<u64, AccountFault> {
        self.store(secret)?;
        // After the secret: whoever reads the generation first never takes an older secret for a newer one.
        Ok(self.generation.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Connections of another deadline, to be put in force by [`Self::connect_with`].
    ///
    /// # Errors
    /// The system has no certificate authority any more.
    pub fn clients(&self, connect_deadline: Duration) -> Result<Clients, AccountFault> {
        Clients::of(&self.trust, self.proxy.as_ref(), connect_deadline)
    }

    /// Connections are made by these from now on. What is being connected goes on as it began.
    pub fn connect_with(&self, clients: Clients) {
        self.clients.store(Arc::new(clients));
    }

    /// Whether this is the secret in force.
    pub fn holds(&self, secret: &SecretString) -> bool {
        let text = self.spelt(secret);
        (*self.secret.load())
            .as_ref()
            .is_some_and(|held| held.as_bytes() == text.expose_secret().as_bytes())
    }

    /// As it stands in its header.
    fn spelt(&self, secret: &SecretString) -> SecretString {
        match self.kind {
            ProviderKind::Azure => secret.clone(),
            _ => format!("Bearer {}", secret.expose_secret()).into(),
        }
    }

    /// How often the secret was renewed. To be read before [`Account::credential`].
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn store(&self, secret: &SecretString) -> Result<(), AccountFault> {
        let mut value = HeaderValue::from_str(self.spelt(secret).expose_secret()).map_err(|_| {
            AccountFault::Credential {
                account: self.name.to_string(),
            }
        })?;
        value.set_sensitive(true);
        self.secret.store(Some(Arc::new(value)));
        Ok(())
    }

    /// The headers that authenticate a request of this caller, for either transport [UP-1].
    pub fn credential(&self, client: &HeaderMap) -> HeaderMap {
        let mut credential = HeaderMap::new();
        if let Some(secret) = &*self.secret.load() {
            let name = if self.kind == ProviderKind::Azure {
                API_KEY
            } else {
                AUTHORIZATION
            };
            credential.insert(name, HeaderValue::clone(secret));
            return credential;
        }
        for name in CALLERS_CREDENTIAL {
            for value in client.get_all(&name) {
                let mut value = value.clone();
                value.set_sensitive(true);
                credential.append(&name, value);
            }
        }
        credential
    }

    /// Opens a socket. `identity` has been through the allow-list; `credential` is of [`Account::credential`]. Done or
    /// failed within the connect deadline. Dropping the future closes the connection at once, whatever its state.
    pub async fn dial(&self, mut identity: HeaderMap, credential: HeaderMap) -> Result<Dialed, DialFault> {
        if self.kind == ProviderKind::Chatgpt {
            identity.append(BETA, HeaderValue::from_static(WEBSOCKET_BETA));
        }
        let url = self.url(Base::Api, CREATE_PATH)?;
        let clients = self.clients.load_full();
        let request = clients
            .dialer
            .get(url)
            .headers(self.headers(identity, credential));
        let upgrade = dial::upgrade(request, self.fragment, self.proxy.is_some());
        match tokio::time::timeout(clients.connect_deadline, upgrade).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(DialFault::Timeout),
        }
    }

    /// Posts a JSON body to `path`, relative to the base URL and with a leading slash, and waits for the answer's head:
    /// how long is the caller's to bound. `headers` are complete but for the ones that belong to the connection.
    pub async fn post<B>(&self, path: &str, headers: HeaderMap, body: B) -> Result<Answer, PostFault>
    where
        B: Body<Data = Bytes> + Send + Sync + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut headers = self.headers(headers, HeaderMap::new());
        headers
            .entry(CONTENT_TYPE)
            .or_insert(HeaderValue::from_static("application/json"));
        let url = self.url(Base::Api, path)?;
        let request = self.clients.load().poster.post(url);
        let request = request.headers(headers).body(reqwest::Body::wrap(body));
        direct::send(request, self.proxy.is_some()).await
    }

    /// Passes on a request as it came, its body as it comes.
    pub async fn forward<B>(
        &self,
        base: Base,
        method: Method,
        path_and_query: &str,
        headers: HeaderMap,
        body: B,
    ) -> Result<Answer, PostFault>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let url = self.url(base, path_and_query)?;
        let request = self.clients.load().poster.request(method, url);
        let request = request.headers(self.headers(headers, HeaderMap::new()));
        direct::send(direct::pass_on(request, body), self.proxy.is_some()).await
    }

    /// What every request has: never a compressed answer, what the operator adds, and with a secret of the account's own
    /// nothing that speaks of the caller's login.
    fn headers(&self, mut headers: HeaderMap, credential: HeaderMap) -> HeaderMap {
        if self.secret.load().is_some() {
            for name in CALLER_BOUND {
                headers.remove(name);
            }
        }
        for name in credential.keys() {
            headers.remove(name);
        }
        headers.extend(credential);
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers
    }

    /// `path_and_query` below `base`; dot segments do not climb out of it.
    fn url(&self, base: Base, path_and_query: &str) -> Result<Url, PostFault> {
        let base = match base {
            Base::Api => self.base.as_str(),
            Base::ChatgptBackend => self
                .base
                .as_str()
                .strip_suffix("/codex")
                .unwrap_or(self.base.as_str()),
        };
        let root = format!("{}/", base.strip_suffix('/').unwrap_or(base));
        let url = Url::parse(&format!(
            "{root}{}",
            path_and_query.strip_prefix('/').unwrap_or(path_and_query)
        ));
        url.ok()
            .filter(|url| url.as_str().starts_with(&root))
            .ok_or(PostFault::Unaddressable)
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
