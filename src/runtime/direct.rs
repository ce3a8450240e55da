//! Direct HTTP: the same turn as an ordinary POST, with deadlines of its own (HTTP-1..HTTP-9).
//!
//! The stream is relayed at event boundaries through the same turn machine as a session's: ownership, the hold until
//! `response.created`, heartbeats, and the one end. A block that the upstream leaves unfinished is dropped.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};

use super::client::HANDFUL;
use super::job::{Job, Way};
use super::upload::{Taken, Upload, upload};
use super::{Runtime, frame, now};
use crate::bridge::ownership::AccountId;
use crate::bridge::turn::{Input, Output, Turn, TurnEnd};
use crate::bridge::watchdog::Transport;
use crate::event::Event;
use crate::refusal::Kind;
use crate::upstream::{Answer, AnswerBody, Broken, PostFault, Unreached};
use crate::wire::error::WireError;
use crate::wire::head::{self, Head};
use crate::wire::headers;
use crate::wire::sse::decode::Decoder;

/// The longest line of an event stream: single events are as large as a whole answer.
const MAX_LINE: usize = 64 << 20;
/// A whole JSON answer.
const MAX_WHOLE: usize = 64 << 20;
/// The body of an error answer.
const MAX_ERROR: usize = 1 << 20;

/// One direct turn.
struct Direct {
    runtime: Arc<Runtime>,
    account: AccountId,
    job: Option<Box<Job>>,
    turn: Turn,
    /// Response headers for the client.
    headers: HeaderMap,
    last_event_at: Option<Instant>,
}

/// Runs one turn to its end. `headers` are complete, the credential among them; `stream`: events are asked for, whatever
/// the client wants.
pub async fn run(runtime: Arc<Runtime>, mut job: Box<Job>, headers: HeaderMap, stream: bool) {
    let policy = job.policy.turn(Transport::Http, job.stream, !stream);
    let account = job.account;
    let turn = Turn::new(policy, job.caller.arrived, None);
    let body = std::mem::take(&mut job.payload);
    let mut direct = Direct {
        runtime,
        account,
        job: Some(job),
        turn,
        headers: HeaderMap::new(),
        last_event_at: None,
    };
    if let Some((answer, mut decoder)) = direct.post(headers, body, stream).await {
        direct.relay(answer, &mut decoder).await;
    }
}

impl Direct {
    /// Sends the request. Gives the body to relay, when there is a stream of events to relay.
    async fn post(&mut self, headers: HeaderMap, body: Bytes, stream: bool) -> Option<(AnswerBody, Decoder)> {
        let (body, taken) = upload(body);
        let answer = self.send(headers, body, &taken).await?;
        let (head, mut body) = answer.into_parts();
        self.headers = headers::to_client(&head.headers);
        if !head.status.is_success() && !head.status.is_client_error() && !head.status.is_server_error() {
            // A redirect, most likely. Following it could send the turn twice, and to whom is anybody's guess.
            self.input(Input::Lost(Kind::UpstreamNonsense));
            return None;
        }
        if !head.status.is_success() {
            let rest = self.whole(&mut body, MAX_ERROR).await?;
            let error = WireError::from_http(head.status.as_u16(), &head.headers, &rest);
            self.input(Input::Rejected(error.into()));
            return None;
        }
        self.input(Input::Headers);
        if stream && !is_json(&head.headers) {
            return Some((body, Decoder::new(MAX_LINE)));
        }
        let object = self.whole(&mut body, MAX_WHOLE).await?;
        if stream {
            // Asked for events, it answered with one object: that is its terminal, or its error.
            self.event(&object);
            self.input(Input::Lost(Kind::Truncated));
        } else {
            self.whole_answer(object);
        }
        self.settle().await;
        None
    }

    /// One JSON object: the response at its end, an error in spite of the 200, or one that is only queued.
    fn whole_answer(&mut self, object: Bytes) {
        match head::read(&object).head {
            Head::Terminal(_) | Head::Error(_) | Head::NotJson => self.event(&object),
            _ => {
                let response_id = head::object_id(&object);
                self.input(Input::Whole { object, response_id });
            }
        }
    }

