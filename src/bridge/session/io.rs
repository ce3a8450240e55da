//! What goes into a session, what comes out of it, and what it remembers.
//!
//! `Debug` shows what an input is and how long its payload is, never the payload (INV-9).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::bridge::continuation::History;
use crate::bridge::turn::{self, Recording};
use crate::bridge::watchdog::Shape;
use crate::refusal::Kind;
use crate::wire::head::Head;

/// How a session is kept.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Between two pings.
    pub ping: Duration,
    /// Without any inbound byte, after two unanswered pings, for a peer that used to answer them.
    pub dead_after: Duration,
    /// Quiet for longer than this, the socket proves itself before reuse.
    pub reuse_check_after: Duration,
    /// How long the proof may take.
    pub pong: Duration,
    /// Idle for this long, the session is retired.
    pub idle_ttl: Duration,
    /// No turn starts on an older socket; the jitter is already taken off.
    pub max_age: Duration,
    /// How long the closing handshake may take.
    pub close: Duration,
}

/// What a socket remembers: its latest response, and the conversation that led to it.
#[derive(Clone, Debug)]
pub struct Memory {
    pub response_id: Box<str>,
    /// Upstream keeps the response elsewhere too.
    pub stored: bool,
    /// The conversation up to and with that response. `None` where it is not known for certain, or is none that a later
    /// input could extend.
    pub history: Option<Arc<History>>,
}

/// Why a session ends. Closed: a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retired {
    /// The watchdog found it silent.
    Silent(Shape),
    /// Its turn ended otherwise by a deadline or a fault of the bridge's finding.
    TurnFailed(Kind),
    /// The client of its turn left.
    ClientGone,
    /// It did not prove itself before reuse.
    Unfit,
    /// It used to answer pings and stopped.
    Dead,
    /// The upstream closed it.
    ClosedByUpstream,
    /// A data frame came while no turn was running.
    UnexpectedFrame,
    /// The upstream said that it is too old, or refuses its credential.
    Refused,
    IdleTtl,
    MaxAge,
    Evicted,
    /// Its account's credential was replaced.
    CredentialRotated,
    /// An operator closed it.
    Operator,
    /// Its client is configured no more.
    ClientRemoved,
    Drained,
}

impl Retired {
    /// Every reason of its own; a reason of its turn is the turn's.
    pub const ALL: [Retired; 15] = [
        Retired::Silent(Shape::Eventless),
        Retired::Silent(Shape::EventsWithoutCreated),
        Retired::ClientGone,
        Retired::Unfit,
        Retired::Dead,
        Retired::ClosedByUpstream,
        Retired::UnexpectedFrame,
        Retired::Refused,
        Retired::IdleTtl,
        Retired::MaxAge,
        Retired::Evicted,
        Retired::CredentialRotated,
        Retired::ClientRemoved,
        Retired::Operator,
        Retired::Drained,
    ];

    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Retired::Silent(shape) => shape.label(),
            Retired::TurnFailed(kind) => kind.label(),
            Retired::ClientGone => "client_gone",
            Retired::Unfit => "unfit",
            Retired::Dead => "dead",
            Retired::ClosedByUpstream => "closed_by_upstream",
            Retired::UnexpectedFrame => "unexpected_frame",
            Retired::Refused => "refused_by_upstream",
            Retired::IdleTtl => "idle_ttl",
            Retired::MaxAge => "max_age",
            Retired::Evicted => "evicted",
            Retired::CredentialRotated => "credential_rotated",
            Retired::Operator => "operator",
            Retired::ClientRemoved => "client_removed",
            Retired::Drained => "drained",
        }
    }

    /// The close code that the upstream is told.
    pub(super) fn close_code(self) -> u16 {
        match self {
            Retired::Drained => 1001,
            _ => 1000,
        }
    }
}

/// What happens to a session.
pub enum Input {
    /// A turn for this idle session. `stored`: the request asks upstream to keep the response.
    Lease {
        turn: turn::Policy,
        arrived: Instant,
        stored: bool,
    },
    /// What the running turn said, to be remembered with what comes out of it.
    Record(Box<Recording>),
    /// A text frame of the upstream's.
    Event { name: Bytes, data: Bytes, head: Head },
    /// A ping, a pong, or bytes of a frame that is not whole yet.
    Alive { pong: bool },
    /// Bytes of the create left.
    Wrote,
    /// Its last byte left.
    Flushed,
    /// The socket is closed. `too_big`: with 1009.
    Closed { too_big: bool },
    /// The owner of a response of the running turn's is on disk, or known to be lost: once for each acceptance with an
    /// id.
    Durable,
    /// The running turn's client left.
    ClientGone,
    /// The running turn's client buffer is full.
    ClientFull,
    /// The machine slept: the socket proves itself before it is used again.
    Slept,
    /// Cut the running turn, if there is one.
    Cut,
    /// End the session; a running turn is finished first unless it is cut.
    Retire(Retired),
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Lease { turn, .. } => write!(f, "Lease({})", turn.transport.label()),
            Input::Record(_) => f.write_str("Record"),
            Input::Event { data, .. } => write!(f, "Event({} bytes)", data.len()),
            Input::Alive { pong } => write!(f, "Alive({pong})"),
            Input::Wrote => f.write_str("Wrote"),
            Input::Flushed => f.write_str("Flushed"),
            Input::Closed { too_big } => write!(f, "Closed({too_big})"),
            Input::Durable => f.write_str("Durable"),
            Input::ClientGone => f.write_str("ClientGone"),
            Input::ClientFull => f.write_str("ClientFull"),
            Input::Slept => f.write_str("Slept"),
            Input::Cut => f.write_str("Cut"),
            Input::Retire(reason) => write!(f, "Retire({})", reason.label()),
        }
    }
}

/// What a session wants done.
#[derive(Debug)]
pub enum Output {
    /// Hand the leased create to the socket.
    Send,
    Ping,
    /// Start the closing handshake.
    Close(u16),
    /// An output of the running turn.
    Turn(turn::Output),
    /// The leased turn was not sent: it may be planned again. It gets no other output.
    Unsent,
    /// The turn is over, or was given back; the session can take another.
    Idle,
    /// The session takes no turn any more.
    Retired(Retired),
    /// The socket may be dropped. Nothing follows.
    Gone,
}
