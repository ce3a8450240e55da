//! The configuration file as it is written: one struct per table, one field per key.
//!
//! These structs are the only list of keys. `schemars` derives the JSON schema from them (bounds of counts included),
//! [`document`](super::document) checks a file's keys and kinds against that schema, and `serde` fills them. What
//! they hold is well-formed but not yet sensible: [`review`](super::review) decides that.
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::defaults::*;
use super::policy::{Strategy, Transport, Unknown};
use super::units::{ByteSize, Lapse};
use crate::wire::ProviderKind;

/// Responses Bridge configuration. Every key may be left out.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "Responses Bridge")]
pub struct File {
    /// Where the bridge listens, and its limits towards clients.
    pub server: Server,
    /// Keys that the bridge itself checks. Without any, callers are told apart by their own credentials, which the
    /// bridge does not verify: then it listens on loopback only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-hint" = "write each client as a [[clients]] table with name and key"))]
    pub clients: Vec<Client>,
    /// Upstreams by name. Without any: `openai` and `chatgpt`, with the callers' own credentials.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-hint" = "write each provider as a [providers.NAME] table"))]
    pub providers: BTreeMap<String, Provider>,
    /// How an account is chosen for a new conversation.
    pub routing: Routing,
    /// How long a conversation keeps its account.
    pub affinity: Affinity,
    /// What becomes of a request that names a response nobody here is known to own.
    pub ownership: Ownership,
    /// Sending only what is new of a conversation.
    pub continuation: Continuation,
    /// Upstream sessions and how long they are kept.
    pub session: Session,
    /// Deadlines of a turn on a session.
    pub watchdog: Watchdog,
    /// Deadlines of direct HTTP.
    pub http: Http,
    /// How long a conversation whose session went silent goes by direct HTTP.
    pub quarantine: Quarantine,
    /// What survives a restart, and where it lies.
    pub state: State,
    /// What is remembered of turns and incidents.
    pub journal: Journal,
}

/// `[server]`
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Address and port. Beyond loopback only with [[clients]], and then with admin_token or admin_listen.
    #[schemars(extend("x-hint" = "write an address and a port, as in \"127.0.0.1:8787\" or \"[::1]:8787\""))]
    pub listen: String,
    /// A second address for /metrics and /admin, which `listen` then no longer serves. Beyond loopback only with admin_token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("x-hint" = "write an address and a port, as in \"127.0.0.1:9787\""))]
    pub admin_listen: Option<String>,
    /// What /admin and /metrics ask for as a bearer token. Without one there is no /admin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecretSource", extend("x-hint" = SECRET_HINT))]
    pub admin_token: Option<SecretSource>,
    /// The largest request body, after decoding.
    pub max_body: ByteSize,
    /// All decoded bodies, client buffers and write buffers together; beyond it a request gets 503.
    pub body_budget: ByteSize,
    /// What one turn may hold for a client that reads slowly; beyond it the turn ends.
    pub client_buffer: ByteSize,
    /// How long the status line waits for `response.created` or an error. At most 60s.
    #[schemars(extend("x-zero" = true))]
    pub commit_after: Lapse,
    /// An SSE comment goes out after so long without a byte. At most 30s.
    pub heartbeat: Lapse,
    /// How long a shutdown lets running turns finish. A second signal ends at once.
    #[schemars(extend("x-zero" = true))]
    pub drain: Lapse,
    /// Browser origins that may call the bridge. None: requests from web pages are refused.
    #[schemars(extend("x-hint" = "write a list of origins, as in [\"https://app.example.com\"]"))]
    pub allow_origins: Vec<String>,
}

impl Default for Server {
    fn default() -> Server {
        Server {
            listen: DEFAULT_LISTEN.to_string(),
            admin_listen: None,
            admin_token: None,
            max_body: ByteSize(DEFAULT_MAX_BODY),
            body_budget: ByteSize(DEFAULT_BODY_BUDGET),
            client_buffer: ByteSize(DEFAULT_CLIENT_BUFFER),
            commit_after: Lapse(DEFAULT_COMMIT_AFTER),
            heartbeat: Lapse(DEFAULT_HEARTBEAT),
            drain: Lapse(DEFAULT_DRAIN),
            allow_origins: Vec::new(),
        }
    }
}

