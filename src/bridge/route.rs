//! Which account a request goes to: a pure function over what is known of its names, its key's pin and the accounts
//! (ROUTE-1..ROUTE-9, INV-6).
//!
//! The response that it names, else the account-bound items that it carries, else its key's pin, else the strategy.

use super::availability::Unavailable;
use super::key::KeyKind;
use super::ownership::AccountId;
use super::pins::Pin;
use super::routing::{Candidate, Chooser};

/// The response that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    Nothing,
    Owned(AccountId),
    Unknown,
}

/// What is to be known of a request.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub named: Named,
    /// It carries account-bound items, known or not.
    pub carries: bool,
    /// The owners of those that are known.
    pub owners: &'a [AccountId],
    pub kind: KeyKind,
    /// The pin of its key.
    pub pin: Option<Pin>,
}

/// An account of the kind that the request is for.
#[derive(Clone, Copy, Debug)]
pub struct Able {
    pub account: AccountId,
    /// It serves the request's model.
    pub serves: bool,
    /// It passes the caller's own credential through.
    pub own: bool,
    pub out: Option<Unavailable>,
    pub in_flight: usize,
    /// The same call has been there already.
    pub tried: bool,
}

/// What the configuration says.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Several clients share the accounts' credentials: a response that is not known may be another client's.
    pub shared: bool,
    /// `ownership.unknown = "forward"`.
    pub forward_unknown: bool,
}

/// Why an account was chosen. Closed: a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It made the response that the request names.
    Named,
    /// Account-bound items of the request are its.
    Item,
    /// The key is pinned to it.
    Pin,
    /// The strategy of this name chose it.
    Strategy(&'static str),
    /// No other account could serve the request.
    Only,
    /// The key's own account is unavailable, and the strategy chose this one instead.
    Moved,
    /// Another account rejected the same call.
    Failover,
}

impl Why {
    /// Every reason but those of strategies.
    pub const ALL: [Why; 6] = [
        Why::Named,
        Why::Item,
        Why::Pin,
        Why::Only,
        Why::Moved,
        Why::Failover,
    ];

    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Why::Named => "named",
            Why::Item => "item",
            Why::Pin => "pin",
            Why::Strategy(name) => name,
            Why::Only => "only",
            Why::Moved => "moved",
            Why::Failover => "failover",
        }
    }
}

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    To(AccountId, Why),
    /// It must go to this account, which is unavailable.
    OwnerUnavailable(AccountId, Unavailable),
    /// It names things of two accounts.
    Conflict,
    /// The response that it names is nobody's here, and more than one account could have made it.
    UnknownResponse,
    /// The same of its account-bound items.
    UnknownItem,
    /// No account serves its model.
    NotServed,
}

