//! The actor of one session: it owns the socket, feeds the machine in `bridge::session`, and carries out what it says.
//!
//! It reads the socket while idle, so a close is seen at once and pings are answered; it never waits for the client, so
//! a slow client stops neither.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::mpsc;
use tokio::time::Sleep;

use super::client::HANDFUL;
use super::job::{Job, Way};
use super::registry::Command;
use super::{Runtime, frame, report};
use crate::bridge::key::AffinityKey;
use crate::bridge::ownership::{AccountId, SessionId};
use crate::bridge::quarantine::Tripped;
use crate::bridge::session::{Input, Output, Retired, Session};
use crate::bridge::turn::{self, Turn, TurnEnd};
use crate::bridge::watchdog::{Transport, Verdict};
use crate::event::History;
use crate::store::Ticket;
use crate::upstream::{Close, CloseClass, Socket, SocketEvent};
use crate::wire::head::{self, Head};
use crate::wire::limits;

use waits::{durable, gone, room};

mod renewed;
mod trip;
mod waits;

/// Events that are gathered before the client is fed, so that one client's flood does not starve the others. Fewer where
/// they are large: see [`HANDFUL`].
const BATCH: usize = 256;
/// A response that came whole, terminal and all, goes out in one piece if the store is this quick; otherwise what need
/// not wait for the store does not wait for it.
const ONE_PIECE: Duration = Duration::from_millis(2);

/// See the module.
pub struct Actor {
    runtime: Arc<Runtime>,
    pub(super) id: SessionId,
    pub(super) key: AffinityKey,
    pub(super) account: AccountId,
    /// Which of the account's credentials the socket was opened with.
    credential: u64,
    kept: Kept,
    /// Whose turns it carries; nobody's yet where it is warm.
    tenant: Option<[u8; 16]>,
    socket: Box<Socket>,
    session: Box<Session>,
    inbox: mpsc::Receiver<Command>,
    let_go: bool,
    job: Option<Box<Job>>,
    /// Handshake headers for the opener's turn, and for every turn.
    opener_headers: HeaderMap,
    headers: HeaderMap,
    alarm: Pin<Box<Sleep>>,
    alarm_at: Instant,
    /// Of the socket, when last looked at.
    inbound: u64,
    last_event: &'static str,
    /// Of the running turn.
    last_event_at: Option<Instant>,
    /// An event of a turn came in this wake-up.
    arrived: bool,
    close: Option<CloseClass>,
    /// Until then a response that came whole waits to go out in one piece.
    one_piece_until: Option<Instant>,
    /// A trip whose event follows that of the session's retirement.
    tripped: Option<Tripped>,
    /// A turn whose end is not told yet.
    ended: Option<(Box<Job>, TurnEnd, Option<Ticket>)>,
    /// The client's buffer is full.
    full: bool,
    gone: bool,
}

/// By which policy a session is kept.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// The policy's number.
    pub policy: u64,
    /// See [`Policy::session`](crate::runtime::Policy::session).
    pub jitter: f64,
}

/// What an actor is made of.
pub struct Parts {
    pub id: SessionId,
    pub key: AffinityKey,
    pub account: AccountId,
    pub credential: u64,
    pub tenant: Option<[u8; 16]>,
    pub kept: Kept,
    pub socket: Socket,
    pub session: Session,
    pub inbox: mpsc::Receiver<Command>,
    pub opener_headers: HeaderMap,
    pub headers: HeaderMap,
}

impl Actor {
    /// An actor; [`Self::run`] it on the runtime's tracker.
    pub fn new(runtime: Arc<Runtime>, parts: Parts) -> Self {
        let now = super::now();
        Actor {
            runtime,
            id: parts.id,
            key: parts.key,
            account: parts.account,
            credential: parts.credential,
            kept: parts.kept,
            tenant: parts.tenant,
            socket: Box::new(parts.socket),
            session: Box::new(parts.session),
            inbox: parts.inbox,
            let_go: false,
            job: None,
            opener_headers: parts.opener_headers,
            headers: parts.headers,
            alarm: Box::pin(tokio::time::sleep(Duration::ZERO)),
            alarm_at: now,
            inbound: 0,
            last_event: "none",
            last_event_at: None,
            arrived: false,
            close: None,
            one_piece_until: None,
            tripped: None,
            ended: None,
            full: false,
            gone: false,
        }
    }

    /// Runs the session to its end.
    pub async fn run(mut self) {
        while !self.gone {
            self.arm();
            tokio::select! {
                event = self.socket.event(), if self.close.is_none() && !self.full => self.read(event),
                command = self.inbox.recv(), if !self.let_go => self.told(command),
                () = self.alarm.as_mut() => self.tick(),
                () = gone(self.job.as_deref()) => self.handle(Input::ClientGone),
                room = room(self.job.as_deref()), if self.full => self.relieved(room),
                () = durable(&self.runtime, &self.session, self.job.as_deref()) => self.durable(),
            }
            self.feed();
        }
        self.hand_back();
    }

    /// A turn that was leased while the socket went away was not sent.
    fn hand_back(&mut self) {
        self.inbox.close();
        while let Ok(command) = self.inbox.try_recv() {
            if let Command::Lease(job) = command {
                job.unsent();
            }
        }
    }