    async fn send(&mut self, headers: HeaderMap, body: Upload, taken: &Taken) -> Option<Answer> {
        let runtime = self.runtime.clone();
        let length = self.job.as_ref().map_or(0, |job| job.length);
        let post = runtime.account(self.account).post("/responses", headers, body);
        tokio::pin!(post);
        let mut seen = 0;
        loop {
            let step = tokio::select! {
                answer = &mut post => Err(answer),
                so_far = taken.beyond(seen), if seen < length => Ok(Some(so_far)),
                () = self.interrupted() => Ok(None),
            };
            match step {
                Ok(Some(so_far)) => {
                    self.left();
                    seen = so_far;
                    self.input(if seen >= length {
                        Input::Flushed
                    } else {
                        Input::Wrote
                    });
                }
                Ok(None) => self.interrupt(),
                Err(Ok(answer)) => {
                    self.left();
                    return Some(answer);
                }
                Err(Err(fault)) => {
                    if matches!(fault, PostFault::Ambiguous(_)) {
                        self.left();
                    }
                    self.input(Input::Lost(blame(fault)));
                }
            }
            self.job.as_ref()?;
        }
    }

    /// The first byte of the request may have left. Until then there is a connection to be made, whose deadline is the
    /// client's.
    fn left(&mut self) {
        let Some(job) = self.job.as_ref().filter(|_| !self.turn.is_sent()) else {
            return;
        };
        self.runtime.events.emit(&Event::TurnSent {
            at: self.runtime.at(self.account),
            who: job.who(),
            transport: Transport::Http,
            session: None,
        });
        self.input(Input::Wrote);
    }

    /// Relays events until the turn ends.
    async fn relay(&mut self, mut body: AnswerBody, decoder: &mut Decoder) {
        while self.job.is_some() {
            let chunk = tokio::select! {
                chunk = body.chunk() => Some(chunk),
                () = self.interrupted() => None,
            };
            match chunk {
                None => self.interrupt(),
                Some(Ok(Some(chunk))) => {
                    let at = now();
                    if let Some(last) = self.last_event_at.replace(at) {
                        self.runtime.events.telemetry().gap(at.duration_since(last));
                    }
                    decoder.feed(&chunk);
                    self.decode(decoder).await;
                }
                Some(Ok(None)) => self.input(Input::Lost(Kind::Truncated)),
                Some(Err(Broken::Protocol)) => self.input(Input::Lost(Kind::UpstreamNonsense)),
                Some(Err(_)) => self.input(Input::Lost(Kind::UpstreamClosed)),
            }
        }
    }

