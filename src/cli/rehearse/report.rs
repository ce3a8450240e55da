//! What came of a drill, for programs; and its verdicts.

use serde_json::{Value, json};

use super::Drill;
use crate::config::Lapse;
use crate::rehearse::{Record, Verdict, Way, judge, sequence, tally, told};

/// Every expectation of the drill, judged, in their order.
pub fn judged(drill: &Drill, record: &Record) -> Vec<Verdict> {
    let all = drill.expectations.iter();
    all.map(|expectation| judge(expectation, &drill.plan, record))
        .collect()
}

/// One object. Times and durations are those in earnest, in milliseconds, where the name does not say `drill`.
pub fn json(drill: &Drill, record: &Record, verdicts: &[Verdict]) -> Value {
    let plan = &drill.plan;
    let real = |short| u64::try_from(plan.speed.real(short).as_millis()).unwrap_or(u64::MAX);
    let tally = tally(record);
    let windows = drill.windows.iter().map(|window| {
        json!({
            "key": window.key,
            "own": Lapse(window.own),
            "drill_ms": u64::try_from(window.drill.as_millis()).unwrap_or(u64::MAX),
            "floor": window.floor,
            "stands_for_ms": real(window.drill),
        })
    });
    let events = sequence(record).into_iter().map(|step| {
        json!({
            "phase": step.phase,
            "event": step.event,
            "detail": step.detail,
            "count": step.count,
            "first_ms": real(step.first),
            "last_ms": real(step.last),
        })
    });
    let expectations = drill
        .expectations
        .iter()
        .zip(verdicts)
        .map(|(expectation, verdict)| {
            json!({
                "id": expectation.id,
                "text": expectation.text,
                "met": verdict.met,
                "evidence": verdict.evidence,
            })
        });
    let phases = record.phases.iter();
    let phases = phases.map(|phase| json!({ "name": phase.name, "began_ms": real(phase.began) }));
    let over = |way| record.sent.iter().filter(|sent| sent.way == way).count();
    json!({
        "ok": verdicts.iter().all(|verdict| verdict.met),
        "file": drill.file,
        "fault": plan.fault.name(),
        "clients": plan.clients,
        "speed": plan.speed.factor(),
        "seed": drill.seed,
        "notes": drill.notes,
        "windows": windows.collect::<Vec<_>>(),
        "slack": told(plan.speed.real(plan.slack + record.stall)),
        "drill_slack_ms": u64::try_from((plan.slack + record.stall).as_millis()).unwrap_or(u64::MAX),
        "phases": phases.collect::<Vec<_>>(),
        "clients_saw": {
            "questions": tally.questions,
            "calls": tally.calls,
            "answered_over_sessions": tally.over_sessions,
            "answered_over_http": tally.over_http,
            "errors": tally.errors,
            "retries": tally.retries,
            "slowest_ms": real(tally.slowest),
            "duplicates": tally.duplicates,
        },
        "upstream_saw": { "over_sessions": over(Way::Websocket), "over_http": over(Way::Http) },
        "events": events.collect::<Vec<_>>(),
        "expectations": expectations.collect::<Vec<_>>(),
    })
}