    /// Sets the alarm only when it would ring too late: a deadline that moves away costs nothing until it would ring.
    fn arm(&mut self) {
        let far = || super::now() + Duration::from_secs(3600);
        let deadlines = [self.session.deadline(), self.one_piece_until];
        let at = deadlines.into_iter().flatten().min().unwrap_or_else(far);
        if at < self.alarm_at || self.alarm.is_elapsed() {
            self.alarm_at = at;
            self.alarm.as_mut().reset(at.into());
        }
    }

    fn told(&mut self, command: Option<Command>) {
        let now = super::now();
        match command {
            Some(Command::Lease(mut job)) => {
                self.catch_up(now);
                if self.gone {
                    job.unsent();
                    return;
                }
                self.renew(now);
                let turn = job.policy.turn(Transport::WebSocket, job.stream, false);
                let (arrived, stored) = (job.caller.arrived, job.stored);
                // Gaps are a turn's: the time that the socket was idle is none.
                self.last_event_at = None;
                job.credential = self.credential;
                job.on = Some(self.id);
                // A warm session is bound by its first turn, and then has no other key.
                self.key = job.key;
                self.tenant = Some(job.caller.tenant.hash);
                self.job = Some(job);
                self.handle_at(
                    now,
                    Input::Lease {
                        turn,
                        arrived,
                        stored,
                    },
                );
            }
            Some(Command::Retire(reason)) => self.handle_at(now, Input::Retire(reason)),
            Some(Command::Slept) => self.handle_at(now, Input::Slept),
            Some(Command::Cut) => self.handle_at(now, Input::Cut),
            Some(Command::Look) => self.look(now),
            // The registry has let go of the session.
            None => {
                self.let_go = true;
                self.handle_at(now, Input::Retire(Retired::Evicted));
            }
        }
    }

    /// Takes what has come already, before anything is decided without it: a close that is as new as the lease, or the
    /// event whose deadline passed while the process was stopped.
    fn catch_up(&mut self, now: Instant) {
        for _ in 0..BATCH {
            if self.gone || self.full || self.close.is_some() {
                break;
            }
            match self.socket.try_event() {
                Some(event) => self.take(now, event),
                None => break,
            }
        }
        self.note_arrival(now);
    }

    fn tick(&mut self) {
        let now = super::now();
        self.catch_up(now);
        self.notice_life(now);
        let waiting_since = self.job.as_ref().and_then(|job| job.feed.waiting_since());
        self.session.tick(now, waiting_since);
        self.drain(now);
    }

    /// Bytes of a frame that is not whole yet are signs of life too.
    fn notice_life(&mut self, now: Instant) {
        let inbound = self.socket.inbound_bytes();
        if std::mem::replace(&mut self.inbound, inbound) != inbound {
            self.session.handle(now, Input::Alive { pong: false });
        }
    }

    /// Takes what came, and what else is ready, in one go.
    fn read(&mut self, first: SocketEvent) {
        let now = super::now();
        self.take(now, first);
        for _ in 1..BATCH {
            let fed = self.job.as_ref().map_or(0, |job| job.feed.pending());
            if self.gone || self.close.is_some() || fed >= HANDFUL {
                break;
            }
            match self.socket.try_event() {
                Some(event) => self.take(now, event),
                None => break,
            }
        }
        self.inbound = self.socket.inbound_bytes();
        self.note_arrival(now);
    }

    /// Whatever else came first, a wake-up with events in it is one arrival.
    fn note_arrival(&mut self, now: Instant) {
        if std::mem::take(&mut self.arrived)
            && let Some(last) = self.last_event_at.replace(now)
        {
            self.runtime.events.telemetry().gap(now.duration_since(last));
        }
    }

    fn take(&mut self, now: Instant, event: SocketEvent) {
        match event {
            SocketEvent::Text(text) => {
                let data = Bytes::from(text);
                let framed = head::read(&data);
                let name = frame::name(&framed.event, &data);
                let head = framed.head;
                self.runtime.trap(&head);
                self.last_event = frame::class(&head);
                self.arrived = self.job.is_some();
                if let Some(job) = &mut self.job {
                    if let Head::Telemetry = head {
                        job.limits = limits::headers(&data);
                    }
                    if let Head::ItemDone | Head::Error(_) | Head::Terminal(_) = head {
                        self.runtime.observe(job, &head, &data);
                    }
                }
                self.handle_at(now, Input::Event { name, data, head });
            }
            SocketEvent::Ping => self.handle_at(now, Input::Alive { pong: false }),
            SocketEvent::Pong => self.handle_at(now, Input::Alive { pong: true }),
            SocketEvent::Wrote(_) => self.handle_at(now, Input::Wrote),
            SocketEvent::Flushed => {
                self.handle_at(now, Input::Flushed);
                self.record(now);
            }
            SocketEvent::Closed(close) => self.closed(now, close),
        }
    }

