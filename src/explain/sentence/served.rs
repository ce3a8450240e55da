//! A call that was served: what was in its way, and how long it took.

use super::{Finding, consequences, rejections};
use crate::bridge::plan::Direct;
use crate::counted::agreeing;
use crate::explain::call::{Call, End};
use crate::explain::cause::Cause;
use crate::explain::fact::{Fact, word};
use crate::explain::subject::Subject;
use crate::explain::surroundings::Surroundings;
use crate::explain::units::time;
use crate::explain::words;
use crate::lapse::spoken;

/// Tells of it.
pub(super) fn tell(subject: &Subject<'_>, call: &Call<'_>, around: &Surroundings<'_>) -> Finding {
    let Some(fact) = call.served() else {
        return found(Cause::Unfinished, None, Vec::new());
    };
    let plan = word(&fact.body.plan);
    if let Some(rejected) = call.rejected() {
        let cause = Cause::of_attempt(call, rejected).unwrap_or(Cause::UpstreamRejected);
        let mut clauses: Vec<String> = rejections(subject, call, None).into_iter().collect();
        consequences(subject, call, rejected, cause, &mut clauses);
        clauses.push(format!("the same call was {}", how(fact)));
        return found(cause, rejected.body.error.clone(), clauses);
    }
    let account = fact.at();
    let (cause, detail, why) = match plan {
        "quarantined" => (Cause::Quarantined, None, quarantine(subject, call)),
        "sick_transport" => {
            let since = around
                .breaker
                .map(|breaker| format!(" since {}", time(breaker.at_ms)));
            let since = since.unwrap_or_default();
            let why = format!("the WebSocket transport of {account} was not trusted{since}");
            (Cause::SickTransport, None, why)
        }
        "upgrade_refused" | "upgrade_slow" | "unsupported" | "handshakes" | "ceiling" => {
            let fallback = call.with("http_fallback");
            let detail = fallback.and_then(|fact| fact.body.upgrade.clone());
            let upgrade = detail.as_deref().zip(fallback);
            let why = match upgrade {
                Some((label, fact)) => format!(
                    "the upgrade to a WebSocket with {account} failed: {}",
                    words::upgrade(label, fact.body.status)
                ),
                None => format!("{account} gave it no WebSocket: {}", because(plan)),
            };
            (Cause::UpgradeFailed, Some(plan.to_owned()), why)
        }
        _ => match around.cooldown {
            Some(cooldown) => {
                let (reason, since) = (word(&cooldown.body.reason), time(cooldown.at_ms));
                let why = words::reason(reason);
                let why = format!("{} was left alone since {since}: {why}", cooldown.at());
                (Cause::Cooldown, Some(reason.to_owned()), why)
            }
            None => return found(Cause::Healthy, None, healthy(subject, fact)),
        },
    };
    found(cause, detail, vec![why, format!("the call was {}", how(fact))])
}

fn found(cause: Cause, detail: Option<String>, clauses: Vec<String>) -> Finding {
    Finding {
        cause,
        detail,
        clauses,
    }
}

fn because(plan: &str) -> &str {
    let known = Direct::of(plan);
    known.map(words::of_direct).unwrap_or(plan)
}

fn healthy(subject: &Subject<'_>, fact: &Fact) -> Vec<String> {
    let of = subject.own.len();
    let served = subject
        .own
        .iter()
        .filter(|call| call.end() == End::Served)
        .count();
    match of {
        0 | 1 => vec![format!("nothing went wrong: the call was {}", how(fact))],
        _ => vec![
            match of - served {
                0 if of == 2 => "nothing went wrong: both calls were served".to_owned(),
                0 => format!("nothing went wrong: all {of} calls were served"),
                open => format!(
                    "nothing went wrong: {}, and {} no end in the journal",
                    agreeing(served as u64, "call was served", "calls were served"),
                    agreeing(open as u64, "has", "have"),
                ),
            },
            format!("the last one was {}", how(fact)),
        ],
    }
}

/// Since when the conversation was in quarantine, and why.
fn quarantine(subject: &Subject<'_>, call: &Call<'_>) -> String {
    let before = subject
        .facts
        .iter()
        .rev()
        .copied()
        .filter(|fact| fact.seq < call.last_seq());
    let mut before = before.filter(|fact| fact.body.key.as_deref() == call.key());
    let by_hand = |fact: &Fact| fact.is("operator_action") && word(&fact.body.reason) == "quarantine_added";
    match before.find(|fact| fact.is("quarantine_opened") || by_hand(fact)) {
        Some(fact) if fact.is("operator_action") => {
            format!(
                "an operator had put the conversation into quarantine at {}",
                time(fact.at_ms)
            )
        }
        Some(fact) => format!(
            "the conversation was in quarantine since {}, because its session had gone silent",
            time(fact.at_ms)
        ),
        None => "the conversation was in quarantine, because its session had gone silent".to_owned(),
    }
}

/// How it was served, and in what time.
fn how(fact: &Fact) -> String {
    let body = &fact.body;
    let mut told = format!(
        "served by {} over {} in {}",
        fact.at(),
        words::transport(word(&body.transport)),
        spoken(body.total_ms)
    );
    if let Some(created) = body.created_ms {
        told += &format!(", response.created after {}", spoken(created));
    }
    if let Some(first) = body.first_output_ms {
        told += &format!(", first output after {}", spoken(first));
    }
    if word(&body.outcome) == "incomplete" {
        told += ", and ended as incomplete";
    }
    told
}
