//! What the simulated upstream has seen, as tests and operators read it: creates, sockets, handshakes, and the
//! transcript of each turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::behaviour::Transport;
use super::score::Conclusion;

/// A snapshot of all that was seen.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Ledger {
    /// All creates, by both transports.
    pub creates_total: u64,
    /// HTTP requests, creates among them, without those to `/__sim/`.
    pub http_requests: u64,
    /// Upgrades that were refused, or answered wrongly, or never.
    pub handshakes_refused: u64,
    /// Upgrades that succeeded.
    pub sockets_opened: u64,
    /// Sockets that are open now.
    pub sockets_open: u64,
    /// The most sockets that were open at a time.
    pub sockets_most: u64,
    /// Creates by conversation.
    pub conversations: BTreeMap<String, Conversation>,
    /// The latest creates, oldest first.
    pub creates: Vec<Create>,
    /// The latest sockets, oldest first.
    pub sockets: Vec<Socket>,
    /// The latest HTTP requests, oldest first.
    pub requests: Vec<Request>,
}

impl Ledger {
    /// The creates of one conversation, oldest first.
    pub fn creates_of<'a>(&'a self, conversation: &'a str) -> impl Iterator<Item = &'a Create> {
        self.creates
            .iter()
            .filter(move |create| create.conversation == conversation)
    }

    /// The counters of one conversation; zero for one that was never seen.
    pub fn conversation(&self, name: &str) -> Conversation {
        self.conversations.get(name).copied().unwrap_or_default()
    }
}

/// The creates of one conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Conversation {
    /// By frame.
    pub websocket: u64,
    /// By POST.
    pub http: u64,
}

impl Conversation {
    /// By both transports.
    pub fn total(&self) -> u64 {
        self.websocket + self.http
    }
}

/// One create.
#[derive(Debug, Clone, Serialize)]
pub struct Create {
    /// Counted from 1 over all conversations.
    pub number: u64,
    /// Whose it is.
    pub conversation: String,
    /// How it came.
    pub transport: Transport,
    /// On which socket.
    pub socket: Option<u64>,
    /// The request path, of the handshake or of the POST.
    pub path: String,
    /// The model.
    pub model: String,
    /// The id of the response, also where it was never sent.
    pub response_id: String,
    /// The anchor.
    pub previous_response_id: Option<String>,
    /// Whether the response is to be kept.
    pub store: bool,
    /// False for a warm-up.
    pub generate: bool,
    /// Bytes of the frame's payload or of the body.
    pub bytes: usize,
    /// In how many WebSocket frames it came.
    pub fragments: u32,
    /// How many items this create brought itself.
    pub new_items: usize,
    /// All that the model saw: earlier items from memory or storage, then the new ones.
    pub transcript: Vec<Arc<Value>>,
    /// What the model says to it, finished items, whether or not they all were sent.
    pub output: Vec<Arc<Value>>,
    /// What the simulator was asked to do.
    pub behaviour: String,
    /// How it came out.
    pub conclusion: Conclusion,
    /// Milliseconds from the simulator's start to the create.
    pub at_ms: u64,
    /// Milliseconds from the create to its conclusion.
    pub took_ms: Option<u64>,
    /// Headers of the handshake or of the POST, credentials replaced by a short hash.
    pub headers: BTreeMap<String, String>,
    /// The names of the fields of `client_metadata`.
    pub client_metadata: Vec<String>,
    /// The trace that it says it belongs to: on a socket in `client_metadata`, as Codex spells it.
    pub traceparent: Option<String>,
    /// The names of the body's fields.
    pub body_keys: Vec<String>,
    /// A short hash of what else the model is told: instructions, tools, and every other field of the body, without
    /// those that say how it travels or who sends it.
    pub settings: String,
}

impl Create {
    /// The turn is over. This is the operator's line: who, how, what was asked for, and what came of it.
    pub(super) fn conclude(&mut self, conclusion: Conclusion, now: u64) {
        let took = now.saturating_sub(self.at_ms);
        self.conclusion = conclusion;
        self.took_ms = Some(took);
        let transport = if self.transport == Transport::Http {
            "http"
        } else {
            "ws  "
        };
        tracing::info!(
            target: "simulator",
            "{transport} [{}] {} items ({} new), {} -> {conclusion:?} in {took} ms",
            self.conversation, self.transcript.len(), self.new_items, self.behaviour,
        );
    }
}

/// One socket.
#[derive(Debug, Clone, Serialize)]
pub struct Socket {
    /// Counted from 1.
    pub number: u64,
    /// Headers of its handshake, credentials replaced by a short hash.
    pub headers: BTreeMap<String, String>,
    /// Creates that it has brought.
    pub creates: u64,
    /// Pings that the client sent.
    pub pings: u64,
    /// How it ended; `None` while it is open.
    pub end: Option<SocketEnd>,
    /// Milliseconds from the simulator's start to the handshake.
    pub at_ms: u64,
    /// Milliseconds from the simulator's start to the end.
    pub ended_ms: Option<u64>,
}

/// How a socket ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketEnd {
    /// The client sent a close frame, with this code.
    ClientClose(Option<u16>),
    /// The client ended the stream without a close frame.
    ClientFin,
    /// The client reset the connection.
    ClientReset,
    /// The simulator ended it.
    Simulator,
}

/// One HTTP request.
#[derive(Debug, Clone, Serialize)]
pub struct Request {
    /// `GET`, `POST` …
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Bytes of the body.
    pub bytes: usize,
    /// Headers, credentials replaced by a short hash.
    pub headers: BTreeMap<String, String>,
}
