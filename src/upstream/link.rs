//! The byte stream under a WebSocket, as tungstenite wants it: blocking in form, polled in truth.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::FrameEdges;

/// Counts what passes, and remembers a failed write.
#[derive(Debug)]
pub(super) struct Link<S> {
    stream: S,
    waker: Waker,
    /// Bytes read since the start.
    pub read: u64,
    /// Bytes that the stream took since the start.
    pub written: u64,
    /// The first write that failed. What the peer said before that (an error, a close with 1009) may still lie unread,
    /// so this is no end yet (UP-12).
    pub write_fault: Option<io::ErrorKind>,
    pub inbound: FrameEdges,
}

impl<S> Link<S> {
    pub fn new(stream: S) -> Link<S> {
        Link {
            stream,
            waker: Waker::noop().clone(),
            read: 0,
            written: 0,
            write_fault: None,
            inbound: FrameEdges::default(),
        }
    }

    /// Who is woken when a read or a write that would have blocked can go on. One task drives both directions.
    pub fn wake(&mut self, waker: &Waker) {
        self.waker.clone_from(waker);
    }
}

impl<S: AsyncRead + Unpin> Read for Link<S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut buf = ReadBuf::new(buf);
        let mut cx = Context::from_waker(&self.waker);
        match Pin::new(&mut self.stream).poll_read(&mut cx, &mut buf) {
            Poll::Ready(result) => result?,
            Poll::Pending => return Err(io::ErrorKind::WouldBlock.into()),
        }
        self.read += buf.filled().len() as u64;
        self.inbound.pass(buf.filled());
        Ok(buf.filled().len())
    }
}

impl<S: AsyncWrite + Unpin> Write for Link<S> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let mut cx = Context::from_waker(&self.waker);
        let poll = Pin::new(&mut self.stream).poll_write(&mut cx, buf);
        let taken = self.settle(poll)?;
        self.written += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut cx = Context::from_waker(&self.waker);
        let poll = Pin::new(&mut self.stream).poll_flush(&mut cx);
        self.settle(poll)
    }
}

impl<S> Link<S> {
    fn settle<T>(&mut self, poll: Poll<io::Result<T>>) -> io::Result<T> {
        match poll {
            Poll::Ready(Err(error)) => {
                self.write_fault.get_or_insert(error.kind());
                Err(error)
            }
            Poll::Ready(done) => done,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}
