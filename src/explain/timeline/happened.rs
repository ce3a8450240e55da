//! All events but the end of a turn, in words.

use super::{Line, Tone};
use crate::bridge::plan::Direct;
use crate::counted::{agreeing, counted};
use crate::explain::fact::{Fact, word};
use crate::explain::words;
use crate::lapse::spoken;

/// The line of an event. `None` for a turn's end, which is told in steps.
pub fn happened(fact: &Fact) -> Option<Line> {
    let (tone, what, words) = told(fact)?;
    Some(Line::new(fact.at_ms, fact.seq, tone, what, words))
}

fn told(fact: &Fact) -> Option<(Tone, &'static str, String)> {
    use Tone::{Around, Remedy, Trouble, Work};
    let body = &fact.body;
    let (at, reason) = (fact.at(), word(&body.reason));
    let session = body
        .session
        .map_or("a session".to_owned(), |session| format!("session {session}"));
    Some(match fact.event.as_str() {
        "turn_finished" => return None,
        "response_created_timeout" => {
            let saw = match word(&body.shape) {
                "events_without_created" => "events, but no response.created,",
                _ => "nothing at all",
            };
            let waited = spoken(body.waited_ms);
            (
                Trouble,
                "watchdog",
                format!("{saw} came within {waited} of the sending"),
            )
        }
        "idle_timeout" => (
            Trouble,
            "watchdog",
            "no event came for watchdog.idle_deadline".to_owned(),
        ),
        "slow_stream" => (
            Trouble,
            "watchdog",
            "the upstream stopped taking the request's bytes".to_owned(),
        ),
        "slow_client" => (
            Trouble,
            "watchdog",
            "the client stopped taking the response's bytes".to_owned(),
        ),
        "session_retired" => (
            Trouble,
            "session",
            format!("{session} takes no turn any more: {}", words::retired(reason)),
        ),
        "session_opened" => (Work, "session", format!("{session} was opened")),
        "session_reused" => (Work, "session", format!("{session} took another turn")),
        "session_rotated" => (
            Work,
            "session",
            format!("{session} was older than session.max_age"),
        ),
        "session_evicted" => (Work, "session", format!("{session} made room for another one")),
        "turn_sent" => (
            Work,
            "sent",
            format!("over {}", words::transport(word(&body.transport))),
        ),
        "turn_accepted" => (Work, "accepted", "response.created".to_owned()),
        "quarantine_opened" => {
            let window = spoken(body.window_ms);
            (
                Remedy,
                "quarantine",
                format!("for {window} this conversation goes over HTTP"),
            )
        }
        "quarantine_http_fallback" => (Remedy, "quarantine", "over HTTP to the same account".to_owned()),
        "quarantine_probe" => (Remedy, "quarantine", "this call tries a fresh session".to_owned()),
        "quarantine_cleared" => (Remedy, "quarantine", "over: sessions are used again".to_owned()),
        "quarantine_evicted" => (
            Remedy,
            "quarantine",
            "over: too many keys were in quarantine".to_owned(),
        ),
        "http_fallback" => {
            let why = Direct::of(reason);
            let why = why.map(words::of_direct).unwrap_or(reason);
            let upgrade = body
                .upgrade
                .as_deref()
                .map(|label| words::upgrade(label, body.status));
            let upgrade = upgrade.map(|upgrade| format!(" ({upgrade})")).unwrap_or_default();
            (Remedy, "http", format!("over HTTP, because {why}{upgrade}"))
        }
        "continuation_used" => (Work, "continued", "only what is new was sent".to_owned()),
        "continuation_rejected" if reason == "not_found" => {
            let words = "the upstream did not know what the bridge built on: sent in full";
            (Remedy, "continued", words.to_owned())
        }
        "continuation_rejected" => (Work, "continued", "it was sent in full".to_owned()),
        "owner_routed" => (Work, "owner", format!("{at} made the response that it names")),
        "owner_unknown" => (
            Work,
            "owner",
            "nobody is known to have made the response it names".to_owned(),
        ),
        "route_chosen" => (Work, "route", format!("to {at}: {}", words::route(reason))),
        "owner_unavailable" => {
            let (why, wait) = (words::reason(reason), body.retry_after_s);
            (
                Trouble,
                "owner",
                format!("{at} is unavailable: {why}; told to retry in {wait} s"),
            )
        }
        "owner_conflict" => (
            Trouble,
            "owner",
            "the request names things of two accounts".to_owned(),
        ),
        "refused" => {
            let why = words::kind(reason).map(words::of_kind).unwrap_or(reason);
            (Trouble, "refused", format!("by the bridge: {why}"))
        }
        "cooldown_started" => {
            let (why, lasts) = (words::reason(reason), spoken(body.for_ms));
            (
                Around,
                "cooldown",
                format!("{at} is left alone for {lasts}: {why}"),
            )
        }
        "cooldown_cleared" => (Around, "cooldown", format!("{at} is used again")),
        "credential_rejected" => (Around, "credential", credential(fact)),
        "breaker_changed" => {
            let words = match reason {
                "opened" => format!("the WebSocket transport of {at} is not trusted: HTTP instead"),
                "half_open" => format!("a call tries the WebSocket transport of {at} again"),
                "closed" => format!("the WebSocket transport of {at} works again"),
                reason => format!("the WebSocket transport of {at}: {reason}"),
            };
            (Around, "transport", words)
        }
        "store_degraded" => {
            let why = words::store(reason);
            let way = body
                .way_out
                .as_deref()
                .map(|way| format!("; {way}"))
                .unwrap_or_default();
            (
                Around,
                "store",
                format!("the state cannot be written: {why}{way}"),
            )
        }
        "store_recovered" => (
            Around,
            "store",
            format!(
                "written again; {} lost",
                agreeing(body.lost, "change was", "changes were")
            ),
        ),
        "journal_lost" => (
            Around,
            "journal",
            format!(
                "{} not in the journal",
                agreeing(body.lost, "event is", "events are")
            ),
        ),
        "clock_stepped" => {
            let by = spoken(body.by_ms);
            let words = match reason {
                "back" => format!("the wall clock was set back by {by}"),
                _ => format!("the wall clock jumped forward by {by}: set, or a sleep"),
            };
            (Around, "clock", words)
        }
        "config_reloaded" => (Around, "config", reloaded(fact)),
        "config_rejected" => (Around, "config", rejected(fact)),
        "operator_action" => (Around, "operator", operator(fact)),
        "bridge_started" => match word(&body.before) {
            "cut" => (
                Trouble,
                "start",
                "the bridge started; the one before it ended without a finished drain".to_owned(),
            ),
            "unknown" => (
                Around,
                "start",
                "the bridge started; how the one before it ended is not known".to_owned(),
            ),
            _ => (Around, "start", "the bridge started".to_owned()),
        },
        "drain_started" => {
            let turns = counted(body.turns, "turn");
            (Around, "drain", format!("began, with {turns} running"))
        }
        "drain_finished" => {
            let cut = agreeing(body.cut, "turn was", "turns were");
            (Around, "drain", format!("over; {cut} cut"))
        }
        // Of another version.
        other => (Around, "event", format!("{other} {reason}").trim_end().to_owned()),
    })
}

