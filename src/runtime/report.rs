//! What the runtime tells: the events that need more than one line to be put together.

use std::time::{Duration, Instant};

use super::Runtime;
use super::actor::Actor;
use super::job::{Job, Way};
use super::live::Phase;
use crate::bridge::key::AffinityKey;
use crate::bridge::ownership::{AccountId, SessionId};
use crate::bridge::quarantine::Tripped;
use crate::bridge::session::{Retired, Session};
use crate::bridge::turn::{Outcome, Output, TurnEnd};
use crate::bridge::watchdog::{Shape, Transport, Verdict};
use crate::event::{Answered, Event, History, Past, Phases};
use crate::refusal::Kind;
use crate::wire::error::WireError;

/// A turn goes out on a session, the `turns`th one there.
pub fn sent(runtime: &Runtime, job: &Job, session: SessionId, turns: u32) {
    job.reached(Phase::Sent);
    let (at, session) = (runtime.at(job.account), session.0);
    if turns > 1 {
        runtime.events.emit(&Event::SessionReused {
            at,
            key: job.key.into(),
            session,
            turns: turns - 1,
        });
    }
    if let (Some(continued), Some(create)) = (&job.continued, &job.create) {
        runtime.events.emit(&Event::ContinuationUsed {
            at,
            who: job.who(),
            session,
            known_items: continued.extension.skip(),
            sent_bytes: job.length,
            saved_bytes: create.body().len().saturating_sub(job.length),
        });
    }
    runtime.events.emit(&Event::TurnSent {
        at,
        who: job.who(),
        transport: Transport::WebSocket,
        session: Some(session),
    });
}

/// A turn has ended: the one `info` line of a healthy turn, and before it the line that says what was wrong.
pub fn finished(runtime: &Runtime, now: Instant, job: &Job, way: &Way<'_>, end: &TurnEnd) {
    let (at, who, transport) = (runtime.at(job.account), job.who(), way.transport);
    match (end.verdict, end.outcome) {
        (Some(Verdict::Silent(shape)), _) => silent(runtime, now, job, way, end, shape),
        (Some(Verdict::Idle), _) => runtime.events.emit(&Event::IdleTimeout { at, who, transport }),
        (Some(Verdict::WriteStalled), _) => runtime.events.emit(&Event::SlowStream { at, who, transport }),
        (_, Outcome::Bridge(Kind::SlowClient)) => {
            runtime.events.emit(&Event::SlowClient { at, who, transport })
        }
        _ => {}
    }
    runtime.attempt_spans(now, job, way, end);
    let healthy = matches!(end.outcome, Outcome::Completed | Outcome::Incomplete);
    runtime.events.emit(&Event::TurnFinished {
        at,
        who,
        transport,
        outcome: end.outcome,
        route: job.course.why(),
        plan: job.plan,
        attempt: job.attempt,
        response: job.response,
        session: way.session.map(|session| session.0),
        known_items: job.continued.as_ref().map(|continued| continued.extension.skip()),
        stream: job.stream,
        sent: end.sent,
        committed: end.committed,
        upstream: upstream(job, end.outcome),
        phases: phases(job, now, end),
        socket: way.history.map(|history| Past::of(history, healthy)),
    });
}

/// A call has gone before any turn of it could end: its client left while it waited for a session, a panic took it, or the
/// process ends and did not wait for it any longer (RUN-10). Says which.
pub fn dropped(runtime: &Runtime, job: &Job) -> Outcome {
    let outcome = if std::thread::panicking() {
        Outcome::Bridge(Kind::Internal)
    } else if runtime.cut.is_cancelled() {
        Outcome::Bridge(Kind::Drained)
    } else {
        Outcome::ClientGone
    };
    let now = super::now();
    runtime.events.emit(&Event::TurnFinished {
        at: runtime.at(job.account),
        who: job.who(),
        transport: Transport::WebSocket,
        outcome,
        route: job.course.why(),
        plan: job.plan,
        attempt: job.attempt,
        response: job.response,
        session: None,
        known_items: None,
        stream: job.stream,
        sent: job.is_sent(),
        committed: job.feed.is_committed(),
        upstream: None,
        phases: Phases {
            total_ms: millis(now.duration_since(job.caller.arrived)),
            queue_ms: job.queued.map(millis),
            ..Phases::default()
        },
        socket: None,
    });
    outcome
}

/// What the upstream said where it ended the turn with an error.
fn upstream(job: &Job, outcome: Outcome) -> Option<Answered> {
    match (outcome, job.parting()) {
        (Outcome::Rejected | Outcome::Failed, Some(Output::Reject(error))) => Some(answered(error)),
        (Outcome::Rejected | Outcome::Failed, _) => job.failure,
        _ => None,
    }
}

