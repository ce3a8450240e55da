//! An upstream's answer passed on as it comes, with a deadline between its pieces.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use crate::upstream::AnswerBody;

/// The body of a passed-on answer. Dropping it closes the upstream's connection; a broken or stalled one tears the
/// client's.
pub struct Relay {
    body: AnswerBody,
    quiet: Duration,
    alarm: Pin<Box<Sleep>>,
}

impl Relay {
    /// Passes `body` on; it may be quiet for as long as `quiet` says.
    pub fn new(body: AnswerBody, quiet: Duration) -> Self {
        Relay {
            body,
            quiet,
            alarm: Box::pin(tokio::time::sleep(quiet)),
        }
    }
}

impl Body for Relay {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        let relay = self.get_mut();
        match Pin::new(&mut relay.body).poll_frame(cx) {
            Poll::Ready(frame) => {
                relay
                    .alarm
                    .as_mut()
                    .reset(tokio::time::Instant::now() + relay.quiet);
                Poll::Ready(frame.map(|frame| frame.map_err(std::io::Error::other)))
            }
            Poll::Pending => match relay.alarm.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(Some(Err(std::io::ErrorKind::TimedOut.into()))),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
