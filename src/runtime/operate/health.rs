//! How the bridge is, looked at once a second by the runtime's own watch (HLT-1 to HLT-6).
//!
//! Probes of the process read two atomics; what an operator reads is a copy of the latest look. Judging is pure.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use crate::counted::counted;
use crate::runtime::report::millis;
use crate::store::Reason;

/// The watch looks once a second: what has not looked for so long does not turn over.
pub const PULSE: Duration = Duration::from_secs(10);
/// How long the store may be unwritable before the bridge says that others should be asked: a full disk is cleaned up,
/// and a stalled one comes back, within that.
pub const UNWRITABLE: Duration = Duration::from_secs(60);
/// How long a step of the clock, and a loss of the journal's, are told of.
const TOLD: Duration = Duration::from_secs(600);
/// Shares of the file limit, in percent, from which it is told of, and from which new connections are at stake.
const FILES: (u64, u64) = (80, 95);

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ok,
    /// An operator should look at it; it serves.
    Warn,
    /// It does not do what it is for.
    Fail,
}

impl State {
    /// As it is written.
    pub fn label(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Warn => "warn",
            State::Fail => "fail",
        }
    }
}

/// One look at one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub state: State,
    /// What was seen, in a few words and numbers; no secret.
    pub value: String,
}

impl Check {
    /// A look.
    pub fn new(name: &'static str, state: State, value: impl Into<String>) -> Check {
        Check {
            name,
            state,
            value: value.into(),
        }
    }
}

/// A check as an operator sees it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CheckView {
    pub name: &'static str,
    pub state: State,
    /// What was seen.
    pub value: String,
    /// Since when it has been in this state.
    pub since_ms: u64,
    /// How long ago it was looked at.
    pub age_ms: u64,
}

/// All checks as an operator sees them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HealthView {
    /// The worst of all.
    pub state: State,
    /// Whether `/health/live` answers 200.
    pub live: bool,
    /// Whether `/health/ready` answers 200.
    pub ready: bool,
    pub checks: Vec<CheckView>,
}

/// What the runtime saw in one look.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// By how much the look came late.
    pub late: Duration,
    pub accounts: usize,
    /// Of them: left out for others.
    pub unavailable: usize,
    /// Of the rest: the credential was rejected. They are tried all the same.
    pub rejected: usize,
    /// Of what is left: not reached lately.
    pub unreached: usize,
    /// Why the store cannot be written, and for how long.
    pub unwritable: Option<(Reason, Duration)>,
    /// Changes that wait to be written, and those that never will be.
    pub queue: usize,
    pub lost: u64,
    /// By how much the wall clock ran away from the monotonic one, and how long ago: in seconds, ahead is positive.
    pub step: Option<(i64, Duration)>,
    /// Journal rows that were lost in all, and how long ago the latest of them was; none where there is no journal.
    pub journal: Option<(u64, Option<Duration>)>,
    /// Files that are open, and that may be.
    pub files: Option<(u64, u64)>,
}

