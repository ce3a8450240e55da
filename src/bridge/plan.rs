//! Where a turn goes: a pure function over snapshots (KEY-20..KEY-30, QUA-2, QUA-3).

use std::time::Instant;

use super::ownership::SessionId;
use super::quarantine::Status;
use super::transport::{Closed, Permission};
use crate::refusal::Kind;

/// A create whose frame is longer goes by direct HTTP: the ChatGPT backend closes with 1009 just below 16 MiB, and after
/// the send that would be an ambiguous turn.
pub const MAX_FRAME: usize = 15 * 1024 * 1024;

/// What the plan needs to know of the request.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The provider is configured for HTTP only.
    pub http_only: bool,
    /// The provider is configured for WebSocket only.
    pub websocket_only: bool,
    pub background: bool,
    /// Length of the `response.create` frame in bytes.
    pub frame_length: usize,
    /// The longest frame that the provider takes, in bytes: [`MAX_FRAME`] or less.
    pub max_frame: usize,
    /// A frame of this length was refused with 1009 lately.
    pub known_too_big: bool,
    pub anchor: Anchor,
    /// Its key is a pool of conversations, not one: there is no session to wait for.
    pub unqueued: bool,
}

/// What the request's `previous_response_id` means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The request names no response, or one that upstream keeps, or one that nobody here knows.
    Free,
    /// The response lives in this session's memory only.
    Unstored(SessionId),
}

/// What an idle session's memory is to this input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The input names the session's last response.
    Named,
    /// The input extends what the session remembers: so many of its items are there already.
    Extended { items: usize },
    /// The session remembers nothing.
    Blank,
    /// The session remembers something else, which this turn would overwrite.
    Other,
}

impl Fit {
    /// The best first.
    fn rank(self) -> u8 {
        match self {
            Fit::Named => 0,
            Fit::Extended { .. } => 1,
            Fit::Blank => 2,
            Fit::Other => 3,
        }
    }
}

/// An idle session of the key, young enough for another turn.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub session: SessionId,
    pub fit: Fit,
    pub last_used: Instant,
}

/// What the plan needs to know of the bridge, all taken at one moment.
#[derive(Clone, Debug)]
pub struct View<'a> {
    pub quarantine: Status,
    /// May the account's sockets be used, and may another be opened?
    pub reuse: Permission,
    pub dial: Permission,
    pub idle: &'a [Candidate],
    /// Sessions of the key in any state, those being opened too.
    pub sessions: usize,
    pub max_per_key: usize,
    /// One more session fits into `session.max_sessions`, if need be by evicting an idle one.
    pub room: bool,
    /// The unstored anchor's own session is alive (busy, or among the idle).
    pub anchor_alive: bool,
    /// The turn has waited for as long as it may, or the key's queue is full.
    pub no_more_waiting: bool,
}

/// Why a turn goes by direct HTTP. Closed: a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direct {
    Configured,
    Background,
    TooBig,
    Quarantined,
    Unsupported,
    SickTransport,
    Ceiling,
    Handshakes,
    Busy,
    NoRoom,
    /// The upgrade was refused or failed.
    UpgradeRefused,
    /// The upgrade was not done in time.
    UpgradeSlow,
    /// The upstream rejected the turn for a reason of the connection, before accepting it.
    ConnectionLimit,
}

impl Direct {
    /// Every reason.
    pub const ALL: [Direct; 13] = [
        Direct::Configured,
        Direct::Background,
        Direct::TooBig,
        Direct::Quarantined,
        Direct::Unsupported,
        Direct::SickTransport,
        Direct::Ceiling,
        Direct::Handshakes,
        Direct::Busy,
        Direct::NoRoom,
        Direct::UpgradeRefused,
        Direct::UpgradeSlow,
        Direct::ConnectionLimit,
    ];

    /// The reason of this label.
    pub fn of(label: &str) -> Option<Direct> {
        Direct::ALL.into_iter().find(|direct| direct.label() == label)
    }

    /// Whether the request itself, and not the lack of a session, is the reason: no later try would find it otherwise.
    pub fn is_of_the_request(self) -> bool {
        matches!(self, Direct::Background | Direct::TooBig)
    }

    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Direct::Configured => "configured",
            Direct::Background => "background",
            Direct::TooBig => "too_big",
            Direct::Quarantined => "quarantined",
            Direct::Unsupported => "unsupported",
            Direct::SickTransport => "sick_transport",
            Direct::Ceiling => "ceiling",
            Direct::Handshakes => "handshakes",
            Direct::Busy => "busy",
            Direct::NoRoom => "no_room",
            Direct::UpgradeRefused => "upgrade_refused",
            Direct::UpgradeSlow => "upgrade_slow",
            Direct::ConnectionLimit => "connection_limit",
        }
    }
}

/// What a fresh session is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Turn,
    /// To find out whether the quarantined key's sessions answer again.
    ProbeKey,
    /// To find out whether the account's transport works again.
    ProbeTransport,
    /// Both at once: where every key is quarantined, no other turn could probe the transport.
    ProbeBoth,
}

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    Reuse(SessionId),
    Open(Purpose),
    /// Wait in the key's queue until a session is free, then plan again.
    Wait,
    /// Wait until one of the account's handshakes has ended, then plan again.
    WaitToDial,
    Direct(Direct),
    Refuse(Kind),
}

