//! The WebSocket transport of one account: whether it may be dialled now (QUA-10..QUA-16).
//!
//! A sick transport is not a sick key, and neither is a sick account: what this breaker does is to send all turns of the
//! account over HTTP, nothing more.

use std::time::{Duration, Instant};

use super::key::AffinityKey;

/// Silent keys, or failed handshakes, that make a transport sick when they fall within [`Policy::span`].
pub const STRIKES: usize = 3;

/// The policy of the breaker.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Strikes count together within this span: 60 s.
    pub span: Duration,
    /// The first time that the breaker stays open; doubles up to `max_open`.
    pub open: Duration,
    pub max_open: Duration,
    /// How long an account without WebSocket (404, 405, 426, 501) or with a socket ceiling (403, 429) is believed: 10 min.
    pub memory: Duration,
    /// Handshakes in flight at most: 8.
    pub max_handshakes: usize,
}

/// May this account be dialled?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    Yes,
    /// The breaker half-opens: this turn probes the transport.
    Probe,
    No(Closed),
}

/// Why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Closed {
    /// The upgrade was answered 404, 405, 426 or 501 lately.
    Unsupported,
    /// The breaker is open, or its probe is under way.
    Sick,
    /// As many sockets are open as the upstream let us have.
    Ceiling,
    /// As many handshakes are in flight as may be.
    Handshakes,
}

/// How a handshake ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    Opened,
    /// The upgrade was answered with another status than 101; `sockets` of the account were alive then.
    Refused {
        status: u16,
        sockets: usize,
    },
    /// No connection, no TLS, no answer in time, or not a WebSocket.
    Failed,
    /// Given up because the client left: it proves nothing.
    Abandoned,
}

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    Opened,
    HalfOpen,
    Closed,
}

/// The right and duty to probe a sick transport: give it back with [`WebSocketTransport::probe_succeeded`] or
/// [`WebSocketTransport::probe_freed`], whatever else became known of it meanwhile. One that was overtaken by a newer
/// failure changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breaker {
    Closed,
    Open { until: Instant, opens: u32 },
    HalfOpen { opens: u32, probe: Probe },
}

/// What an operator sees of a transport. Durations are what is left of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// `closed`, `open` or `half_open`.
    pub breaker: &'static str,
    /// Zero: the next turn may probe.
    pub open_for: Option<Duration>,
    /// Strikes that still count: keys that went silent, handshakes that failed.
    pub silent: usize,
    pub failed: usize,
    pub unsupported_for: Option<Duration>,
    /// Sockets that the upstream lets us have.
    pub ceiling: Option<(usize, Duration)>,
    /// The least length in bytes of a frame that it refuses.
    pub too_big: Option<(usize, Duration)>,
    pub handshakes: usize,
}

/// The state of one account's WebSocket transport.
#[derive(Clone, Debug)]
pub struct WebSocketTransport {
    policy: Policy,
    breaker: Breaker,
    silent: Vec<(AffinityKey, Instant)>,
    failed: Vec<Instant>,
    unsupported_until: Option<Instant>,
    ceiling: Option<(usize, Instant)>,
    /// Frames of at least this length were closed with 1009, until then.
    too_big: Option<(usize, Instant)>,
    handshakes: usize,
    probes: u64,
}

impl WebSocketTransport {
    /// A transport that nothing is known of.
    pub fn new(policy: Policy) -> Self {
        WebSocketTransport {
            policy,
            breaker: Breaker::Closed,
            silent: Vec::new(),
            failed: Vec::new(),
            unsupported_until: None,
            ceiling: None,
            too_big: None,
            handshakes: 0,
            probes: 0,
        }
    }

    /// Puts another policy in force. A breaker that is open stays so until its time (REL-13).
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// May a turn go by WebSocket now? `sockets` of the account are alive; `dial`: it would need a new one. Asking for
    /// nothing changes nothing; a turn that goes on to use `Probe` calls [`Self::begin_probe`].
    pub fn permission(&self, now: Instant, dial: bool, sockets: usize) -> Permission {
        if self.unsupported_until.is_some_and(|until| now < until) {
            return Permission::No(Closed::Unsupported);
        }
        let allowed = match self.breaker {
            Breaker::Closed => Permission::Yes,
            Breaker::Open { until, .. } if now >= until => Permission::Probe,
            Breaker::Open { .. } | Breaker::HalfOpen { .. } => return Permission::No(Closed::Sick),
        };
        if dial
            && self
                .ceiling
                .is_some_and(|(most, until)| now < until && sockets >= most)
        {
            return Permission::No(Closed::Ceiling);
        }
        if dial && self.handshakes >= self.policy.max_handshakes {
            return Permission::No(Closed::Handshakes);
        }
        allowed
    }

    /// Whether a create of `length` bytes is known to be too big for this upstream's frames.
    pub fn too_big(&self, now: Instant, length: usize) -> bool {
        self.too_big
            .is_some_and(|(least, until)| now < until && length >= least)
    }

    /// The upstream closed with 1009 on a create of `length` bytes.
    pub fn refused_size(&mut self, now: Instant, length: usize) {
        let least = self
            .too_big
            .filter(|(_, until)| now < *until)
            .map_or(length, |(least, _)| least.min(length));
        self.too_big = Some((least, now + self.policy.memory));
    }

