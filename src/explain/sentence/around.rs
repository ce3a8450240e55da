//! What else was the matter.

use super::Finding;
use crate::explain::cause::Cause;
use crate::explain::fact::{Fact, word};
use crate::explain::surroundings::Surroundings;
use crate::explain::units::time;
use crate::explain::words;
use crate::lapse::spoken;

/// Adds what was the matter around the call. Where nothing else was, that is the cause.
pub(super) fn add(finding: &mut Finding, around: &Surroundings<'_>) {
    let store = around.store.map(|fact| {
        let cause = (Cause::StoreDegraded, fact.body.reason.clone());
        (cause, store(fact, around.recovered))
    });
    let clock = around.clock.map(|fact| {
        let cause = (Cause::ClockStepped, fact.body.reason.clone());
        (cause, clock(fact))
    });
    let config = around.config.map(|fact| {
        let cause = (Cause::ConfigRejected, fact.body.reason.clone());
        (cause, config(fact))
    });
    let cut = around
        .cut
        .filter(|_| finding.cause != Cause::BridgeCut)
        .map(|fact| {
            let words = words::cut(fact.at_ms, fact.body.last_ms, time);
            let lost = match around.went_on {
                true => "a call",
                false => "a later call",
            };
            let clause = format!("{words}: {lost} of the conversation that ran then left no row");
            ((Cause::BridgeCut, None), clause)
        });
    for ((cause, detail), clause) in [cut, store, clock, config].into_iter().flatten() {
        if finding.cause == Cause::Healthy {
            (finding.cause, finding.detail) = (cause, detail);
            if let Some(first) = finding.clauses.first_mut() {
                let itself = match first.starts_with("nothing went wrong: the call") {
                    true => "nothing went wrong with the call itself:",
                    false => "nothing went wrong with the calls themselves:",
                };
                *first = first.replace("nothing went wrong:", itself);
            }
        }
        finding.clauses.push(clause);
    }
}

fn store(fact: &Fact, recovered: Option<&Fact>) -> String {
    let since = time(fact.at_ms);
    let until = recovered.map(|fact| format!(" until {}", time(fact.at_ms)));
    let why = words::store(word(&fact.body.reason));
    format!(
        "the state could not be written from {since}{}: {why}",
        until.unwrap_or_default()
    )
}

fn clock(fact: &Fact) -> String {
    let (by, at) = (spoken(fact.body.by_ms), time(fact.at_ms));
    match word(&fact.body.reason) {
        "back" => format!("the wall clock was set back by {by} at {at}, so times around it do not compare"),
        _ => format!(
            "the wall clock jumped forward by {by} at {at} (it was set, or the machine slept), so times around \
             it do not compare"
        ),
    }
}

fn config(fact: &Fact) -> String {
    let place = match (fact.body.line, &fact.body.key_path) {
        (Some(line), Some(key)) => format!(" (line {line}, {key})"),
        (Some(line), None) => format!(" (line {line})"),
        (None, Some(key)) => format!(" ({key})"),
        (None, None) if word(&fact.body.reason) == "unreadable" => " (it could not be read)".to_owned(),
        (None, None) if word(&fact.body.reason) == "unsettled" => " (it changed all the while)".to_owned(),
        (None, None) => String::new(),
    };
    let at = time(fact.at_ms);
    format!(
        "the configuration that was read at {at} was rejected{place}, and the one before it stayed in force"
    )
}
