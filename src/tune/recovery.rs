//! `quarantine.window` and `quarantine.max_window`: how often a probe after some time would have been answered (TUNE-7).
//!
//! A key's state is known at its probes alone: between the last silent one and the answered one it recovered some time. What
//! is not known of a candidate widens its bounds; nothing is made up.

use serde::Serialize;

use super::deadline::percent;
use super::incidents::Incident;
use super::proportion::{Share, needed};
use super::report::{Group, Section, Table, Verdict};
use crate::lapse::written_ms;

/// A probe that costs a wedged turn should be rare: nine in ten are to be answered.
const ANSWERED: f64 = 0.9;
const MINUTE: u64 = 60_000;
/// With the usual windows probes come after one, four and nine minutes.
const CANDIDATES: [u64; 14] = [
    10_000,
    30_000,
    MINUTE,
    90_000,
    2 * MINUTE,
    3 * MINUTE,
    4 * MINUTE,
    5 * MINUTE,
    9 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    20 * MINUTE,
    30 * MINUTE,
    60 * MINUTE,
];

/// What is known of one candidate.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    pub candidate_ms: u64,
    pub in_force: bool,
    /// Incidents that were probed soon enough to count.
    pub incidents: u64,
    /// That had surely recovered by then.
    pub recovered: u64,
    /// That had surely not.
    pub sick: u64,
    /// Of those that had surely recovered; the upper bound is that of all that may have.
    pub share: Share,
}

/// Whether an incident was over by some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Recovered,
    Sick,
    Unknown,
}

/// The sections of both windows, of which `window_ms` and `max_window_ms` are in force.
pub fn sections(incidents: &[Incident], window_ms: u64, max_window_ms: u64) -> [Section; 2] {
    let first: Vec<_> = incidents.iter().map(|incident| (incident, 0)).collect();
    // A longer window matters to those alone that were still sick when the first one was over.
    let stubborn: Vec<_> = incidents
        .iter()
        .filter(|incident| incident.probes.first().is_some_and(|probe| !probe.answered))
        .map(|incident| (incident, 1))
        .collect();
    let window = section(
        "quarantine.window",
        window_ms,
        (1, max_window_ms),
        &first,
        "Quarantines that were over by a time since they opened, as their probes saw it.",
    );
    let most = section(
        "quarantine.max_window",
        max_window_ms,
        (window.verdict.value().unwrap_or(window_ms), u64::MAX),
        &stubborn,
        "The same of those that were still sick at their first probe.",
    );
    [window, most]
}

fn section(
    key: &'static str,
    in_force_ms: u64,
    (least_ms, most_ms): (u64, u64),
    incidents: &[(&Incident, usize)],
    note: &str,
) -> Section {
    let mut candidates = CANDIDATES.to_vec();
    candidates.push(in_force_ms);
    candidates.sort_unstable();
    candidates.dedup();
    let lines: Vec<_> = candidates
        .into_iter()
        .map(|candidate_ms| line(candidate_ms, in_force_ms, incidents))
        .filter(|line| line.in_force || line.incidents > 0)
        .collect();
    let verdict = if in_force_ms == 0 {
        Verdict::keep("quarantine is switched off")
    } else {
        verdict(&lines, in_force_ms, (least_ms, most_ms), latest(incidents))
    };
    let probes = incidents.iter().flat_map(|(incident, _)| &incident.probes);
    Section {
        key,
        in_force_ms,
        notes: vec![note.to_owned()],
        groups: vec![Group {
            name: "(all models)".to_owned(),
            samples: incidents.len() as u64,
            unfinished: incidents
                .iter()
                .filter(|(incident, _)| incident.probes.last().is_none_or(|probe| !probe.answered))
                .count() as u64,
            trips: probes.clone().filter(|probe| !probe.answered).count() as u64,
            longest_ms: probes
                .filter(|probe| probe.answered)
                .map(|probe| probe.after_ms)
                .max(),
            table: Table::Recovery(lines),
            verdict: verdict.clone(),
        }],
        verdict,
    }
}

/// The latest probe of any: nothing is recommended beyond it.
fn latest(incidents: &[(&Incident, usize)]) -> u64 {
    let probes = incidents.iter().flat_map(|(incident, _)| &incident.probes);
    probes.map(|probe| probe.after_ms).max().unwrap_or(0)
}

