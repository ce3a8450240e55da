//! Which windows the journal's own rows speak for: estimates with bounds, and a recommendation only where the evidence
//! carries it (TUNE-1 to TUNE-10). Pure: rows in, a report out.

mod deadline;
mod evidence;
mod incidents;
mod proportion;
mod recovery;
mod report;
mod survival;
mod text;
mod wear;

pub use evidence::{Evidence, Read, Row};
pub use proportion::Share;
pub use report::{Group, Report, Section, Table, Verdict};
pub use survival::{Curve, End, Wait};
pub use text::text;

use std::collections::BTreeMap;

use crate::counted::counted;
use crate::lapse::{short, written_ms};
use evidence::Turns;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
/// Five seconds retired healthy sessions under normal queueing. An hour without a slow start proves no more than that hour.
const CREATED_FLOOR: u64 = 30 * SECOND;
/// Models have been silent for 8.5 minutes and come back.
const IDLE_FLOOR: u64 = 10 * MINUTE;
const CREATED: [u64; 13] = [
    5 * SECOND,
    10 * SECOND,
    20 * SECOND,
    30 * SECOND,
    45 * SECOND,
    60 * SECOND,
    75 * SECOND,
    90 * SECOND,
    120 * SECOND,
    150 * SECOND,
    180 * SECOND,
    210 * SECOND,
    240 * SECOND,
];
const IDLE: [u64; 10] = [
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    12 * MINUTE,
    15 * MINUTE,
    20 * MINUTE,
    30 * MINUTE,
    45 * MINUTE,
    60 * MINUTE,
];

/// The windows in force, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct InForce {
    pub created_ms: u64,
    /// What the other windows leave room for.
    pub created_most_ms: u64,
    pub idle_ms: u64,
    pub idle_most_ms: u64,
    pub window_ms: u64,
    pub max_window_ms: u64,
    pub max_age_ms: u64,
    pub idle_ttl_ms: u64,
}

/// What `read` says about the windows in force.
pub fn report(read: &Read, in_force: InForce) -> Report {
    let created = deadline::Rules {
        key: "watchdog.response_created_deadline",
        in_force_ms: in_force.created_ms,
        floor_ms: CREATED_FLOOR,
        most_ms: in_force.created_most_ms,
        candidates: &CREATED,
        late: "response.created",
    };
    let idle = deadline::Rules {
        key: "watchdog.idle_deadline",
        in_force_ms: in_force.idle_ms,
        floor_ms: IDLE_FLOOR,
        most_ms: in_force.idle_most_ms,
        candidates: &IDLE,
        late: "an event",
    };
    let [window, max_window] =
        recovery::sections(&read.incidents, in_force.window_ms, in_force.max_window_ms);
    Report {
        span: read.span,
        rows: read.rows,
        unreadable: read.unreadable,
        sections: vec![
            deadline::section(
                created,
                &by_model(read, |turns| &turns.created),
                vec![
                    format!(
                        "Turns on sessions, from the flushed create to response.created. Never below {}, nor above {}: \
                         the other windows and Codex leave no more.",
                        written_ms(CREATED_FLOOR),
                        written_ms(in_force.created_most_ms)
                    ),
                    beside(&read.direct.created),
                ],
            ),
            deadline::section(
                idle,
                &by_model(read, |turns| &turns.gaps),
                vec![
                    format!(
                        "The longest silence of each accepted turn on a session. Never below {}: models have been \
                         silent for 8.5 minutes and come back.",
                        written_ms(IDLE_FLOOR)
                    ),
                    beside(&read.direct.gaps),
                ],
            ),
            window,
            max_window,
            wear::section(
                "session.max_age",
                in_force.max_age_ms,
                wear::AGES,
                "age",
                read.ages,
            ),
            wear::section(
                "session.idle_ttl",
                in_force.idle_ttl_ms,
                wear::IDLES,
                "idle time",
                read.idles,
            ),
        ],
    }
}

fn by_model(read: &Read, of: impl Fn(&Turns) -> &[Wait]) -> BTreeMap<&str, &[Wait]> {
    let models = read.models.iter();
    models.map(|(name, turns)| (name.as_str(), of(turns))).collect()
}

/// Direct HTTP has deadlines of its own, and is told of beside the sessions only.
fn beside(direct: &[Wait]) -> String {
    let curve = Curve::of(direct.to_vec());
    match (curve.within(0.5), curve.within(0.99), curve.latest()) {
        (Some(half), Some(most), Some(longest)) => format!(
            "By direct HTTP, which is not part of it: {}, half within {}, 99 % within {}, the longest {}.",
            counted(curve.len(), "turn"),
            short(half),
            short(most),
            short(longest)
        ),
        _ => "By direct HTTP, which is not part of it: no turns.".to_owned(),
    }
}

#[cfg(test)]
mod tests;