/// `[[clients]]`
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// What the client is called in logs and metrics: up to 32 of a-z, 0-9, _ and -.
    pub name: String,
    /// The key that it presents as `Authorization: Bearer`, `api-key` or `x-api-key`.
    #[schemars(extend("x-hint" = SECRET_HINT))]
    pub key: SecretSource,
}

/// `[providers.NAME]`
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Provider {
    /// The dialect that upstream speaks.
    pub kind: Kind,
    /// Where upstream's API begins; `/responses` is added to it. Known for the kinds openai and chatgpt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("x-hint" = BASE_URL_HINT))]
    pub base_url: Option<String>,
    /// auto: WebSocket sessions, and direct HTTP where they fail. websocket: no direct HTTP for lack of a session.
    /// http: no sessions.
    pub transport: Transport,
    /// A PEM file with certificate authorities to trust for this upstream besides the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PathBuf")]
    pub ca_file: Option<PathBuf>,
    /// Send creates above 64 KiB as WebSocket fragments of at most 16 KiB. false for upstreams that cannot join them.
    pub fragment: bool,
    /// session.max_age for this upstream alone. xAI closes at 25m (use 18m), Vercel at about 13m (use 10m).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Lapse")]
    pub max_age: Option<Lapse>,
    /// Creates whose frame is longer go by direct HTTP. At most, and by default, 15 MiB; Vercel takes 4 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ByteSize")]
    pub max_frame: Option<ByteSize>,
    /// The models that are served there, with * for any run of characters. None: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-hint" = "write a list of models, as in [\"gpt-5*\"]"))]
    pub models: Vec<String>,
    /// A socket serves one model for its whole life (Vercel).
    pub one_model_per_connection: bool,
    /// Headers that every request and handshake there carries.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-hint" = HEADERS_HINT))]
    pub headers: BTreeMap<String, Text>,
    /// The credentials to use there, at least one.
    #[schemars(extend("x-hint" = "write each account as a [[providers.NAME.accounts]] table with name and credential"))]
    pub accounts: Vec<Account>,
}

impl Default for Provider {
    fn default() -> Provider {
        Provider {
            kind: Kind::default(),
            base_url: None,
            transport: Transport::default(),
            ca_file: None,
            fragment: DEFAULT_FRAGMENT,
            max_age: None,
            max_frame: None,
            models: Vec::new(),
            one_model_per_connection: false,
            headers: BTreeMap::new(),
            accounts: Vec::new(),
        }
    }
}

/// [`ProviderKind`] as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    #[default]
    Openai,
    Chatgpt,
    Azure,
    Generic,
}

impl From<Kind> for ProviderKind {
    fn from(kind: Kind) -> ProviderKind {
        match kind {
            Kind::Openai => ProviderKind::Openai,
            Kind::Chatgpt => ProviderKind::Chatgpt,
            Kind::Azure => ProviderKind::Azure,
            Kind::Generic => ProviderKind::Generic,
        }
    }
}

/// `[[providers.NAME.accounts]]`
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// What the account is called in logs, metrics and the state: up to 32 of a-z, 0-9, _ and -.
    pub name: String,
    /// { env = "NAME" }, { file = "path" }, or "client" to pass the caller's own through.
    #[schemars(extend("x-hint" = CREDENTIAL_HINT))]
    pub credential: Credential,
    /// How often the account is chosen, relative to the others. Only with routing.strategy = "weighted".
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub weight: u32,
    /// The proxy through which alone the account's upstream is reached: http://, https://, socks5:// (names are looked up
    /// here) or socks5h:// (names are looked up by the proxy). With a password in it: { env = "NAME" } or { file = "path" }.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text", extend("x-hint" = PROXY_HINT))]
    pub proxy: Option<Text>,
    /// The provider's headers for this account alone; these win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-hint" = HEADERS_HINT))]
    pub headers: BTreeMap<String, Text>,
    /// What goes as chatgpt-account-id beside a credential of the account's own. Kind chatgpt only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text")]
    pub chatgpt_account_id: Option<Text>,
}

fn one() -> u32 {
    DEFAULT_WEIGHT
}

