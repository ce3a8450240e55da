//! The timeline: what happened, in its order, each line with its time (EXP-3).

use serde::Serialize;

use super::call::Call;
use super::fact::{Fact, word};
use super::nearby::Nearby;
use super::subject::Subject;
use super::units::stamp;
use super::words;
use crate::lapse::spoken;

mod happened;
mod turn;

pub(super) use happened::happened;

/// Lines at most: of more, those nearest to the call that the sentence is about.
const MOST: usize = 160;
/// Of more calls than these only those in trouble are told step by step.
const IN_FULL: usize = 4;

/// Whose doing a line is, which is its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// As it should be.
    Work,
    /// Something was wrong.
    Trouble,
    /// The bridge's answer to it.
    Remedy,
    /// Around the call: the account, the process, other calls.
    Around,
}

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// UTC, RFC 3339.
    pub at: String,
    /// Since the first call of the id arrived, in milliseconds.
    pub since_ms: i64,
    /// Which of the calls that the id names it happened to, from 1 in the order of their arrivals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<usize>,
    /// Which of the other calls of their conversation it happened to, from 1 likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<usize>,
    pub tone: Tone,
    /// In a closed word of at most ten letters.
    pub what: &'static str,
    pub words: String,
    #[serde(skip)]
    at_ms: u64,
    #[serde(skip)]
    seq: u64,
    /// Of the same moment and place it is the first.
    #[serde(skip)]
    early: bool,
}

impl Line {
    fn new(at_ms: u64, seq: u64, tone: Tone, what: &'static str, words: String) -> Line {
        Line {
            at: stamp(at_ms),
            since_ms: 0,
            call: None,
            other: None,
            tone,
            what,
            words,
            at_ms,
            seq,
            early: false,
        }
    }
}

/// The timeline, and whether something was left out of it.
pub(super) fn of(subject: &Subject<'_>, nearby: &Nearby) -> (Vec<Line>, bool) {
    let (own, others) = (in_order(&subject.own), in_order(&subject.others));
    let chosen = subject.chosen().map(Call::last_seq);
    let full = |call: &Call<'_>| {
        let troubled = call.served().is_none() || call.rejected().is_some();
        call.found && (troubled || subject.own.len() <= IN_FULL || Some(call.last_seq()) == chosen)
    };
    let mut lines = Vec::new();
    for fact in subject.facts.iter().filter(|fact| nearby.tells(fact)) {
        let (of, other) = (place(&own, fact), place(&others, fact));
        let call = of.and_then(|index| own.get(index));
        let call = call.or(other.and_then(|index| others.get(index)));
        let mut told = match call {
            Some(call) if fact.is("turn_finished") && full(call) => turn::steps(call, fact),
            Some(call) if fact.is("turn_finished") => turn::whole(call, fact).into_iter().collect(),
            _ => happened(fact).into_iter().collect(),
        };
        for line in &mut told {
            line.call = of.map(|index| index + 1);
            line.other = other.map(|index| index + 1);
        }
        lines.append(&mut told);
    }
    // Steps of a turn are told with its end, and happened before it. Where the clock was set their order is the journal's.
    let stepped = subject.facts.iter().any(|fact| fact.is("clock_stepped"));
    if !stepped {
        lines.sort_by_key(|line| (line.at_ms, line.seq, !line.early));
    }
    let first = subject.own.iter().map(Call::arrived_ms).min();
    let first = first
        .or(subject.own_facts().map(|fact| fact.at_ms).min())
        .unwrap_or(0);
    for line in &mut lines {
        line.since_ms = line.at_ms.cast_signed().saturating_sub(first.cast_signed());
    }
    near(lines, chosen.unwrap_or(subject.first_seq))
}

/// Calls in the order in which they arrived, in which they are numbered (EXP-10).
fn in_order<'s, 'a>(calls: &'s [Call<'a>]) -> Vec<&'s Call<'a>> {
    let mut calls: Vec<&Call<'a>> = calls.iter().collect();
    calls.sort_by_key(|call| (call.arrived_ms(), call.first_seq()));
    calls
}

fn place(calls: &[&Call<'_>], fact: &Fact) -> Option<usize> {
    let has = |call: &&Call<'_>| call.facts.iter().any(|own| own.seq == fact.seq);
    calls.iter().position(has)
}

/// The [`MOST`] lines around the one of `seq`.
fn near(mut lines: Vec<Line>, seq: u64) -> (Vec<Line>, bool) {
    let cut = lines.len() > MOST;
    if cut {
        let middle = lines.iter().position(|line| line.seq == seq).unwrap_or(0);
        let begin = middle.saturating_sub(MOST * 2 / 3).min(lines.len() - MOST);
        lines = lines.into_iter().skip(begin).take(MOST).collect();
    }
    (lines, cut)
}

/// `over HTTP by openai/main`.
fn way(fact: &Fact) -> String {
    format!(
        "over {} by {}",
        words::transport(word(&fact.body.transport)),
        fact.at()
    )
}

/// How an attempt ended.
fn ended(fact: &Fact) -> String {
    let body = &fact.body;
    let total = spoken(body.total_ms);
    match word(&body.outcome) {
        "completed" => format!("completed after {total}"),
        "incomplete" => format!("ended as incomplete after {total}"),
        "failed" => format!("failed by the upstream after {total}{}", error(fact)),
        "rejected" => format!("rejected by the upstream after {total}{}", error(fact)),
        "client_gone" => format!("the client left after {total}"),
        label => match words::kind(label) {
            Some(kind) => format!("failed after {total}: {}", words::of_kind(kind)),
            None => format!("ended as {label} after {total}"),
        },
    }
}

fn error(fact: &Fact) -> String {
    let class = fact.body.error.as_deref().map_or("no reason given", words::class);
    match fact.body.status {
        Some(status) => format!(": {status}, {class}"),
        None => format!(": {class}"),
    }
}