    async fn decode(&mut self, decoder: &mut Decoder) {
        while self.job.is_some() {
            match decoder.next_event() {
                Ok(Some(event)) if event.is_done_marker() => {}
                Ok(Some(event)) => {
                    self.event(&event.data);
                    let fed = self.job.as_ref().map_or(0, |job| job.feed.pending());
                    if fed >= HANDFUL {
                        self.feed();
                        self.room().await;
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    self.input(Input::Lost(Kind::UpstreamNonsense));
                    break;
                }
            }
        }
        self.feed();
        self.room().await;
    }

    /// Waits while the client's buffer is full. A client that stays away from it ends the turn.
    async fn room(&mut self) {
        while let Some(job) = self.job.as_ref().filter(|job| job.feed.full_since().is_some()) {
            let room = tokio::select! {
                room = job.feed.room() => Some(room),
                () = self.interrupted() => None,
            };
            match room {
                Some(true) => return,
                Some(false) => self.input(Input::ClientFull),
                None => self.interrupt(),
            }
        }
    }

    fn event(&mut self, data: &Bytes) {
        let framed = head::read(data);
        let name = frame::name(&framed.event, data);
        self.runtime.trap(&framed.head);
        let head = framed.head;
        if let Some(job) = &mut self.job {
            self.runtime.observe(job, &head, data);
        }
        self.input(Input::Event {
            name,
            data: data.clone(),
            head,
        });
    }

    /// The whole body, up to `most` bytes.
    async fn whole(&mut self, body: &mut AnswerBody, most: usize) -> Option<Bytes> {
        let mut whole = BytesMut::new();
        loop {
            let chunk = tokio::select! {
                chunk = body.chunk() => Some(chunk),
                () = self.interrupted() => None,
            };
            match chunk {
                None => self.interrupt(),
                Some(Ok(Some(chunk))) if whole.len() + chunk.len() <= most => whole.extend_from_slice(&chunk),
                Some(Ok(Some(_))) => self.input(Input::Lost(Kind::UpstreamNonsense)),
                Some(Ok(None)) => return Some(whole.freeze()),
                Some(Err(_)) => self.input(Input::Lost(Kind::UpstreamClosed)),
            }
            self.job.as_ref()?;
        }
    }

    /// Waits for what is left to wait for when the upstream has said all: the store.
    async fn settle(&mut self) {
        while self.job.is_some() {
            self.interrupted().await;
            self.interrupt();
        }
    }

    /// Resolves when something else than the upstream needs attention: a deadline, the client, the store, the drain.
    async fn interrupted(&self) {
        let Some(job) = &self.job else { return };
        let deadline = async {
            match self.turn.deadline() {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        let durable = async {
            match job.ticket.filter(|_| self.turn.awaits_durable()) {
                Some(ticket) => self.runtime.durable(ticket).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = deadline => {}
            () = durable => {}
            () = job.feed.gone() => {}
            () = self.runtime.cut.cancelled() => {}
        }
    }

    /// Looks at all that [`Self::interrupted`] may have resolved for.
    fn interrupt(&mut self) {
        use futures_util::FutureExt;
        let Some(job) = &self.job else { return };
        let left = job.feed.gone().now_or_never().is_some();
        let ticket = job.ticket.filter(|_| self.turn.awaits_durable());
        let durable = ticket.is_some_and(|ticket| self.runtime.durable(ticket).now_or_never().is_some());
        let waiting_since = job.feed.waiting_since();
        if left {
            self.input(Input::ClientGone);
        } else if durable {
            while self.turn.awaits_durable() {
                self.input(Input::Durable);
            }
        } else if self.runtime.cut.is_cancelled() {
            self.input(Input::Cut);
        }
        self.turn.tick(now(), waiting_since);
        self.drain();
        self.feed();
    }

    fn input(&mut self, input: Input) {
        self.turn.handle(now(), input);
        self.drain();
    }

    fn feed(&mut self) {
        if let Some(job) = &mut self.job {
            job.feed.flush(now());
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.turn.poll() {
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: Output) {
        let Some(mut job) = self.job.take() else { return };
        let headers = &self.headers;
        let way = Way {
            transport: Transport::Http,
            session: None,
            headers: &|_: &Job| headers.clone(),
            history: None,
        };
        match job.carry_out(&self.runtime, now(), &way, output) {
            None => self.job = Some(job),
            Some(end) => self.ended(job, &end),
        }
    }

    fn ended(&mut self, job: Box<Job>, end: &TurnEnd) {
        job.finish(&self.runtime, now(), end, None);
    }
}

/// An answer that declares itself to be JSON. Anything else is taken for the event stream that was asked for.
fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    content_type.is_some_and(|value| {
        value
            .trim_start()
            .to_ascii_lowercase()
            .starts_with("application/json")
    })
}

/// Which row of the refusal table a fault is, of a turn or of a forwarded request.
pub(super) fn blame(fault: PostFault) -> Kind {
    match fault {
        PostFault::Unconnected(Unreached::Timeout) => Kind::ConnectTimeout,
        PostFault::Unconnected(Unreached::Proxy) => Kind::ProxyFailed,
        PostFault::Unconnected(Unreached::NoFiles) => Kind::TooManyConnections,
        PostFault::Unconnected(_) => Kind::ConnectFailed,
        PostFault::Ambiguous(Broken::Protocol) => Kind::UpstreamNonsense,
        PostFault::Ambiguous(_) => Kind::UpstreamClosed,
        PostFault::Unaddressable => Kind::NotFound,
    }
}
