//! What is looked at every second whether a turn runs or not: a sleep of the machine, the store's health, the metrics'
//! upkeep.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::registry::Command;
use super::{Runtime, now};
use crate::event::Event;
use crate::store::{Degradation, Health};

/// Between two looks.
const TICK: Duration = Duration::from_secs(1);
/// Wall time that runs ahead of monotonic time by more than this between two looks means that the machine slept (INV-10).
const SLEPT: Duration = Duration::from_secs(5);
/// Looks between two upkeeps of the metrics.
const UPKEEP: u32 = 5;

/// Watches until `stop` resolves, or the store is gone.
pub async fn watch(runtime: Arc<Runtime>, stop: impl Future<Output = ()>) {
    let mut health = runtime.store.standing().watch();
    let mut clocks = (now(), SystemTime::now());
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
                let seen = (now(), SystemTime::now());
                if slept(clocks, seen) {
                    runtime.tell(|| Command::Slept);
                }
                if let Some(seconds) = stepped(clocks, seen) {
                    runtime.pulse.stepped(seconds, seen.0);
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

/// Whether the machine slept between two readings of both clocks.
fn slept(before: (Instant, SystemTime), after: (Instant, SystemTime)) -> bool {
    let monotonic = after.0.saturating_duration_since(before.0);
    // A wall clock that was set back tells nothing.
    let wall = after.1.duration_since(before.1).unwrap_or_default();
    wall > monotonic + SLEPT
}

/// By how many seconds the wall clock ran away from the monotonic one between two readings of both, where that is more than a
/// correction: a sleep of the machine, or somebody set the clock.
fn stepped(before: (Instant, SystemTime), after: (Instant, SystemTime)) -> Option<i64> {
    let monotonic = after.0.saturating_duration_since(before.0);
    let seconds = |lapse: Duration| i64::try_from(lapse.as_secs()).unwrap_or(i64::MAX);
    let step = match after.1.duration_since(before.1 + monotonic) {
        Ok(ahead) => seconds(ahead),
        Err(back) => -seconds(back.duration()),
    };
    (step.unsigned_abs() > SLEPT.as_secs()).then_some(step)
}

impl Runtime {
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

    /// [INV-10] wall time that runs ahead of monotonic time by over 5 s is a sleep; a clock set back is not.
    #[test]
    fn a_sleep_is_told_from_a_clock_step() {
        let (instant, wall) = (Instant::now(), SystemTime::now());
        let after = |monotonic: u64, walled: u64| {
            (
                instant + Duration::from_secs(monotonic),
                wall + Duration::from_secs(walled),
            )
        };
        assert!(!slept((instant, wall), after(1, 6)));
        assert!(slept((instant, wall), after(1, 7)));
        assert!(!slept(after(1, 100), after(2, 1)));
    }
}
