//! What happened to one call, or to one conversation: rows of the journal in, a timeline and one plain sentence out
//! (`spec/explain.md`). Pure: it reads no clock, no file, and nothing but what it is given.
//!
//! [`gather`] asks a [`Source`] for what it needs, all of it bounded; [`explain`] makes a [`Story`] of it.

use serde::Serialize;

mod call;
mod cause;
mod fact;
mod gather;
mod nearby;
mod sentence;
mod split;
mod subject;
mod surroundings;
mod timeline;
mod units;
mod words;

#[cfg(test)]
mod tests;

pub use cause::Cause;
pub use fact::key_name;
pub use gather::{Evidence, Source, Wanted, cuts, gather};
pub use timeline::{Line, Tone};

use fact::Fact;
use nearby::Nearby;
use subject::Subject;

/// One row of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The journal's own order, which a clock that was set cannot change.
    pub seq: u64,
    /// Unix milliseconds.
    pub at_ms: u64,
    pub event: String,
    /// `provider/account`.
    pub account: Option<String>,
    /// The names by which it is found. The first is the request's, where it happened to one.
    pub names: Vec<u64>,
    /// The event's fields as one JSON object.
    pub body: String,
}

/// What is told.
#[derive(Debug, Serialize)]
pub struct Story {
    /// What was the matter, in a closed word.
    pub cause: Cause,
    /// More of it in a closed word: the refusal's kind, the class of the upstream's error, why an account was left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// One plain sentence: the cause, and what became of it.
    pub sentence: String,
    /// How many calls the id names.
    pub calls: usize,
    /// How many other calls of their conversation are told of.
    pub others: usize,
    /// The printed hashes of the affinity keys that they had.
    pub keys: Vec<String>,
    /// The accounts that they were with.
    pub accounts: Vec<String>,
    /// Something was left out, because it would have been too much.
    pub cut: bool,
    /// How much of what happened to accounts and the process at that time is left out, as it cannot have mattered, or would have
    /// been too much.
    pub left_out: usize,
    /// In the order in which it happened.
    pub timeline: Vec<Line>,
}

/// Tells the story. `None` where there is no row that the id names.
pub fn explain(evidence: &Evidence) -> Option<Story> {
    if evidence.found.is_empty() {
        return None;
    }
    let facts = fact::read(evidence);
    let subject = Subject::of(&facts, evidence);
    let told = sentence::tell(&subject);
    let nearby = Nearby::of(&subject);
    let (timeline, cut) = timeline::of(&subject, &nearby);
    let mut accounts: Vec<String> = Vec::new();
    for fact in subject.own_facts() {
        accounts.extend(fact.account.clone().filter(|account| !accounts.contains(account)));
    }
    Some(Story {
        cause: told.cause,
        detail: told.detail,
        sentence: told.sentence,
        calls: subject.own.len(),
        others: subject.others.len(),
        keys: subject.keys.iter().map(|key| (*key).to_owned()).collect(),
        accounts,
        cut: cut || evidence.cut,
        left_out: nearby.left_out,
        timeline,
    })
}

/// What is said of an id that the journal does not have. `oldest`: when the oldest event happened that it has, in Unix
/// milliseconds; none where it has none. `cuts`: see [`cuts`].
pub fn not_found(oldest: Option<u64>, cuts: &[Row]) -> String {
    let Some(oldest) = oldest else {
        return "the journal is empty: it may be switched off (journal.max = 0), or this is not the state of the bridge that is \
                meant, or the bridge cannot write its state, which `responses-bridge status` tells"
            .to_owned();
    };
    let oldest = units::stamp(oldest);
    let mut told = format!(
        "the journal has nothing of this id: a call that still runs has no row yet (`responses-bridge status` and the status \
         page show what runs), a bridge that cannot write its state has nothing of now in it (`responses-bridge status` tells), \
         or it may be older than what is kept (the oldest event is of {oldest}), too new to be written yet, another \
         installation's, or not as the client sent it"
    );
    for start in cuts.iter().map(Fact::of) {
        let words = words::cut(start.at_ms, start.body.last_ms, units::stamp);
        told += &format!("; {words}: a call that ran then left no row");
    }
    told
}
