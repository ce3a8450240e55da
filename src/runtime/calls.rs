//! A create, from its arrival to its reply: plan, then make one attempt; plan again only where another send is allowed.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;
use tokio::sync::futures::OwnedNotified;
use tokio::sync::{mpsc, oneshot};

use super::call::{Call, Caller, Reply, refuse};
use super::client::{self, Waiting};
use super::job::Job;
use super::live::{Live, Phase};
use super::opening::{self, Opening};
use super::probe::{KeyProbe, Place, TransportProbe};
use super::registry::{Ask, Command, Taken};
use super::{Running, Runtime, direct, now};
use crate::bridge::continuation::Compared;
use crate::bridge::key::{self, AffinityKey, KeyKind};
use crate::bridge::ownership::Owner;
use crate::bridge::plan::{Anchor, Direct, Facts};
use crate::bridge::session::Retired;
use crate::config::Transport;
use crate::event::{self, Event};
use crate::refusal::{Kind, Refusal};
use crate::upstream::DialFault;

/// Attempts of one call on sessions at most. Where so many, one after the other, took no byte of it, it goes by direct HTTP.
const MOST_ATTEMPTS: usize = 8;

/// Runs a create.
pub async fn create(runtime: &Arc<Runtime>, call: Call) -> Reply {
    let Call {
        mut caller,
        mut create,
        held,
    } = call;
    if runtime.takes_no_turns() {
        return runtime.refused(&caller, Kind::Draining.into());
    }
    // Only the journal asks for them. Those of the headers are known since the door.
    if runtime.events.is_kept() {
        for signal in key::written(&caller.headers, &create) {
            caller.names.add(runtime.hasher.name(signal));
        }
    }
    let outline = runtime.outline(&caller.headers, &create);
    let routed = match runtime.route(&mut caller, &mut create, outline.as_ref()) {
        Ok(routed) => routed,
        Err(refusal) => return runtime.refused(&caller, refusal),
    };
    let policy = runtime.policy.load_full();
    let buffer = policy.client_buffer;
    let (feed, waiting) = client::pair(&create.model, buffer, runtime.budget.nothing());
    let live = Live::of(&caller, &create, &routed);
    let mut job = Box::new(Job::new(
        (caller, policy),
        routed.account,
        routed.key,
        create,
        held,
        feed,
        Running::new(runtime, live),
    ));
    job.outline = outline;
    job.course = routed.course;
    let anchor = match routed.owner {
        Some(Owner {
            stored: false,
            session: Some(session),
            ..
        }) => Anchor::Unstored(session),
        _ => Anchor::Free,
    };
    Attempts {
        runtime: runtime.clone(),
        waiting,
        anchor,
        queued: None,
        waited: false,
        woken: false,
    }
    .run(job)
    .await
}

/// The attempts of one call.
struct Attempts {
    runtime: Arc<Runtime>,
    waiting: Waiting,
    anchor: Anchor,
    /// Since when the turn waits for a session.
    queued: Option<Instant>,
    waited: bool,
    /// The next attempt follows a wait.
    woken: bool,
}

/// What became of a step: the reply, or the job to be planned again.
type Step = ControlFlow<Option<Reply>, Box<Job>>;

impl Attempts {
    async fn run(mut self, mut job: Box<Job>) -> Reply {
        let mut forced = None;
        let mut attempts = 0;
        loop {
            // A wait is no attempt: its own bound is `queue_wait`, however often it is woken in vain.
            attempts += usize::from(!self.woken);
            let step = match forced.take() {
                // What still waits for a session when the drain's time is up is not sent any more.
                _ if self.runtime.cut.is_cancelled() => self.refuse(job, Kind::Draining.into()).await,
                Some(reason) => self.direct(job, reason, None).await,
                None => self.attempt(job).await,
            };
            match step {
                ControlFlow::Break(reply) => return reply.unwrap_or_else(|| refuse(&Kind::Internal.into())),
                ControlFlow::Continue(again) => job = again,
            }
            if !job.may_come_back {
                forced = Some(Direct::ConnectionLimit);
            } else if attempts >= MOST_ATTEMPTS {
                forced = Some(Direct::NoRoom);
            }
        }
    }

