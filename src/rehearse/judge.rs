//! Whether what was seen is what was expected (REH-8).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::expect::{Expectation, Rule, Shape};
use super::pace::told;
use super::plan::Plan;
use super::seen::{Ended, Record, Told, Way};
use super::tally::tally;
use crate::config::Transport;
use crate::counted::counted;

/// An event is seen a little later than it was decided.
const NEARLY: Duration = Duration::from_millis(100);

/// An expectation, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub met: bool,
    /// By what, in a few words.
    pub evidence: String,
}

/// Judges one expectation.
pub fn judge(expectation: &Expectation, plan: &Plan, record: &Record) -> Verdict {
    let bench = Bench {
        plan,
        record,
        slack: plan.slack + record.stall,
    };
    match &expectation.rule {
        Rule::Health => bench.health(),
        Rule::Met => bench.met(),
        Rule::Unreached => bench.all_answered(|_| true),
        Rule::Answered => bench.answered(),
        Rule::Patient(calls) => bench.patient(*calls),
        Rule::Bounded(limit) => bench.bounded(*limit),
        Rule::Once => {
            let count = tally(record).duplicates;
            verdict(count == 0, format!("{count} of {} creates", record.sent.len()))
        }
        Rule::Retired {
            shape,
            within,
            quarantined,
        } => bench.retired(*shape, *within, *quarantined),
        Rule::ThenHttp => bench.then_http(),
        Rule::HttpAnswers => bench.http_answers(),
        Rule::Doubled { first, most } => bench.doubled(*first, *most),
        Rule::Reached(top) => bench.reached(*top),
        Rule::Unquarantined => bench.none_of(&["response_created_timeout", "quarantine_opened"]),
        Rule::Kept => bench.kept(),
        Rule::Retryable => bench.errors(|ended| {
            matches!(
                ended,
                Ended::Error {
                    status: Some(500..),
                    retry_after: Some(_),
                    ..
                } | Ended::Error { status: None, .. }
            )
        }),
        Rule::Limited => bench.errors(|ended| {
            matches!(
                ended,
                Ended::Error {
                    status: Some(429),
                    retry_after: Some(_),
                    ..
                }
            )
        }),
        Rule::Back(within) => bench.back(*within),
    }
}

fn verdict(met: bool, evidence: impl Into<String>) -> Verdict {
    Verdict {
        met,
        evidence: evidence.into(),
    }
}

/// `good` of `all` are as they should be.
fn share(good: usize, all: usize, what: &str) -> Verdict {
    verdict(good == all, format!("{good} of {all} {what}"))
}

struct Bench<'a> {
    plan: &'a Plan,
    record: &'a Record,
    slack: Duration,
}

