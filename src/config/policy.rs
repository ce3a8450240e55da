//! The configuration that is in force: every value checked, every secret resolved.
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderMap;
use reqwest::Url;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

pub use super::proxy::Proxy;
use crate::wire::ProviderKind;

/// Everything that the bridge may be told. `Debug` shows no secret (INV-9).
#[derive(Clone, Debug)]
pub struct Config {
    pub server: Server,
    /// Empty: callers are told apart by their own credentials, and `server.listen` is loopback.
    pub clients: Vec<Client>,
    /// At least one, in the order of the file, each with at least one account.
    pub providers: Vec<Provider>,
    pub routing: Routing,
    pub affinity: Affinity,
    pub ownership: Ownership,
    pub continuation: Continuation,
    pub session: Session,
    pub watchdog: Watchdog,
    pub http: Http,
    pub quarantine: Quarantine,
    pub state: State,
    pub journal: Journal,
}

/// Where the bridge listens, and its limits towards clients. Sizes are bytes.
#[derive(Clone, Debug)]
pub struct Server {
    pub listen: SocketAddr,
    /// Where /metrics is served instead of on `listen`.
    pub admin_listen: Option<SocketAddr>,
    pub admin_token: Option<SecretString>,
    /// One request body, after decoding. At most `body_budget`.
    pub max_body: usize,
    /// All decoded bodies, client buffers and write buffers together.
    pub body_budget: usize,
    /// What one turn holds for a client that reads slowly. At most `body_budget`.
    pub client_buffer: usize,
    /// How long the status line is held, zero to 60 s.
    pub commit_after: Duration,
    /// Quiet time before an SSE comment, up to 30 s.
    pub heartbeat: Duration,
    /// How long a shutdown lets running turns finish. Zero: not at all.
    pub drain: Duration,
    /// Browser origins that may call, as `scheme://host[:port]` in lower case.
    pub allow_origins: Vec<String>,
}

/// A caller that the bridge itself knows. Names and keys are unique.
#[derive(Clone, Debug)]
pub struct Client {
    pub name: String,
    pub key: SecretString,
}

/// An upstream.
#[derive(Clone, Debug)]
pub struct Provider {
    /// A metric label.
    pub name: String,
    pub kind: ProviderKind,
    /// http or https, with a host, without credentials, query, fragment or a trailing slash in its path (the root
    /// path, which is always `/`, excepted).
    pub base_url: Url,
    pub transport: Transport,
    /// Absolute; a PEM file that existed when the configuration was read.
    pub ca_file: Option<PathBuf>,
    /// Whether creates above 64 KiB go as WebSocket fragments of at most 16 KiB.
    pub fragment: bool,
    /// Overrides `session.max_age`.
    pub max_age: Option<Duration>,
    /// Creates whose frame is longer go by direct HTTP. In bytes; at most 15 MiB.
    pub max_frame: Option<usize>,
    /// Models that are served there, `*` for any run of characters. Empty: all.
    pub models: Vec<String>,
    /// A socket serves one model for its whole life.
    pub one_model_per_connection: bool,
    /// What every request there carries; already among each account's. All values are sensitive.
    pub headers: HeaderMap,
    /// At least one, in the order of the file; names are unique within the provider.
    pub accounts: Vec<Account>,
}

impl Provider {
    /// Whether an account has no tunnel for sockets: an HTTP proxy passes plain http on request by request. Some answer the
    /// upgrade with 101 and then lose the frames, which is an ambiguous turn each time (UP-21).
    pub fn lacks_tunnel(&self, account: &Account) -> bool {
        let forwards = |proxy: &Proxy| matches!(proxy.url.scheme(), "http" | "https");
        self.base_url.scheme() == "http" && account.proxy.as_ref().is_some_and(forwards)
    }

    /// Which transports an account's turns may take.
    pub fn transport_of(&self, account: &Account) -> Transport {
        if self.lacks_tunnel(account) {
            Transport::Http
        } else {
            self.transport
        }
    }
}

/// Which transports a provider's turns may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    #[default]
    Auto,
    Websocket,
    Http,
}

