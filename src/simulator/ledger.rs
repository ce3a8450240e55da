//! What the simulated upstream has seen: creates, sockets, handshakes, and the transcript of each turn.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::behaviour::Transport;
use super::score::Conclusion;
use super::transcript::Transcript;

/// How many creates, sockets, and HTTP requests are kept in full; older ones are only counted.
pub const KEPT: usize = 20_000;

/// How many bytes of transcripts are kept; beyond it the oldest are emptied.
pub const KEPT_TRANSCRIPT_BYTES: usize = 512 << 20;

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
    /// The names of the body's fields.
    pub body_keys: Vec<String>,
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

/// The place where the ledger is kept. A std mutex: nothing is awaited while it is held.
#[derive(Debug)]
pub struct Book {
    pages: Mutex<Pages>,
    changes: watch::Sender<u64>,
    started: Instant,
}

#[derive(Debug, Default)]
struct Pages {
    ledger: Ledger,
    transcript_bytes: usize,
    /// How many of the oldest creates have lost their transcripts.
    emptied: usize,
    // Numbers go on after a reset, so that an open socket and a new one never share one.
    last_create: u64,
    last_socket: u64,
}

impl Book {
    /// An empty ledger whose times count from `started`.
    pub fn new(started: Instant) -> Book {
        Book {
            pages: Mutex::default(),
            changes: watch::channel(0).0,
            started,
        }
    }

    /// A copy of all pages.
    pub fn snapshot(&self) -> Ledger {
        self.lock().ledger.clone()
    }

    /// Looks at the pages without copying them.
    pub fn look<T>(&self, look: impl FnOnce(&Ledger) -> T) -> T {
        look(&self.lock().ledger)
    }

    /// Told of every change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Forgets everything but the sockets that are open.
    pub fn reset(&self) {
        self.write(|pages, _| {
            let mut sockets = std::mem::take(&mut pages.ledger.sockets);
            sockets.retain(|socket| socket.end.is_none());
            let sockets_open = pages.ledger.sockets_open;
            pages.ledger = Ledger {
                sockets,
                sockets_open,
                sockets_most: sockets_open,
                ..Ledger::default()
            };
            (pages.transcript_bytes, pages.emptied) = (0, 0);
        });
    }

    /// An upgrade is about to succeed; returns the socket's number, or `None` where `ceiling` sockets are open
    /// already. One step, so that two upgrades cannot share the last place.
    pub fn socket_opened(&self, headers: BTreeMap<String, String>, ceiling: Option<u64>) -> Option<u64> {
        self.write(|pages, at_ms| {
            let ledger = &mut pages.ledger;
            if ceiling.is_some_and(|ceiling| ledger.sockets_open >= ceiling) {
                return None;
            }
            ledger.sockets_opened += 1;
            ledger.sockets_open += 1;
            ledger.sockets_most = ledger.sockets_most.max(ledger.sockets_open);
            pages.last_socket += 1;
            let number = pages.last_socket;
            let socket = Socket {
                number,
                headers,
                creates: 0,
                pings: 0,
                end: None,
                at_ms,
                ended_ms: None,
            };
            keep(&mut ledger.sockets, socket);
            Some(number)
        })
    }

    /// A socket ended. The turn that ran on it, if any, ends with it.
    pub fn socket_ended(&self, number: u64, end: SocketEnd) {
        self.write(|pages, now| {
            let ledger = &mut pages.ledger;
            ledger.sockets_open = ledger.sockets_open.saturating_sub(1);
            if let Some(socket) = ledger.sockets.iter_mut().rfind(|socket| socket.number == number) {
                socket.end = Some(end);
                socket.ended_ms = Some(now);
            }
            let gone = if end == SocketEnd::Simulator {
                Conclusion::Broken
            } else {
                Conclusion::ClientGone
            };
            let on_it = ledger
                .creates
                .iter_mut()
                .filter(|create| create.socket == Some(number));
            for create in on_it.filter(|create| create.conclusion == Conclusion::Running) {
                create.conclusion = gone;
                create.took_ms = Some(now.saturating_sub(create.at_ms));
            }
        });
    }

    /// The client sent a ping.
    pub fn pinged(&self, number: u64) {
        self.write(|pages, _| {
            if let Some(socket) = pages
                .ledger
                .sockets
                .iter_mut()
                .rfind(|socket| socket.number == number)
            {
                socket.pings += 1;
            }
        });
    }

    /// An upgrade was not granted.
    pub fn handshake_refused(&self) {
        self.write(|pages, _| pages.ledger.handshakes_refused += 1);
    }

    /// An HTTP request came.
    pub fn requested(&self, request: Request) {
        self.write(|pages, _| {
            pages.ledger.http_requests += 1;
            keep(&mut pages.ledger.requests, request);
        });
    }

    /// A create came; returns its number. `create.number` and `create.at_ms` are filled in here.
    pub fn created(&self, create: Create, transcript: &Transcript) -> u64 {
        let bytes: usize = transcript.0.iter().map(|item| item.to_string().len()).sum();
        self.write(|pages, at_ms| {
            let ledger = &mut pages.ledger;
            ledger.creates_total += 1;
            pages.last_create += 1;
            let number = pages.last_create;
            let conversation = ledger
                .conversations
                .entry(create.conversation.clone())
                .or_default();
            match create.transport {
                Transport::Websocket => conversation.websocket += 1,
                Transport::Http => conversation.http += 1,
            }
            let on_socket = |socket: &&mut Socket| Some(socket.number) == create.socket;
            if let Some(socket) = ledger.sockets.iter_mut().rfind(on_socket) {
                socket.creates += 1;
            }
            if ledger.creates.len() == KEPT {
                pages.emptied = pages.emptied.saturating_sub(1);
            }
            keep(
                &mut ledger.creates,
                Create {
                    number,
                    at_ms,
                    ..create
                },
            );
            pages.transcript_bytes += bytes;
            pages.forget_transcripts();
            number
        })
    }

    /// A create came out. The first conclusion counts.
    pub fn concluded(&self, number: u64, conclusion: Conclusion) {
        self.write(|pages, now| {
            let create = pages
                .ledger
                .creates
                .iter_mut()
                .rfind(|create| create.number == number);
            if let Some(create) = create.filter(|create| create.conclusion == Conclusion::Running) {
                create.conclusion = conclusion;
                create.took_ms = Some(now.saturating_sub(create.at_ms));
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write<T>(&self, change: impl FnOnce(&mut Pages, u64) -> T) -> T {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let result = change(&mut self.lock(), now);
        self.changes.send_modify(|changes| *changes += 1);
        result
    }
}

impl Pages {
    fn forget_transcripts(&mut self) {
        while self.transcript_bytes > KEPT_TRANSCRIPT_BYTES && self.emptied + 1 < self.ledger.creates.len() {
            let items = std::mem::take(&mut self.ledger.creates[self.emptied].transcript);
            let bytes: usize = items.iter().map(|item| item.to_string().len()).sum();
            self.transcript_bytes = self.transcript_bytes.saturating_sub(bytes);
            self.emptied += 1;
        }
    }
}

fn keep<T>(list: &mut Vec<T>, entry: T) {
    if list.len() == KEPT {
        list.remove(0);
    }
    list.push(entry);
}

#[cfg(test)]
mod tests;
