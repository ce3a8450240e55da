//! What was the matter around a call, with its accounts and with the process.

use super::call::{Call, End};
use super::fact::{Fact, word};
use super::gather::MOMENT_MS;
use super::subject::Subject;

/// What is told late still belongs to what happened before: the store's trouble, say, is seen when it is written to.
pub const LATE_MS: u64 = 5_000;

/// What was the matter around a call.
#[derive(Debug, Default)]
pub struct Surroundings<'a> {
    /// The state was not being written.
    pub store: Option<&'a Fact>,
    /// And then was again.
    pub recovered: Option<&'a Fact>,
    /// The wall clock was set within a minute.
    pub clock: Option<&'a Fact>,
    /// The latest configuration that was read is not in force.
    pub config: Option<&'a Fact>,
    /// Another account was left alone.
    pub cooldown: Option<&'a Fact>,
    /// The account's WebSocket transport was not trusted.
    pub breaker: Option<&'a Fact>,
    /// The bridge ended without a finished drain afterwards, and what ran then left no row.
    pub cut: Option<&'a Fact>,
    /// The conversation went on after it.
    pub went_on: bool,
}

impl<'a> Surroundings<'a> {
    pub fn of(subject: &Subject<'a>, call: &Call<'a>) -> Surroundings<'a> {
        let late = call.ended_ms().saturating_add(LATE_MS);
        let until_then = |fact: &&&Fact| fact.seq < call.last_seq() || fact.at_ms <= late;
        // Nothing of it outlives its process.
        let started = |fact: &&&Fact| fact.is("bridge_started") && fact.seq < call.first_seq();
        let start = subject
            .facts
            .iter()
            .rev()
            .find(started)
            .map_or(0, |fact| fact.seq);
        let before = subject.facts.iter().filter(until_then).copied();
        let before: Vec<&Fact> = before.filter(|fact| fact.seq > start).collect();
        let last = |events: [&str; 2]| {
            let known = before.iter().rev().copied();
            known
                .into_iter()
                .find(|fact| events.contains(&fact.event.as_str()))
        };
        let arrived = call.arrived_ms();
        let store = before
            .iter()
            .rev()
            .copied()
            .find(|fact| fact.is("store_degraded"));
        let recovered = store.and_then(|store| {
            let later = subject.facts.iter().copied().filter(|fact| fact.seq > store.seq);
            later.into_iter().find(|fact| fact.is("store_recovered"))
        });
        let over = |fact: &Fact| fact.seq < call.first_seq() && fact.at_ms < arrived;
        let near = |fact: &&Fact| {
            let by = fact.body.by_ms.saturating_add(MOMENT_MS);
            fact.is("clock_stepped")
                && fact.at_ms.saturating_add(by) >= arrived
                && fact.at_ms <= late.saturating_add(by)
        };
        let with = call.finish().and_then(|fact| fact.account.as_deref());
        let cut = cut(subject, call);
        Surroundings {
            cut,
            went_on: cut.is_some_and(|start| subject.own.iter().any(|call| call.first_seq() > start.seq)),
            store: store.filter(|_| !recovered.is_some_and(over)),
            recovered: recovered.filter(|fact| !over(fact)),
            clock: subject.facts.iter().rev().copied().find(near),
            config: last(["config_rejected", "config_reloaded"]).filter(|fact| fact.is("config_rejected")),
            cooldown: left_alone(&before, arrived, with),
            breaker: before
                .iter()
                .rev()
                .copied()
                .find(|fact| fact.is("breaker_changed") && fact.account.as_deref() == with)
                .filter(|fact| word(&fact.body.reason) != "closed"),
        }
    }
}

impl Surroundings<'_> {
    /// Whether it is one of these.
    pub fn has(&self, fact: &Fact) -> bool {
        let all = [
            self.store,
            self.recovered,
            self.clock,
            self.config,
            self.cooldown,
            self.breaker,
            self.cut,
        ];
        all.into_iter().flatten().any(|known| known.seq == fact.seq)
    }
}

/// The start that tells that the bridge ended without a finished drain behind the last call of the conversation that was asked
/// for, or before one of its calls; or behind the call, where it did not get what it wanted.
fn cut<'a>(subject: &Subject<'a>, call: &Call<'a>) -> Option<&'a Fact> {
    let served = call.end() == End::Served;
    let last = match subject.is_conversation {
        true => subject.own.last().unwrap_or(call),
        false => call,
    };
    let may_have_lost = last.is_of_a_conversation() && (subject.is_conversation || !served);
    let start = subject.cut_after(last);
    let behind = start.filter(|_| may_have_lost || last.end() == End::Open);
    behind.or_else(|| subject.cut_before().filter(|_| subject.is_conversation))
}

/// The latest cooldown of another account that was not over when the call arrived.
fn left_alone<'a>(before: &[&'a Fact], arrived: u64, with: Option<&str>) -> Option<&'a Fact> {
    let mut seen: Vec<&str> = Vec::new();
    for fact in before.iter().rev() {
        if !matches!(fact.event.as_str(), "cooldown_started" | "cooldown_cleared")
            || seen.contains(&fact.at())
        {
            continue;
        }
        seen.push(fact.at());
        let lasts = fact.at_ms.saturating_add(fact.body.for_ms) > arrived;
        if fact.is("cooldown_started") && lasts && fact.account.as_deref() != with {
            return Some(fact);
        }
    }
    None
}
