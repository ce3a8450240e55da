//! `watchdog.response_created_deadline` and `watchdog.idle_deadline`: which deadline ends few healthy turns, and none of
//! them later than need be (TUNE-3 to TUNE-6).

use std::collections::BTreeMap;

use serde::Serialize;

use super::proportion::{Share, needed};
use super::report::{Group, Section, Table, Verdict};
use super::survival::{Curve, Late, Wait};
use crate::lapse::{short, written_ms};

/// Of a thousand healthy turns a deadline may end one.
pub const LATE: f64 = 0.001;
/// Less is nothing: clocks and watchdogs are not more exact.
const WORTH_MS: u64 = 1000;
/// Models with a table of their own; the others share one.
const MODELS: usize = 10;

/// What is to be respected, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub key: &'static str,
    pub in_force_ms: u64,
    /// Never recommended below.
    pub floor_ms: u64,
    /// Never recommended above: what the other windows of the configuration leave room for.
    pub most_ms: u64,
    /// Rising.
    pub candidates: &'static [u64],
    /// What a turn is late with, for sentences.
    pub late: &'static str,
}

/// What a candidate would have done.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    pub candidate_ms: u64,
    pub in_force: bool,
    /// Healthy turns that it would have ended.
    pub late: u64,
    /// The share of all healthy turns that are so late, the unfinished ones estimated.
    pub share: Share,
    /// How much sooner than with the one in force turns that came to nothing would have ended, all together.
    pub saved_ms: u64,
    /// How much later.
    pub lost_ms: u64,
}

/// The section of one deadline. `of`: each model's waits.
pub fn section(rules: Rules, of: &BTreeMap<&str, &[Wait]>, notes: Vec<String>) -> Section {
    let all = Curve::of(of.values().flat_map(|waits| waits.iter().copied()).collect());
    // Whoever tripped: the deadline is one for all.
    let tripped = all.trips().next().is_some();
    let whole = group("(all models)".to_owned(), &all, rules, tripped);

    let mut models: Vec<_> = of.iter().filter(|(_, waits)| !waits.is_empty()).collect();
    models.sort_by_key(|(name, waits)| (std::cmp::Reverse(waits.len()), **name));
    let rest = models.split_off(models.len().min(MODELS));
    let mut groups: Vec<_> = models
        .into_iter()
        .map(|(name, waits)| group((*name).to_owned(), &Curve::of(waits.to_vec()), rules, tripped))
        .collect();
    if !rest.is_empty() {
        let others = Curve::of(rest.iter().flat_map(|(_, waits)| waits.iter().copied()).collect());
        groups.push(group("(others)".to_owned(), &others, rules, tripped));
    }
    let verdict = together(rules, &whole, &groups);
    if groups.len() != 1 {
        groups.insert(0, whole);
    }
    Section {
        key: rules.key,
        in_force_ms: rules.in_force_ms,
        notes,
        groups,
        verdict,
    }
}

fn group(name: String, curve: &Curve, rules: Rules, tripped: bool) -> Group {
    let lines = lines(curve, rules);
    Group {
        name,
        samples: curve.len(),
        unfinished: curve.len() - curve.came(),
        trips: curve.trips().count() as u64,
        longest_ms: curve.latest(),
        verdict: verdict(curve, &lines, rules, tripped),
        table: Table::Deadline(lines),
    }
}

/// One line for each candidate that the evidence reaches: turns were watched for the deadline in force, or longer where
/// another one was in force before.
fn lines(curve: &Curve, rules: Rules) -> Vec<Line> {
    let reach = curve.longest().unwrap_or(0).max(rules.in_force_ms);
    let mut candidates: Vec<u64> = rules
        .candidates
        .iter()
        .copied()
        .filter(|ms| *ms <= reach)
        .collect();
    candidates.push(rules.in_force_ms);
    candidates.sort_unstable();
    candidates.dedup();
    let vain = curve.in_vain(rules.in_force_ms);
    let line = |candidate_ms| Line {
        candidate_ms,
        in_force: candidate_ms == rules.in_force_ms,
        late: curve.came_after(candidate_ms),
        share: curve.late(candidate_ms).share,
        saved_ms: vain.saturating_sub(curve.in_vain(candidate_ms)),
        lost_ms: curve.in_vain(candidate_ms).saturating_sub(vain),
    };
    candidates.into_iter().map(line).collect()
}

