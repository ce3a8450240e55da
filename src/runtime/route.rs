//! Which account a request goes to: what the decision in `bridge::route` needs is gathered here, and carried out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};

use http::HeaderMap;

use super::call::{Caller, Tenant};
use super::owned::Course;
use super::policy::Routing;
use super::{Runtime, now, numbered, unix};
use crate::bridge::availability::{Availability, Unavailable};
use crate::bridge::compact::Compact;
use crate::bridge::continuation::Outline;
use crate::bridge::key::{self, AffinityKey, Hash16, KeyKind};
use crate::bridge::ownership::{AccountId, Owner};
use crate::bridge::pins::Pins;
use crate::bridge::route::{self, Able, Decision, Facts, Named, Out, Why};
use crate::bridge::routing::{Chooser, Strategy, serves};
use crate::event::{Event, Excluded};
use crate::refusal::{Kind, Refusal};
use crate::wire::ProviderKind;
use crate::wire::bound::{self, Bound};
use crate::wire::headers::TURN_STATE;
use crate::wire::request::Create;

/// Turn-states whose account is remembered: they live for one turn of an agent.
const MAX_TURN_STATES: usize = 4096;

/// What is known of accounts and keys for routing. One std mutex guards it: a choice and what it leads to are one step.
pub struct Routes {
    pub pins: Pins,
    pub chooser: Chooser,
    pub availability: Availability,
    /// Which account gave a turn-state.
    pub turn_states: Compact<AccountId>,
}

impl Routes {
    /// Another policy, for the same accounts.
    pub fn reconfigure(&mut self, policy: &Routing) {
        self.pins.reconfigure(policy.max_pins, policy.pin_ttl.as_secs());
        let weights = policy.accounts.iter().map(|account| account.weight);
        self.chooser.reconfigure(policy.strategy, weights);
    }

    /// Nothing is known yet.
    pub fn new(policy: &Routing) -> Routes {
        let weights = policy.accounts.iter().map(|account| account.weight);
        Routes {
            pins: Pins::new(policy.max_pins, policy.pin_ttl.as_secs()),
            chooser: Chooser::new(policy.strategy, weights),
            availability: Availability::new(policy.accounts.len()),
            turn_states: Compact::new(MAX_TURN_STATES),
        }
    }
}

/// Turns at work, by account.
pub type InFlight = Arc<[AtomicUsize]>;

/// A turn at work with an account, for as long as this is held.
pub struct AtWork(InFlight, AccountId);

