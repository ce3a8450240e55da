//! The accept loop: sockets in, one hyper HTTP/1.1 connection each, all of them tracked and drained (EDGE-1 to EDGE-7).
//!
//! Of our own because `axum::serve` leaves Nagle on (40 ms per small event), sets no header time-out and does not
//! survive a full file table. What hyper cannot do by itself lies in the rooms below: `socket` keeps the deadlines of
//! a connection, `phase` tells it what the connection is waiting for, `plain` writes answers where no request exists.

mod phase;
mod plain;
mod socket;

pub use phase::Unending;

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::event::Events;
use crate::refusal::Kind;

/// A request head arrives in one packet; ten seconds allow for a very bad line and bound a slow attacker.
const DEFAULT_HEADER: Duration = Duration::from_secs(10);
/// Above the 60 s of common client pools, so that it is the client that closes and no request meets a closing socket.
const DEFAULT_IDLE: Duration = Duration::from_secs(75);
/// The design's bound on a client that takes no byte (INV-7).
const DEFAULT_WRITE_STALL: Duration = Duration::from_secs(120);
/// Long enough for an answer to reach a client that is still sending, before unread bytes turn the close into a reset.
const DEFAULT_LINGER: Duration = Duration::from_secs(2);
/// Room for the largest heads that agents send (Codex: some KiB); also what a connection buffers in each direction.
const DEFAULT_BUFFER: usize = 64 * 1024;
/// hyper's own minimum.
const LEAST_BUFFER: usize = 8 * 1024;
/// What the kernel queues while the loop is busy: a burst of agents must not see refused connections.
const BACKLOG: u32 = 4096;
/// Connections beyond the cap that may be told so at one time; the rest wait to be accepted. Fewer where few are allowed,
/// since each takes a file.
const TURNED_AWAY: usize = 64;

/// The bounds of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For a whole request head: from the accept, or from its first byte on a kept connection.
    pub header: Duration,
    /// Between two requests, from the last byte of one answer to the first of the next request.
    pub idle: Duration,
    /// Without the client taking a byte, while bytes wait for it.
    pub write_stall: Duration,
    /// How long a closed connection still swallows what its client sends.
    pub linger: Duration,
    /// Bytes buffered per direction, and so the bound of a request head (431 beyond it). At least 8 KiB.
    pub buffer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            header: DEFAULT_HEADER,
            idle: DEFAULT_IDLE,
            write_stall: DEFAULT_WRITE_STALL,
            linger: DEFAULT_LINGER,
            buffer: DEFAULT_BUFFER,
        }
    }
}

/// What a listener accepts from; a seam for the tests of the back-off.
pub trait Accept: Send {
    /// Waits for the next connection.
    fn accept(&self) -> impl Future<Output = io::Result<TcpStream>> + Send;
}

impl Accept for TcpListener {
    async fn accept(&self) -> io::Result<TcpStream> {
        TcpListener::accept(self).await.map(|(stream, _)| stream)
    }
}

/// Listens on `address` with a backlog that bears a burst. Must be called inside a runtime.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// What all listeners of a bridge share.
#[derive(Clone)]
pub struct Doors {
    pub limits: Limits,
    /// One permit per connection that may be open; one more is answered 503.
    pub room: Arc<Semaphore>,
    /// Ends the accepting, and every connection after the answer it is at.
    pub shutdown: CancellationToken,
    /// Knows when the last connection is gone.
    pub tracker: TaskTracker,
    pub events: Events,
}

