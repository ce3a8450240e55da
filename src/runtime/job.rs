//! One client call on its way: what it carries from attempt to attempt, and how a turn's outputs are carried out for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::sync::oneshot;

use super::budget::Held;
use super::call::{Caller, refuse};
use super::client::Feed;
use super::live::Phase;
use super::owned::Course;
use super::probe::{KeyProbe, TransportProbe};
use super::report;
use super::{Policy, Running, Runtime};
use crate::bridge::continuation::{Extension, History as Conversation, Outline};
use crate::bridge::key::{AffinityKey, Hash16};
use crate::bridge::ownership::{AccountId, SessionId};
use crate::bridge::turn::{Output, TurnEnd};
use crate::bridge::watchdog::Transport;
use crate::event::{self, Answered, Event, History, NotContinued, Who};
use crate::refusal::Refusal;
use crate::store::Ticket;
use crate::wire::error::ErrorClass;
use crate::wire::head::Created;
use crate::wire::request::Create;

mod answer;

use answer::{json, rejection};

/// A client call on its way.
pub struct Job {
    pub caller: Caller,
    /// The policy of the call's start: it holds to its end (REL-10).
    pub policy: Arc<Policy>,
    pub account: AccountId,
    pub key: AffinityKey,
    /// Dropped once the turn is accepted: nothing may send it again.
    pub create: Option<Create>,
    pub model: Arc<str>,
    pub stream: bool,
    /// The frame or body of the next attempt.
    pub payload: Bytes,
    /// The payload's length, which outlives it.
    pub length: usize,
    pub held: Held,
    pub feed: Feed,
    /// What continuation compares of the request, until its turn is accepted. `None`: the request is left alone.
    pub outline: Option<Outline>,
    /// The conversation that the next attempt continues, with the anchor that the bridge adds.
    pub continued: Option<Continued>,
    /// A conversation that the next attempt tells again, in full: what is the same need not be read again.
    pub retells: Option<Arc<Conversation>>,
    /// Upstream did not know the bridge's own anchor: from now on the call is sent in full.
    pub in_full: bool,
    /// Upstream does not know the bridge's own anchor, which is not told yet.
    pub anchor_unknown: bool,
    /// The session of the latest attempt on one.
    pub on: Option<SessionId>,
    pub course: Course,
    /// How the latest attempt goes, as `turn_finished` says it.
    pub plan: &'static str,
    /// Attempts so far.
    pub attempt: u32,
    /// What the latest attempt ended as, or the refusal instead of one; none where that is an answer.
    pub failed: Option<&'static str>,
    /// How long the call waited for a session, if it did.
    pub queued: Option<Duration>,
    /// Whether upstream keeps the response, as the request asks.
    pub stored: bool,
    /// This call opened the socket: turn-state and rate limits of the handshake are its.
    pub opener: bool,
    pub key_probe: Option<KeyProbe>,
    pub transport_probe: Option<TransportProbe>,
    /// The way back, to be planned again: only unsent, or definitely rejected, which is when another send is allowed (INV-1).
    pub back: Option<oneshot::Sender<Box<Job>>>,
    /// A rejected job may come back once; an unsent one whenever it is unsent.
    pub may_come_back: bool,
    /// Which of the account's credentials the latest attempt was sent with.
    pub credential: u64,
    /// The account's credential was read again for it, which happens once.
    reread: bool,
    /// The owner's place in the store, once accepted.
    pub ticket: Option<Ticket>,
    pub response: Option<Hash16>,
    /// Rate limits that came as an event: newer than those of the handshake.
    pub limits: HeaderMap,
    /// The error with which the upstream failed the accepted turn.
    pub failure: Option<Answered>,
    /// The last word, kept until what must survive it is durable.
    parting: Option<Output>,
    /// Its end is in the log.
    told: bool,
    running: Running,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job")
            .field("request_id", &self.caller.request_id)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// The conversation that an attempt continues: the session remembers its beginning.
pub struct Continued {
    pub anchor: Box<str>,
    pub history: Arc<Conversation>,
    pub extension: Extension,
}

/// What an attempt is made on.
pub struct Way<'a> {
    pub transport: Transport,
    pub session: Option<SessionId>,
    /// Headers for the client when it is committed.
    pub headers: &'a dyn Fn(&Job) -> HeaderMap,
    pub history: Option<History>,
}

