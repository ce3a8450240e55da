//! What comes while the page is open: its panels as they change, and events one by one, as the server renders them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::cookie::Id;
use super::events;
use super::reply::Answer;
use super::view::{Filter, Happened};
use super::{Token, Ui};
use crate::event::Seen;
use crate::listen::Unending;
use crate::runtime::call::ReplyBody;

/// Between two looks at what the panels show.
const LOOK: Duration = Duration::from_secs(2);

/// One page that looks on.
struct Watch {
    ui: Arc<Ui>,
    token: Arc<dyn Token>,
    revoked: CancellationToken,
    id: Id,
    filter: Filter,
    out: VecDeque<Bytes>,
    coming: Receiver<Seen>,
    look: Interval,
    panels: String,
    _room: OwnedSemaphorePermit,
}

/// The stream of a signed-in page that has seen the events up to `after`.
pub(super) fn open(
    ui: Arc<Ui>,
    token: Arc<dyn Token>,
    id: Id,
    filter: Filter,
    after: u64,
    room: OwnedSemaphorePermit,
) -> Option<Answer> {
    let (kept, coming) = ui.runtime.events.seen()?.follow();
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let missed = kept
        .iter()
        .filter(|seen| seen.number > after && filter.takes(seen));
    let missed: Vec<_> = missed.rev().take(events::MOST).collect();
    // Browsers come back after so long.
    let mut out = VecDeque::from([Bytes::from_static(b"retry: 2000\n\n")]);
    out.extend(missed.into_iter().rev().map(row));
    let watch = Watch {
        ui,
        revoked: token.revoked(),
        token,
        id,
        filter,
        out,
        coming,
        look,
        panels: String::new(),
        _room: room,
    };
    let frames = stream::unfold(watch, |mut watch| async move {
        let bytes = watch.next().await?;
        Some((Ok(Frame::data(bytes)), watch))
    });
    let body = ReplyBody::Stream(Box::pin(StreamBody::new(frames)));
    let mut answer = Answer::with(StatusCode::OK, "text/event-stream; charset=utf-8", body);
    answer.reply.extensions_mut().insert(Unending);
    Some(answer)
}

impl Watch {
    /// The next thing to send; `None` when there is nothing more to come. Browsers come back and are told why.
    async fn next(&mut self) -> Option<Bytes> {
        let over = self.ui.runtime.over();
        while !self.revoked.is_cancelled() {
            if let Some(bytes) = self.out.pop_front() {
                return Some(bytes);
            }
            tokio::select! {
                // What has been told already goes out before the end (ADM-23), and however much is told, panels are kept fresh.
                biased;
                () = self.revoked.cancelled() => return None,
                _ = self.look.tick() => {
                    if !self.ui.touch(&self.id, &*self.token) {
                        return None;
                    }
                    let panels = self.ui.panels(&self.filter, &self.id);
                    if panels == self.panels {
                        self.out.push_back(Bytes::from_static(b":\n\n"));
                    } else {
                        self.out.push_back(message("panels", None, &panels));
                        self.panels = panels;
                    }
                }
                seen = self.coming.recv() => match seen {
                    Ok(seen) if self.filter.takes(&seen) => self.out.push_back(row(&seen)),
                    Ok(_) => {}
                    // It was too slow: it comes back with the number of the last one that it saw.
                    Err(RecvError::Lagged(_) | RecvError::Closed) => return None,
                },
                () = over.cancelled() => return None,
            }
        }
        None
    }
}

fn row(seen: &Seen) -> Bytes {
    message(
        "row",
        Some(seen.number),
        &events::row(&Happened::of(seen)).into_string(),
    )
}

/// `markup` is of one line: what could break one is replaced before it is drawn.
fn message(event: &str, id: Option<u64>, markup: &str) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("event: {event}\n{id}data: {markup}\n\n").into()
}
