//! What views are made of. Times are in milliseconds, `left` is what is left, keys are short hashes as in the log.

use schemars::JsonSchema;
use serde::Serialize;

/// A running turn.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TurnView {
    pub request_id: String,
    /// The configured client, where there are any.
    pub client: Option<String>,
    /// 64 safe characters at most.
    pub model: String,
    /// `provider/account`.
    pub account: String,
    pub key: String,
    pub key_kind: Option<&'static str>,
    pub stream: bool,
    /// `planned`, `queued`, `connecting`, `sent` or `accepted`.
    pub phase: &'static str,
    /// `websocket` or `http`, once that is known.
    pub transport: Option<&'static str>,
    pub session: Option<u64>,
    pub attempt: u32,
    pub age_ms: u64,
    /// Since the phase began.
    pub phase_ms: u64,
}

/// A session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SessionView {
    pub session: u64,
    /// `provider/account`.
    pub account: String,
    /// Absent for one that is kept ready and bound to no key yet.
    pub key: Option<String>,
    pub key_kind: Option<&'static str>,
    /// `idle`, `busy` or `closing`.
    pub state: &'static str,
    pub age_ms: u64,
    pub idle_ms: Option<u64>,
    /// Turns that it was given, the running one included.
    pub turns: u32,
    /// Its key is in quarantine.
    pub quarantined: bool,
}

/// A key in quarantine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct QuarantineView {
    pub key: String,
    /// Lost by a restart.
    pub key_kind: Option<&'static str>,
    /// `provider/account`; of several, lost by a restart until a turn or a session of the key is there.
    pub account: Option<String>,
    /// For how long it has been in quarantine; lost by a restart.
    pub since_ms: Option<u64>,
    /// `open`, `due` (the next turn probes), `probing`, or `cleared` (its next window would be longer).
    pub state: &'static str,
    /// Of the window.
    pub left_ms: u64,
    pub level: u32,
    /// Until the level is forgotten.
    pub level_left_ms: u64,
    pub generation: u64,
}

/// Something that holds for a while.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Until {
    pub value: usize,
    pub left_ms: u64,
}

/// The WebSocket transport of one account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BreakerView {
    pub provider: &'static str,
    pub account: &'static str,
    /// `closed` (sockets may be opened), `open` or `half_open` (a turn is probing).
    pub state: &'static str,
    /// Until the next turn may probe, while it is open.
    pub left_ms: Option<u64>,
    /// Conversations that went silent in the last 60 s: the third makes the transport sick.
    pub silent_keys: usize,
    /// Handshakes that failed in the last 60 s: the third makes it sick, too.
    pub failed_handshakes: usize,
    /// The upstream said that it has no WebSocket.
    pub unsupported_left_ms: Option<u64>,
    /// As many sockets as the upstream let us have.
    pub socket_ceiling: Option<Until>,
    /// Frames of so many bytes were refused.
    pub refused_frame: Option<Until>,
    /// Handshakes in flight.
    pub handshakes: usize,
    pub sockets: usize,
}

/// Why an account gets no new conversations.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Excluded {
    /// `unreachable`, `credential`, `rate_limit` or `quota`.
    pub reason: &'static str,
    pub left_ms: u64,
}

/// An account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AccountView {
    pub provider: &'static str,
    pub account: &'static str,
    pub weight: u32,
    /// Turns at work.
    pub in_flight: usize,
    pub sessions: usize,
    pub excluded: Option<Excluded>,
    /// `ok`, `callers` (it passes theirs on), `rejected` by the upstream, until a turn is accepted or it changes, or what is
    /// wrong with its file.
    pub credential: &'static str,
    pub credential_ok: bool,
    /// Requests in a row for which no connection could be made; zero as soon as it answers.
    pub failed_connects: u32,
}

/// Turns of a key that wait for a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct QueueView {
    pub key: String,
    pub key_kind: Option<&'static str>,
    /// `provider/account`.
    pub account: Option<String>,
    pub waiting: usize,
    /// Sessions that are being opened for the key.
    pub opening: usize,
    pub longest_ms: u64,
}

/// How long upstream took from the flushed create to `response.created`, since the process began.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LatencyView {
    /// Upper bounds of the buckets in seconds, inclusive.
    pub bounds_s: Vec<f64>,
    pub websocket: OfTransport,
    pub http: OfTransport,
    /// `watchdog.response_created_deadline`.
    pub deadline_ms: u64,
}

/// A distribution.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OfTransport {
    /// One for each bound, and one beyond the last.
    pub counts: Vec<u64>,
    pub total: u64,
}

impl OfTransport {
    /// Of so many in each bucket.
    pub fn of(counts: &[u64]) -> OfTransport {
        OfTransport {
            counts: counts.to_vec(),
            total: counts.iter().sum(),
        }
    }
}

/// The numbers that fit on one line.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Overview {
    pub turns: usize,
    pub waiting: usize,
    pub sessions_idle: usize,
    pub sessions_busy: usize,
    pub sessions_opening: usize,
    /// Sessions that there may be: `session.max_sessions`, or less where fewer files may be open.
    pub max_sessions: usize,
    /// Of one key: `session.max_per_key`.
    pub max_per_key: usize,
    /// Turns of one key that may wait for a session: `session.max_queue`.
    pub max_queue: usize,
    pub quarantined_keys: usize,
    pub sick_transports: usize,
    pub accounts: usize,
    pub unavailable_accounts: usize,
    pub owners: usize,
    pub held_bytes: usize,
    /// No new turns are taken.
    pub draining: bool,
    /// And the process ends when those that run have ended.
    pub shutting_down: bool,
}

/// Who made a response.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OwnerView {
    /// The configured client that it was made for; absent where callers have credentials of their own.
    pub client: Option<String>,
    /// `provider/account`.
    pub account: String,
    pub session: Option<u64>,
    /// `idle`, `busy` or `gone`; absent for one that was made by direct HTTP, or before a restart.
    pub session_state: Option<&'static str>,
    pub session_idle_ms: Option<u64>,
    pub key: Option<String>,
    /// Whether the upstream keeps it; otherwise it lives with its session.
    pub stored: Option<bool>,
    pub expires_in_s: Option<u64>,
    /// `owners` (what requests are routed by) or `journal` (what was written down).
    pub known_by: &'static str,
}