/// How a rejected call is sent once more.
#[derive(Clone, Copy)]
enum Again {
    /// The connection was the reason.
    ByHttp,
    /// The upstream does not know the anchor that the bridge added (CONT-24).
    InFull,
}

impl Job {
    /// A job before its first attempt.
    pub(super) fn new(
        (caller, policy): (Caller, Arc<Policy>),
        account: AccountId,
        key: AffinityKey,
        create: Create,
        held: Held,
        feed: Feed,
        running: Running,
    ) -> Self {
        Job {
            caller,
            policy,
            account,
            key,
            model: running.live().model.clone(),
            stream: create.stream,
            stored: create.store.unwrap_or(true),
            create: Some(create),
            payload: Bytes::new(),
            length: 0,
            held,
            feed,
            outline: None,
            continued: None,
            retells: None,
            in_full: false,
            anchor_unknown: false,
            on: None,
            course: Course::default(),
            plan: "none",
            attempt: 0,
            failed: None,
            queued: None,
            opener: false,
            key_probe: None,
            transport_probe: None,
            back: None,
            may_come_back: true,
            credential: 0,
            reread: false,
            ticket: None,
            response: None,
            limits: HeaderMap::new(),
            failure: None,
            parting: None,
            told: false,
            running,
        }
    }

    /// An attempt begins.
    pub(super) fn goes(&mut self, plan: &'static str) {
        self.plan = plan;
        self.attempt += 1;
        self.reached(Phase::of(plan));
    }

    /// Tells operators how far the call has come.
    pub(super) fn reached(&self, phase: Phase) {
        self.running.live().reached(phase, self);
    }

    /// Whether a byte of the latest attempt may have left.
    pub fn is_sent(&self) -> bool {
        self.length > 0 && self.payload.is_empty()
    }

    /// Whether an attempt was prepared of which no byte has left. One that was rejected and begins again is not.
    pub fn is_unsent(&self) -> bool {
        !self.payload.is_empty()
    }