/// An account that was out of the question, and why.
pub type Out = (AccountId, &'static str);

/// Decides. What the strategy had to leave out goes into `excluded`. `random` is any number.
pub fn decide(
    facts: &Facts<'_>,
    able: &[Able],
    rules: Rules,
    chooser: &mut Chooser,
    random: u64,
    excluded: &mut Vec<Out>,
) -> Decision {
    if facts.named == Named::Unknown && !may_forward(able, rules) {
        return Decision::UnknownResponse;
    }
    let mut owner = match facts.named {
        Named::Owned(account) => Some((account, Why::Named)),
        Named::Nothing | Named::Unknown => None,
    };
    for account in facts.owners {
        if owner.get_or_insert((*account, Why::Item)).0 != *account {
            return Decision::Conflict;
        }
    }
    if let Some((account, why)) = owner {
        return must(account, why, able);
    }
    let bound = facts.carries || facts.named == Named::Unknown;
    // A pin to an account that cannot serve this request is none for it.
    let serves = |pin: &Pin| able.iter().any(|one| one.account == pin.account && one.serves);
    // Many conversations open alike: whose bound items these are, a pin by content does not say.
    let says_whose = facts.kind != KeyKind::Content || !bound;
    let pin = facts.pin.filter(serves).filter(|_| able.len() > 1 && says_whose);
    if let Some(pin) = pin {
        let unavailable = out_of(pin.account, able).is_some();
        if !unavailable {
            return Decision::To(pin.account, Why::Pin);
        }
        if bound || (facts.kind.is_hard() && pin.bound) {
            return must(pin.account, Why::Pin, able);
        }
        let others = available(able, excluded);
        return match chooser.choose(&others, random) {
            Some(account) => Decision::To(account, Why::Moved),
            // All are unavailable: no other one is better.
            None => Decision::To(pin.account, Why::Pin),
        };
    }
    if bound && able.len() > 1 && !rules.forward_unknown {
        // Its own credential reaches nothing but what is the caller's.
        return match only_own(able) {
            Some(account) => Decision::To(account, Why::Only),
            None => Decision::UnknownItem,
        };
    }
    fresh(able, chooser, random, excluded)
}

/// Another account for a call that one has rejected, if there is an available one where it has not been yet.
pub fn elsewhere(
    able: &[Able],
    chooser: &mut Chooser,
    random: u64,
    excluded: &mut Vec<Out>,
) -> Option<AccountId> {
    chooser.choose(&available(able, excluded), random)
}

/// Whether what names a response nobody knows may be sent anywhere.
fn may_forward(able: &[Able], rules: Rules) -> bool {
    let certain = able.len() == 1 || only_own(able).is_some();
    !rules.shared && (certain || rules.forward_unknown)
}

/// The one account that passes the caller's own credential through.
fn only_own(able: &[Able]) -> Option<AccountId> {
    let mut own = able.iter().filter(|one| one.own);
    let first = own.next()?.account;
    own.next().is_none().then_some(first)
}

fn out_of(account: AccountId, able: &[Able]) -> Option<Unavailable> {
    // A single account is never left out: there is nothing else to be tried.
    let one = able
        .iter()
        .filter(|_| able.len() > 1)
        .find(|one| one.account == account)?;
    one.out
}

/// The account that it must be. One that is over its limit says so itself.
fn must(account: AccountId, why: Why, able: &[Able]) -> Decision {
    match out_of(account, able).filter(|out| !out.reason.is_limit()) {
        Some(out) => Decision::OwnerUnavailable(account, out),
        None => Decision::To(account, why),
    }
}

fn fresh(able: &[Able], chooser: &mut Chooser, random: u64, excluded: &mut Vec<Out>) -> Decision {
    let mut serving = able.iter().filter(|one| one.serves);
    let Some(first) = serving.next() else {
        return Decision::NotServed;
    };
    if serving.next().is_none() {
        return Decision::To(first.account, Why::Only);
    }
    let why = Why::Strategy(chooser.strategy().label());
    match chooser.choose(&available(able, excluded), random) {
        Some(account) => Decision::To(account, why),
        // All are unavailable: the one that will be back first.
        None => {
            let serving = able.iter().filter(|one| one.serves);
            let soonest = serving
                .min_by_key(|one| one.out.map(|out| out.until))
                .unwrap_or(first);
            Decision::To(soonest.account, why)
        }
    }
}

/// The accounts that the strategy may choose among.
fn available(able: &[Able], excluded: &mut Vec<Out>) -> Vec<Candidate> {
    let mut candidates = Vec::with_capacity(able.len());
    for one in able {
        let reason = match one.out {
            _ if !one.serves => Some("model"),
            _ if one.tried => Some("tried"),
            Some(out) => Some(out.reason.label()),
            None => None,
        };
        match reason {
            Some(reason) => excluded.push((one.account, reason)),
            None => candidates.push(Candidate {
                account: one.account,
                in_flight: one.in_flight,
            }),
        }
    }
    candidates
}

#[cfg(test)]
mod tests;
