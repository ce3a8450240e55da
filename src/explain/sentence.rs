//! The one sentence: what was the matter, most specific to the call first, what the bridge did about it, what became of it,
//! and what else was the matter around it (EXP-4).

use super::call::{Call, End};
use super::cause::Cause;
use super::fact::{Fact, word};
use super::subject::Subject;
use super::surroundings::Surroundings;
use super::units::time;
use super::words;
use crate::counted::counted;
use crate::lapse::spoken;
use crate::refusal::Kind;

mod around;
mod served;

/// What is told.
#[derive(Debug)]
pub struct Told {
    pub cause: Cause,
    pub detail: Option<String>,
    pub sentence: String,
}

/// What is known of the cause so far.
struct Finding {
    cause: Cause,
    detail: Option<String>,
    clauses: Vec<String>,
}

/// Tells what was the matter.
pub fn tell(subject: &Subject<'_>) -> Told {
    let Some(call) = subject.chosen() else {
        return Told {
            cause: Cause::Unfinished,
            detail: None,
            sentence: "the journal has no call of it, only what the timeline shows".to_owned(),
        };
    };
    let around = Surroundings::of(subject, call);
    let mut finding = match call.end() {
        End::Served => served::tell(subject, call, &around),
        End::Failed => failed(subject, call),
        End::Open => open(subject, call),
    };
    let troubled = subject
        .own
        .iter()
        .filter(|call| subject.is_in_trouble(call))
        .count();
    if troubled > 1
        && let Some(first) = finding.clauses.first_mut()
    {
        let (of, at) = (subject.own.len(), time(call.ended_ms()));
        *first = format!("{troubled} of {of} calls failed, the last one at {at}: {first}");
    }
    if call.end() == End::Failed {
        finding.clauses.extend(next(subject, call));
    }
    around::add(&mut finding, &around);
    if subject.doubtful > 0 {
        let lines = counted(subject.doubtful as u64, "line");
        finding.clauses.push(format!(
            "calls with the same request id ran at the same time, and {lines} may be of another one of them"
        ));
    }
    Told {
        cause: finding.cause,
        detail: finding.detail,
        sentence: finding.clauses.join("; "),
    }
}

/// It has no end in the journal: it runs, or nobody was there any more to write one.
fn open(subject: &Subject<'_>, call: &Call<'_>) -> Finding {
    let (cause, words) = match subject.cut_after(call) {
        Some(start) => (
            Cause::BridgeCut,
            format!(
                "{}, while the call ran, and so it has no end in the journal",
                words::cut(start.at_ms, start.body.last_ms, time)
            ),
        ),
        None => (
            Cause::Unfinished,
            "the call has no end in the journal: it is still running, or its end is not written yet"
                .to_owned(),
        ),
    };
    Finding {
        cause,
        detail: None,
        clauses: vec![words],
    }
}

fn failed(subject: &Subject<'_>, call: &Call<'_>) -> Finding {
    let finish = call.finish();
    match (call.refusal(), finish) {
        (Some(refusal), finish) if finish.is_none_or(|finish| finish.seq < refusal.seq) => {
            refused(subject, call, refusal)
        }
        (_, Some(finish)) => attempt(subject, call, finish),
        (Some(refusal), None) => refused(subject, call, refusal),
        (None, None) => Finding {
            cause: Cause::Unfinished,
            detail: None,
            clauses: Vec::new(),
        },
    }
}

/// The bridge refused it.
fn refused(subject: &Subject<'_>, call: &Call<'_>, refusal: &Fact) -> Finding {
    let label = word(&refusal.body.reason);
    let kind = words::kind(label);
    let mut clauses: Vec<String> = rejections(subject, call, None).into_iter().collect();
    let owner = call
        .with("owner_unavailable")
        .filter(|_| kind == Some(Kind::OwnerUnavailable));
    clauses.push(match (owner, kind) {
        (Some(owner), _) => format!(
            "the bridge refused it, because {}, the account that holds what it builds on, was unavailable: {}",
            owner.at(),
            words::reason(word(&owner.body.reason))
        ),
        (None, Some(kind)) => format!("the bridge refused it: {}", words::of_kind(kind)),
        (None, None) => format!("the bridge refused it: {label}"),
    });
    if !call.attempts().any(|fact| fact.body.sent) {
        clauses.push("nothing of it was sent upstream".to_owned());
    }
    Finding {
        cause: kind.map_or(Cause::Refused, Cause::of_kind),
        detail: Some(label.to_owned()),
        clauses,
    }
}

