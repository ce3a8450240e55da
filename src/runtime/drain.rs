//! The end of serving: no new turns, running ones finish within a bound, every socket is closed with 1001 (RUN-6 to RUN-10).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::registry::Command;
use super::{Runtime, now, report};
use crate::bridge::session::Retired;
use crate::event::Event;

/// For the last words of cut turns to reach their clients, and for the sockets' closing handshakes.
const LAST_WORDS: Duration = Duration::from_secs(3);

impl Runtime {
    /// Drains: returns when every turn has ended and every socket is closed, or could not be in time. What is cut gets
    /// a retryable `response.failed`.
    pub async fn drain(self: &Arc<Self>) {
        let began = now();
        self.pulse.drains();
        let counts = {
            let mut registry = self.registry();
            registry.drain();
            registry.counts()
        };
        let (turns, sessions) = (self.running(), (counts[0] + counts[1]) as u64);
        self.events.emit(&Event::DrainStarted {
            turns: turns as u64,
            sessions,
        });
        self.tracker.close();
        self.tell(|| Command::Retire(Retired::Drained));
        let until = Instant::now() + self.policy().drain;
        let finished = tokio::select! {
            waited = tokio::time::timeout_at(until, self.tracker.wait()) => waited.is_ok(),
            // Somebody does not want to wait for it (RUN-10).
            () = self.cut.cancelled() => false,
        };
        let mut cut = 0;
        if !finished {
            cut = self.running() as u64;
            self.cut.cancel();
            self.tell(|| Command::Cut);
            // What is still there after that is a peer that does not answer: its socket goes with the process.
            let _ = tokio::time::timeout(LAST_WORDS, self.tracker.wait()).await;
        }
        let took_ms = report::millis(now().duration_since(began));
        self.events.emit(&Event::DrainFinished { cut, took_ms });
        self.over.cancel();
    }

    /// Tells every session.
    pub(super) fn tell(&self, command: impl Fn() -> Command) {
        let lanes = self.registry().lanes();
        for lane in lanes {
            // A full lane belongs to a session that is about to be told as much, or more; a closed one has ended.
            let _ = lane.try_send(command());
        }
    }
}