/// What an operator did, and who it was.
fn operator(fact: &Fact) -> String {
    let body = &fact.body;
    let at = fact.at();
    let by = match word(&body.by) {
        "" => String::new(),
        "token" => " with the admin token".to_owned(),
        "page" => " on the status page".to_owned(),
        by => format!(" by {by}"),
    };
    match word(&body.reason) {
        "session_closed" => match body.session {
            Some(session) => format!("session {session} of {at} was closed{by}"),
            None => format!("a session of {at} was closed{by}"),
        },
        "quarantine_added" => format!("the conversation was put into quarantine{by}"),
        "quarantine_cleared" if body.key.is_some() => {
            format!("the conversation was taken out of quarantine{by}")
        }
        "quarantine_cleared" => {
            let all = agreeing(body.count, "conversation was", "conversations were");
            format!("{all} taken out of quarantine{by}")
        }
        "breaker_reset" => format!("the WebSocket transport of {at} was reset{by}"),
        "drain_on" => format!("drained{by}: no new turns are taken"),
        "drain_off" => format!("the drain was ended{by}: new turns are taken again"),
        "signed_in" => format!("somebody signed in{by}"),
        // Of another version.
        reason => match &fact.account {
            Some(at) => format!("{reason} {at}{by}"),
            None => format!("{reason}{by}"),
        },
    }
}

fn credential(fact: &Fact) -> String {
    let status = fact
        .body
        .status
        .map(|status| format!(" with {status}"))
        .unwrap_or_default();
    match word(&fact.body.reason) {
        "rejected" => format!("{} does not take its credential{status}", fact.at()),
        reason => format!("the credential of {} is of no use: {reason}", fact.at()),
    }
}

/// What was read is not in force, and where its first fault is.
fn rejected(fact: &Fact) -> String {
    let body = &fact.body;
    let mut words = format!("rejected, {}", word(&body.reason));
    let line = body.line.map(|line| format!("line {line}"));
    let place: Vec<String> = line.into_iter().chain(body.key_path.clone()).collect();
    if !place.is_empty() {
        words += &format!(": {}", place.join(" "));
    }
    if body.faults > 0 {
        words += &format!(" ({})", counted(body.faults, "fault"));
    }
    words
}

/// Which keys are of another value from then on.
fn reloaded(fact: &Fact) -> String {
    let (changed, waiting) = (&fact.body.changed, fact.body.needs_restart.len());
    let shown: Vec<&str> = changed.iter().take(4).map(String::as_str).collect();
    let more = changed.len().saturating_sub(shown.len());
    let mut words = match shown.is_empty() {
        true => "reloaded: no key in force has changed".to_owned(),
        false => format!("reloaded: {}", shown.join(", ")),
    };
    if more > 0 {
        words += &format!(" and {more} more");
    }
    if waiting > 0 {
        let keys = agreeing(waiting as u64, "key waits", "keys wait");
        words += &format!("; {keys} for a restart");
    }
    words
}
