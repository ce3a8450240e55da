//! Any other request: streamed through, nothing read, nothing kept; but for the two whose body may name a response.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use super::Edge;
use super::bodies::Bodies;
use crate::refusal::Refusal;
use crate::runtime::call::{Base, Bridge, Caller, Pass, PassBody, Reply};
use crate::wire::request::named_responses;

/// Their bodies may have a `previous_response_id`, which is somebody's.
const NAMING: [&str; 2] = ["/responses/compact", "/responses/input_tokens"];

impl<B: Bridge> Edge<B> {
    /// Passes the request on; its body streams, so neither `max_body` nor the budget concerns it. One that may name a
    /// response is read first, and sent on decoded.
    pub(super) async fn pass(
        &self,
        bodies: &Bodies,
        mut caller: Caller,
        (method, uri): (Method, &Uri),
        (base, path): (Base, &str),
        body: Incoming,
    ) -> Result<Reply, Refusal> {
        let mut _held = None;
        let (body, names): (PassBody, _) = if base == Base::Provider && NAMING.contains(&path) {
            let (whole, held) = bodies.read(&mut caller.headers, body).await?;
            _held = Some(held);
            let names = named_responses(&whole);
            (Box::pin(Full::new(whole).map_err(|never| match never {})), names)
        } else {
            let steady = Steady {
                body,
                stall: bodies.stall(),
                timer: None,
            };
            (Box::pin(steady), Vec::new())
        };
        let query = uri.query().map(str::to_owned);
        let pass = Pass {
            caller,
            method,
            base,
            path: path.to_owned(),
            query,
            names,
            body,
        };
        Ok(self.0.bridge.pass(pass).await)
    }
}

/// A body that must not stand still: `TimedOut` after `stall` without a byte. Only waiting for the client counts; an
/// upstream that takes its time does not poll.
struct Steady<B> {
    body: B,
    stall: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<B> Body for Steady<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            this.timer = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other)));
        }
        let due = || Box::pin(tokio::time::sleep_until(Instant::now() + this.stall));
        ready!(this.timer.get_or_insert_with(due).as_mut().poll(cx));
        Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
