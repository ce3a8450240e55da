//! Where the ledger is kept: every entry is made here, under one lock, and every list is bounded.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;

use super::behaviour::Transport;
use super::ledger::{Create, Ledger, Request, Socket, SocketEnd};
use super::score::Conclusion;

/// How many creates, sockets, and HTTP requests are kept in full; older ones are only counted.
pub const KEPT: usize = 20_000;

/// How many bytes of transcripts and output are kept; beyond it the oldest are emptied.
pub const KEPT_TRANSCRIPT_BYTES: usize = 128 << 20;

/// Where creates are counted once [`KEPT`] conversations have been seen.
const OTHERS: &str = "(others)";

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
                create.conclude(gone, now);
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
    pub fn created(&self, create: Create) -> u64 {
        let bytes = item_bytes(&create);
        self.write(|pages, at_ms| {
            let ledger = &mut pages.ledger;
            ledger.creates_total += 1;
            pages.last_create += 1;
            let number = pages.last_create;
            let full = ledger.conversations.len() >= KEPT;
            let known = ledger.conversations.contains_key(&create.conversation);
            let name = if full && !known {
                OTHERS
            } else {
                &create.conversation
            };
            let conversation = ledger.conversations.entry(name.to_owned()).or_default();
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
                create.conclude(conclusion, now);
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
            let create = &mut self.ledger.creates[self.emptied];
            let bytes = item_bytes(create);
            (create.transcript, create.output) = Default::default();
            self.transcript_bytes = self.transcript_bytes.saturating_sub(bytes);
            self.emptied += 1;
        }
    }
}

/// Bytes of a create's items as JSON.
fn item_bytes(create: &Create) -> usize {
    let items = create.transcript.iter().chain(&create.output);
    items.map(|item| item.to_string().len()).sum()
}

fn keep<T>(list: &mut Vec<T>, entry: T) {
    if list.len() == KEPT {
        list.remove(0);
    }
    list.push(entry);
}

#[cfg(test)]
mod tests;