/// A probe needs a turn to ride on, and comes some time after its window: one within a quarter of the window after it counts
/// as one at its end.
fn until(candidate_ms: u64) -> u64 {
    candidate_ms.saturating_add(candidate_ms / 4)
}

fn line(candidate_ms: u64, in_force_ms: u64, incidents: &[(&Incident, usize)]) -> Line {
    let known = incidents
        .iter()
        .filter_map(|(incident, skip)| status(incident, *skip, candidate_ms));
    let (mut recovered, mut sick, mut unknown) = (0, 0, 0);
    for status in known {
        match status {
            Status::Recovered => recovered += 1,
            Status::Sick => sick += 1,
            Status::Unknown => unknown += 1,
        }
    }
    let incidents = recovered + sick + unknown;
    Line {
        candidate_ms,
        in_force: candidate_ms == in_force_ms,
        incidents,
        recovered,
        sick,
        share: Share::between(recovered, recovered + unknown, incidents),
    }
}

/// None for an incident of which the first probe (after `skip` silent ones) came too late to tell. That depends on when its
/// agent came back, not on when it recovered: leaving it out favours neither. Leaving it out only if it was answered would.
fn status(incident: &Incident, skip: usize, candidate_ms: u64) -> Option<Status> {
    let probes = &incident.probes;
    let silent_at = |at: usize| probes.get(at).is_some_and(|probe| probe.after_ms >= candidate_ms);
    if skip.checked_sub(1).is_some_and(silent_at) {
        return Some(Status::Sick);
    }
    if probes.get(skip)?.after_ms > until(candidate_ms) {
        return None;
    }
    let any = |answered: bool, within: &dyn Fn(u64) -> bool| {
        probes
            .iter()
            .any(|probe| probe.answered == answered && within(probe.after_ms))
    };
    Some(if any(false, &|ms| ms >= candidate_ms) {
        Status::Sick
    } else if any(true, &|ms| ms <= until(candidate_ms)) {
        Status::Recovered
    } else {
        Status::Unknown
    })
}

fn verdict(lines: &[Line], in_force_ms: u64, (least_ms, most_ms): (u64, u64), latest_ms: u64) -> Verdict {
    let not_enough = |line: Option<&Line>| {
        let (samples, known) = line.map_or((0, 0), |line| (line.incidents, line.recovered));
        // None so far, or all of them well: what it takes then.
        let seen = if samples == 0 {
            1.0
        } else {
            known as f64 / samples as f64
        };
        Verdict::NotEnough {
            samples,
            needed: needed(seen, ANSWERED),
            what: "quarantine probed in time".to_owned(),
        }
    };
    let Some(now) = lines.iter().find(|line| line.in_force && line.incidents > 0) else {
        return not_enough(None);
    };
    let others = lines
        .iter()
        .filter(|line| (least_ms..=most_ms).contains(&line.candidate_ms));
    let suits = |line: &&Line| line.share.low >= ANSWERED;
    if now.share.low >= ANSWERED {
        let shorter = others.filter(|line| line.candidate_ms < in_force_ms).find(suits);
        return match shorter {
            Some(line) => Verdict::Lower {
                to_ms: line.candidate_ms,
                why: format!(
                    "{} of {} had recovered by then, surely more than {}",
                    line.recovered,
                    line.incidents,
                    percent(ANSWERED)
                ),
            },
            None => Verdict::keep(format!(
                "{} of {} had recovered by then, and of a shorter one too little is known",
                now.recovered, now.incidents
            )),
        };
    }
    if now.share.high < ANSWERED {
        let longer = others
            .filter(|line| (in_force_ms + 1..=latest_ms).contains(&line.candidate_ms))
            .find(suits);
        return match longer {
            Some(line) => Verdict::Raise {
                to_ms: line.candidate_ms,
                why: format!(
                    "only {} of {} had recovered by {}, but {} of {} by then",
                    now.recovered,
                    now.incidents,
                    written_ms(in_force_ms),
                    line.recovered,
                    line.incidents
                ),
            },
            None => Verdict::keep(format!(
                "only {} of {} had recovered by then, but no longer one that was observed is surely better",
                now.recovered, now.incidents
            )),
        };
    }
    not_enough(Some(now))
}

#[cfg(test)]
mod tests;
