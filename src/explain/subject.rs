//! Which of what is known is what was asked for, and which is around it.

use std::collections::BTreeMap;

use super::Evidence;
use super::call::{Call, End};
use super::fact::Fact;
use super::gather::{ENDED_MS, MOMENT_MS};
use super::split::split;

/// What was asked for, and what is around it.
#[derive(Debug)]
pub struct Subject<'a> {
    /// All facts that are told, in the journal's order.
    pub facts: Vec<&'a Fact>,
    /// The calls that the id names, in the order of their ends.
    pub own: Vec<Call<'a>>,
    /// Other calls of the same conversation.
    pub others: Vec<Call<'a>>,
    /// The printed affinity keys of its calls.
    pub keys: Vec<&'a str>,
    /// Ends of turns of other conversations of the same account.
    pub neighbours: Vec<&'a Fact>,
    pub first_seq: u64,
    /// Rows that may be of another one of the calls of their id than they stand with (EXP-9).
    pub doubtful: usize,
    /// A conversation was asked for, and not a call by its own id.
    pub is_conversation: bool,
}

impl<'a> Subject<'a> {
    pub fn of(facts: &'a [Fact], evidence: &Evidence) -> Subject<'a> {
        let mut named: BTreeMap<u64, Vec<&'a Fact>> = BTreeMap::new();
        for fact in facts.iter().filter(|fact| !fact.neighbour) {
            if let Some(name) = fact.call {
                named.entry(name).or_default().push(fact);
            }
        }
        let steps = facts.iter().filter(|fact| fact.is("clock_stepped"));
        let steps: Vec<&Fact> = steps.collect();
        let mut doubtful = 0;
        let mut calls: Vec<Call<'a>> = Vec::new();
        for facts in named.values() {
            let split = split(facts, &steps);
            if split.calls.iter().any(|call| call.found) {
                doubtful += split.doubtful;
            }
            calls.extend(split.calls);
        }
        calls.sort_by_key(Call::last_seq);
        let (own, others): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.found);
        let mut keys: Vec<&str> = Vec::new();
        let found = facts.iter().filter(|fact| fact.found);
        // A key is an account's own: those of a call that went to several are in the order of its attempts.
        for key in own
            .iter()
            .flat_map(|call| call.facts.iter().filter_map(|fact| fact.body.key.as_deref()))
            .chain(found.filter_map(|fact| fact.body.key.as_deref()))
        {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let pooled = own.iter().any(|call| !call.is_of_a_conversation());
        let others = others
            .into_iter()
            // Calls that say nothing of their conversation share a key, and nothing else.
            .filter(|call| !pooled && call.key().is_some_and(|key| keys.contains(&key)))
            .collect();
        let mut subject = Subject {
            facts: Vec::new(),
            own,
            others,
            keys,
            neighbours: facts.iter().filter(|fact| fact.neighbour).collect(),
            first_seq: evidence.found.first().map_or(0, |row| row.seq),
            doubtful,
            is_conversation: false,
        };
        let asked = |fact: &&Fact| fact.call.is_some_and(|call| evidence.names.contains(&call));
        subject.is_conversation = !facts.iter().any(|fact| asked(&fact));
        let told = facts.iter().filter(|fact| !fact.neighbour && subject.tells(fact));
        subject.facts = told.collect();
        subject
    }

    /// Whether a fact is its own, its conversation's, or one of the surroundings.
    fn tells(&self, fact: &Fact) -> bool {
        match (fact.call, &fact.body.key) {
            (Some(_), _) => self
                .calls()
                .any(|call| call.facts.iter().any(|known| known.seq == fact.seq)),
            (None, Some(key)) => {
                self.keys.contains(&key.as_str()) || fact.is("operator_action") && fact.found
            }
            (None, None) => true,
        }
    }

    /// Own calls and others of the conversation.
    pub fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.own.iter().chain(&self.others)
    }

    /// Facts that the id names.
    pub fn own_facts(&self) -> impl Iterator<Item = &'a Fact> + '_ {
        self.facts.iter().copied().filter(|fact| fact.found)
    }

    /// The call that the sentence is about: the last of its own that was in trouble, or else the last one.
    pub fn chosen(&self) -> Option<&Call<'a>> {
        let troubled = self.own.iter().rev().find(|call| self.is_in_trouble(call));
        let moved = || self.own.iter().rev().find(|call| call.rejected().is_some());
        troubled.or_else(moved).or(self.own.last())
    }

    /// It failed, or was cut short together with the bridge.
    pub fn is_in_trouble(&self, call: &Call<'_>) -> bool {
        match call.end() {
            End::Served => false,
            End::Failed => true,
            End::Open => self.cut_after(call).is_some(),
        }
    }

    /// The start that tells that the bridge ended without a finished drain after this call's last event: before any other start, and
    /// before the end of any later call of the conversation, which would show that it had gone on.
    pub fn cut_after(&self, call: &Call<'_>) -> Option<&'a Fact> {
        let mut later = self
            .facts
            .iter()
            .copied()
            .filter(|fact| fact.seq > call.last_seq());
        let start = later.find(|fact| fact.is("bridge_started"))?;
        let until = call.ended_ms().saturating_add(ENDED_MS);
        let soon = start.body.last_ms.is_none_or(|last| last <= until);
        let went_on = call.is_of_a_conversation()
            && self.calls().any(|other| {
                other.key() == call.key()
                    && (call.last_seq() + 1..start.seq).contains(&other.last_seq())
                    && other.end() != End::Open
            });
        Some(start).filter(|start| start.is_cut() && soon && !went_on)
    }

    /// The latest start that tells that the bridge ended without a finished drain between two calls of a conversation that was
    /// asked for, or shortly before its first: a call of it that ran then left no row, and what followed may be its retry.
    pub fn cut_before(&self) -> Option<&'a Fact> {
        let mut starts = self.facts.iter().rev().copied().filter(|fact| fact.is_cut());
        let lies_before = |start: &Fact, next: &Call<'_>| {
            let earlier = |other: &Call<'_>| other.key() == next.key() && other.last_seq() < start.seq;
            let soon = next.arrived_ms() <= start.at_ms.saturating_add(MOMENT_MS);
            next.is_of_a_conversation() && next.first_seq() > start.seq && (soon || self.calls().any(earlier))
        };
        starts.find(|start| self.own.iter().any(|next| lies_before(start, next)))
    }

    /// The next call of the conversation that came when this one was over.
    pub fn after(&self, call: &Call<'_>) -> Option<&Call<'a>> {
        if !call.is_of_a_conversation() {
            return None;
        }
        // Arrivals are reckoned from whole milliseconds.
        let over = call.ended_ms().saturating_sub(2);
        let later = self
            .calls()
            .filter(|other| other.last_seq() > call.last_seq() && other.arrived_ms() >= over);
        later
            .filter(|other| other.first_seq() != call.first_seq() && other.key() == call.key())
            .min_by_key(|other| other.first_seq())
    }
}
