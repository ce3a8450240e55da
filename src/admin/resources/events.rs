//! `/admin/events`: events as they come, as server-sent events (ADM-20 to ADM-23).
//!
//! Nothing is kept for a reader but its place: what comes lies in the one broadcast of all readers. Who falls too far behind
//! is told how many events were missed.

use std::collections::VecDeque;
use std::fmt::Write;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Response};
use http_body::{Body, Frame};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio_util::sync::CancellationToken;

use crate::admin::asked::{Answering, Asked, now};
use crate::admin::parameters::{GLOB, Given, OF_ACCOUNT, Parameter, Place, Shape};
use crate::admin::table::{Gives, Operation, Verb};
use crate::event::{self, Seen};
use crate::listen::Unending;
use crate::refusal::{Kind, Refusal};
use crate::runtime::call::{Reply, ReplyBody};
use crate::store::journal::glob;

/// Between two comments that show a quiet stream to be alive: below the minute of many proxies.
const HEARTBEAT: Duration = Duration::from_secs(10);
const LAST: &str = "last-event-id";

pub const OPERATIONS: &[Operation] = &[Operation {
    method: Verb::Get,
    path: "/events",
    id: "follow_events",
    summary: "The latest events and those that come, as server-sent events: id, kind, and the log line as data",
    parameters: &[
        Parameter {
            name: "kind",
            place: Place::Query,
            shape: GLOB,
            what: "Of these kinds only; * stands for any text",
            example: "quarantine*",
        },
        OF_ACCOUNT,
        Parameter {
            name: LAST,
            place: Place::Header,
            shape: Shape::Any,
            what: "The id of the last event that was seen: those after it follow",
            example: "17",
        },
    ],
    body: None,
    gives: Gives::Stream,
    refusals: &[Kind::TooManyStreams],
    run: follow,
}];

fn follow(asked: Asked) -> Answering {
    now(stream(&asked))
}

fn stream(asked: &Asked) -> Result<Reply, Refusal> {
    let room = asked.admin.streams.clone().try_acquire_owned();
    let room = room.map_err(|_| Kind::TooManyStreams)?;
    // With a token, as here, there is a live view.
    let live = asked.runtime().seen().ok_or(Kind::NotFound)?;
    let (kept, coming) = live.follow();
    let mut reader = Reader {
        given: Filter::of(&asked.given),
        waiting: VecDeque::new(),
        coming,
        over: asked.runtime().over(),
        revoked: asked.revoked.clone(),
        _room: room,
    };
    reader.resume(kept, asked.given.text(LAST));
    let body = Chunks(Box::pin(futures_util::stream::unfold(reader, Reader::next)));
    let mut reply = Response::new(ReplyBody::Stream(Box::pin(body)));
    reply.extensions_mut().insert(Unending);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    Ok(reply)
}

/// What is wanted.
#[derive(Clone, Debug, Default)]
struct Filter {
    kind: Option<String>,
    account: Option<String>,
}

impl Filter {
    fn of(given: &Given) -> Filter {
        Filter {
            kind: given.text("kind").map(str::to_owned),
            account: given.text("account").map(str::to_owned),
        }
    }

    fn takes(&self, seen: &Seen) -> bool {
        let kind = self
            .kind
            .as_deref()
            .is_none_or(|kind| glob::matches(kind, seen.event));
        let account = self.account.as_deref().is_none_or(|wanted| {
            let account = seen.account.as_deref();
            account.is_some_and(|account| event::is_at(account, wanted))
        });
        kind && account
    }
}

/// One reader's place.
struct Reader {
    given: Filter,
    /// Encoded, and not taken yet: what was there at the beginning.
    waiting: VecDeque<Bytes>,
    coming: broadcast::Receiver<Seen>,
    over: CancellationToken,
    revoked: CancellationToken,
    _room: OwnedSemaphorePermit,
}

impl Reader {
    /// Begins after the event that the reader saw last, where that can be told: numbers begin anew in each process, so one
    /// that has not been yet is another process's.
    fn resume(&mut self, kept: Vec<Seen>, last: Option<&str>) {
        self.waiting.push_back(Bytes::from_static(b": hello\n\n"));
        let newest = kept.last().map_or(0, |seen| seen.number);
        let oldest = kept.first().map_or(1, |seen| seen.number);
        let after = match last.map(|last| last.trim().parse::<u64>()) {
            Some(Ok(after)) if after <= newest => {
                if after + 1 < oldest {
                    self.waiting.push_back(gap(Some(oldest - after - 1)));
                }
                after
            }
            Some(_) => {
                self.waiting.push_back(gap(None));
                0
            }
            None => 0,
        };
        for seen in kept.iter().filter(|seen| seen.number > after) {
            if self.given.takes(seen) {
                self.waiting.push_back(encoded(seen));
            }
        }
    }

    /// The next chunk; none at the end.
    async fn next(mut self) -> Option<(Bytes, Reader)> {
        let revoked = self.revoked.clone();
        if revoked.is_cancelled() {
            return None;
        }
        if let Some(chunk) = self.waiting.pop_front() {
            return Some((chunk, self));
        }
        let over = self.over.clone();
        let quiet = tokio::time::sleep(HEARTBEAT);
        tokio::pin!(quiet);
        loop {
            tokio::select! {
                // What has been told already goes out before the end, but to nobody who may not see it any more.
                biased;
                () = revoked.cancelled() => return None,
                come = self.coming.recv() => match come {
                    Ok(seen) if self.given.takes(&seen) => return Some((encoded(&seen), self)),
                    Ok(_) => {}
                    Err(RecvError::Lagged(missed)) => return Some((gap(Some(missed)), self)),
                    Err(RecvError::Closed) => return None,
                },
                () = over.cancelled() => return None,
                () = &mut quiet => return Some((Bytes::from_static(b": quiet\n\n"), self)),
            }
        }
    }
}

/// An event. Its line is one line: JSON has no bare line ends.
fn encoded(seen: &Seen) -> Bytes {
    format!(
        "id: {}\nevent: {}\ndata: {}\n\n",
        seen.number, seen.event, seen.line
    )
    .into()
}

/// So many events, or nobody knows how many, cannot be told any more. It has no id: the next event's counts.
fn gap(missed: Option<u64>) -> Bytes {
    let mut text = String::from("event: gap\ndata: {\"missed\":");
    // Writing to a String cannot fail.
    let _ = match missed {
        Some(missed) => write!(text, "{missed}"),
        None => write!(text, "null"),
    };
    text.push_str("}\n\n");
    text.into()
}

/// A stream of chunks as a body.
struct Chunks(Pin<Box<dyn Stream<Item = Bytes> + Send>>);

impl Body for Chunks {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.0
            .as_mut()
            .poll_next(cx)
            .map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}

#[cfg(test)]
mod tests;