    /// Plans, and does what the plan says.
    async fn attempt(&mut self, mut job: Box<Job>) -> Step {
        let compared = self.runtime.compare(&job);
        let taken = self.take(&job, &compared);
        // Told once, when the wait is over: a turn may be woken in vain.
        if std::mem::take(&mut self.woken)
            && !matches!(taken, Taken::Wait { .. })
            && let Some(since) = self.queued
        {
            let waited = now().duration_since(since);
            self.runtime.events.telemetry().queued(waited);
            job.queued = Some(waited);
        }
        match taken {
            Taken::Reuse {
                lane,
                session,
                anchor,
            } => {
                job.opener = false;
                job.goes("reused");
                self.runtime
                    .continuing(&mut job, compared, Some((session, anchor)));
                self.lease(job, lane).await
            }
            Taken::Open {
                key_probe,
                transport_probe,
                evicted,
            } => {
                job.goes("opened");
                self.runtime.continuing(&mut job, compared, None);
                let place = Place::new(self.runtime.clone(), job.key, Some(job.caller.tenant.hash));
                if let Some(lane) = evicted {
                    // A full lane has a command that ends the session anyway, and a closed one has ended.
                    let _ = lane.try_send(Command::Retire(Retired::Evicted));
                }
                if let Some(probe) = key_probe {
                    let (at, generation) = (self.runtime.at(job.account), probe.generation.0);
                    self.runtime.events.emit(&Event::QuarantineProbe {
                        at,
                        who: job.who(),
                        generation,
                    });
                    job.key_probe = Some(KeyProbe::new(self.runtime.clone(), job.account, probe));
                }
                if let Some(probe) = transport_probe {
                    let half_open = crate::bridge::transport::Change::HalfOpen;
                    self.runtime.breaker_changed(job.account, Some(half_open));
                    job.transport_probe = Some(TransportProbe::new(self.runtime.clone(), job.account, probe));
                }
                self.open(job, place).await
            }
            Taken::Wait { bell, to_dial } => {
                let most = if to_dial {
                    job.policy.waits_to_dial(job.account)
                } else {
                    job.policy.queue_wait
                };
                self.wait(&job, bell, most).await;
                if self.runtime.dismissed.has(&job.caller.tenant.hash) {
                    return self.refuse(job, Kind::UnknownClientKey.into()).await;
                }
                ControlFlow::Continue(job)
            }
            Taken::Direct(reason) => {
                self.runtime.continuing(&mut job, compared, None);
                self.direct(job, reason, None).await
            }
            Taken::Refuse(kind) => self.refuse(job, kind.into()).await,
        }
    }

    fn take(&self, job: &Job, compared: &Compared) -> Taken {
        let runtime = &self.runtime;
        let create = job.create.as_ref();
        let of_account = job.policy.of_account(job.account);
        let frame_length = runtime.frame_length(job);
        let at = now();
        let mut registry = runtime.registry();
        let facts = Facts {
            http_only: of_account.transport == Transport::Http,
            websocket_only: of_account.transport == Transport::Websocket,
            background: create.is_some_and(|create| create.background),
            frame_length,
            max_frame: of_account.max_frame,
            known_too_big: registry.transport(job.account).too_big(at, frame_length),
            anchor: self.anchor,
            unqueued: matches!(job.key.kind, KeyKind::Keyless | KeyKind::Content),
        };
        let ask = Ask {
            key: job.key,
            account: job.account,
            facts,
            names: create.and_then(|create| create.previous_response_id.as_deref()),
            extends: &compared.extends,
            retold: &compared.retold,
            stay: job.on.filter(|_| job.in_full),
            waited: self.waited,
            model: self.only_model(job),
        };
        registry.take(at, &ask)
    }