    /// What the turn said is told to its session's memory once it is on its way, so that nobody waits for it.
    fn record(&mut self, now: Instant) {
        let recording = self.job.as_ref().and_then(|job| self.runtime.recording(job));
        if let Some(recording) = recording {
            self.handle_at(now, Input::Record(recording));
        }
    }

    fn closed(&mut self, now: Instant, close: Close) {
        self.close = Some(close.class);
        let too_big = close.class == CloseClass::TooBig;
        let unaccepted = self
            .session
            .turn()
            .is_some_and(|turn| turn.response_id().is_none());
        if let (true, true, Some(job)) = (too_big, unaccepted, &self.job) {
            self.runtime
                .registry()
                .transport(self.account)
                .refused_size(now, job.length);
        }
        self.handle_at(now, Input::Closed { too_big });
    }

    /// The store commits in order: with the latest owner, those before it are durable too.
    fn durable(&mut self) {
        while self.session.turn().is_some_and(Turn::awaits_durable) {
            self.handle(Input::Durable);
        }
    }

    fn handle(&mut self, input: Input) {
        self.handle_at(super::now(), input);
    }

    fn handle_at(&mut self, now: Instant, input: Input) {
        self.session.handle(now, input);
        self.drain(now);
    }

    /// Hands the client what was encoded. While its buffer is full nothing more is read.
    fn feed(&mut self) {
        let Some(job) = &mut self.job else {
            self.one_piece_until = None;
            self.full = false;
            return;
        };
        let now = super::now();
        let whole = job.feed.is_fresh() && self.session.turn().is_some_and(Turn::awaits_durable);
        if whole && now < *self.one_piece_until.get_or_insert(now + ONE_PIECE) {
            return;
        }
        self.one_piece_until = None;
        job.feed.flush(now);
        self.full = job.feed.full_since().is_some();
    }

    fn relieved(&mut self, room: bool) {
        if !room {
            self.handle(Input::ClientFull);
        }
    }

    fn drain(&mut self, now: Instant) {
        while let Some(output) = self.session.poll() {
            match output {
                Output::Send => self.send(),
                Output::Ping => self.socket.ping(),
                Output::Close(code) => self.socket.close(code),
                // Nearly all of a turn: not worth more than it needs.
                Output::Turn(turn::Output::Forward { name, data }) => {
                    if let Some(job) = &mut self.job {
                        job.feed.event(&name, data);
                    }
                }
                Output::Turn(output) => self.turn(now, output),
                Output::Unsent => {
                    if let Some(job) = self.job.take() {
                        job.unsent();
                    }
                }
                Output::Idle => self.idle(now),
                Output::Retired(reason) => self.retired(now, reason),
                Output::Gone => self.gone = true,
            }
        }
        // After the session is idle again, or gone: whoever hears of the end finds it so, and a job that goes back may take
        // the same session.
        if let Some((job, end, durable)) = self.ended.take() {
            job.finish(&self.runtime, now, &end, durable);
        }
    }

    fn send(&mut self) {
        let Some(job) = &mut self.job else { return };
        self.socket.begin(std::mem::take(&mut job.payload));
        report::sent(&self.runtime, job, self.id, self.session.turns());
    }

    fn turn(&mut self, now: Instant, output: turn::Output) {
        let Some(mut job) = self.job.take() else { return };
        let history = matches!(output, turn::Output::End(_)).then(|| self.history(now));
        let (opener, headers) = (&self.opener_headers, &self.headers);
        let way = Way {
            transport: Transport::WebSocket,
            session: Some(self.id),
            headers: &|job: &Job| {
                if job.opener {
                    opener.clone()
                } else {
                    headers.clone()
                }
            },
            history,
        };
        match job.carry_out(&self.runtime, now, &way, output) {
            None => self.job = Some(job),
            Some(end) => self.turn_ended(now, job, &end),
        }
    }

    fn turn_ended(&mut self, now: Instant, job: Box<Job>, end: &TurnEnd) {
        let silent = matches!(end.verdict, Some(Verdict::Silent(_)));
        let durable = if silent { self.trip(now) } else { None };
        // Frees its memory: an opener's headers are of no more use.
        self.opener_headers = HeaderMap::new();
        self.ended = Some((job, *end, durable));
    }

    fn idle(&mut self, now: Instant) {
        let memory = self.session.tell_memory();
        self.runtime.registry().idle(self.id, now, memory);
        self.last_event = "none";
        self.renew(now);
        if let Some(reason) = self.runtime.unwanted(self.account, self.credential, self.tenant) {
            self.session.handle(now, Input::Retire(reason));
        }
    }

    fn retired(&mut self, now: Instant, reason: Retired) {
        self.runtime.registry().remove(self.id);
        report::retired(&self.runtime, self, reason, self.history(now));
        if let Some(tripped) = self.tripped.take() {
            report::quarantined(&self.runtime, self.account, self.key, &tripped);
        }
    }

    /// What the socket has been through, in closed words.
    pub(super) fn history(&self, now: Instant) -> History {
        report::history(
            &self.session,
            now,
            self.close.map(CloseClass::label),
            self.last_event,
        )
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // After a panic the session is gone without a word: it must not stay leased for ever.
        if !self.gone {
            self.runtime.registry().remove(self.id);
        }
    }
}
