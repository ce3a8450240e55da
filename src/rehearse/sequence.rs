//! The bridge's events in order, those that say the same in one part of the drill told once (REH-7).

use std::time::Duration;

use super::seen::Record;

/// Events of one name that say the same, in one part of the drill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The part.
    pub phase: String,
    pub event: String,
    pub detail: String,
    pub count: usize,
    /// Times of the drill.
    pub first: Duration,
    pub last: Duration,
}

/// The part before the first one.
const START: &str = "the start";

/// All that is not routine, by part, in the order in which each first came.
pub fn sequence(record: &Record) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for told in record.events.iter().filter(|told| !told.routine) {
        let phase = record.phases.iter().rfind(|phase| phase.began <= told.at);
        let phase = phase.map_or(START, |phase| phase.name.as_str());
        let same = steps
            .iter_mut()
            .rev()
            .take_while(|step| step.phase == phase)
            .find(|step| step.event == told.event && step.detail == told.detail);
        match same {
            Some(step) => {
                step.count += 1;
                step.last = told.at;
            }
            None => steps.push(Step {
                phase: phase.to_owned(),
                event: told.event.clone(),
                detail: told.detail.clone(),
                count: 1,
                first: told.at,
                last: told.at,
            }),
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::super::seen::{Phase, Told};
    use super::*;

    /// [REH-7] Equal events of a part are one step with their count, in the order of their first; parts are kept apart.
    #[test]
    fn equal_events_are_told_once() {
        let ms = Duration::from_millis;
        let told = |at, event: &str, detail: &str| Told {
            at: ms(at),
            event: event.to_owned(),
            detail: detail.to_owned(),
            ..Told::default()
        };
        let phase = |name: &str, began| Phase {
            name: name.to_owned(),
            began: ms(began),
        };
        let mut record = Record {
            phases: vec![phase("health", 1), phase("fault", 100)],
            events: vec![
                told(0, "s", ""),
                told(1, "a", "x"),
                told(2, "b", ""),
                told(3, "a", "x"),
                told(4, "a", "y"),
                told(101, "a", "x"),
                Told {
                    routine: true,
                    ..told(102, "turn_sent", "")
                },
            ],
            ..Record::default()
        };
        record.fault = (ms(100), ms(200));
        let steps: Vec<_> = sequence(&record)
            .into_iter()
            .map(|step| (step.phase, step.event, step.detail, step.count, step.last))
            .collect();
        let step = |phase: &str, event: &str, detail: &str, count, last| {
            (
                phase.to_owned(),
                event.to_owned(),
                detail.to_owned(),
                count,
                ms(last),
            )
        };
        assert_eq!(
            steps,
            [
                step(START, "s", "", 1, 0),
                step("health", "a", "x", 2, 3),
                step("health", "b", "", 1, 2),
                step("health", "a", "y", 1, 4),
                step("fault", "a", "x", 1, 101),
            ]
        );
    }
}
