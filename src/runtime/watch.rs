//! What is looked at every second whether a turn runs or not: a sleep of the machine, the store's health, the metrics'
//! upkeep.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use super::registry::Command;
use super::{Runtime, now};
use crate::event::Event;
use crate::store::{Degradation, Health};

/// Between two looks.
const TICK: Duration = Duration::from_secs(1);
/// Wall time that runs ahead of monotonic time by more than this between two looks means that the machine slept (INV-10), or
/// that its clock was set; which of them it was, the two cannot tell.
const SLEPT: Duration = Duration::from_secs(5);
/// Looks between two upkeeps of the metrics.
const UPKEEP: u32 = 5;

/// Watches until `stop` resolves, or the store is gone.
pub async fn watch(runtime: Arc<Runtime>, stop: impl Future<Output = ()>) {
    let mut health = runtime.store.standing().watch();
    let mut clocks = (now(), runtime.wall());
    let mut looks = 0_u32;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    runtime.tell_health(*health.borrow_and_update());
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => return,
            changed = health.changed() => {
                if changed.is_err() {
                    return;
                }
                let now = *health.borrow_and_update();
                runtime.tell_health(now);
            }
            _ = tick.tick() => {
                let seen = (now(), runtime.wall());
                let step = stepped(clocks, seen);
                if let Some(step) = &step {
                    runtime.pulse.stepped(step.seconds(), seen.0);
                }
                match step {
                    Some(Step::Forward(by)) => {
                        runtime.clock_stepped("forward", by);
                        runtime.tell(|| Command::Slept);
                    }
                    Some(Step::Back(by)) => runtime.clock_stepped("back", by),
                    None => {}
                }
                clocks = seen;
                runtime.look_at_health(seen.0);
                runtime.tell_of_recovered_accounts();
                looks = looks.wrapping_add(1);
                if looks.is_multiple_of(UPKEEP) {
                    runtime.count_files();
                    runtime.events.telemetry().upkeep();
                }
            }
        }
    }
}

/// What the wall clock did beside running.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Forward(Duration),
    Back(Duration),
}

impl Step {
    /// Ahead is positive.
    fn seconds(&self) -> i64 {
        let seconds = |by: &Duration| i64::try_from(by.as_secs()).unwrap_or(i64::MAX);
        match self {
            Step::Forward(by) => seconds(by),
            Step::Back(by) => -seconds(by),
        }
    }
}

/// By how much more or less than monotonic time wall time ran between two readings of both, where that is over [`SLEPT`].
fn stepped(before: (Instant, SystemTime), after: (Instant, SystemTime)) -> Option<Step> {
    let should = before.1 + after.0.saturating_duration_since(before.0);
    let step = match after.1.duration_since(should) {
        Ok(ahead) => Step::Forward(ahead),
        Err(behind) => Step::Back(behind.duration()),
    };
    let (Step::Forward(by) | Step::Back(by)) = &step;
    (*by > SLEPT).then_some(step)
}

impl Runtime {
    /// The wall clock, as this process is to see it.
    fn wall(&self) -> SystemTime {
        let ahead = self.wall_ahead.load(Ordering::Relaxed);
        let by = Duration::from_secs(ahead.unsigned_abs());
        let system = SystemTime::now();
        let stepped = if ahead < 0 {
            system.checked_sub(by)
        } else {
            system.checked_add(by)
        };
        stepped.unwrap_or(system)
    }

    fn clock_stepped(&self, reason: &'static str, by: Duration) {
        let by_ms = super::report::millis(by);
        self.events.emit(&Event::ClockStepped { reason, by_ms });
    }

    fn tell_health(&self, health: Health) {
        match health {
            Health::Healthy => {}
            Health::Degraded(Degradation { reason, lost, .. }) => {
                let (reason, way_out) = (reason.label(), reason.way_out());
                self.events.emit(&Event::StoreDegraded {
                    reason,
                    lost,
                    way_out,
                });
            }
            Health::Recovered(Degradation { lost, .. }) => self.events.emit(&Event::StoreRecovered { lost }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [INV-10] [EVT-9] wall time that runs ahead of monotonic time by over 5 s is a sleep, or a clock that was set; one that is
    /// behind was set back.
    #[test]
    fn a_clock_that_does_not_run_as_time_does() {
        let (instant, wall) = (Instant::now(), SystemTime::now());
        let after = |monotonic: u64, walled: u64| {
            (
                instant + Duration::from_secs(monotonic),
                wall + Duration::from_secs(walled),
            )
        };
        assert_eq!(stepped((instant, wall), after(1, 6)), None);
        assert_eq!(
            stepped((instant, wall), after(1, 7)),
            Some(Step::Forward(Duration::from_secs(6)))
        );
        assert_eq!(
            stepped(after(1, 100), after(2, 1)),
            Some(Step::Back(Duration::from_secs(100)))
        );
        assert_eq!(stepped(after(1, 100), after(2, 96)), None);
    }
}