/// Its last attempt failed.
fn attempt(subject: &Subject<'_>, call: &Call<'_>, finish: &Fact) -> Finding {
    let cause = Cause::of_attempt(call, finish).unwrap_or(Cause::Refused);
    let body = &finish.body;
    let outcome = word(&body.outcome);
    let mut clauses = Vec::new();
    let mut detail = Some(outcome.to_owned());
    let is_moved = call.rejected().is_some_and(|first| first.seq != finish.seq);
    if is_moved && !matches!(cause, Cause::UpstreamRejected) && !cause.is_of_the_account() {
        let before = rejections(subject, call, None);
        let on = match call
            .rejected()
            .is_some_and(|first| first.account == finish.account)
        {
            true => "and it was sent again".to_owned(),
            false => format!("and then it went to {}", finish.at()),
        };
        clauses.extend(before.map(|before| format!("{before}, {on}")));
    }
    match cause {
        Cause::Unreachable if is_moved => clauses.extend(rejections(subject, call, Some(finish))),
        Cause::Silent => {
            clauses.push("the upstream accepted the connection but never sent response.created".to_owned());
            detail = None;
        }
        Cause::Wedged => {
            clauses.push("the upstream sent events but never response.created".to_owned());
            detail = None;
        }
        Cause::ConnectionLost => lost(finish, &mut clauses),
        Cause::SlowClient => {
            clauses.push("the client did not take the response's bytes in time".to_owned());
            clauses.push("the bridge tore the stream and closed the upstream connection".to_owned());
        }
        Cause::ClientLeft => {
            let spent = spoken(body.total_ms);
            clauses.push(format!("the client left after {spent}, {}", phase(finish)));
            if finish.is_heartbeats_only() {
                clauses.push("only heartbeats had been sent to it".to_owned());
            }
            if body.sent {
                clauses.push("its turn was cancelled by closing the upstream connection".to_owned());
            }
        }
        Cause::RateLimited | Cause::CredentialRejected | Cause::UpstreamRejected => {
            clauses.extend(rejections(subject, call, Some(finish)));
            detail.clone_from(&body.error);
        }
        Cause::UpstreamFailed => {
            let error = error(finish);
            clauses.push(format!("the upstream accepted it and then failed it{error}"));
            detail.clone_from(&body.error);
        }
        _ => clauses.push(match words::kind(outcome) {
            Some(kind) => format!("{}{}", words::of_kind(kind), by(finish)),
            None => format!("it ended as {outcome}"),
        }),
    }
    consequences(subject, call, finish, cause, &mut clauses);
    Finding {
        cause,
        detail,
        clauses,
    }
}

/// Which account it was, where the words do not say.
fn by(finish: &Fact) -> String {
    match &finish.account {
        Some(account) => format!(" ({account}, {})", words::transport(word(&finish.body.transport))),
        None => String::new(),
    }
}

/// How far the turn had come.
fn phase(finish: &Fact) -> &'static str {
    match (finish.body.created_ms, finish.body.sent) {
        (Some(_), _) => "in the middle of the response",
        (None, true) => "after the request was sent and before response.created",
        (None, false) => "before the request was sent",
    }
}

fn lost(finish: &Fact, clauses: &mut Vec<String>) {
    let body = &finish.body;
    let kind = words::kind(word(&body.outcome));
    let how = body.close.as_deref().map(words::close);
    let what = match (kind, how) {
        (Some(Kind::UpstreamClosed) | None, Some(how)) => format!("the upstream closed the connection {how}"),
        (Some(Kind::UpstreamClosed) | None, None) => "the upstream closed the connection".to_owned(),
        (Some(kind), _) => words::of_kind(kind).to_owned(),
    };
    let session = match (word(&body.socket), body.turns) {
        ("reused", turns) => format!(", on a session that was in its {}", ordinal(turns)),
        _ => String::new(),
    };
    clauses.push(format!("{what} {}{session}", phase(finish)));
    if body.sent && body.created_ms.is_none() {
        clauses.push("the bridge did not send it again, since the upstream may have taken it".to_owned());
    }
}

