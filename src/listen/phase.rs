//! What a connection is at, as the service and the answer's body know it and the socket needs it.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::Service;

const HEAD: u8 = 0;
const CALL: u8 = 1;
const TAIL: u8 = 2;

/// An extension of an answer whose body ends with the bridge and not before: nobody waits at the shutdown for a client that
/// does not take what is left of it (ADM-23).
#[derive(Clone, Copy, Debug)]
pub struct Unending;

/// The phase of one connection. Everything that shares it runs on the connection's own task, so the order of memory
/// accesses is never in question; the atomic only satisfies `Send`.
#[derive(Clone, Default)]
pub(super) struct Phase(Arc<Shared>);

#[derive(Default)]
struct Shared {
    at: AtomicU8,
    leaving: AtomicBool,
    unending: AtomicBool,
}

impl Phase {
    /// Between requests: nothing asked, nothing owed. What hyper writes now is an answer to something unreadable.
    pub(super) fn is_head(&self) -> bool {
        self.0.at.load(Ordering::Relaxed) == HEAD
    }

    /// Everything written has left: an answer whose body is done is over.
    pub(super) fn flushed(&self) -> bool {
        let over = self
            .0
            .at
            .compare_exchange(TAIL, HEAD, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if over {
            self.0.unending.store(false, Ordering::Relaxed);
        }
        over
    }

    /// The bridge shuts down: a connection that is between requests now owes its client nothing and may close at once.
    pub(super) fn leave(&self) {
        self.0.leaving.store(self.is_head(), Ordering::Relaxed);
    }

    /// Whether the connection was idle when it was told to [`leave`](Phase::leave).
    pub(super) fn is_leaving(&self) -> bool {
        self.0.leaving.load(Ordering::Relaxed)
    }

    /// Whether the answer is [`Unending`], and not all of it has left.
    pub(super) fn is_unending(&self) -> bool {
        self.0.unending.load(Ordering::Relaxed)
    }

    fn set(&self, phase: u8) {
        self.0.at.store(phase, Ordering::Relaxed);
    }
}

/// The service of one connection; moves the phase and does nothing else.
pub(super) struct Phased<S> {
    service: S,
    phase: Phase,
}

impl<S> Phased<S> {
    pub(super) fn new(service: S, phase: Phase) -> Self {
        Phased { service, phase }
    }
}

impl<S, B> Service<Request<Incoming>> for Phased<S>
where
    S: Service<Request<Incoming>, Response = Response<B>>,
{
    type Response = Response<PhasedBody<B>>;
    type Error = S::Error;
    type Future = PhasedFuture<S::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.phase.set(CALL);
        // Boxed per request because hyper keeps the future's room for the connection's whole life: an idle connection
        // would carry the largest state of a turn.
        PhasedFuture {
            future: Box::pin(self.service.call(request)),
            phase: self.phase.clone(),
        }
    }
}

/// The service's future, whose answer ends the phase when its body is dropped.
pub(super) struct PhasedFuture<F> {
    future: Pin<Box<F>>,
    phase: Phase,
}

impl<F, B, E> Future for PhasedFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<PhasedBody<B>>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = std::task::ready!(self.future.as_mut().poll(cx))?;
        let phase = self.phase.clone();
        if response.extensions().get::<Unending>().is_some() {
            phase.0.unending.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(response.map(|body| PhasedBody { body, phase })))
    }
}

/// The answer's body; hyper drops it when its last byte is buffered.
pub(super) struct PhasedBody<B> {
    body: B,
    phase: Phase,
}

impl<B> Body for PhasedBody<B>
where
    B: Body + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for PhasedBody<B> {
    fn drop(&mut self) {
        self.phase.set(TAIL);
    }
}
