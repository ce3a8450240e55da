//! What the loop keeps of calls, sessions and handshakes, and the policies that it gives them.

use super::*;

/// Where a call is.
pub(super) enum Way {
    Planning,
    Waiting,
    Dialing,
    On(SessionId),
    Http(Box<Turn>),
    Over,
}

pub(super) struct Call {
    pub spec: Spec,
    pub key: AffinityKey,
    pub account: usize,
    pub anchor: Option<String>,
    /// The session in whose memory alone the anchor lives.
    pub unstored: Option<SessionId>,
    pub way: Way,
    pub history: History,
    pub key_probe: Option<quarantine::Probe>,
    pub transport_probe: Option<transport::Probe>,
    /// Rejected for a reason of the connection, before commit: to be sent again over HTTP.
    pub again: bool,
    pub response: Option<String>,
}

pub(super) struct Live {
    pub session: Session,
    pub key: AffinityKey,
    pub account: usize,
    pub call: Option<usize>,
    pub idle_since: Option<Instant>,
    pub retired: bool,
}

pub(super) struct Dial {
    pub call: Option<usize>,
    pub key: AffinityKey,
    pub account: usize,
    pub upgrade: Upgrade,
}

pub(super) enum Happening {
    Arrives(Spec),
    Leaves(usize),
    Waited(usize),
    Impatient(u64),
    Upgraded(u64),
    Flushed(SessionId, usize),
    Socket(SessionId, Wire),
    Pong(SessionId),
    Durable(usize),
    Http(usize, Wire),
}

impl Call {
    pub fn waiting_since(&self) -> Option<Instant> {
        self.history.first.filter(|_| self.spec.stuck && !self.spec.json)
    }
}

pub(super) fn session_policy() -> session::Policy {
    session::Policy {
        ping: 25 * S,
        dead_after: 60 * S,
        reuse_check_after: 30 * S,
        pong: S,
        idle_ttl: 300 * S,
        max_age: 900 * S,
        close: S,
    }
}

pub(super) fn turn_policy(transport: Transport, json: bool) -> turn::Policy {
    turn::Policy {
        limits: Limits {
            write: 30 * S,
            created: CREATED,
            idle: 900 * S,
            request: 7200 * S,
            first_byte: 60 * S,
            first_event: 60 * S,
            between_events: 900 * S,
        },
        transport,
        stream: !json,
        whole: transport == Transport::Http && json,
        commit_after: 15 * S,
        heartbeat: 10 * S,
        slow_client: 120 * S,
        items_cap: 1 << 20,
    }
}