impl Bench<'_> {
    fn real(&self, drill: Duration) -> String {
        told(self.plan.speed.real(drill))
    }

    fn all_answered(&self, among: impl Fn(&super::Call) -> bool) -> Verdict {
        let calls: Vec<_> = self.record.calls.iter().filter(|call| among(call)).collect();
        let good = calls.iter().filter(|call| call.is_answered()).count();
        share(good, calls.len(), "calls")
    }

    fn health(&self) -> Verdict {
        let fault = self.record.fault.0;
        self.all_answered(|call| call.end() < fault)
    }

    fn met(&self) -> Verdict {
        use super::Fault;
        let (fault, over) = self.record.fault;
        let (count, what) = match self.plan.fault {
            Fault::Silent | Fault::Wedged | Fault::Flap => (
                self.record.named("response_created_timeout").count(),
                "silent session",
            ),
            Fault::Reset => (
                self.record.sent.iter().filter(|sent| sent.broken).count(),
                "reset",
            ),
            Fault::Limit => (
                self.record.sent.iter().filter(|sent| sent.rejected).count(),
                "rejection",
            ),
            Fault::Slow => {
                let slow = |call: &&super::Call| {
                    (fault..over).contains(&call.began) && call.waited >= self.plan.slow
                };
                (self.record.calls.iter().filter(slow).count(), "slow call")
            }
        };
        verdict(count > 0, counted(count as u64, what))
    }

    fn answered(&self) -> Verdict {
        let mut last: BTreeMap<(usize, u32), bool> = BTreeMap::new();
        for call in &self.record.calls {
            let answered = last.entry((call.client, call.question)).or_default();
            *answered |= call.is_answered();
        }
        let good = last.values().filter(|answered| **answered).count();
        share(good, last.len(), "questions")
    }

    fn patient(&self, calls: u32) -> Verdict {
        let most = self
            .record
            .calls
            .iter()
            .map(|call| call.attempt)
            .max()
            .unwrap_or_default();
        verdict(
            most <= calls,
            format!("at most {}", counted(most.saturating_sub(1).into(), "retry")),
        )
    }

    fn bounded(&self, limit: Duration) -> Verdict {
        let longest = self
            .record
            .calls
            .iter()
            .map(|call| call.waited)
            .max()
            .unwrap_or_default();
        let broken = self
            .record
            .calls
            .iter()
            .filter(|call| call.ended == Ended::Broken)
            .count();
        let mut evidence = format!("the longest wait was {}", self.real(longest));
        if broken > 0 {
            evidence = format!("{evidence}; {} broke off", counted(broken as u64, "call"));
        }
        verdict(longest <= limit + self.slack && broken == 0, evidence)
    }

    /// The events of `name` about the same conversation as `of`, right after it.
    fn right_after(&self, of: &Told, name: &str, fits: impl Fn(&Told) -> bool) -> bool {
        let mut all = self.record.named(name);
        all.any(|told| told.key == of.key && told.at >= of.at && told.at - of.at <= self.slack && fits(told))
    }

    fn retired(&self, shape: Shape, within: Duration, quarantined: bool) -> Verdict {
        let silent: Vec<_> = self.record.named("response_created_timeout").collect();
        let good = silent.iter().filter(|told| {
            let in_time = told.waited.is_some_and(|waited| waited <= within + self.slack);
            let retired = self.right_after(told, "session_retired", |retired| retired.reason == told.shape);
            let opened = self.right_after(told, "quarantine_opened", |_| true);
            let shaped = told.shape.as_deref().is_some_and(|word| shape.is(word));
            in_time && shaped && retired && (opened == quarantined || (quarantined && self.has_no_http(told)))
        });
        share(good.count(), silent.len(), "silent sessions")
    }

    /// Its account has no direct HTTP for lack of a session.
    fn has_no_http(&self, told: &Told) -> bool {
        let way = told
            .account
            .as_ref()
            .and_then(|account| self.plan.ways.get(account));
        way == Some(&Transport::Websocket)
    }

    fn then_http(&self) -> Verdict {
        let (mut good, mut all) = (0, 0);
        let opened = self
            .record
            .named("quarantine_opened")
            .filter(|told| !self.has_no_http(told));
        for opened in opened {
            let until = opened.at + opened.window.unwrap_or_default();
            let next = self
                .record
                .named("turn_sent")
                .find(|sent| sent.key == opened.key && sent.at > opened.at);
            // A turn at the very end of the window may be on either side of it.
            if let Some(next) = next.filter(|next| next.at < until) {
                all += 1;
                good += usize::from(next.way == Some(Way::Http));
            }
        }
        share(good, all, "next turns")
    }

    fn http_answers(&self) -> Verdict {
        let over_http = |told: &&Told| told.way == Some(Way::Http);
        let ended: Vec<_> = self.record.named("turn_finished").filter(over_http).collect();
        let good = ended
            .iter()
            .filter(|told| told.detail.starts_with("completed"))
            .count();
        share(good, ended.len(), "turns over HTTP")
    }

    /// A level outlives a clear for the longest window, and is forgotten after it.
    fn doubled(&self, first: Duration, most: Duration) -> Verdict {
        let same = |one: Duration, other: Duration| one.abs_diff(other) <= Duration::from_millis(1);
        let mut latest: BTreeMap<&str, (Duration, Duration)> = BTreeMap::new();
        let (mut good, mut all) = (0, 0);
        for told in &self.record.events {
            let Some(key) = told.key.as_deref() else { continue };
            match (told.event.as_str(), told.window) {
                ("quarantine_cleared", _) => {
                    if let Some((_, since)) = latest.get_mut(key) {
                        *since = told.at;
                    }
                }
                ("quarantine_opened", Some(window)) => {
                    all += 1;
                    good += usize::from(match latest.insert(key, (window, told.at + window)) {
                        None => same(window, first),
                        Some((before, since)) => {
                            let forgotten =
                                told.at.saturating_sub(since) + NEARLY + self.record.stall >= most;
                            let next =
                                same(window, before) || same(window, (before * 2).min(most.max(first)));
                            next || (forgotten && same(window, first))
                        }
                    });
                }
                _ => {}
            }
        }
        share(good, all, "windows")
    }

    fn reached(&self, top: Duration) -> Verdict {
        let windows = self
            .record
            .named("quarantine_opened")
            .filter_map(|told| told.window);
        let longest = windows.max().unwrap_or_default();
        let met = longest + Duration::from_millis(1) >= top;
        verdict(met, format!("the longest window was {}", self.real(longest)))
    }

    fn none_of(&self, names: &[&str]) -> Verdict {
        let count = self
            .record
            .events
            .iter()
            .filter(|told| names.contains(&told.event.as_str()))
            .count();
        verdict(
            count == 0,
            format!("{} of that kind", counted(count as u64, "event")),
        )
    }

    fn kept(&self) -> Verdict {
        /// Ends that are nobody's fault.
        const ORDINARY: [&str; 4] = ["idle_ttl", "drained", "client_gone", "unfit"];
        let retired = self.record.named("session_retired").filter(|told| {
            let reason = told.reason.as_deref().unwrap_or_default();
            !ORDINARY.contains(&reason)
        });
        let (retired, opened) = (retired.count(), self.record.named("quarantine_opened").count());
        let failed = self
            .record
            .calls
            .iter()
            .filter(|call| !call.is_answered())
            .count();
        let counts = [
            (retired, "retired session"),
            (opened, "quarantine"),
            (failed, "failed call"),
        ];
        let evidence = counts.map(|(count, one)| counted(count as u64, one)).join(", ");
        verdict(retired + opened + failed == 0, evidence)
    }

    fn errors(&self, right: impl Fn(&Ended) -> bool) -> Verdict {
        let failed: Vec<_> = self
            .record
            .calls
            .iter()
            .filter(|call| !call.is_answered())
            .collect();
        let good = failed.iter().filter(|call| right(&call.ended)).count();
        share(good, failed.len(), "failed calls")
    }

    fn back(&self, within: Duration) -> Verdict {
        let over = self.record.fault.1;
        let bound = |client: &usize| {
            self.plan
                .lane(*client)
                .is_some_and(|lane| lane.sessions == Some(true))
        };
        let expected: BTreeSet<usize> = (0..self.plan.clients).filter(bound).collect();
        let mut back: BTreeMap<usize, Duration> = BTreeMap::new();
        for call in &self.record.calls {
            if call.began >= over && call.ended == Ended::Answered(Some(Way::Websocket)) {
                let took = call.end() - over;
                let first = back.entry(call.client).or_insert(took);
                *first = took.min(*first);
            }
        }
        let slowest = back.values().max().copied().unwrap_or_default();
        let in_time = |client: &&usize| back.get(*client).is_some_and(|took| *took <= within + self.slack);
        let good = expected.iter().filter(in_time).count();
        let evidence = format!(
            "{good} of {}, the last after {}",
            expected.len(),
            self.real(slowest)
        );
        verdict(good == expected.len(), evidence)
    }
}

#[cfg(test)]
mod tests;