/// Judges a look.
pub fn judge(facts: &Facts) -> Vec<Check> {
    let late = if facts.late >= Duration::from_secs(1) {
        State::Warn
    } else {
        State::Ok
    };
    let usable = facts
        .accounts
        .saturating_sub(facts.unavailable)
        .saturating_sub(facts.rejected);
    let accounts = match (usable, facts.accounts - usable + facts.unreached) {
        (0, _) => State::Fail,
        (_, 0) => State::Ok,
        _ => State::Warn,
    };
    let mut seen = format!("{usable} of {} usable", facts.accounts);
    for (count, what) in [
        (facts.rejected, "with a rejected credential"),
        (facts.unreached, "not reached"),
    ] {
        if count > 0 {
            seen.push_str(&format!("; {count} {what}"));
        }
    }
    let (store, value) = match facts.unwritable {
        None => (
            State::Ok,
            format!("writes; {} waiting", counted(facts.queue as u64, "change")),
        ),
        Some((reason, lasts)) => {
            let state = if lasts >= UNWRITABLE {
                State::Fail
            } else {
                State::Warn
            };
            let (queue, lost, seconds) = (facts.queue, facts.lost, lasts.as_secs());
            (
                state,
                format!(
                    "{} for {seconds} s; {} waiting, {lost} lost; {}",
                    reason.label(),
                    counted(queue as u64, "change"),
                    reason.way_out()
                ),
            )
        }
    };
    let clock = match facts.step.filter(|(_, ago)| *ago < TOLD) {
        None => Check::new("clock", State::Ok, "in step"),
        Some((seconds, ago)) => {
            let way = if seconds < 0 { "back" } else { "ahead" };
            let value = format!(
                "jumped {} s {way}, {} s ago",
                seconds.unsigned_abs(),
                ago.as_secs()
            );
            Check::new("clock", State::Warn, value)
        }
    };
    let mut checks = vec![
        Check::new("runtime", late, format!("looked {} ms late", millis(facts.late))),
        Check::new("accounts", accounts, seen),
        Check::new("store", store, value),
        clock,
    ];
    if let Some((lost, latest)) = facts.journal {
        let state = if latest.is_some_and(|ago| ago < TOLD) {
            State::Warn
        } else {
            State::Ok
        };
        checks.push(Check::new(
            "journal",
            state,
            format!("{} lost", counted(lost, "row")),
        ));
    }
    if let Some((open, most)) = facts.files {
        let percent = open.saturating_mul(100).checked_div(most).unwrap_or(0);
        let state = match percent {
            percent if percent >= FILES.1 => State::Fail,
            percent if percent >= FILES.0 => State::Warn,
            _ => State::Ok,
        };
        checks.push(Check::new("file descriptors", state, format!("{open} of {most}")));
    }
    checks
}

/// Whether the look says that requests are welcome: some account is tried, and the store is not unwritable for too long.
pub fn is_fit(facts: &Facts) -> bool {
    let writes = facts.unwritable.is_none_or(|(_, lasts)| lasts < UNWRITABLE);
    facts.accounts > facts.unavailable && writes
}

/// Looks at something that the runtime does not see: the configuration's file, the listener.
pub type Look = Box<dyn Fn() -> Check + Send + Sync>;

/// What the latest look saw, and when each check came into its state.
#[derive(Default)]
struct Seen {
    checks: Vec<(Check, Instant)>,
    unwritable_since: Option<Instant>,
    step: Option<(i64, Instant)>,
    /// Journal rows lost so far, and when that last grew.
    journal: (u64, Option<Instant>),
}

/// The latest look.
pub struct Pulse {
    began: Instant,
    /// When the latest look was, in milliseconds since `began`.
    beat: AtomicU64,
    fit: AtomicBool,
    draining: AtomicBool,
    /// As the process was told; 0 where nobody said.
    file_limit: AtomicU64,
    files: AtomicU64,
    more: OnceLock<Vec<Look>>,
    /// A std mutex: held for a copy, and never by a probe of the process.
    seen: Mutex<Seen>,
}

impl Pulse {
    /// Beats for the first time.
    pub fn new(now: Instant) -> Pulse {
        Pulse {
            began: now,
            beat: AtomicU64::new(0),
            fit: AtomicBool::new(true),
            draining: AtomicBool::new(false),
            file_limit: AtomicU64::new(0),
            files: AtomicU64::new(0),
            more: OnceLock::new(),
            seen: Mutex::default(),
        }
    }

    /// Since it began.
    pub fn age_ms(&self, now: Instant) -> u64 {
        millis(now.saturating_duration_since(self.began))
    }

    /// The process is about to end.
    pub fn drains(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether the watch still turns over. An atomic read.
    pub fn is_live(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.beat_at()) < PULSE
    }

