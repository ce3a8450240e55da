//! Every default of the configuration, each with its reason. Nothing else in the crate repeats one.
//!
//! Sizes are bytes. `config.example.toml` shows the same values; a test compares the two (CFG-3).
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::bridge::plan::MAX_FRAME;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const MIB: usize = 1024 * 1024;

/// Loopback: without client keys the bridge lends nobody but this machine its accounts.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8787);
/// Far above the largest body that agents send (about 20 MiB with images), far below what would hurt a server.
pub const DEFAULT_MAX_BODY: usize = 128 * MIB;
/// Eight of the largest bodies at once, or a thousand usual ones.
pub const DEFAULT_BODY_BUDGET: usize = 1024 * MIB;
/// A whole long answer fits, so a client may pause through one; more would only hide that it stopped reading.
pub const DEFAULT_CLIENT_BUFFER: usize = 4 * MIB;
/// Most rejections arrive within seconds and become real statuses; proxies cut silent responses from 30 s on.
pub const DEFAULT_COMMIT_AFTER: Duration = Duration::from_secs(15);
/// A third of the shortest idle limit (30 s) that common proxies have.
pub const DEFAULT_HEARTBEAT: Duration = Duration::from_secs(10);
/// Longer than nearly every turn, so that a restart cuts none.
pub const DEFAULT_DRAIN: Duration = Duration::from_secs(10 * MINUTE);

/// Upstream's own API.
pub const DEFAULT_OPENAI_BASE_URL: &str = "https://api.openai.com/v1";
/// The backend of ChatGPT logins, which Codex uses.
pub const DEFAULT_CHATGPT_BASE_URL: &str = "https://chatgpt.com/backend-api/codex";
/// Whole frames of 256 KiB grow a socket's write buffer to 283 KiB for good; in fragments it stays at 34 KiB.
pub const DEFAULT_FRAGMENT: bool = true;

/// The longest that any provider may have: the plan says why.
pub const DEFAULT_MAX_FRAME: usize = MAX_FRAME;
/// Agents' first creates alone are some tens of KiB.
pub const SMALLEST_MAX_FRAME: usize = 64 * 1024;

/// Long enough for a person to think; below upstream's 60 minutes.
pub const DEFAULT_IDLE_TTL: Duration = Duration::from_secs(45 * MINUTE);
/// OpenAI and Azure close at 60 minutes: a turn begun at 45 still has a quarter of an hour.
pub const DEFAULT_MAX_AGE: Duration = Duration::from_secs(45 * MINUTE);
/// About 80 MiB of idle sessions.
pub const DEFAULT_MAX_SESSIONS: usize = 4096;
/// A parent, its title request and two sub-agents at a time.
pub const DEFAULT_MAX_PER_KEY: usize = 4;
/// A short turn ends within it; a longer wait costs more than direct HTTP does.
pub const DEFAULT_QUEUE_WAIT: Duration = Duration::from_secs(2);
/// More waiting turns for one conversation are a fault of the client, not work.
pub const DEFAULT_MAX_QUEUE: usize = 16;

/// A handshake per new conversation is cheap, and an idle socket is a promise that few upstreams like.
pub const DEFAULT_PREWARM: usize = 0;

/// A conversation that is picked up again the next day finds its account.
pub const DEFAULT_PIN_TTL: Duration = Duration::from_secs(24 * HOUR);
/// About 10 MiB.
pub const DEFAULT_MAX_PINS: usize = 100_000;
/// The whole history goes up once, and after it only what is new.
pub const DEFAULT_CONTINUATION: bool = true;
/// An account as likely as any other.
pub const DEFAULT_WEIGHT: u32 = 1;

/// DNS, TCP and TLS over a bad line, with retransmissions.
pub const DEFAULT_CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// A healthy upgrade takes under a second; after two, direct HTTP answers sooner.
pub const DEFAULT_HANDSHAKE_PATIENCE: Duration = Duration::from_secs(2);
/// Without progress, not in all: a slow uplink may take minutes for a large create.
pub const DEFAULT_WRITE_DEADLINE: Duration = Duration::from_secs(30);
/// Five seconds retired healthy sessions under normal queueing; a minute does not.
pub const DEFAULT_RESPONSE_CREATED_DEADLINE: Duration = Duration::from_secs(MINUTE);
/// Models have been silent for 8.5 minutes and come back.
pub const DEFAULT_IDLE_DEADLINE: Duration = Duration::from_secs(15 * MINUTE);
/// The longest turns that people report take about an hour.
pub const DEFAULT_REQUEST_DEADLINE: Duration = Duration::from_secs(2 * HOUR);
/// Below the 30 s after which common middleboxes forget a connection.
pub const DEFAULT_PING_INTERVAL: Duration = Duration::from_secs(25);
/// Longer than a ping interval: a socket that answers its pings is reused without a question.
pub const DEFAULT_REUSE_CHECK_AFTER: Duration = Duration::from_secs(30);
/// Several round trips around the world; a new socket costs about as much.
pub const DEFAULT_PONG_DEADLINE: Duration = Duration::from_secs(1);
/// A client that takes no byte for two minutes with data waiting has gone or hangs.
pub const DEFAULT_SLOW_CLIENT: Duration = Duration::from_secs(2 * MINUTE);

/// As for `response.created`: headers come when upstream has taken the request.
pub const DEFAULT_FIRST_BYTE: Duration = Duration::from_secs(MINUTE);
/// As for `response.created`, which is the first event.
pub const DEFAULT_FIRST_EVENT: Duration = Duration::from_secs(MINUTE);
/// As the idle deadline of a session: it is the same model at work.
pub const DEFAULT_BETWEEN_EVENTS: Duration = Duration::from_secs(15 * MINUTE);

/// Long enough for a sick path to mend, short enough to lose little of the sessions' speed.
pub const DEFAULT_QUARANTINE_WINDOW: Duration = Duration::from_secs(MINUTE);
/// After four doublings a key asks again only every ten minutes.
pub const DEFAULT_QUARANTINE_MAX_WINDOW: Duration = Duration::from_secs(10 * MINUTE);
/// As many as there are sessions.
pub const DEFAULT_QUARANTINE_MAX_KEYS: usize = 4096;

/// Thirty days of a busy team; about 100 MiB in memory.
pub const DEFAULT_MAX_OWNERS: usize = 1_000_000;

/// A week: an incident is looked into within days, and a week's load has its quiet and its busy hours.
pub const DEFAULT_JOURNAL_KEEP: Duration = Duration::from_secs(7 * 24 * HOUR);
/// A week at a hundred turns a minute; about 170 MB on disk.
pub const DEFAULT_JOURNAL_MAX: usize = 1_000_000;

/// No duration may be longer: a month is beyond every purpose here, and `M` (months) for `m` is a common slip.
pub const LONGEST: Duration = Duration::from_secs(30 * 24 * HOUR);
/// No duration but zero may be shorter: timers count in milliseconds.
pub const SHORTEST: Duration = Duration::from_millis(1);
/// Codex gives up 300 s after the last data event; 20 s are left for its own network.
pub const CODEX_PATIENCE: Duration = Duration::from_secs(280);
/// Common proxies cut a connection that was quiet for longer.
pub const LONGEST_HEARTBEAT: Duration = Duration::from_secs(30);
/// Common proxies and load balancers cut a response without a status line after this.
pub const LONGEST_COMMIT_AFTER: Duration = Duration::from_secs(MINUTE);
/// Names become metric labels and log fields.
pub const LONGEST_NAME: usize = 32;