    /// Takes the one place for a probe, if the breaker is due to half-open.
    pub fn begin_probe(&mut self, now: Instant) -> Option<Probe> {
        match self.breaker {
            Breaker::Open { until, opens } if now >= until => {
                self.probes += 1;
                let probe = Probe(self.probes);
                self.breaker = Breaker::HalfOpen { opens, probe };
                Some(probe)
            }
            _ => None,
        }
    }

    /// The probing turn was accepted.
    pub fn probe_succeeded(&mut self, probe: Probe) -> Option<Change> {
        match self.breaker {
            Breaker::HalfOpen { probe: current, .. } if current == probe => {
                self.breaker = Breaker::Closed;
                self.silent.clear();
                self.failed.clear();
                Some(Change::Closed)
            }
            _ => None,
        }
    }

    /// The probing turn proved nothing (cancelled, rejected, unconnected): the next one may probe.
    pub fn probe_freed(&mut self, probe: Probe, now: Instant) {
        if let Breaker::HalfOpen {
            opens,
            probe: current,
        } = self.breaker
            && current == probe
        {
            self.breaker = Breaker::Open { until: now, opens };
        }
    }

    /// A handshake begins; end it with [`Self::handshake_ended`].
    pub fn handshake_began(&mut self) {
        self.handshakes += 1;
    }

    /// A handshake ended.
    pub fn handshake_ended(&mut self, now: Instant, how: Handshake) -> Option<Change> {
        self.handshakes = self.handshakes.saturating_sub(1);
        match how {
            Handshake::Opened | Handshake::Abandoned => None,
            Handshake::Refused {
                status: 403 | 429,
                sockets,
            } if sockets > 0 => {
                self.ceiling = Some((sockets, now + self.policy.memory));
                None
            }
            // They are about the credential and a limit: whoever answers them speaks for the upstream.
            Handshake::Refused {
                status: 401 | 429, ..
            } => None,
            Handshake::Refused {
                status: 404 | 405 | 426 | 501,
                ..
            } => {
                self.unsupported_until = Some(now + self.policy.memory);
                self.strike_failed(now)
            }
            Handshake::Refused { .. } | Handshake::Failed => self.strike_failed(now),
        }
    }

    /// A socket went away after its handshake, before it had taken a byte of the turn that it was opened for: as good as a
    /// failed handshake.
    pub fn stillborn(&mut self, now: Instant) -> Option<Change> {
        self.strike_failed(now)
    }

    fn strike_failed(&mut self, now: Instant) -> Option<Change> {
        let span = self.policy.span;
        self.failed.retain(|at| now.duration_since(*at) < span);
        self.failed.push(now);
        let sick = self.failed.len() >= STRIKES;
        self.failed.truncate(STRIKES);
        self.judge(now, sick)
    }

    /// A session of `key` went silent.
    pub fn silent(&mut self, key: AffinityKey, now: Instant) -> Option<Change> {
        let span = self.policy.span;
        self.silent
            .retain(|(other, at)| *other != key && now.duration_since(*at) < span);
        self.silent.push((key, now));
        let sick = self.silent.len() >= STRIKES;
        self.silent.truncate(STRIKES);
        self.judge(now, sick)
    }

    /// Opens the breaker when the strikes say so, or when what failed was its probe.
    fn judge(&mut self, now: Instant, sick: bool) -> Option<Change> {
        let opens = match self.breaker {
            Breaker::HalfOpen { opens, .. } => opens.saturating_add(1),
            Breaker::Closed if sick => 1,
            Breaker::Closed | Breaker::Open { .. } => return None,
        };
        let doubled = self
            .policy
            .open
            .saturating_mul(1_u32.checked_shl(opens - 1).unwrap_or(u32::MAX));
        self.breaker = Breaker::Open {
            until: now + doubled.min(self.policy.max_open),
            opens,
        };
        self.silent.clear();
        self.failed.clear();
        Some(Change::Opened)
    }

    /// An operator forgets all that is held against the transport. A probe that is on its way changes nothing any more.
    /// Handshakes in flight stay counted.
    pub fn reset(&mut self) -> Option<Change> {
        let sick = self.is_sick();
        *self = WebSocketTransport {
            handshakes: self.handshakes,
            probes: self.probes,
            ..WebSocketTransport::new(self.policy)
        };
        sick.then_some(Change::Closed)
    }

    /// What is known of the transport, as an operator sees it.
    pub fn standing(&self, now: Instant) -> Standing {
        let left = |until: Instant| until.saturating_duration_since(now);
        let counts = |until: &Instant| now < *until;
        let (breaker, open_for) = match self.breaker {
            Breaker::Closed => ("closed", None),
            Breaker::Open { until, .. } => ("open", Some(left(until))),
            Breaker::HalfOpen { .. } => ("half_open", None),
        };
        let within = |at: &Instant| now.duration_since(*at) < self.policy.span;
        Standing {
            breaker,
            open_for,
            silent: self.silent.iter().filter(|(_, at)| within(at)).count(),
            failed: self.failed.iter().filter(|at| within(at)).count(),
            unsupported_for: self.unsupported_until.filter(counts).map(left),
            ceiling: self
                .ceiling
                .filter(|(_, until)| counts(until))
                .map(|(most, until)| (most, left(until))),
            too_big: self
                .too_big
                .filter(|(_, until)| counts(until))
                .map(|(least, until)| (least, left(until))),
            handshakes: self.handshakes,
        }
    }

    /// True while the breaker is not closed, for the gauge.
    pub fn is_sick(&self) -> bool {
        self.breaker != Breaker::Closed
    }
}

#[cfg(test)]
mod tests;