/// One credential for a provider.
#[derive(Clone, Debug)]
pub struct Account {
    /// A metric label, and what owners in the state name.
    pub name: String,
    pub credential: Credential,
    /// For people, and for reading the credential again.
    pub source: CredentialSource,
    /// How often the account is chosen, relative to the others, where the strategy is `weighted`. At least 1.
    pub weight: u32,
    /// Through which alone the upstream is reached, on both transports.
    pub proxy: Option<Proxy>,
    /// Where the proxy's address lies, where it was not to be read (CFG-21): nothing can be reached so.
    pub unread_proxy: Option<CredentialSource>,
    /// What every request of the account carries, the provider's too, and its `chatgpt-account-id`. All values are
    /// sensitive.
    pub headers: HeaderMap,
}

/// How an account is chosen for a new key.
#[derive(Clone, Debug)]
pub struct Routing {
    pub strategy: Strategy,
}

/// How an account is chosen: the first of the file; by the accounts' weights; one after the other; the one with the
/// fewest turns at work; of two taken at random the one with fewer.
// The schema takes a variant's doc for a value of its own kind: hence none here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    #[default]
    Priority,
    Weighted,
    RoundRobin,
    LeastInFlight,
    PowerOfTwo,
}

/// How long a key keeps its account.
#[derive(Clone, Debug)]
pub struct Affinity {
    pub ttl: Duration,
    /// At least 1.
    pub max_pins: usize,
}

/// What becomes of a request that names a response nobody here is known to own.
#[derive(Clone, Debug)]
pub struct Ownership {
    pub unknown: Unknown,
}

/// With several accounts that could be meant: refused, as upstream would; or sent to the account that a new key would get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    #[default]
    Reject,
    Forward,
}

/// Sending only what is new of a conversation.
#[derive(Clone, Debug)]
pub struct Continuation {
    pub enabled: bool,
}

/// What authenticates a request upstream.
#[derive(Clone, Debug)]
pub enum Credential {
    /// The caller's own headers, passed through.
    Client,
    /// Visible ASCII without spaces, never empty.
    Secret(SecretString),
}

/// Where an account's credential came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    Client,
    Env(String),
    File(PathBuf),
}

impl fmt::Display for CredentialSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CredentialSource::Client => f.write_str("the caller's own credential"),
            CredentialSource::Env(name) => write!(f, "environment variable {name}"),
            CredentialSource::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

/// Upstream sessions and how long they are kept.
#[derive(Clone, Debug)]
pub struct Session {
    pub idle_ttl: Duration,
    /// Before jitter, which takes off up to a tenth.
    pub max_age: Duration,
    /// At least 1.
    pub max_sessions: usize,
    /// 1 to `max_sessions`.
    pub max_per_key: usize,
    /// Zero: a turn never waits for a busy session.
    pub queue_wait: Duration,
    /// Waiting turns per key. Zero: none.
    pub max_queue: usize,
    /// Idle sockets kept ready for new keys, per account. Zero: none.
    pub prewarm: usize,
}

/// Deadlines of a turn on a session. All but `reuse_check_after` are above zero.
#[derive(Clone, Debug)]
pub struct Watchdog {
    pub connect_deadline: Duration,
    /// How long a call waits for an upgrade before it goes direct. At most `connect_deadline`. One that cannot go direct waits for
    /// `connect_deadline` and `queue_wait` together (KEY-31).
    pub handshake_patience: Duration,
    /// Without progress.
    pub write_deadline: Duration,
    pub response_created_deadline: Duration,
    pub idle_deadline: Duration,
    pub request_deadline: Duration,
    pub ping_interval: Duration,
    pub reuse_check_after: Duration,
    pub pong_deadline: Duration,
    pub slow_client: Duration,
}

/// Deadlines of direct HTTP, all above zero.
#[derive(Clone, Debug)]
pub struct Http {
    pub first_byte: Duration,
    pub first_event: Duration,
    pub between_events: Duration,
}

/// How long a key whose session went silent goes by direct HTTP.
#[derive(Clone, Debug)]
pub struct Quarantine {
    /// Zero: no quarantine at all.
    pub window: Duration,
    /// At least `window`.
    pub max_window: Duration,
    /// At least 1.
    pub max_keys: usize,
}

/// What survives a restart, and where it lies.
#[derive(Clone, Debug)]
pub struct State {
    /// Absolute. It need not exist yet.
    pub directory: PathBuf,
    /// At least 1.
    pub max_owners: usize,
}

/// What is remembered of turns and incidents.
#[derive(Clone, Debug)]
pub struct Journal {
    pub keep: Duration,
    /// Entries. Zero: none.
    pub max: usize,
}