    /// The call as events name it.
    pub fn who(&self) -> Who<'_> {
        Who {
            ids: self.caller.ids(),
            client: self.caller.tenant.client.as_deref(),
            model: &self.model,
            key: self.key.into(),
        }
    }

    /// Carries out one output of the turn. Returns the end when it is the end: pass it to [`Self::finish`].
    pub fn carry_out(
        &mut self,
        runtime: &Runtime,
        now: Instant,
        way: &Way<'_>,
        output: Output,
    ) -> Option<TurnEnd> {
        match output {
            Output::Accepted(created) => self.accepted(runtime, now, way, &created),
            Output::Commit => {
                let headers = self.headers(runtime, way);
                self.feed.commit(headers);
            }
            Output::Forward { name, data } => self.feed.event(&name, data),
            Output::Comment => self.feed.comment(),
            Output::Keepalive => self.feed.keepalive(),
            Output::Json(object) => {
                let headers = self.headers(runtime, way);
                self.feed.answer(json(StatusCode::OK, headers, object));
            }
            Output::Tear => self.feed.tear(),
            Output::Fail { .. } | Output::Reject(_) | Output::Refuse(_) => self.parting = Some(output),
            Output::End(end) => {
                self.told = true;
                self.failed = end.outcome.failure();
                report::finished(runtime, now, self, way, &end);
                return Some(end);
            }
        }
        None
    }

    /// The headers with which the reply begins.
    fn headers(&mut self, runtime: &Runtime, way: &Way<'_>) -> HeaderMap {
        let mut headers = (way.headers)(self);
        runtime.note_turn_state(&self.caller.tenant.hash, &headers, self.account);
        headers.extend(std::mem::take(&mut self.limits));
        headers
    }

    fn accepted(&mut self, runtime: &Runtime, now: Instant, way: &Way<'_>, created: &Created) {
        // Whatever becomes of the turn now, it is never sent again.
        self.create = None;
        self.outline = None;
        self.retells = None;
        self.payload = Bytes::new();
        self.held.set(0);
        self.feed.accepted(created.response_id.as_deref());
        self.reached(Phase::Accepted);
        let stored = created.store.unwrap_or(self.stored);
        // Before the owner: the store commits in order.
        if let Some(ticket) = runtime.accepted(self, stored) {
            self.ticket = Some(ticket);
        }
        if let Some(id) = &created.response_id {
            if runtime.events.is_kept() {
                self.caller.names.add(runtime.hasher.name(id));
            }
            let (response, ticket) = runtime.own(
                &self.caller.tenant,
                id,
                self.account,
                way.session,
                self.key,
                stored,
            );
            self.response = Some(response);
            self.ticket = Some(ticket);
        }
        runtime.events.emit(&Event::TurnAccepted {
            at: runtime.at(self.account),
            who: self.who(),
            transport: way.transport,
            response: self.response,
            waited_ms: report::millis(now.duration_since(self.caller.arrived)),
        });
        if let Some(probe) = self.key_probe.take() {
            probe.cleared();
        }
        if let Some(probe) = self.transport_probe.take() {
            probe.succeeded();
        }
    }

    /// Whether the turn was rejected for a reason that is not the client's, and the call may be sent once more: nothing of
    /// it has reached the client.
    fn comes_back(&self, end: &TurnEnd) -> Option<Again> {
        let Some(Output::Reject(error)) = &self.parting else {
            return None;
        };
        let again = match error.class() {
            ErrorClass::ConnectionLimit | ErrorClass::StreamLimit if self.may_come_back => Again::ByHttp,
            ErrorClass::NotFoundAnchor if self.continued.is_some() => Again::InFull,
            _ => return None,
        };
        let untold = !end.accepted && !end.committed && self.create.is_some();
        untold.then_some(again)
    }

    /// True when the upstream refused the account's credential, and a second look at it may find another one (UP-23).
    fn asks_for_another_credential(&mut self, runtime: &Runtime, end: &TurnEnd) -> bool {
        let refused = match &self.parting {
            Some(Output::Reject(error)) => {
                error.class() == ErrorClass::Authentication && error.http_status() == 401
            }
            _ => false,
        };
        let untold = !end.accepted && !end.committed && self.create.is_some();
        refused && untold && self.may_reread(runtime)
    }

    /// True once, where a second look at the account's credential may find another one (UP-23).
    pub fn may_reread(&mut self, runtime: &Runtime) -> bool {
        runtime.can_reread(self.account) && !std::mem::replace(&mut self.reread, true)
    }

    /// The refusal that is to be its last word, if there is one.
    pub fn take_refusal(&mut self) -> Option<Refusal> {
        match self.parting.take() {
            Some(Output::Refuse(refusal)) => Some(refusal),
            other => {
                self.parting = other;
                None
            }
        }
    }

    /// Whether the job came back with the upstream's refusal of its credential: to be sent once more, or
    /// [`Self::stand`].
    pub fn is_refused(&self) -> bool {
        matches!(self.parting, Some(Output::Reject(_)))
    }

    /// Another credential is in force, or another account is asked: the refusal is forgotten.
    pub fn forget_refusal(&mut self) {
        self.forget_end();
        self.begin_again();
    }

    /// The refusal is the client's answer.
    pub fn stand(self: Box<Self>) {
        self.part(super::now());
    }

    /// The turn has ended: the job goes back, or its last word is delivered, after what must survive it is durable
    /// (`durable`, INV-11) or 250 ms have passed.
    pub fn finish(
        mut self: Box<Self>,
        runtime: &Arc<Runtime>,
        now: Instant,
        end: &TurnEnd,
        durable: Option<Ticket>,
    ) {
        if std::mem::take(&mut self.anchor_unknown) {
            runtime.not_continued(&self, NotContinued::NotFound);
        }
        if let Some(again) = self.comes_back(end)
            && let Some(back) = self.back.take()
        {
            match again {
                Again::ByHttp => self.may_come_back = false,
                Again::InFull => self.in_full = true,
            }
            self.send_back(back);
            return;
        }
        if self.asks_for_another_credential(runtime, end)
            && let Some(back) = self.back.take()
        {
            // Its last word goes along: it stands where no other credential is found.
            let _ = back.send(self);
            return;
        }
        if runtime.goes_elsewhere(&mut self, end)
            && let Some(back) = self.back.take()
        {
            self.begin_again();
            self.send_back(back);
            return;
        }
        self.key_probe = None;
        self.transport_probe = None;
        match durable {
            None => self.part(now),
            Some(ticket) => {
                let runtime = runtime.clone();
                runtime.clone().tracker.spawn(async move {
                    runtime.durable(ticket).await;
                    self.part(super::now());
                });
            }
        }
    }

    /// The end of an attempt is none of the call: another one follows.
    fn forget_end(&mut self) {
        self.parting = None;
        self.failure = None;
        self.limits = HeaderMap::new();
        self.told = false;
    }

    fn send_back(mut self: Box<Self>, back: oneshot::Sender<Box<Job>>) {
        self.forget_end();
        // The call is gone when its client is.
        let _ = back.send(self);
    }

    /// Another account, or another credential, is to be tried: nothing of the attempt before holds for it.
    pub(super) fn begin_again(&mut self) {
        self.key_probe = None;
        self.transport_probe = None;
        self.payload = Bytes::new();
        self.length = 0;
        self.may_come_back = true;
        self.in_full = false;
        self.on = None;
    }

    /// The last word, once the turn has ended.
    pub(super) fn parting(&self) -> Option<&Output> {
        self.parting.as_ref()
    }

    /// Replaces the last word.
    pub(super) fn part_with(&mut self, refusal: Refusal) {
        self.parting = Some(Output::Refuse(refusal));
    }

    /// Gives the job back unsent.
    pub fn unsent(mut self: Box<Self>) {
        if let Some(back) = self.back.take() {
            // The call is gone when its client is.
            let _ = back.send(self);
        }
    }

    fn part(mut self: Box<Self>, now: Instant) {
        match self.parting.take() {
            Some(Output::Fail { code, message }) => self.feed.fail(&code, &message),
            Some(Output::Reject(error)) => self.feed.answer(rejection(&error)),
            Some(Output::Refuse(refusal)) => self.feed.answer(refuse(&refusal)),
            _ => {}
        }
        self.feed.end(now);
    }

    /// Answers with a refusal, before any attempt or instead of another one.
    pub fn refuse(mut self: Box<Self>, runtime: &Runtime, refusal: Refusal) {
        self.told = true;
        self.failed = Some(refusal.kind.label());
        runtime.events.emit(&Event::Refused {
            ids: self.caller.ids(),
            reason: refusal.kind,
            door: event::AT_CLIENTS,
        });
        self.feed.answer(refuse(&refusal));
        self.feed.end(super::now());
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // A call that goes without a word was left by its client while it waited for a session, met a panic, or goes with the
        // process.
        if !self.told {
            let outcome = report::dropped(self.running.runtime(), self);
            self.failed = outcome.failure();
        }
        let runtime = self.running.runtime();
        runtime.request_span(&self.caller, self.attempt, self.failed);
    }
}