impl Doors {
    /// Accepts until the shutdown, then closes the listener and returns.
    ///
    /// A client that goes away, by FIN or by reset, drops the service's future or the answer's body at once, unless it
    /// has sent bytes beyond its request: then the next write finds out.
    pub async fn serve<S, B>(self, listener: impl Accept, service: S)
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send + 'static,
        B: Body + Send + Unpin + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let lobby = TURNED_AWAY.min(self.room.available_permits() / 4).max(1);
        let lobby = Arc::new(Semaphore::new(lobby));
        let mut full = FileTable::default();
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok(stream) => stream,
                Err(error) if of_one_connection(&error) => continue,
                Err(error) => {
                    let pause = full.pause(&error, Instant::now());
                    // A shutdown meanwhile ends the sleep, and the loop with its next turn.
                    let _ = tokio::time::timeout(pause, self.shutdown.cancelled()).await;
                    continue;
                }
            };
            full.failures = 0;
            self.tune(&stream);
            // With the lobby full, this one waits, and those behind it in the kernel's queue: nobody is cut without a word.
            let place = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return,
                permit = self.room.clone().acquire_owned() => permit.map(Place::Inside),
                permit = lobby.clone().acquire_owned() => permit.map(Place::Lobby),
            };
            match place {
                Ok(Place::Inside(permit)) => {
                    let (service, limits, events) = (service.clone(), self.limits, self.events.clone());
                    let connection = connection(stream, service, limits, events, self.shutdown.child_token());
                    self.tracker.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Ok(Place::Lobby(permit)) => {
                    let (linger, events) = (self.limits.linger, self.events.clone());
                    self.tracker.spawn(async move {
                        plain::turn_away(stream, Kind::TooManyConnections.into(), linger, &events).await;
                        drop(permit);
                    });
                }
                // Neither is ever closed.
                Err(_) => return,
            }
        }
    }

    /// Sets what the kernel must know of a connection. A failure means that the peer has gone already, which the first
    /// read will tell.
    fn tune(&self, stream: &TcpStream) {
        // An event is a packet of its own; with Nagle on, each but the first waits for the client's delayed ACK.
        let _ = stream.set_nodelay(true);
        // A client that vanished without a FIN acknowledges nothing. Its buffer never fills with small events, so the
        // socket's own write deadline would not see it.
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(self.limits.write_stall));
    }
}

/// Where an accepted connection goes.
enum Place {
    Inside(OwnedSemaphorePermit),
    /// To be told that there is no room.
    Lobby(OwnedSemaphorePermit),
}

/// One connection, to its end.
async fn connection<T, S, B>(
    stream: T,
    service: S,
    limits: Limits,
    events: Events,
    shutdown: CancellationToken,
) where
    T: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S::Future: 'static,
    B: Body + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let phase = phase::Phase::default();
    let leaving = phase.clone();
    let socket = TokioIo::new(socket::Socket::new(stream, phase.clone(), limits, events));
    let mut connection = pin!(
        http1::Builder::new()
            // hyper's header time-out runs while a kept connection is idle too, so it cannot tell 10 s from 75 s; the
            // socket keeps both.
            .header_read_timeout(None)
            .max_buf_size(limits.buffer.max(LEAST_BUFFER))
            .max_header_size(limits.buffer)
            .serve_connection(socket, phase::Phased::new(service, phase))
    );
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            leaving.leave();
            connection.as_mut().graceful_shutdown();
            if leaving.is_unending() {
                // Its body has ended by now, or ends at once. Who takes nothing must not hold the process up.
                match tokio::time::timeout(limits.linger, connection).await {
                    Ok(ended) => ended,
                    Err(_elapsed) => return,
                }
            } else {
                connection.await
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}

/// Whether an accept failed because of the connection that it would have returned, rather than of this process.
fn of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

/// Patience with a full file table (EMFILE, ENFILE) or exhausted memory: accept fails at once and would be tried in a
/// tight loop, which takes the processor from the very turns whose end frees descriptors.
#[derive(Default)]
struct FileTable {
    failures: u32,
    logged: Option<Instant>,
}

impl FileTable {
    const FIRST: Duration = Duration::from_millis(10);
    const LONGEST: Duration = Duration::from_secs(1);

    /// How long to wait before the next accept; logs at most once a second.
    fn pause(&mut self, error: &io::Error, now: Instant) -> Duration {
        let pause = Self::FIRST
            .saturating_mul(1 << self.failures.min(16))
            .min(Self::LONGEST);
        self.failures = self.failures.saturating_add(1);
        if self
            .logged
            .is_none_or(|last| now.duration_since(last) >= Self::LONGEST)
        {
            self.logged = Some(now);
            tracing::error!(%error, failures = self.failures, "accept fails; raise the file limit (ulimit -n)");
        }
        pause
    }
}

#[cfg(test)]
mod tests;