/// Decides. Strongest rule first.
///
/// A provider with `transport = "websocket"` has no direct HTTP for lack of a session: its turns ignore quarantine, and
/// where no socket can be had they are refused, to be tried again. What no socket could ever carry still goes direct.
pub fn plan(facts: &Facts, view: &View<'_>) -> Plan {
    match decide(facts, view) {
        Plan::Direct(reason) if facts.websocket_only && !reason.is_of_the_request() => {
            Plan::Refuse(Kind::NoSocket)
        }
        plan => plan,
    }
}

fn decide(facts: &Facts, view: &View<'_>) -> Plan {
    if let Some(reason) = never_by_websocket(facts) {
        return Plan::Direct(reason);
    }
    match view.quarantine {
        Status::Clear => {}
        _ if facts.websocket_only => {}
        Status::Due if may_probe(facts, view) && view.dial == Permission::Yes => {
            return Plan::Open(Purpose::ProbeKey);
        }
        Status::Due if may_probe(facts, view) && view.dial == Permission::Probe => {
            return Plan::Open(Purpose::ProbeBoth);
        }
        Status::Open(_) | Status::Due | Status::Probing => return Plan::Direct(Direct::Quarantined),
    }
    if let Anchor::Unstored(session) = facts.anchor
        && view.anchor_alive
    {
        return own_socket(session, view);
    }
    match view.reuse {
        Permission::Yes => {}
        Permission::Probe if may_probe(facts, view) && view.dial == Permission::Probe => {
            return Plan::Open(Purpose::ProbeTransport);
        }
        Permission::Probe => return Plan::Direct(Direct::SickTransport),
        Permission::No(closed) => return Plan::Direct(because(closed)),
    }
    socket_choice(facts, view)
}

/// A turn whose anchor lives in one socket's memory proves nothing about a fresh one. The fresh one must find a place, if
/// need be that of an idle one of the same key.
fn may_probe(facts: &Facts, view: &View<'_>) -> bool {
    let place = view.sessions < view.max_per_key || !view.idle.is_empty();
    facts.anchor == Anchor::Free && view.room && place
}

fn never_by_websocket(facts: &Facts) -> Option<Direct> {
    if facts.http_only {
        Some(Direct::Configured)
    } else if facts.background {
        Some(Direct::Background)
    } else if facts.frame_length > facts.max_frame || facts.known_too_big {
        Some(Direct::TooBig)
    } else {
        None
    }
}

/// A request that names an unstored response waits for its own socket, never a sibling. Direct HTTP would be answered
/// not-found with a 400, which is terminal for an agent although waiting cures it: so it is told to come again.
fn own_socket(session: SessionId, view: &View<'_>) -> Plan {
    if view.idle.iter().any(|candidate| candidate.session == session) {
        Plan::Reuse(session)
    } else if view.no_more_waiting {
        Plan::Refuse(Kind::SessionBusy)
    } else {
        Plan::Wait
    }
}

fn socket_choice(facts: &Facts, view: &View<'_>) -> Plan {
    let best = view.idle.iter().min_by_key(|candidate| {
        let longest = match candidate.fit {
            Fit::Extended { items } => usize::MAX - items,
            _ => 0,
        };
        (candidate.fit.rank(), longest, candidate.last_used)
    });
    if let Some(candidate) = best
        && candidate.fit != Fit::Other
    {
        return Plan::Reuse(candidate.session);
    }
    if view.sessions < view.max_per_key && view.room && view.dial == Permission::Yes {
        return Plan::Open(Purpose::Turn);
    }
    if let Some(candidate) = best {
        return Plan::Reuse(candidate.session);
    }
    // As many handshakes as may be are in flight, and each takes a moment: a burst of new conversations gets its sessions
    // one after the other, instead of going direct and having none for its next turns either.
    let may_have_more = view.sessions < view.max_per_key && view.room;
    if may_have_more && view.dial == Permission::No(Closed::Handshakes) && !view.no_more_waiting {
        return Plan::WaitToDial;
    }
    // Nothing is idle. Waiting only helps where what becomes idle is of this conversation.
    if view.sessions > 0 && !facts.unqueued && !view.no_more_waiting {
        return Plan::Wait;
    }
    match view.dial {
        _ if view.sessions >= view.max_per_key => Plan::Direct(Direct::Busy),
        Permission::No(closed) => Plan::Direct(because(closed)),
        Permission::Yes | Permission::Probe => Plan::Direct(Direct::NoRoom),
    }
}

fn because(closed: Closed) -> Direct {
    match closed {
        Closed::Unsupported => Direct::Unsupported,
        Closed::Sick => Direct::SickTransport,
        Closed::Ceiling => Direct::Ceiling,
        Closed::Handshakes => Direct::Handshakes,
    }
}

#[cfg(test)]
mod tests;
