//! The two ends of one client's reply: the turn feeds it, the HTTP connection takes from it (INV-2, INV-7).
//!
//! Bytes wait in one buffer between them, up to `server.client_buffer`. Whatever was appended before the connection looks
//! goes out as one chunk, so frames that are ready together go out together. What fills the buffer is still taken, or no
//! event could be larger than it: the turn then stops reading until there is room again, for [`GRACE`] at most.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::task::AtomicWaker;
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::{Body, Frame};
use tokio::sync::oneshot;

use super::budget::Held;
use super::call::{Reply, ReplyBody, refuse};
use crate::refusal::Kind;
use crate::wire::failure::{self, Subject};
use crate::wire::{head, sse};

/// How long a buffer may be full before its client counts as slow. A client that reads is only not yet scheduled, and
/// drains it within milliseconds; upstream's pings can wait so long.
const GRACE: Duration = Duration::from_secs(1);
/// So many encoded bytes go to the connection before more events are read.
pub const HANDFUL: usize = 64 * 1024;
/// What is kept back of a buffer's memory between two chunks.
const KEEP: usize = 16 * 1024;

/// Between the feed and the stream. A std mutex: it is never held across an await, and only for a copy of bytes.
struct Between {
    buffer: Mutex<Buffer>,
    /// Wakes the turn when the client leaves, or takes something of a full buffer.
    turn: AtomicWaker,
}

struct Buffer {
    bytes: BytesMut,
    /// The buffer's bytes in the budget.
    held: Held,
    /// Since when bytes wait without any being taken.
    waiting_since: Option<Instant>,
    /// Since when more wait than may.
    full_since: Option<Instant>,
    end: Option<Ending>,
    /// Wakes the connection.
    taker: Option<Waker>,
    left: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Clean,
    Torn,
}

impl Between {
    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn's end: encodes, and knows what the client has been told. Dropped before [`Feed::end`] (a panic), it ends the
/// reply with a failure.
pub struct Feed {
    between: Arc<Between>,
    reply: Option<oneshot::Sender<Reply>>,
    stream: Option<ClientStream>,
    out: BytesMut,
    cap: usize,
    model: Box<str>,
    /// The id in `response.created`, once sent on.
    response_id: Option<Box<str>>,
    created_sent: bool,
    /// The last event sent on that has a sequence number: telemetry in between has none.
    last: Bytes,
    flushed: bool,
    /// Committed with these headers; sent together with the first bytes.
    begun: Option<HeaderMap>,
    ended: bool,
}

/// The call's end: waits for the reply.
pub struct Waiting {
    between: Arc<Between>,
    reply: oneshot::Receiver<Reply>,
}

/// The body of a streamed reply.
struct ClientStream(Arc<Between>);

/// Makes the two ends. `cap` bounds the bytes that wait, `held` counts them.
pub fn pair(model: &str, cap: usize, held: Held) -> (Feed, Waiting) {
    let buffer = Buffer {
        bytes: BytesMut::new(),
        held,
        waiting_since: None,
        full_since: None,
        end: None,
        taker: None,
        left: false,
    };
    let between = Arc::new(Between {
        buffer: Mutex::new(buffer),
        turn: AtomicWaker::new(),
    });
    let (sender, receiver) = oneshot::channel();
    let feed = Feed {
        between: between.clone(),
        reply: Some(sender),
        stream: Some(ClientStream(between.clone())),
        out: BytesMut::new(),
        cap,
        model: model.into(),
        response_id: None,
        created_sent: false,
        last: Bytes::new(),
        flushed: false,
        begun: None,
        ended: false,
    };
    (
        feed,
        Waiting {
            between,
            reply: receiver,
        },
    )
}

impl Feed {
    /// Sends the status line and `headers`, together with the first bytes: at the next flush.
    pub fn commit(&mut self, headers: HeaderMap) {
        self.begun = Some(headers);
    }