/// An upstream's error in numbers and closed words.
pub fn answered(error: &WireError) -> Answered {
    Answered {
        status: error.http_status(),
        error: error.class().label(),
    }
}

fn silent(runtime: &Runtime, now: Instant, job: &Job, way: &Way<'_>, end: &TurnEnd, shape: Shape) {
    // Only a session goes silent: direct HTTP has verdicts of its own.
    let (Some(session), Some(history)) = (way.session, way.history) else {
        return;
    };
    runtime.events.emit(&Event::ResponseCreatedTimeout {
        at: runtime.at(job.account),
        who: job.who(),
        shape,
        session: session.0,
        history,
        waited_ms: end
            .times
            .flushed
            .map_or(0, |flushed| millis(now.duration_since(flushed))),
    });
}

fn phases(job: &Job, now: Instant, end: &TurnEnd) -> Phases {
    let arrived = job.caller.arrived;
    let since = |from: Instant, to: Option<Instant>| to.map(|to| millis(to.duration_since(from)));
    let times = &end.times;
    Phases {
        total_ms: millis(now.duration_since(arrived)),
        queue_ms: job.queued.map(millis),
        sent_ms: since(arrived, times.sent),
        upstream_ms: times.sent.map(|sent| millis(now.duration_since(sent))),
        created_ms: times
            .flushed
            .or(times.sent)
            .and_then(|flushed| since(flushed, times.accepted)),
        first_output_ms: since(arrived, times.first_output),
        longest_gap_ms: times.quiet.map(|quiet| millis(quiet.by(now))),
    }
}

/// A session takes no turn any more.
pub fn retired(runtime: &Runtime, actor: &Actor, reason: Retired, history: History) {
    let (at, key, session) = (runtime.at(actor.account), actor.key.into(), actor.id.0);
    runtime.events.emit(&match reason {
        Retired::MaxAge => Event::SessionRotated {
            at,
            key,
            session,
            history,
        },
        Retired::Evicted => Event::SessionEvicted {
            at,
            key,
            session,
            history,
        },
        reason => Event::SessionRetired {
            at,
            key,
            session,
            reason,
            history,
        },
    });
}

/// A key went into quarantine.
pub fn quarantined(runtime: &Runtime, account: AccountId, key: AffinityKey, tripped: &Tripped) {
    let entry = &tripped.entry;
    runtime.events.emit(&Event::QuarantineOpened {
        at: runtime.at(account),
        key: key.into(),
        window_ms: millis(tripped.window),
        level: entry.level,
        generation: entry.generation.0,
    });
    if let Some(evicted) = tripped.evicted {
        runtime
            .events
            .emit(&Event::QuarantineEvicted { key: evicted.hash });
    }
}

/// What a socket has been through, in closed words.
pub fn history(
    session: &Session,
    now: Instant,
    close: Option<&'static str>,
    last_event: &'static str,
) -> History {
    let turns = session.turns();
    History {
        socket: if turns <= 1 { "fresh" } else { "reused" },
        turns,
        age: bucket(
            now.duration_since(session.opened()),
            &[(60, "1m"), (600, "10m"), (1800, "30m"), (3600, "1h")],
            "older",
        ),
        idle: bucket(
            session.idle_before_turn(),
            &[(1, "1s"), (30, "30s"), (300, "5m"), (1800, "30m")],
            "longer",
        ),
        close,
        last_event,
    }
}

/// The first bucket that `lapse` fits into; bounds in seconds, inclusive.
fn bucket(lapse: Duration, bounds: &[(u64, &'static str)], beyond: &'static str) -> &'static str {
    bounds
        .iter()
        .find(|(most, _)| lapse <= Duration::from_secs(*most))
        .map_or(beyond, |(_, name)| name)
}

/// Whole milliseconds, rounded down.
pub fn millis(lapse: Duration) -> u64 {
    u64::try_from(lapse.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [EVT-5] ages and idle times are told in a handful of buckets, so that they can be labels.
    #[test]
    fn buckets_are_few_and_inclusive() {
        let bounds = [(60, "1m"), (600, "10m")];
        assert_eq!(bucket(Duration::from_secs(60), &bounds, "older"), "1m");
        assert_eq!(bucket(Duration::from_millis(60_001), &bounds, "older"), "10m");
        assert_eq!(bucket(Duration::from_secs(601), &bounds, "older"), "older");
    }
}