fn verdict(curve: &Curve, lines: &[Line], rules: Rules, tripped: bool) -> Verdict {
    let Late {
        share: in_force,
        size,
    } = curve.late(rules.in_force_ms);
    let may = |line: &&Line| (rules.floor_ms..=rules.most_ms).contains(&line.candidate_ms);
    let spares = |line: &&Line| line.share.high <= LATE;
    if in_force.low > LATE {
        let seen = curve.longest().unwrap_or(0);
        let longer = lines
            .iter()
            .filter(|line| line.candidate_ms > rules.in_force_ms && line.candidate_ms <= seen)
            .filter(may)
            .find(spares);
        return match longer {
            Some(line) => Verdict::Raise {
                to_ms: line.candidate_ms,
                why: format!(
                    "{} of healthy turns are later with {} than {}, and less than {} later than that",
                    percent(in_force.share),
                    rules.late,
                    written_ms(rules.in_force_ms),
                    percent(LATE)
                ),
            },
            None => Verdict::keep(format!(
                "{} of healthy turns are later with {}, but no longer one that was observed, and that the other windows \
                 leave room for, is surely better",
                percent(in_force.share),
                rules.late
            )),
        };
    }
    if in_force.high > LATE {
        // Unfinished turns tell less than finished ones: more of them are needed.
        let worth = if size > 0.0 {
            curve.len() as f64 / size
        } else {
            1.0
        };
        let needed = needed(in_force.share, LATE).map(|size| (size as f64 * worth.max(1.0)).ceil() as u64);
        // A share that none was seen to have: so much is hidden by turns that ended early, and more of them tell no more.
        if curve.trips().next().is_none() && needed.is_some_and(|needed| needed <= curve.len()) {
            return Verdict::keep(format!(
                "turns that ended otherwise before it hide how many healthy ones are later with {}, and more of that kind \
                 would not tell",
                rules.late
            ));
        }
        return Verdict::NotEnough {
            samples: curve.len(),
            needed: needed.map(|needed| needed.max(curve.len() + 1)),
            what: "turn".to_owned(),
        };
    }
    if tripped {
        let here = curve.trips().next().is_some();
        return Verdict::keep(if here && brim(curve, rules) {
            "turns tripped, and healthy ones come until shortly before: some that tripped may have been healthy, which \
             only a longer one would show"
        } else if !here {
            "it spares healthy turns, and is never lowered while a turn of another model tripped within the evidence"
        } else {
            "it spares healthy turns, and is never lowered while a turn tripped within the evidence"
        });
    }
    let shorter = lines
        .iter()
        .filter(|line| line.candidate_ms < rules.in_force_ms)
        .filter(may)
        .find(spares);
    match shorter {
        // The shortest saves most.
        Some(line) if line.saved_ms < WORTH_MS => unworthy(line.candidate_ms),
        Some(line) => lower(line, rules),
        None if rules.in_force_ms <= rules.floor_ms => Verdict::keep("nothing shorter is ever recommended"),
        None => Verdict::keep(format!(
            "nothing shorter surely spares all but {} of healthy turns",
            percent(LATE)
        )),
    }
}

fn lower(line: &Line, rules: Rules) -> Verdict {
    Verdict::Lower {
        to_ms: line.candidate_ms,
        why: format!(
            "less than {} of healthy turns are later with {}, none tripped, and those that came to nothing would have \
             ended {} sooner in all",
            percent(LATE),
            rules.late,
            short(line.saved_ms)
        ),
    }
}

/// A shorter deadline ends healthy turns now and then. Where nothing is gained by that, it is not worth it.
fn unworthy(to_ms: u64) -> Verdict {
    Verdict::keep(format!(
        "no change is worth it: healthy turns would do with {}, but none waited in vain for longer than that, so nothing \
         would have been saved",
        written_ms(to_ms)
    ))
}

/// More healthy turns than a deadline may end came in the last fifth of it: there may be more beyond.
fn brim(curve: &Curve, rules: Rules) -> bool {
    curve.late(rules.in_force_ms / 5 * 4).share.share > LATE
}

/// One value for all models: the longest that any of them surely needs, and a shorter one only where no model is seen to
/// need more.
fn together(rules: Rules, whole: &Group, models: &[Group]) -> Verdict {
    let raises = models
        .iter()
        .chain([whole])
        .filter_map(|group| match &group.verdict {
            Verdict::Raise { to_ms, why } => Some((*to_ms, &group.name, why)),
            _ => None,
        });
    if let Some((to_ms, name, why)) = raises.max_by_key(|(to_ms, ..)| *to_ms) {
        let why = if *name == whole.name {
            why.clone()
        } else {
            format!("of {name}, {why}")
        };
        return Verdict::Raise { to_ms, why };
    }
    let Verdict::Lower { to_ms, .. } = &whole.verdict else {
        return whole.verdict.clone();
    };
    let late = |group: &Group, ms: u64| match &group.table {
        Table::Deadline(lines) => lines
            .iter()
            .any(|line| line.candidate_ms == ms && line.share.share > LATE),
        _ => false,
    };
    let candidates = rules.candidates.iter().copied();
    let suits_all = candidates
        .filter(|ms| (*to_ms..rules.in_force_ms).contains(ms))
        .find(|ms| !models.iter().any(|group| late(group, *ms)));
    let of_all = |ms: u64| match &whole.table {
        Table::Deadline(lines) => lines.iter().find(|line| line.candidate_ms == ms),
        _ => None,
    };
    match suits_all.and_then(of_all) {
        Some(line) if line.saved_ms < WORTH_MS => unworthy(line.candidate_ms),
        Some(line) => lower(line, rules),
        None => Verdict::keep("a shorter one would do for most turns, but not for every model"),
    }
}

/// `0.1 %`, `12 %`: two digits that count.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p <= 0.0 => "0 %".to_owned(),
        p if p < 0.001 => "<0.001 %".to_owned(),
        p if p < 0.01 => format!("{p:.4} %"),
        p if p < 0.1 => format!("{p:.3} %"),
        p if p < 1.0 => trimmed(format!("{p:.2}")),
        p if p < 10.0 => trimmed(format!("{p:.1}")),
        p => format!("{p:.0} %"),
    }
}

fn trimmed(number: String) -> String {
    let short = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        &number
    };
    format!("{short} %")
}

#[cfg(test)]
mod tests;
