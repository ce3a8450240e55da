//! Another policy for a session that is open (REL-11, REL-15).

use std::time::Instant;

use super::{Policy, Session, State, Timer};

impl Session {
    /// Puts another policy in force (REL-15). What is due earlier by it is due then, at once if need be; a running turn
    /// keeps its own deadlines.
    pub fn set_policy(&mut self, now: Instant, policy: Policy) {
        self.policy = policy;
        if matches!(self.state, State::Closing | State::Gone) {
            return;
        }
        if let Some(ping) = self.table.of(Timer::Ping) {
            self.table.set(Timer::Ping, ping.min(now + policy.ping));
        }
        if matches!(self.state, State::Idle) {
            self.schedule_retirement();
        }
    }
}
