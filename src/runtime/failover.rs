//! What an attempt's end says about its account, and whether the call may go on with another one (ROUTE-5, ROUTE-6).

use super::call::Caller;
use super::job::Job;
use super::route::{AtWork, Routes, random};
use super::{Runtime, now, unix};
use crate::bridge::availability::{Cause, Change, Reason, Unavailable};
use crate::bridge::ownership::AccountId;
use crate::bridge::route::{self, Why};
use crate::bridge::turn::{Outcome, Output, TurnEnd};
use crate::event::Event;
use crate::refusal::Kind;
use crate::upstream::{DialFault, PostFault, Unreached};
use crate::wire::error::WireError;
use crate::wire::headers::TURN_STATE;

/// Statuses after which the upstream may have done the work all the same (INV-1).
const AMBIGUOUS: [u16; 4] = [408, 500, 502, 504];

impl Runtime {
    /// Takes account of how an attempt ended. True when the job has another account now, and is to be planned again.
    pub(super) fn goes_elsewhere(&self, job: &mut Job, end: &TurnEnd) -> bool {
        let cause = match (job.parting(), end.outcome) {
            (_, Outcome::Bridge(Kind::ConnectFailed | Kind::ConnectTimeout | Kind::ProxyFailed))
                if !end.sent =>
            {
                Some(Reason::Unreachable.into())
            }
            (Some(Output::Reject(error)), Outcome::Rejected) => Cause::of(error, unix().as_secs())
                .filter(|_| error.status.is_none_or(|status| !AMBIGUOUS.contains(&status))),
            _ => None,
        };
        let Some(cause) = cause.filter(|_| !end.accepted) else {
            if end.outcome == Outcome::Rejected {
                self.reached(job.account);
            }
            return false;
        };
        let status = rejected_with(job).unwrap_or(0);
        self.failed(job, cause, status, end.committed)
    }

    /// The account's credential was refused, and a second look at it found no other: true when the job has another account now.
    pub(super) fn refused_for_good(&self, job: &mut Job) -> bool {
        rejected_with(job).is_some_and(|status| self.failed(job, Reason::Credential.into(), status, false))
    }

    /// A socket that the account must have, and cannot be had: true when the job has another account now.
    pub(super) fn unreached(&self, job: &mut Job, fault: Option<&DialFault>) -> bool {
        let (cause, status) = match fault {
            Some(
                DialFault::Unresolved
                | DialFault::Refused
                | DialFault::Timeout
                | DialFault::Tls
                | DialFault::Proxy,
            ) => (Some(Reason::Unreachable.into()), 0),
            // There is no direct HTTP to find out what the account has against the call: the upgrade's answer says it.
            Some(DialFault::Status(refused)) => {
                let status = refused.status.as_u16();
                let error = WireError::from_http(status, &refused.headers, &refused.body);
                (Cause::of(&error, unix().as_secs()), status)
            }
            Some(DialFault::NoFiles | DialFault::NotWebSocket | DialFault::Io) | None => (None, 0),
        };
        let committed = job.feed.is_committed();
        cause.is_some_and(|cause| self.failed(job, cause, status, committed))
    }

    /// A request that is no turn got no answer from the account.
    pub(super) fn not_answered(&self, caller: &Caller, account: AccountId, fault: PostFault) {
        let unreached = matches!(fault, PostFault::Unconnected(unreached) if unreached != Unreached::NoFiles);
        if !unreached {
            return;
        }
        self.routes().availability.found(account, Reason::Unreachable);
        if self.has_several(caller) {
            let cause = Reason::Unreachable.into();
            let change = self.routes().availability.failed(account, cause, now());
            self.availability_changed(change);
        }
    }

    /// The upstream has failed an accepted turn: it goes nowhere else, but the reason may be the account's.
    pub(super) fn failed_later(&self, job: &mut Job, error: &WireError) {
        if job.create.is_none()
            && let Some(cause) = Cause::of(error, unix().as_secs())
        {
            self.failed(job, cause, error.http_status(), true);
        }
    }

