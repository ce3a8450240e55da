//! A request body whose progress can be watched: a slow uplink is not a silent upstream (SES-2).

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http_body::{Body, Frame, SizeHint};

/// Handed to the connection at a time; progress is seen in such steps.
const PIECE: usize = 64 * 1024;

/// The body.
pub struct Upload {
    rest: Bytes,
    taken: Arc<Taken>,
}

/// How far it has come.
#[derive(Default)]
pub struct Taken {
    bytes: AtomicUsize,
    moved: AtomicWaker,
}

/// Makes a body of `bytes`, and the view on its progress.
pub fn upload(bytes: Bytes) -> (Upload, Arc<Taken>) {
    let taken = Arc::new(Taken::default());
    (
        Upload {
            rest: bytes,
            taken: taken.clone(),
        },
        taken,
    )
}

impl Taken {
    /// Resolves with the bytes taken so far, once they are more than `seen`. Cancel-safe.
    pub async fn beyond(&self, seen: usize) -> usize {
        std::future::poll_fn(|cx| {
            self.moved.register(cx.waker());
            let taken = self.bytes.load(Ordering::Acquire);
            if taken > seen {
                Poll::Ready(taken)
            } else {
                Poll::Pending
            }
        })
        .await
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let most = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(most);
        self.taken.bytes.fetch_add(piece.len(), Ordering::Release);
        self.taken.moved.wake();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    /// [SES-2] progress is seen piece by piece, and the body is whole.
    #[tokio::test]
    async fn progress_is_seen() {
        let bytes = Bytes::from(vec![b'x'; PIECE + 1]);
        let (mut body, taken) = upload(bytes);
        assert_eq!(body.size_hint().exact(), Some(PIECE as u64 + 1));
        body.frame().await.unwrap().unwrap();
        assert_eq!(taken.beyond(0).await, PIECE);
        body.frame().await.unwrap().unwrap();
        assert_eq!(taken.beyond(PIECE).await, PIECE + 1);
        assert!(body.frame().await.is_none());
    }
}