/// A text as it is, or where it lies if it is a secret. `Debug` shows no text: not every secret lies elsewhere.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("x-hint" = TEXT_HINT))]
pub enum Text {
    Plain(String),
    Source(SecretSource),
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Text::Plain(_) => f.write_str("Plain"),
            Text::Source(source) => source.fmt(f),
        }
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Credential {
    Word(CredentialWord),
    Source(SecretSource),
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CredentialWord {
    Client,
}

/// Where a secret lies. Exactly one of the two; never the secret itself.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SecretSource {
    /// The name of an environment variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub env: Option<String>,
    /// A file that holds nothing else. A relative path starts at the configuration file's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PathBuf")]
    pub file: Option<PathBuf>,
}

/// `[routing]`
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Routing {
    /// priority: the first account of the file that serves the model and is available. weighted: by the accounts' weights.
    /// round_robin: one after the other. least_in_flight: the one with the fewest turns at work. power_of_two: of two taken
    /// at random, the one with fewer.
    pub strategy: Strategy,
}

/// `[affinity]`
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Affinity {
    /// A conversation keeps its account for so long after its last turn.
    pub ttl: Lapse,
    /// Conversations whose account is remembered; the least recently used leaves first.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub max_pins: usize,
}

impl Default for Affinity {
    fn default() -> Affinity {
        Affinity {
            ttl: Lapse(DEFAULT_PIN_TTL),
            max_pins: DEFAULT_MAX_PINS,
        }
    }
}

/// `[ownership]`
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ownership {
    /// What becomes of a request that names a response, or carries an item that only one account can read, when the bridge
    /// does not know which account that is. reject: with several accounts that could be meant it is refused as
    /// previous_response_not_found. forward: it goes where a new conversation would.
    pub unknown: Unknown,
}

/// `[continuation]`
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Continuation {
    /// Where a request repeats the conversation that its session remembers, send only what is new. false: always send
    /// all of it.
    pub enabled: bool,
}

impl Default for Continuation {
    fn default() -> Continuation {
        Continuation {
            enabled: DEFAULT_CONTINUATION,
        }
    }
}

/// `[session]`
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// A session that served no turn for so long is closed.
    pub idle_ttl: Lapse,
    /// No turn starts on a session older than this, minus up to a tenth of jitter.
    pub max_age: Lapse,
    /// Sessions in all. The file limit may lower it.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_sessions: usize,
    /// Sessions that one conversation may have at a time.
    #[schemars(range(min = 1, max = 1024))]
    pub max_per_key: usize,
    /// How long a turn waits for a busy session before it goes by direct HTTP.
    #[schemars(extend("x-zero" = true))]
    pub queue_wait: Lapse,
    /// Turns of one conversation that may wait. 0: none waits.
    #[schemars(range(max = 1024))]
    pub max_queue: usize,
    /// Idle sockets kept ready for new conversations, for each account that has a credential of its own and had traffic
    /// in the last ten minutes; never for the kind chatgpt. At most 64.
    #[schemars(range(max = 64))]
    pub prewarm: usize,
}

impl Default for Session {
    fn default() -> Session {
        Session {
            idle_ttl: Lapse(DEFAULT_IDLE_TTL),
            max_age: Lapse(DEFAULT_MAX_AGE),
            max_sessions: DEFAULT_MAX_SESSIONS,
            max_per_key: DEFAULT_MAX_PER_KEY,
            queue_wait: Lapse(DEFAULT_QUEUE_WAIT),
            max_queue: DEFAULT_MAX_QUEUE,
            prewarm: DEFAULT_PREWARM,
        }
    }
}

/// `[watchdog]`
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Watchdog {
    /// DNS, TCP, TLS and the upgrade together.
    pub connect_deadline: Lapse,
    /// How long a call waits for an upgrade before it goes by direct HTTP. The upgrade goes on for the next turn.
    pub handshake_patience: Lapse,
    /// A write without progress for so long fails.
    pub write_deadline: Lapse,
    /// From the flush of the request to `response.created`.
    pub response_created_deadline: Lapse,
    /// From one event to the next, after `response.created`.
    pub idle_deadline: Lapse,
    /// The whole call.
    pub request_deadline: Lapse,
    /// How often a session is pinged, idle or at work.
    pub ping_interval: Lapse,
    /// A session from which no byte came for so long must answer a ping before reuse. 0s: always.
    #[schemars(extend("x-zero" = true))]
    pub reuse_check_after: Lapse,
    /// How long that answer may take.
    pub pong_deadline: Lapse,
    /// A client that takes no byte for so long, with data waiting, has its turn ended.
    pub slow_client: Lapse,
}