    /// The job's model, where its account's sockets serve one model each.
    fn only_model<'a>(&self, job: &'a Job) -> Option<&'a str> {
        let one = job.policy.of_account(job.account).one_model;
        one.then_some(&*job.model)
    }

    /// Waits for `most` since it first waited.
    async fn wait(&mut self, job: &Job, bell: Pin<Box<OwnedNotified>>, most: Duration) {
        struct InQueue<'a>(&'a Runtime, AffinityKey);
        impl Drop for InQueue<'_> {
            fn drop(&mut self) {
                self.0.registry().stop_waiting(&self.1);
            }
        }
        let since = *self.queued.get_or_insert_with(now);
        job.reached(Phase::Queued);
        let until = since + most;
        let in_queue = InQueue(&self.runtime, job.key);
        let rung = tokio::time::timeout_at(until.into(), bell);
        let rung = self.runtime.cut.run_until_cancelled(rung);
        let rung = tokio::select! {
            rung = rung => rung,
            () = self.runtime.dismissed.wait_for(&job.caller.tenant.hash) => None,
        };
        drop(in_queue);
        self.waited = matches!(rung, Some(Err(_)));
        self.woken = true;
    }

    /// Hands the job to a session, and waits for the reply or for the job to come back.
    async fn lease(&mut self, mut job: Box<Job>, lane: mpsc::Sender<Command>) -> Step {
        if !self.runtime.frame(&mut job) {
            // Only an accepted turn has no create any more, and those do not come back.
            return ControlFlow::Break(None);
        }
        let (back, mut came_back) = oneshot::channel();
        job.back = Some(back);
        match lane.try_send(Command::Lease(job)) {
            Ok(()) => self.outcome(&mut came_back).await,
            // The session has just gone: nothing was sent.
            Err(
                mpsc::error::TrySendError::Closed(Command::Lease(job))
                | mpsc::error::TrySendError::Full(Command::Lease(job)),
            ) => ControlFlow::Continue(job),
            Err(_) => ControlFlow::Break(None),
        }
    }

    async fn outcome(&mut self, came_back: &mut oneshot::Receiver<Box<Job>>) -> Step {
        tokio::select! {
            biased;
            reply = self.waiting.reply() => ControlFlow::Break(reply),
            Ok(job) = came_back => self.again(job).await,
        }
    }

    /// A job has come back. Where its credential was refused, it is sent once more only if there is another one by now.
    async fn again(&mut self, mut job: Box<Job>) -> Step {
        if job.is_refused() {
            if !self.runtime.reread(&job).await && !self.runtime.refused_for_good(&mut job) {
                job.stand();
                return ControlFlow::Break(self.waiting.reply().await);
            }
            job.forget_refusal();
        }
        ControlFlow::Continue(job)
    }

    /// Opens a session for the job. Refused, failed or slow: direct HTTP in the same call.
    async fn open(&mut self, mut job: Box<Job>, place: Place) -> Step {
        let identity = self.runtime.identity(&job);
        let account = self.runtime.account(job.account);
        let generation = account.generation();
        let credential = (account.credential(&job.caller.headers), generation);
        job.credential = generation;
        let waited = self
            .queued
            .map_or(Duration::ZERO, |since| now().duration_since(since));
        let patience = job.policy.waits_for_handshake(job.account, waited);
        let opening = opening::open(&self.runtime, job.account, place, identity, credential, patience);
        let opened = self.runtime.cut.run_until_cancelled(opening).await;
        match opened.unwrap_or(Opening::Slow) {
            _ if self.runtime.cut.is_cancelled() => ControlFlow::Continue(job),
            Opening::Opened(fresh) => {
                job.opener = true;
                let lane = fresh.take(self.only_model(&job));
                match self.lease(job, lane).await {
                    // It went away before it took a byte: no better than a failed handshake, and the next one would most
                    // likely fare the same.
                    ControlFlow::Continue(job) if job.is_unsent() => self.stillborn(job).await,
                    step => step,
                }
            }
            Opening::Slow => self.direct(job, Direct::UpgradeSlow, None).await,
            Opening::Failed(fault) => self.direct(job, Direct::UpgradeRefused, Some(fault)).await,
        }
    }

    async fn stillborn(&mut self, job: Box<Job>) -> Step {
        let change = {
            let mut registry = self.runtime.registry();
            // What a drain retires was not the upstream's doing.
            if registry.is_draining() {
                None
            } else {
                registry.transport(job.account).stillborn(now())
            }
        };
        self.runtime.breaker_changed(job.account, change);
        self.direct(job, Direct::UpgradeRefused, None).await
    }

    async fn refuse(&mut self, job: Box<Job>, refusal: Refusal) -> Step {
        job.refuse(&self.runtime, refusal);
        ControlFlow::Break(self.waiting.reply().await)
    }

    /// A socket that the job's account must have cannot be had: once more with another credential, or with another account, or
    /// not at all.
    async fn without_socket(&mut self, mut job: Box<Job>, fault: Option<DialFault>) -> Step {
        let unauthorized =
            matches!(&fault, Some(DialFault::Status(refused)) if refused.status == StatusCode::UNAUTHORIZED);
        let another = unauthorized && job.may_reread(&self.runtime) && self.runtime.reread(&job).await;
        if another || self.runtime.unreached(&mut job, fault.as_ref()) {
            job.begin_again();
            return ControlFlow::Continue(job);
        }
        let refusal = job.take_refusal().unwrap_or(Kind::NoSocket.into());
        self.refuse(job, refusal).await
    }

    /// Sends the job by direct HTTP. It comes back only for another credential or another account.
    async fn direct(&mut self, mut job: Box<Job>, reason: Direct, fault: Option<DialFault>) -> Step {
        let websocket_only = job.policy.of_account(job.account).transport == Transport::Websocket;
        if websocket_only && !reason.is_of_the_request() {
            return self.without_socket(job, fault).await;
        }
        job.goes(reason.label());
        // A probe that goes by HTTP proves nothing: the next turn may probe.
        job.key_probe = None;
        job.transport_probe = None;
        self.runtime.fell_back(&job, reason, fault.as_ref());
        job.credential = self.runtime.account(job.account).generation();
        let Some((headers, stream)) = self.runtime.direct_request(&mut job) else {
            return ControlFlow::Break(None);
        };
        // Not for a reason of the connection: it has none of its own.
        job.may_come_back = false;
        let (back, mut came_back) = oneshot::channel();
        job.back = Some(back);
        let task = direct::run(self.runtime.clone(), job, headers, stream);
        self.runtime.tracker.spawn(task);
        self.outcome(&mut came_back).await
    }
}

impl Runtime {
    /// A refusal before there is a job.
    pub(super) fn refused(&self, caller: &Caller, refusal: Refusal) -> Reply {
        self.events.emit(&Event::Refused {
            ids: caller.ids(),
            reason: refusal.kind,
            door: event::AT_CLIENTS,
        });
        self.request_span(caller, 0, Some(refusal.kind.label()));
        refuse(&refusal)
    }

    fn fell_back(&self, job: &Job, reason: Direct, fault: Option<&DialFault>) {
        let (at, who) = (self.at(job.account), job.who());
        if reason == Direct::Quarantined {
            self.events.emit(&Event::QuarantineHttpFallback { at, who });
            return;
        }
        let status = match fault {
            Some(DialFault::Status(refused)) => Some(refused.status.as_u16()),
            _ => None,
        };
        self.events.emit(&Event::HttpFallback {
            at,
            who,
            reason,
            upgrade: fault.map(DialFault::label),
            status,
        });
    }
}