impl AtWork {
    pub(super) fn new(counts: &InFlight, account: AccountId) -> AtWork {
        counts[usize::from(account.0)].fetch_add(1, Ordering::Relaxed);
        AtWork(counts.clone(), account)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0[usize::from(self.1.0)].fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where a create goes.
pub struct Routed {
    pub account: AccountId,
    pub owner: Option<Owner>,
    pub key: AffinityKey,
    pub course: Course,
}

/// What a create carries that is bound to an account.
#[derive(Default)]
struct Items {
    carries: bool,
    hashes: Vec<Hash16>,
    owners: Vec<AccountId>,
}

/// What the refusals of an unknown thing add to the table's words.
const WHOSE: &str = "Several accounts could be meant, and it is not known whose it is.";
/// What a create can do about it, and what can be done about any request.
const IN_FULL: &str =
    "Send the conversation in full, or let the operator set ownership.unknown = \"forward\".";
const FORWARD: &str = "The operator can set ownership.unknown = \"forward\".";

impl Runtime {
    /// The routes, locked. Never across an await, nor while the registry is.
    pub(super) fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The account and the key of a create. The turn is at work there from now on.
    ///
    /// # Errors
    /// Nothing may be sent: see [`Decision`].
    pub(super) fn route(
        &self,
        caller: &mut Caller,
        create: &mut Create,
        outline: Option<&Outline>,
    ) -> Result<Routed, Refusal> {
        let derived = self.derived(caller, create, outline);
        let (named, owner) = self.owner_of(caller, create.previous_response_id.as_deref());
        let several = self.has_several(caller);
        // Where there is no other account for them to be of, nothing is looked for.
        let items = if several {
            self.items(&caller.tenant, &bound::of_create(create))
        } else {
            Items::default()
        };
        let facts = Facts {
            named,
            carries: items.carries,
            owners: &items.owners,
            kind: derived.kind,
            pin: None,
        };
        let account = self.decide(caller, facts, Some(derived), Some(&create.model));
        let (account, why) =
            account.map_err(|decision| self.refusal(caller, decision, Kind::UnknownAnchor))?;
        let at_work = AtWork::new(&self.in_flight, account);
        let tenant = caller.tenant.hash;
        self.strip_turn_state(&tenant, &mut caller.headers, account, several);
        // A client of sockets says in the body what others say in a header.
        let said = create.metadata(TURN_STATE).filter(|_| self.accounts.len() > 1);
        let foreign = said.is_some_and(|said| self.is_foreign(&tenant, said.as_bytes(), account, several));
        if foreign && let Some(stripped) = create.without_metadata(TURN_STATE) {
            *create = stripped;
        }
        let key = owner.and_then(|owner| owner.key);
        Ok(Routed {
            account,
            owner,
            key: key.unwrap_or_else(|| self.key_with(derived, account)),
            course: Course::new(
                why,
                derived,
                items.carries,
                named != Named::Nothing,
                items.hashes,
                at_work,
            ),
        })
    }

    /// The key of a create, whatever its account: what it says, or else what its conversation opens with (CONT-27).
    fn derived(&self, caller: &Caller, create: &Create, outline: Option<&Outline>) -> AffinityKey {
        let tenant = &caller.tenant.hash;
        let derived = key::derive(&self.hasher, tenant, api(caller), &caller.headers, create);
        let outline = outline.filter(|_| derived.kind == KeyKind::Keyless);
        match outline.and_then(|outline| outline.opening(&self.digester, create)) {
            Some(opening) => key::by_content(&self.hasher, tenant, api(caller), &create.model, opening),
            None => derived,
        }
    }

    /// The account of a request that names a response and is no create. `unknown`: the row of the table for one that
    /// nobody is known to own.
    ///
    /// # Errors
    /// Nothing may be sent: see [`Decision`].
    pub(super) fn route_to_owner(
        &self,
        caller: &Caller,
        response_id: &str,
        unknown: Kind,
    ) -> Result<AccountId, Refusal> {
        let (named, _) = self.owner_of(caller, Some(response_id));
        let facts = Facts {
            named,
            carries: false,
            owners: &[],
            kind: KeyKind::Response,
            pin: None,
        };
        let decided = self.decide(caller, facts, None, None);
        let decided = decided.map_err(|decision| self.refusal(caller, decision, unknown));
        decided.map(|(account, _)| account)
    }

    /// The account that a conversation, named by the headers of a request that is no create, is pinned to. What a compaction
    /// makes, say, only the conversation's own account can read.
    pub(super) fn pinned_by_headers(&self, caller: &Caller) -> Option<AccountId> {
        let key = key::of_headers(&self.hasher, &caller.tenant.hash, api(caller), &caller.headers)?;
        let pin = self.routes().pins.of(key.hash, unix().as_secs())?;
        self.kindred(caller.chatgpt)
            .find(|account| *account == pin.account)
    }

    fn owner_of(&self, caller: &Caller, id: Option<&str>) -> (Named, Option<Owner>) {
        let Some(id) = id else {
            return (Named::Nothing, None);
        };
        let response = self.hasher.response(&caller.tenant.hash, id);
        let owner = self.registry().owners.of(response, unix().as_secs());
        let ids = caller.ids();
        match owner {
            Some(owner) => {
                self.events.emit(&Event::OwnerRouted {
                    at: self.at(owner.account),
                    ids,
                    response,
                });
                (Named::Owned(owner.account), Some(owner))
            }
            None => {
                self.events.emit(&Event::OwnerUnknown { ids, response });
                (Named::Unknown, None)
            }
        }
    }

    /// Looks up who owns what a create carries.
    fn items(&self, tenant: &Tenant, bound: &Bound<'_>) -> Items {
        if bound.is_empty() {
            return Items::default();
        }
        let sealed = |content| self.hasher.sealed(&tenant.hash, content);
        let sealed: Vec<_> = bound.sealed.iter().map(|content| sealed(content)).collect();
        let id = |id| self.hasher.item(&tenant.hash, id);
        let ids: Vec<_> = bound.ids.iter().map(|one| id(one)).collect();
        let now = unix().as_secs();
        let mut registry = self.registry();
        let known = sealed
            .iter()
            .chain(&ids)
            .filter_map(|hash| registry.owners.of(*hash, now));
        let owners = known.map(|owner| owner.account).collect();
        drop(registry);
        Items {
            carries: true,
            owners,
            // Of encrypted ones the last says all.
            hashes: sealed.into_iter().take(1).chain(ids).collect(),
        }
    }

    /// The accounts of the kind that the caller means, or all where there is none.
    fn kindred(&self, chatgpt: bool) -> impl Iterator<Item = AccountId> {
        let of_kind = move |named: &super::Named| (named.upstream.kind() == ProviderKind::Chatgpt) == chatgpt;
        let any = self.accounts.iter().any(of_kind);
        numbered(&self.accounts)
            .filter(move |(_, named)| !any || of_kind(named))
            .map(|(account, _)| account)
    }

    /// Whether more than one account could be meant.
    pub(super) fn has_several(&self, caller: &Caller) -> bool {
        self.kindred(caller.chatgpt).nth(1).is_some()
    }

    /// These accounts as the decision sees them.
    pub(super) fn able(
        &self,
        routes: &Routes,
        caller: &Caller,
        model: Option<&str>,
        tried: &[AccountId],
    ) -> Vec<Able> {
        let at = now();
        let policy = self.policy();
        let able = self.kindred(caller.chatgpt).map(|account| {
            let routable = &policy.routing.accounts[usize::from(account.0)];
            Able {
                account,
                serves: model.is_none_or(|model| serves(&routable.models, model)),
                own: routable.own,
                out: routes.availability.of(account, at),
                in_flight: self.in_flight[usize::from(account.0)].load(Ordering::Relaxed),
                tried: tried.contains(&account),
            }
        });
        able.collect()
    }

    /// Decides and pins under one lock, so that turns of one key that arrive together go together.
    fn decide(
        &self,
        caller: &Caller,
        mut facts: Facts<'_>,
        derived: Option<AffinityKey>,
        model: Option<&str>,
    ) -> Result<(AccountId, Why), Decision> {
        let rules = self.policy().rules();
        let pinned = derived.filter(|key| key.kind.is_pinned());
        let seconds = unix().as_secs();
        let mut excluded = Vec::new();
        let decision = {
            let mut routes = self.routes();
            let able = self.able(&routes, caller, model, &[]);
            let Routes { pins, chooser, .. } = &mut *routes;
            facts.pin = pinned.and_then(|key| pins.of(key.hash, seconds));
            let random = random(chooser.strategy());
            let decision = route::decide(&facts, &able, rules, chooser, random, &mut excluded);
            if let (Decision::To(account, _), Some(key), true) = (decision, pinned, able.len() > 1) {
                pins.choose(key.hash, account, seconds);
            }
            decision
        };
        let Decision::To(account, why) = decision else {
            return Err(decision);
        };
        if derived.is_some() {
            self.chosen(caller, account, why, &excluded);
        }
        Ok((account, why))
    }

    /// Tells which account was chosen.
    pub(super) fn chosen(&self, caller: &Caller, account: AccountId, why: Why, excluded: &[Out]) {
        let out = |(account, reason): &Out| Excluded {
            at: self.at(*account),
            reason,
        };
        // Where all are unavailable it is one of them that was chosen.
        let others = excluded.iter().filter(|(other, _)| *other != account);
        let excluded: Vec<_> = others.map(out).collect();
        self.events.emit(&Event::RouteChosen {
            at: self.at(account),
            ids: caller.ids(),
            reason: why.label(),
            excluded: &excluded,
        });
    }

    /// The refusal of what goes nowhere. `unknown`: the row of the table for a response that nobody is known to own.
    fn refusal(&self, caller: &Caller, decision: Decision, unknown: Kind) -> Refusal {
        let whose = |what: &str| match self.has_several(caller) && !self.policy().shared_credentials {
            true if unknown == Kind::UnknownAnchor => {
                Refusal::because(unknown, format!("{what} {WHOSE} {IN_FULL}"))
            }
            true => Refusal::because(unknown, format!("{what} {WHOSE} {FORWARD}")),
            false => unknown.into(),
        };
        match decision {
            Decision::OwnerUnavailable(account, out) => self.owner_unavailable(caller, account, out),
            Decision::Conflict => {
                self.events.emit(&Event::OwnerConflict { ids: caller.ids() });
                Kind::OwnerConflict.into()
            }
            Decision::UnknownResponse if unknown == Kind::UnknownAnchor => {
                whose("Previous response not found.").about("previous_response_id")
            }
            Decision::UnknownResponse => whose("Response not found."),
            Decision::UnknownItem => {
                whose("Previous response not found: the input has items that only one account can read.")
                    .about("input")
            }
            Decision::NotServed => Refusal::from(Kind::ModelNotServed).about("model"),
            // Cannot be: that is no refusal.
            Decision::To(..) => Kind::NoAccount.into(),
        }
    }

    /// The refusal of what must go to an account that is unavailable, told of as that.
    pub(super) fn owner_unavailable(&self, caller: &Caller, account: AccountId, out: Unavailable) -> Refusal {
        let refusal = Refusal::owner_unavailable(out.until.saturating_duration_since(now()));
        self.events.emit(&Event::OwnerUnavailable {
            at: self.at(account),
            ids: caller.ids(),
            reason: out.reason,
            retry_after_s: refusal.retry_after().unwrap_or_default().as_secs(),
        });
        refusal
    }

    /// The key of a conversation's sessions with an account.
    pub(super) fn key_with(&self, derived: AffinityKey, account: AccountId) -> AffinityKey {
        derived.with_account(&self.hasher, self.account(account).name())
    }

    /// Takes a turn-state out of a client's headers unless this account gave it (INV-6). Where no other account could have
    /// given it, one that is not known may go there.
    pub(super) fn strip_turn_state(
        &self,
        tenant: &[u8; 16],
        headers: &mut HeaderMap,
        account: AccountId,
        several: bool,
    ) {
        let mut values = headers.get_all(TURN_STATE).iter();
        if values.any(|value| self.is_foreign(tenant, value.as_bytes(), account, several)) {
            headers.remove(TURN_STATE);
        }
    }

    fn is_foreign(&self, tenant: &[u8; 16], turn_state: &[u8], account: AccountId, several: bool) -> bool {
        let hash = self.hasher.turn_state(tenant, turn_state);
        match self.routes().turn_states.get(hash) {
            Some(giver) => giver != account,
            None => several,
        }
    }

    /// Remembers which account gave the turn-state among these headers of an answer.
    pub(super) fn note_turn_state(&self, tenant: &[u8; 16], headers: &HeaderMap, account: AccountId) {
        if let Some(value) = headers.get(TURN_STATE).filter(|_| self.accounts.len() > 1) {
            let hash = self.hasher.turn_state(tenant, value.as_bytes());
            self.routes().turn_states.put(hash, account);
        }
    }
}

/// Which of the APIs that share a path the caller means, as a part of its keys.
fn api(caller: &Caller) -> &'static str {
    if caller.chatgpt { "chatgpt" } else { "api" }
}

/// A number for the one strategy that needs one.
pub(super) fn random(strategy: Strategy) -> u64 {
    match strategy {
        Strategy::PowerOfTwo => {
            // The last 32 bits of such an id are random; those before them may count.
            let bytes = uuid::Uuid::now_v7().into_bytes();
            u32::from_be_bytes(*bytes.last_chunk().unwrap_or(&[0; 4])).into()
        }
        _ => 0,
    }
}
