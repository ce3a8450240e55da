//! Which of what happened to accounts and the process is told on the timeline: what can have mattered to the calls, in a few
//! lines (EXP-11). All else is only counted.

use super::fact::{Fact, word};
use super::gather::MOMENT_MS;
use super::subject::Subject;
use super::surroundings::{LATE_MS, Surroundings};

/// Lines of it at most: of more, those that the sentence names and those nearest to its call.
const MOST: usize = 8;

/// What is told of the surroundings, and what is not.
#[derive(Debug, Default)]
pub struct Nearby {
    told: Vec<u64>,
    /// How many are not told.
    pub left_out: usize,
}

impl Nearby {
    pub fn of(subject: &Subject<'_>) -> Nearby {
        let around: Vec<&Fact> = subject.facts.iter().copied().filter(is_around).collect();
        let times = Times::of(subject);
        let mut told: Vec<&Fact> = around
            .iter()
            .copied()
            .filter(|fact| times.matter(fact, ends_ms(fact, &around)))
            .collect();
        if let Some(call) = subject.chosen() {
            let named = Surroundings::of(subject, call);
            told.extend(around.iter().filter(|fact| named.has(fact)));
            told.sort_by_key(|fact| fact.seq);
            told.dedup_by_key(|fact| fact.seq);
            let (from, until) = (call.arrived_ms(), call.ended_ms());
            told.sort_by_key(|fact| {
                let away = from
                    .saturating_sub(fact.at_ms)
                    .max(fact.at_ms.saturating_sub(until));
                (!named.has(fact), away, fact.seq)
            });
        }
        told.truncate(MOST);
        Nearby {
            left_out: around.len() - told.len(),
            told: told.into_iter().map(|fact| fact.seq).collect(),
        }
    }

    /// Whether a fact is to be told: it is no surrounding, or one that can have mattered.
    pub fn tells(&self, fact: &Fact) -> bool {
        !is_around(&fact) || self.told.contains(&fact.seq)
    }
}

/// It happened to an account or to the process, and to no call or conversation.
fn is_around(fact: &&Fact) -> bool {
    fact.call.is_none() && fact.body.key.is_none() && !fact.found
}

/// When something can matter: from and until, in Unix milliseconds.
struct Times<'a> {
    /// While a call ran, or the one that was its retry.
    calls: Vec<(u64, u64)>,
    /// While the conversation was in quarantine.
    quarantines: Vec<(u64, u64)>,
    accounts: Vec<&'a str>,
}

impl<'a> Times<'a> {
    fn of(subject: &Subject<'a>) -> Times<'a> {
        let retry = subject.chosen().and_then(|call| subject.after(call));
        let told: Vec<_> = subject.own.iter().chain(retry).collect();
        let mut calls: Vec<(u64, u64)> = told
            .iter()
            .map(|call| (call.arrived_ms(), call.ended_ms().saturating_add(LATE_MS)))
            .collect();
        // Where no call is named: what is.
        let named = subject.own_facts().filter(|fact| fact.call.is_none());
        calls.extend(named.map(|fact| (fact.at_ms, fact.at_ms.saturating_add(LATE_MS))));
        let opened = subject.facts.iter().filter(|fact| fact.is("quarantine_opened"));
        let of_calls = told.iter().flat_map(|call| call.facts.iter().copied());
        let accounts = of_calls.chain(subject.own_facts());
        Times {
            calls,
            quarantines: opened
                .map(|fact| (fact.at_ms, fact.at_ms.saturating_add(fact.body.window_ms)))
                .collect(),
            accounts: accounts.filter_map(|fact| fact.account.as_deref()).collect(),
        }
    }

    /// Whether what began with `fact` and ended at `ends_ms` can have mattered.
    fn matter(&self, fact: &Fact, ends_ms: u64) -> bool {
        let meets = |(from, until): &(u64, u64)| fact.at_ms <= *until && ends_ms >= *from;
        let (call, quarantine) = (self.calls.iter().any(meets), self.quarantines.iter().any(meets));
        if fact.is("bridge_started") {
            let all = self.calls.iter().chain(&self.quarantines);
            let from = all.clone().map(|(from, _)| *from).min();
            let until = all.map(|(_, until)| *until).max();
            return from.is_some_and(|from| ends_ms >= from)
                && until.is_some_and(|until| fact.at_ms <= until);
        }
        match fact.account.as_deref() {
            Some(account) if !self.accounts.contains(&account) => {
                // Another account that is left alone is why the call did not go there.
                fact.is("cooldown_started") && call
            }
            _ if word(&fact.body.reason) == "signed_in" => false,
            _ => call || quarantine,
        }
    }
}

/// Until when it lasted, or can have mattered.
fn ends_ms(fact: &Fact, around: &[&Fact]) -> u64 {
    let over: &[&str] = match (fact.event.as_str(), word(&fact.body.reason)) {
        ("cooldown_started", _) => &["cooldown_started", "cooldown_cleared"],
        ("breaker_changed", reason) if reason != "closed" => &["breaker_changed"],
        ("store_degraded", _) => &["store_recovered"],
        ("config_rejected", _) => &["config_rejected", "config_reloaded"],
        ("drain_started", _) => &["drain_finished"],
        ("operator_action", "drain_on") => &["operator_action"],
        // What has ended is no matter any more.
        ("cooldown_cleared" | "breaker_changed" | "store_recovered" | "drain_finished", _) => {
            return fact.at_ms;
        }
        ("clock_stepped", _) => {
            return fact
                .at_ms
                .saturating_add(fact.body.by_ms)
                .saturating_add(MOMENT_MS);
        }
        _ => return fact.at_ms.saturating_add(MOMENT_MS),
    };
    let ends = |next: &&&Fact| {
        let undone = over.contains(&next.event.as_str())
            && next.account == fact.account
            && (!next.is("operator_action") || word(&next.body.reason) == "drain_off");
        // Nothing of it outlives its process.
        next.seq > fact.seq && (undone || next.is("bridge_started"))
    };
    let next = around.iter().find(ends).map_or(u64::MAX, |next| next.at_ms);
    match fact.is("cooldown_started") {
        true => next.min(fact.at_ms.saturating_add(fact.body.for_ms)),
        false => next,
    }
}