fn ordinal(turn: u64) -> String {
    let suffix = match (turn % 10, turn % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{turn}{suffix} turn")
}

/// Status and class of the upstream's error.
fn error(fact: &Fact) -> String {
    let class = fact.body.error.as_deref().map(words::class);
    match (fact.body.status, class) {
        (Some(status), Some(class)) => format!(" with {status} ({class})"),
        (Some(status), None) => format!(" with {status}"),
        (None, Some(class)) => format!(" ({class})"),
        (None, None) => String::new(),
    }
}

/// An account rejected it, or could not be reached.
fn rejection(subject: &Subject<'_>, call: &Call<'_>, fact: &Fact) -> String {
    if word(&fact.body.outcome) != "rejected" {
        return format!("{} could not be reached", fact.at());
    }
    let mut others: Vec<u64> = Vec::new();
    let cause = Cause::of_error(fact.body.error.as_deref());
    if cause.is_of_the_account() {
        let alike = subject.neighbours.iter().filter(|other| {
            word(&other.body.outcome) == "rejected"
                && (&other.account, &other.body.error) == (&fact.account, &fact.body.error)
        });
        let own = call.facts.first().and_then(|fact| fact.call);
        others = alike
            .filter_map(|other| other.call)
            .filter(|name| Some(*name) != own)
            .collect();
        others.sort_unstable();
        others.dedup();
    }
    let at = fact.at();
    let like = match others.len() {
        0 => String::new(),
        many => format!(
            ", as it did {} within a minute",
            counted(many as u64, "other call")
        ),
    };
    format!("{at} rejected it{}{like}", error(fact))
}

/// How the accounts rejected it before its last word, in their order, and with its last word where that is a rejection, too.
fn rejections(subject: &Subject<'_>, call: &Call<'_>, last: Option<&Fact>) -> Option<String> {
    let mut told = String::new();
    let mut before: Option<&Fact> = None;
    let is_last = |fact: &Fact| last.is_some_and(|last| last.seq == fact.seq);
    let all = call
        .attempts()
        .filter(|fact| is_last(fact) || Cause::of_attempt(call, fact).is_some_and(Cause::is_of_the_account));
    for fact in all {
        let words = rejection(subject, call, fact);
        let Some(before) = before.replace(fact) else {
            told = words;
            continue;
        };
        let again = match before.account == fact.account {
            true => "again",
            false => fact.at(),
        };
        let alike = word(&before.body.outcome) == word(&fact.body.outcome);
        let said = format!("{} rejected it with", fact.at());
        told += &match words.strip_prefix(&said).filter(|_| alike) {
            Some(rest) => format!(", then {again} with{rest}"),
            None => format!(", then {words}"),
        };
    }
    before.map(|_| told)
}

/// What the bridge did about it.
fn consequences(subject: &Subject<'_>, call: &Call<'_>, at: &Fact, cause: Cause, clauses: &mut Vec<String>) {
    let soon = |fact: &Fact| fact.seq >= call.first_seq() && fact.at_ms.abs_diff(at.at_ms) <= 5_000;
    let find = |event: &str| {
        subject
            .facts
            .iter()
            .copied()
            .find(|fact| fact.is(event) && soon(fact))
    };
    if matches!(cause, Cause::Silent | Cause::Wedged)
        && let Some(opened) = find("quarantine_opened").filter(|fact| fact.body.key.as_deref() == call.key())
    {
        let window = spoken(opened.body.window_ms);
        clauses.push(format!("the conversation was quarantined for {window}"));
        let until = opened.at_ms.saturating_add(opened.body.window_ms);
        let by_hand = |fact: &&&Fact| {
            let of_it = fact.body.key.is_none() || fact.body.key == opened.body.key;
            fact.is("operator_action")
                && word(&fact.body.reason) == "quarantine_cleared"
                && of_it
                && fact.seq > opened.seq
                && fact.at_ms < until
        };
        let cleared = subject.facts.iter().find(by_hand);
        clauses.extend(cleared.map(|fact| format!("an operator cleared it at {}", time(fact.at_ms))));
    }
    // What is not the account's fault left it alone for another call's reason, if at all.
    let of_it = |fact: &&Fact| fact.account == at.account && cause.is_of_the_account();
    if let Some(started) = find("cooldown_started").filter(of_it) {
        clauses.push(format!(
            "{} was left alone for {}",
            started.at(),
            spoken(started.body.for_ms)
        ));
    }
    let opened = |fact: &&Fact| word(&fact.body.reason) == "opened" && fact.account == at.account;
    if let Some(breaker) = find("breaker_changed").filter(opened) {
        clauses.push(format!(
            "the WebSocket transport of {} was not trusted from then on",
            breaker.at()
        ));
    }
}

/// What became of a call that failed.
fn next(subject: &Subject<'_>, call: &Call<'_>) -> Option<String> {
    if !call.is_of_a_conversation() {
        return None;
    }
    let Some(next) = subject.after(call) else {
        return Some("no later call of the conversation is in the journal".to_owned());
    };
    let at = time(next.arrived_ms());
    Some(match (next.served(), next.end()) {
        (Some(fact), _) => {
            let over = words::transport(word(&fact.body.transport));
            let moved = fact.account != call.finish().and_then(|finish| finish.account.clone());
            let by = if moved && call.finish().is_some() {
                format!(" by {}", fact.at())
            } else {
                String::new()
            };
            format!("the retry at {at} was served over {over}{by}")
        }
        (None, End::Open) => format!("the retry at {at} has no end in the journal"),
        (None, _) => {
            let label = next.finish().map_or_else(
                || next.refusal().map_or("", |fact| word(&fact.body.reason)),
                |fact| word(&fact.body.outcome),
            );
            match label {
                "rejected" => format!("the retry at {at} was rejected too"),
                "client_gone" => format!("the client left its retry at {at} as well"),
                label => match words::kind(label) {
                    Some(kind) => format!("the retry at {at} failed too: {}", words::of_kind(kind)),
                    None => format!("the retry at {at} failed too: {label}"),
                },
            }
        }
    })
}
