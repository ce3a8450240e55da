//! A table of deadlines, one slot per timer: every wait of a turn or a session is a row of it (INV-3).

use std::time::Instant;

/// Every wait that the session and turn machines know. A timer not in here cannot be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Timer {
    /// The write of a create makes no progress.
    Write,
    /// `response.created` has not come.
    Created,
    /// Direct HTTP: no response headers.
    FirstByte,
    /// Direct HTTP: headers, but no `response.created`.
    FirstEvent,
    /// No upstream event since the last one, after `response.created`.
    Idle,
    /// The whole client call.
    Request,
    /// The status line has been held long enough.
    Commit,
    /// The client has heard nothing for a while: an SSE comment.
    Heartbeat,
    /// The client has had no data event for a while: a keepalive event.
    Keepalive,
    /// The terminal waits for its owner to be durable.
    Durable,
    /// The client takes no bytes although some wait.
    SlowClient,
    /// The next protocol ping.
    Ping,
    /// A socket that used to answer pings has let two pass.
    Dead,
    /// The pong that proves a quiet socket fit for reuse.
    ReuseCheck,
    /// The socket has been idle, or alive, for as long as it may.
    Retire,
    /// The closing handshake.
    Close,
}

/// How many timers there are.
const COUNT: usize = Timer::Close as usize + 1;

/// The table. 16 bytes a row, no allocation.
#[derive(Clone, Debug, Default)]
pub struct Deadlines {
    at: [Option<Instant>; COUNT],
}

impl Deadlines {
    /// Sets the deadline of `timer`, replacing an earlier one.
    pub fn set(&mut self, timer: Timer, at: Instant) {
        self.at[timer as usize] = Some(at);
    }

    /// Forgets the deadline of `timer`.
    pub fn clear(&mut self, timer: Timer) {
        self.at[timer as usize] = None;
    }

    /// The deadline of `timer`, if it is set.
    pub fn of(&self, timer: Timer) -> Option<Instant> {
        self.at[timer as usize]
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.at.iter().flatten().min().copied()
    }

    /// Takes `timer` out of the table if its time has come: each deadline is judged once.
    pub fn expired(&mut self, timer: Timer, now: Instant) -> bool {
        self.at[timer as usize].take_if(|at| *at <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// [SES-1] a deadline fires at its time, not before, and once.
    #[test]
    fn fires_once_at_its_time() {
        let start = Instant::now();
        let mut table = Deadlines::default();
        table.set(Timer::Created, start + Duration::from_secs(60));
        table.set(Timer::Ping, start + Duration::from_secs(25));
        assert_eq!(table.next(), Some(start + Duration::from_secs(25)));
        assert!(!table.expired(Timer::Created, start + Duration::from_millis(59_999)));
        assert!(table.expired(Timer::Created, start + Duration::from_secs(60)));
        assert!(!table.expired(Timer::Created, start + Duration::from_secs(61)));
        assert_eq!(table.next(), Some(start + Duration::from_secs(25)));
    }
}