    fn begin(&mut self, headers: HeaderMap) {
        let Some(stream) = self.stream.take() else { return };
        let mut reply = Response::new(ReplyBody::Stream(Box::pin(stream)));
        *reply.headers_mut() = headers;
        let fixed = [
            (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
            (header::CACHE_CONTROL, "no-cache, no-transform"),
            (header::HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        for (name, value) in fixed {
            reply.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        self.send(reply);
    }

    /// Answers with a whole reply instead.
    pub fn answer(&mut self, reply: Reply) {
        self.stream = None;
        self.ended = true;
        self.send(reply);
    }

    fn send(&mut self, reply: Reply) {
        if let Some(sender) = self.reply.take() {
            // The receiver is gone when the client is: `gone` tells the turn.
            let _ = sender.send(reply);
        }
    }

    /// `response.created` with this id is about to be sent on.
    pub fn accepted(&mut self, response_id: Option<&str>) {
        self.response_id = response_id.map(Into::into);
        self.created_sent = true;
    }

    /// Sends an event on, as it came.
    pub fn event(&mut self, name: &[u8], data: Bytes) {
        sse::encode::event(&mut self.out, name, &data);
        if head::is_numbered(&data) {
            self.last = data;
        }
    }

    /// Sends a heartbeat that is no data.
    pub fn comment(&mut self) {
        sse::encode::comment(&mut self.out);
    }

    /// Sends a heartbeat that counts as data with Codex.
    pub fn keepalive(&mut self) {
        let last = head::sequence_number(&self.last).unwrap_or(0);
        sse::encode::event(&mut self.out, "keepalive", &failure::keepalive(last));
    }

    /// Ends a committed stream with `response.failed`, after a `response.created` if none was sent.
    pub fn fail(&mut self, code: &str, message: &str) {
        let made_up = self
            .response_id
            .is_none()
            .then(|| format!("resp_bridge_{}", uuid::Uuid::now_v7().simple()));
        let response_id = made_up
            .as_deref()
            .or(self.response_id.as_deref())
            .unwrap_or_default();
        let of = Subject {
            response_id,
            model: &self.model,
            created_at: super::unix().as_secs(),
        };
        let next = head::sequence_number(&self.last).map_or(0, |last| last + 1);
        let first = u64::from(!self.created_sent);
        if !self.created_sent {
            sse::encode::event(&mut self.out, "response.created", &failure::created(of, next));
        }
        let failed = failure::failed(of, next + first, code, message);
        sse::encode::event(&mut self.out, "response.failed", &failed);
    }

    /// Encoded bytes that the connection has not been handed.
    pub fn pending(&self) -> usize {
        self.out.len()
    }

    /// Hands what was encoded to the connection. Afterwards the buffer may be [full](Self::full_since).
    pub fn flush(&mut self, now: Instant) {
        let begun = self.begun.take();
        if !self.out.is_empty() {
            self.hand_over(now);
        }
        if let Some(headers) = begun {
            self.begin(headers);
        }
    }

    fn hand_over(&mut self, now: Instant) {
        self.flushed = true;
        let taker = {
            let mut buffer = self.between.lock();
            if buffer.bytes.is_empty() {
                std::mem::swap(&mut buffer.bytes, &mut self.out);
                buffer.waiting_since = Some(now);
            } else {
                buffer.bytes.extend_from_slice(&self.out);
                self.out.clear();
            }
            let waiting = buffer.bytes.len();
            buffer.held.set(waiting);
            if waiting > self.cap {
                buffer.full_since.get_or_insert(now);
            }
            buffer.taker.take()
        };
        wake(taker);
    }

    /// Since when the buffer has been full: nothing more may be fed until there is [room](Self::room).
    pub fn full_since(&self) -> Option<Instant> {
        self.between.lock().full_since
    }

    /// Waits until a full buffer has room again. False: it had none for too long, the client is slow. Cancel-safe.
    pub async fn room(&self) -> bool {
        let Some(since) = self.full_since() else {
            return true;
        };
        let room = std::future::poll_fn(|cx| {
            self.between.turn.register(cx.waker());
            match self.full_since() {
                Some(_) => Poll::Pending,
                None => Poll::Ready(()),
            }
        });
        tokio::time::timeout_at((since + GRACE).into(), room)
            .await
            .is_ok()
    }

    /// Ends the stream after what was fed.
    pub fn end(&mut self, now: Instant) {
        self.flush(now);
        self.close(Ending::Clean);
    }

    /// Tears the connection.
    pub fn tear(&mut self) {
        self.reply = None;
        // What was encoded and not handed over is lost with the rest, or the end would hand it over.
        self.out = BytesMut::new();
        self.close(Ending::Torn);
    }

    fn close(&mut self, how: Ending) {
        self.ended = true;
        let taker = {
            let mut buffer = self.between.lock();
            buffer.end.get_or_insert(how);
            if how == Ending::Torn {
                buffer.bytes = BytesMut::new();
                buffer.held.set(0);
            }
            buffer.taker.take()
        };
        wake(taker);
    }

    /// Whether the status line of a stream has been sent.
    pub fn is_committed(&self) -> bool {
        self.stream.is_none() && self.reply.is_none()
    }

    /// True until the first bytes are handed over.
    pub fn is_fresh(&self) -> bool {
        !self.flushed
    }

    /// Since when bytes wait for the client without any being taken.
    pub fn waiting_since(&self) -> Option<Instant> {
        self.between.lock().waiting_since
    }

    /// Resolves when the client has left. Cancel-safe.
    pub fn gone(&self) -> impl Future<Output = ()> + '_ {
        std::future::poll_fn(|cx| {
            self.between.turn.register(cx.waker());
            if self.between.lock().left {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // Only a panic of the turn comes here: the client gets its one end all the same.
        if self.reply.is_some() && self.begun.is_none() {
            self.answer(refuse(&Kind::Internal.into()));
        } else {
            self.fail(
                Kind::Internal.code(),
                &crate::refusal::Refusal::from(Kind::Internal).message,
            );
            self.end(super::now());
        }
    }
}

impl Waiting {
    /// The reply, or `None` when the feed went away without one.
    pub async fn reply(&mut self) -> Option<Reply> {
        (&mut self.reply).await.ok()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // With a reply taken, the stream in it speaks for the client from now on.
        if !self.reply.is_terminated() {
            leave(&self.between);
        }
    }
}

fn leave(between: &Between) {
    between.lock().left = true;
    between.turn.wake();
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Body for ClientStream {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        let mut buffer = self.0.lock();
        if !buffer.bytes.is_empty() {
            let chunk = buffer.bytes.split().freeze();
            if buffer.bytes.capacity() > KEEP {
                buffer.bytes = BytesMut::new();
            }
            // It is the connection's now, and counts until the connection asks for more.
            buffer.waiting_since = None;
            let was_full = buffer.full_since.take().is_some();
            drop(buffer);
            if was_full {
                self.0.turn.wake();
            }
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        buffer.held.set(0);
        match buffer.end {
            Some(Ending::Clean) => Poll::Ready(None),
            Some(Ending::Torn) => Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionAborted.into()))),
            None => {
                buffer.taker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let buffer = self.0.lock();
        buffer.bytes.is_empty() && buffer.end == Some(Ending::Clean)
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        leave(&self.0);
    }
}

#[cfg(test)]
mod tests;
