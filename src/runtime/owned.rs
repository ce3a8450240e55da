//! What a call remembers of its routing, and what is recorded of it: the pin, and the account-bound items that travelled
//! (KEY-41, KEY-44). Recorded before the terminal is passed on, so that what the client was told survives (INV-11).

use bytes::Bytes;

use super::call::Tenant;
use super::job::Job;
use super::report;
use super::route::AtWork;
use super::{OWNED_FOR, Runtime, unix};
use crate::bridge::key::{AffinityKey, Hash16};
use crate::bridge::ownership::{AccountId, Owner};
use crate::bridge::pins::Pin;
use crate::bridge::route::Why;
use crate::store::{Change, PinRow, Ticket};
use crate::wire::bound;
use crate::wire::error::ErrorClass;
use crate::wire::head::Head;

/// What a call remembers of its routing.
#[derive(Default)]
pub struct Course {
    /// Why the call went to its account.
    why: &'static str,
    /// The key before its account was known.
    derived: Option<AffinityKey>,
    /// The request carries what only one account can read.
    carries: bool,
    /// It names a response.
    names: bool,
    /// Account-bound items that are the account's once it accepts the turn.
    items: Vec<Hash16>,
    /// Accounts that have rejected the call.
    tried: Vec<AccountId>,
    at_work: Option<AtWork>,
    /// The last encrypted content of the answer so far.
    sealed: Option<Hash16>,
    /// The last finished item of the answer so far, by its id.
    last_item: Option<Hash16>,
}

impl Course {
    pub(super) fn new(
        why: Why,
        derived: AffinityKey,
        carries: bool,
        names: bool,
        items: Vec<Hash16>,
        at_work: AtWork,
    ) -> Course {
        Course {
            why: why.label(),
            derived: Some(derived),
            carries,
            names,
            items,
            at_work: Some(at_work),
            ..Course::default()
        }
    }

    /// Why the call went to its account, as events say it; empty before there is one.
    pub(super) fn why(&self) -> &'static str {
        self.why
    }

    /// The request itself is bound to its account.
    pub(super) fn is_bound(&self) -> bool {
        self.carries || self.names
    }

    /// The key before its account was known.
    pub(super) fn derived(&self) -> Option<AffinityKey> {
        self.derived
    }

    /// The key that is pinned.
    pub(super) fn pinned(&self) -> Option<AffinityKey> {
        self.derived.filter(|key| key.kind.is_pinned())
    }

    /// Accounts that have rejected the call.
    pub(super) fn tried(&self) -> &[AccountId] {
        &self.tried
    }

    /// The call goes on with another account.
    pub(super) fn moved(&mut self, from: AccountId, at_work: AtWork) {
        self.why = Why::Failover.label();
        self.tried.push(from);
        self.at_work = Some(at_work);
        self.sealed = None;
        self.last_item = None;
    }
}

impl Runtime {
    /// The account has accepted the call. To be called before the response's owner is recorded: the store commits in
    /// order, so what is recorded here is durable when that is. The ticket is that of the last change, if there is one.
    pub(super) fn accepted(&self, job: &mut Job, stored: bool) -> Option<Ticket> {
        self.answered(job.account);
        let mut ticket = self.pin(job, stored || job.course.carries);
        for item in std::mem::take(&mut job.course.items) {
            ticket = self.own_item(item, job.account).or(ticket);
        }
        ticket
    }

    fn pin(&self, job: &Job, bound: bool) -> Option<Ticket> {
        let key = job.course.pinned()?;
        let now = unix().as_secs();
        let pin = self.routes().pins.accepted(key.hash, job.account, bound, now)?;
        Some(self.store.record(Change::Pin(PinRow {
            key: key.hash.0,
            account: self.account(pin.account).shared_name(),
            bound: pin.bound,
            expires_at: pin.expires_at,
        })))
    }

    /// Records the owner of an account-bound item, unless that is known and will be for long.
    fn own_item(&self, item: Hash16, account: AccountId) -> Option<Ticket> {
        let now = unix();
        let expires_at = (now + OWNED_FOR).as_secs();
        // As a pin: written again once in an eighth of its time.
        let fresh = (now + OWNED_FOR.mul_f64(0.875)).as_secs();
        let owner = Owner {
            account,
            session: None,
            key: None,
            stored: true,
            expires_at,
        };
        {
            let mut registry = self.registry();
            let known = registry.owners.of(item, now.as_secs());
            if known.is_some_and(|known| known.account == account && known.expires_at > fresh) {
                return None;
            }
            registry.owners.record(item, owner);
        }
        Some(self.persist_owner(item, owner))
    }

    /// Sees an event of the answer before the turn does: what of it is bound to the account is recorded when the terminal
    /// has come and is not passed on yet.
    pub(super) fn observe(&self, job: &mut Job, head: &Head, data: &Bytes) {
        let error = match head {
            Head::Error(error) => Some(error),
            Head::Terminal(terminal) => terminal.error.as_ref(),
            _ => None,
        };
        job.failure = error.map(|error| report::answered(error)).or(job.failure);
        job.anchor_unknown |=
            job.continued.is_some() && error.is_some_and(|error| error.class() == ErrorClass::NotFoundAnchor);
        match head {
            Head::ItemDone => {
                if let Some(sealed) = self.sealed(&job.caller.tenant, data) {
                    job.course.sealed = Some(sealed);
                }
                // Where there is no other account, nobody asks whose an id is; encrypted content may outlive that.
                if job.stored && self.has_several(&job.caller) {
                    // A later turn may name items of a response that upstream keeps by their ids.
                    let item = bound::item_id(data).map(|id| self.hasher.item(&job.caller.tenant.hash, &id));
                    job.course.last_item = item.or(job.course.last_item);
                }
            }
            Head::Error(error) => self.failed_later(job, error),
            Head::Terminal(terminal) => {
                if let Some(error) = &terminal.error {
                    self.failed_later(job, error);
                }
                let sealed = job.course.sealed.take();
                let sealed = sealed.or_else(|| self.sealed(&job.caller.tenant, data));
                let mut ticket = sealed.and_then(|_| self.pin(job, true));
                for item in sealed.into_iter().chain(job.course.last_item.take()) {
                    ticket = self.own_item(item, job.account).or(ticket);
                }
                if ticket.is_some() {
                    job.ticket = ticket;
                }
            }
            _ => {}
        }
    }

    fn sealed(&self, tenant: &Tenant, data: &[u8]) -> Option<Hash16> {
        let content = bound::last_sealed(data)?;
        Some(self.hasher.sealed(&tenant.hash, &content))
    }

    /// What an earlier process left of pins.
    pub(super) fn restore_pins(&self, rows: Vec<PinRow>) {
        let now = unix().as_secs();
        let mut routes = self.routes();
        for row in rows {
            let Some(account) = self.account_named(&row.account) else {
                continue;
            };
            let pin = Pin {
                account,
                bound: row.bound,
                expires_at: row.expires_at,
            };
            routes.pins.restore(Hash16(row.key), pin, now);
        }
    }
}