    fn failed(&self, job: &mut Job, cause: Cause, status: u16, committed: bool) -> bool {
        // What a caller's own credential is told says nothing of other callers, nor may others answer for it.
        let own = job.policy.routing.accounts[usize::from(job.account.0)].own;
        if own && cause.reason != Reason::Unreachable {
            return false;
        }
        self.routes().availability.found(job.account, cause.reason);
        if cause.reason == Reason::Credential {
            self.events.emit(&Event::CredentialRejected {
                at: self.at(job.account),
                reason: "rejected",
                ids: Some(job.caller.ids()),
                status: Some(status),
            });
        }
        // With a single account there is nothing to leave it out of.
        if !self.has_several(&job.caller) {
            return false;
        }
        let change = self.routes().availability.failed(job.account, cause, now());
        self.availability_changed(change);
        if committed || job.create.is_none() {
            return false;
        }
        if self.is_movable(job) {
            return self.move_on(job);
        }
        if !cause.reason.is_limit() {
            self.owner_is_unavailable(job, cause.reason);
        }
        false
    }

    /// Nothing of the call's is bound to its account.
    fn is_movable(&self, job: &Job) -> bool {
        let pinned = job.course.pinned().filter(|key| key.kind.is_hard());
        let mut routes = self.routes();
        let pin = pinned.and_then(|key| routes.pins.of(key.hash, unix().as_secs()));
        let lives_there = pin.is_some_and(|pin| pin.bound && pin.account == job.account);
        !job.course.is_bound() && !lives_there
    }

    fn move_on(&self, job: &mut Job) -> bool {
        let mut tried = job.course.tried().to_vec();
        tried.push(job.account);
        let mut excluded = Vec::new();
        let chosen = {
            let mut routes = self.routes();
            let able = self.able(&routes, &job.caller, Some(&job.model), &tried);
            let Routes { chooser, pins, .. } = &mut *routes;
            let random = random(chooser.strategy());
            let chosen = route::elsewhere(&able, chooser, random, &mut excluded);
            if let (Some(account), Some(key)) = (chosen, job.course.pinned()) {
                pins.choose(key.hash, account, unix().as_secs());
            }
            chosen
        };
        let (Some(account), Some(derived)) = (chosen, job.course.derived()) else {
            return false;
        };
        job.course
            .moved(job.account, AtWork::new(&self.in_flight, account));
        job.account = account;
        job.key = self.key_with(derived, account);
        job.caller.headers.remove(TURN_STATE);
        let stripped = job
            .create
            .as_ref()
            .and_then(|create| create.without_metadata(TURN_STATE));
        job.create = stripped.or(job.create.take());
        self.chosen(&job.caller, account, Why::Failover, &excluded);
        true
    }

    /// The call must go to this account, which has just failed: the client is told what it can do.
    fn owner_is_unavailable(&self, job: &mut Job, reason: Reason) {
        let out = self.routes().availability.of(job.account, now());
        let until = out.map_or_else(now, |out| out.until);
        let refusal = self.owner_unavailable(&job.caller, job.account, Unavailable { reason, until });
        job.part_with(refusal);
    }

    /// The account has answered a request, whatever it said.
    pub(super) fn reached(&self, account: AccountId) {
        self.routes().availability.reached(account);
    }

    /// The account has answered: it can be reached, and its credential is good.
    pub(super) fn answered(&self, account: AccountId) {
        let change = self.routes().availability.answered(account, now());
        self.availability_changed(change);
    }

    /// The account has another credential now.
    pub(super) fn renewed(&self, account: AccountId) {
        let change = self.routes().availability.renewed(account, now());
        self.availability_changed(change);
    }

    /// Tells of the accounts whose time is over.
    pub(super) fn tell_of_recovered_accounts(&self) {
        loop {
            let change = self.routes().availability.expired(now());
            if change.is_none() {
                return;
            }
            self.availability_changed(change);
        }
    }

    fn availability_changed(&self, change: Option<Change>) {
        match change {
            Some(Change::Started {
                account,
                reason,
                lasts,
            }) => self.events.emit(&Event::CooldownStarted {
                at: self.at(account),
                reason,
                for_ms: super::report::millis(lasts),
            }),
            Some(Change::Cleared { account, reason }) => self.events.emit(&Event::CooldownCleared {
                at: self.at(account),
                reason,
            }),
            None => {}
        }
    }
}

/// The status of the rejection that is to be the job's last word.
fn rejected_with(job: &Job) -> Option<u16> {
    match job.parting() {
        Some(Output::Reject(error)) => Some(error.http_status()),
        _ => None,
    }
}