impl Default for Watchdog {
    fn default() -> Watchdog {
        Watchdog {
            connect_deadline: Lapse(DEFAULT_CONNECT_DEADLINE),
            handshake_patience: Lapse(DEFAULT_HANDSHAKE_PATIENCE),
            write_deadline: Lapse(DEFAULT_WRITE_DEADLINE),
            response_created_deadline: Lapse(DEFAULT_RESPONSE_CREATED_DEADLINE),
            idle_deadline: Lapse(DEFAULT_IDLE_DEADLINE),
            request_deadline: Lapse(DEFAULT_REQUEST_DEADLINE),
            ping_interval: Lapse(DEFAULT_PING_INTERVAL),
            reuse_check_after: Lapse(DEFAULT_REUSE_CHECK_AFTER),
            pong_deadline: Lapse(DEFAULT_PONG_DEADLINE),
            slow_client: Lapse(DEFAULT_SLOW_CLIENT),
        }
    }
}

/// `[http]`
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// From the request to the response's headers.
    pub first_byte: Lapse,
    /// From the headers to the first event.
    pub first_event: Lapse,
    /// From one event to the next.
    pub between_events: Lapse,
}

impl Default for Http {
    fn default() -> Http {
        Http {
            first_byte: Lapse(DEFAULT_FIRST_BYTE),
            first_event: Lapse(DEFAULT_FIRST_EVENT),
            between_events: Lapse(DEFAULT_BETWEEN_EVENTS),
        }
    }
}

/// `[quarantine]`
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Quarantine {
    /// The first window; it doubles with each silent probe. 0s: no quarantine.
    #[schemars(extend("x-zero" = true))]
    pub window: Lapse,
    /// The longest window.
    #[schemars(extend("x-zero" = true))]
    pub max_window: Lapse,
    /// Conversations that may be in quarantine at a time; the least recently used leaves first.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_keys: usize,
}

impl Default for Quarantine {
    fn default() -> Quarantine {
        Quarantine {
            window: Lapse(DEFAULT_QUARANTINE_WINDOW),
            max_window: Lapse(DEFAULT_QUARANTINE_MAX_WINDOW),
            max_keys: DEFAULT_QUARANTINE_MAX_KEYS,
        }
    }
}

/// `[state]`
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct State {
    /// A folder. Left out: $STATE_DIRECTORY, else $XDG_STATE_HOME/responses-bridge, else
    /// ~/.local/state/responses-bridge. A relative path starts at the configuration file's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PathBuf")]
    pub path: Option<PathBuf>,
    /// Responses whose owner is remembered; the oldest leaves first.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub max_owners: usize,
}

impl Default for State {
    fn default() -> State {
        State {
            path: None,
            max_owners: DEFAULT_MAX_OWNERS,
        }
    }
}

/// `[journal]`
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Journal {
    /// Turns and incidents are remembered for so long.
    pub keep: Lapse,
    /// Turns and incidents that are remembered; the oldest leaves first. 0: none.
    #[schemars(range(max = 100_000_000))]
    pub max: usize,
}

impl Default for Journal {
    fn default() -> Journal {
        Journal {
            keep: Lapse(DEFAULT_JOURNAL_KEEP),
            max: DEFAULT_JOURNAL_MAX,
        }
    }
}

const SECRET_HINT: &str =
    "a secret does not belong in this file: write { env = \"NAME\" } or { file = \"path\" }";
const CREDENTIAL_HINT: &str = "write { env = \"NAME\" } or { file = \"path\" }, or \"client\" to pass the caller's own \
    credential through; a secret does not belong in this file";
const TEXT_HINT: &str = "write it in quotes, or { env = \"NAME\" } or { file = \"path\" } for a secret";
const HEADERS_HINT: &str =
    "write a table of names and values, as in { \"x-team\" = \"agents\", \"x-key\" = { env = \"NAME\" } }";
const PROXY_HINT: &str = "write \"http://host:port\" (or https, socks5, socks5h), or { env = \"NAME\" } or { file = \"path\" } \
    where such an address with a password lies";
const BASE_URL_HINT: &str = "write the address where the API begins, as in \"https://api.openai.com/v1\"";
