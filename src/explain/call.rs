//! The events of one client call, together.

use super::cause::Cause;
use super::fact::{Fact, word};

/// One client call.
#[derive(Debug)]
pub struct Call<'a> {
    pub facts: Vec<&'a Fact>,
    /// The id that was asked for names it.
    pub found: bool,
}

/// How a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Served,
    Failed,
    /// No end is in the journal.
    Open,
}

impl<'a> Call<'a> {
    /// Its attempts' ends, in their order.
    pub fn attempts(&self) -> impl DoubleEndedIterator<Item = &'a Fact> + '_ {
        self.facts.iter().copied().filter(|fact| fact.is("turn_finished"))
    }

    /// The end of its last attempt.
    pub fn finish(&self) -> Option<&'a Fact> {
        self.attempts().next_back()
    }

    /// The bridge's refusal that was its answer.
    pub fn refusal(&self) -> Option<&'a Fact> {
        self.with("refused").filter(|_| self.served().is_none())
    }

    /// The latest of its events of this name.
    pub fn with(&self, event: &str) -> Option<&'a Fact> {
        self.facts.iter().rev().copied().find(|fact| fact.is(event))
    }

    /// The attempt that brought the response.
    pub fn served(&self) -> Option<&'a Fact> {
        self.finish()
            .filter(|fact| matches!(word(&fact.body.outcome), "completed" | "incomplete"))
    }

    pub fn end(&self) -> End {
        match (self.served(), self.finish().or(self.refusal())) {
            (Some(_), _) => End::Served,
            (None, Some(_)) => End::Failed,
            (None, None) => End::Open,
        }
    }

    /// The first attempt that an account was the reason of: another one followed it, or none could.
    pub fn rejected(&self) -> Option<&'a Fact> {
        self.attempts()
            .find(|fact| Cause::of_attempt(self, fact).is_some_and(Cause::is_of_the_account))
    }

    /// When it arrived, in Unix milliseconds.
    pub fn arrived_ms(&self) -> u64 {
        let arrivals = self
            .facts
            .iter()
            .map(|fact| fact.at_ms.saturating_sub(fact.body.total_ms));
        arrivals.min().unwrap_or(0)
    }

    /// When the last that is known of it happened.
    pub fn ended_ms(&self) -> u64 {
        self.facts.last().map_or(0, |fact| fact.at_ms)
    }

    /// The place of its last event in the journal.
    pub fn last_seq(&self) -> u64 {
        self.facts.last().map_or(0, |fact| fact.seq)
    }

    pub fn first_seq(&self) -> u64 {
        self.facts.first().map_or(0, |fact| fact.seq)
    }

    pub fn key(&self) -> Option<&'a str> {
        self.facts.iter().rev().find_map(|fact| fact.body.key.as_deref())
    }

    /// Its key stands for one conversation, and not for all calls that say nothing of theirs.
    pub fn is_of_a_conversation(&self) -> bool {
        let kind = self
            .facts
            .iter()
            .rev()
            .find_map(|fact| fact.body.key_kind.as_deref());
        kind.is_some_and(|kind| kind != "keyless")
    }
}