    /// Whether the latest look found the bridge fit, and it is not draining. Atomic reads.
    pub fn is_fit(&self) -> bool {
        self.fit.load(Ordering::Relaxed) && !self.draining.load(Ordering::Relaxed)
    }

    fn beat_at(&self) -> Instant {
        self.began + Duration::from_millis(self.beat.load(Ordering::Relaxed))
    }

    /// What else is looked at, once it is known. The first call counts.
    pub fn look_also(&self, file_limit: u64, looks: Vec<Look>) {
        self.file_limit.store(file_limit, Ordering::Relaxed);
        let _ = self.more.set(looks);
    }

    /// Takes the number of open files.
    pub fn files(&self, open: u64) {
        self.files.store(open, Ordering::Relaxed);
    }

    /// The wall clock ran away from the monotonic one by so many seconds.
    pub fn stepped(&self, seconds: i64, now: Instant) {
        self.lock().step = Some((seconds, now));
    }

    /// A look. `unwritable` is told without its time, which is kept here, by the monotonic clock.
    pub fn look(&self, mut facts: Facts, unwritable: Option<Reason>, now: Instant) {
        let every = Duration::from_secs(1);
        facts.late = now
            .saturating_duration_since(self.beat_at())
            .saturating_sub(every);
        let limit = self.file_limit.load(Ordering::Relaxed);
        let open = self.files.load(Ordering::Relaxed);
        facts.files = (limit > 0 && open > 0).then_some((open, limit));
        // Before the lock: they may have locks of their own.
        let more: Vec<_> = self.more.get().into_iter().flatten().map(|look| look()).collect();
        let mut seen = self.lock();
        seen.unwritable_since = unwritable.map(|_| seen.unwritable_since.unwrap_or(now));
        facts.unwritable = unwritable
            .zip(seen.unwritable_since)
            .map(|(reason, since)| (reason, now.saturating_duration_since(since)));
        facts.step = seen
            .step
            .map(|(seconds, at)| (seconds, now.saturating_duration_since(at)));
        if let Some((lost, latest)) = &mut facts.journal {
            if *lost > seen.journal.0 {
                seen.journal = (*lost, Some(now));
            }
            *latest = seen.journal.1.map(|at| now.saturating_duration_since(at));
        }
        let mut checks = judge(&facts);
        self.fit.store(is_fit(&facts), Ordering::Relaxed);
        checks.extend(more);
        seen.checks = followed(&seen.checks, checks, now);
        drop(seen);
        let beat = millis(now.saturating_duration_since(self.began));
        self.beat.store(beat, Ordering::Relaxed);
    }

    /// The latest look, for an operator. `ready`: what `/health/ready` says at this moment.
    pub fn view(&self, now: Instant, ready: bool) -> HealthView {
        let live = self.is_live(now);
        let age_ms = millis(now.saturating_duration_since(self.beat_at()));
        let view = |(check, since): &(Check, Instant)| CheckView {
            name: check.name,
            state: check.state,
            value: check.value.clone(),
            since_ms: millis(now.saturating_duration_since(*since)),
            age_ms,
        };
        let checks: Vec<_> = self.lock().checks.iter().map(view).collect();
        let states = checks.iter().map(|check| check.state);
        let worst = if states.clone().any(|state| state == State::Fail) || !live {
            State::Fail
        } else if states.clone().any(|state| state == State::Warn) {
            State::Warn
        } else {
            State::Ok
        };
        HealthView {
            state: worst,
            live,
            ready,
            checks,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A check that is in the state that it was in has been in it since then.
fn followed(before: &[(Check, Instant)], checks: Vec<Check>, now: Instant) -> Vec<(Check, Instant)> {
    let since = |check: &Check| {
        let known = before
            .iter()
            .find(|(known, _)| known.name == check.name && known.state == check.state);
        known.map_or(now, |(_, since)| *since)
    };
    checks
        .into_iter()
        .map(|check| {
            let since = since(&check);
            (check, since)
        })
        .collect()
}

#[cfg(test)]
mod tests;
