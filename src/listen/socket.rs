//! A client's socket with the deadlines that hyper does not keep: a request head, the idle time between requests, the
//! client's taking of bytes, and a lingering close.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::{Limits, phase::Phase, plain};
use crate::event::Events;

/// What the one timer of a socket is running for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Nothing,
    Idle,
    Head,
    Write,
    Linger,
}

/// How the connection's reading side stands, between requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Nothing of the next head has come, and nothing is left of the last request.
    Idle,
    /// Some of a head has come, or the connection is new and owes one.
    Begun,
    /// The client has closed its side, or was too slow to be waited for again.
    Ended,
}

/// The socket that hyper works on.
pub(super) struct Socket<T> {
    stream: T,
    phase: Phase,
    limits: Limits,
    events: Events,
    reading: Reading,
    wait: Wait,
    due: Instant,
    /// Made on the first wait and moved from then on: one timer per connection, not one per request.
    timer: Option<Pin<Box<Sleep>>>,
    /// The answer that replaces hyper's own, bodiless one.
    answer: Option<Bytes>,
}

impl<T> Socket<T> {
    pub(super) fn new(stream: T, phase: Phase, limits: Limits, events: Events) -> Self {
        Socket {
            stream,
            phase,
            limits,
            events,
            reading: Reading::Begun,
            wait: Wait::Nothing,
            due: Instant::now(),
            timer: None,
            answer: None,
        }
    }

    /// Ready when the socket has been in this `wait` for `patience`.
    fn poll_patience(&mut self, wait: Wait, patience: Duration, cx: &mut Context<'_>) -> Poll<()> {
        if self.wait != wait {
            self.wait = wait;
            self.due = Instant::now() + patience;
        }
        let due = self.due;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if timer.deadline() != due {
            timer.as_mut().reset(due);
        }
        timer.as_mut().poll(cx)
    }

    /// The same for a write that made no progress.
    fn poll_stalled<R>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<R>> {
        ready!(self.poll_patience(Wait::Write, self.limits.write_stall, cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn wrote<R>(&mut self, result: Poll<io::Result<R>>, cx: &mut Context<'_>) -> Poll<io::Result<R>> {
        if result.is_pending() {
            return self.poll_stalled(cx);
        }
        if self.wait == Wait::Write {
            self.wait = Wait::Nothing;
        }
        result
    }
}

impl<T: AsyncWrite + Unpin> Socket<T> {
    /// hyper answers an unreadable head by itself, with a bare status. Ours, in the API's shape, goes out in its place,
    /// and hyper is told that all `len` bytes of its own are written.
    fn poll_answer(&mut self, head: &[u8], len: usize, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        loop {
            let answer = self
                .answer
                .get_or_insert_with(|| plain::unreadable(head, &self.events));
            if !answer.has_remaining() {
                return Poll::Ready(Ok(len));
            }
            let written = Pin::new(&mut self.stream).poll_write(cx, answer);
            if let Poll::Ready(Ok(count)) = written {
                answer.advance(count);
            }
            ready!(self.wrote(written, cx))?;
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Socket<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        match &read {
            Poll::Ready(Ok(())) if buf.filled().len() == before => this.reading = Reading::Ended,
            Poll::Ready(_) if this.phase.is_head() => this.reading = Reading::Begun,
            Poll::Pending if this.phase.is_head() => {
                let (wait, patience) = match this.reading {
                    Reading::Idle => (Wait::Idle, this.limits.idle),
                    Reading::Begun | Reading::Ended => (Wait::Head, this.limits.header),
                };
                ready!(this.poll_patience(wait, patience, cx));
                this.reading = Reading::Ended;
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            _ => {}
        }
        read
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Socket<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.phase.is_head() {
            let head = bufs.iter().find(|buf| !buf.is_empty()).map_or(&[][..], |buf| buf);
            return this.poll_answer(head, bufs.iter().map(|buf| buf.len()).sum(), cx);
        }
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.wrote(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes when its own buffer is empty, so this is where an answer is known to have left.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.stream).poll_flush(cx))?;
        if this.phase.flushed() {
            this.reading = Reading::Idle;
            // The timer is set here because hyper, which has a read pending since the request, does not try another.
            // It reads when the timer wakes it, and that read fails.
            this.wait = Wait::Nothing;
            let _ = this.poll_patience(Wait::Idle, this.limits.idle, cx);
        }
        Poll::Ready(Ok(()))
    }

    /// Closes the writing side, then swallows what the client still sends: closing a socket with unread bytes resets
    /// it, and the reset destroys an answer that the client has not read yet (a 413 to a large upload, say).
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        if this.phase.is_leaving() || this.reading == Reading::Ended {
            return Poll::Ready(Ok(()));
        }
        let mut scratch = [0; 4096];
        while this
            .poll_patience(Wait::Linger, this.limits.linger, cx)
            .is_pending()
        {
            let mut buf = ReadBuf::new(&mut scratch);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut buf))?;
            if buf.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
