//! The whole life of a session: one upstream socket, bound to one key and one account, carrying one turn at a time.
//!
//! ```text
//!              lease (heard from lately)
//!        +------------------------------------+
//!        |                                    v          turn ended by the upstream
//!      Idle --lease (quiet for long)--> Checking --pong--> Busy ------------------------> Idle
//!        |                                    |              |
//!        |                           no pong: the turn       | turn ended by the bridge or the client,
//!        |                           goes back, unsent       | or the upstream closed the socket
//!        v                                    v              v
//!      Closing <------------------------------+--------------+
//!        |  closing handshake done, or 1 s
//!        v
//!      Gone
//! ```
//! What a reader should be able to check here:
//! - A create is handed to the socket once, on the way into `Busy` (INV-1); before that the turn can go back unsent.
//! - Every end of a turn that the upstream did not make itself retires the socket, so a late frame of a dead turn never
//!   reaches another one (INV-5). A data frame while idle is such a frame, and retires the socket too (SES-24).
//! - The socket is pinged every 25 s, idle or busy. Once it has answered a ping, two unanswered pings and 60 s without a
//!   byte mean that it is dead (SES-25). A ping or a pong is never progress of the turn (INV-4).
//! - A socket that has been quiet for 30 s, or that has slept, proves itself with a pong within 1 s before it is given
//!   another turn (SES-23).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::deadlines::{Deadlines, Timer};
use super::turn::{self, Outcome, Turn, TurnEnd};
use super::watchdog::{Shape, Verdict};
use crate::refusal::Kind;
use crate::wire::error::ErrorClass;
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

/// What a socket remembers: its latest response, and the input that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub response_id: Box<str>,
    /// Upstream keeps the response elsewhere too.
    pub stored: bool,
    pub input: Seen,
}

/// A fingerprint of the `input` that a turn sent: how long its raw text was, and its keyed hash. Enough to see that a
/// later input begins with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub length: usize,
    pub hash: [u8; 16],
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
    Drained,
}

impl Retired {
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
            Retired::Drained => "drained",
        }
    }

    /// The close code that the upstream is told.
    fn close_code(self) -> u16 {
        match self {
            Retired::Drained => 1001,
            _ => 1000,
        }
    }
}

/// What happens to a session.
#[derive(Debug)]
pub enum Input {
    /// A turn for this idle session; `seen` is the fingerprint of its input.
    Lease { turn: turn::Policy, arrived: Instant, seen: Option<Seen>, stored: bool },
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
    /// The owner of the running turn's response is on disk, or known to be lost.
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
    /// The leased turn was not sent: it may be planned again.
    Unsent,
    /// The turn is over and the session can take another.
    Idle,
    /// The session takes no turn any more.
    Retired(Retired),
    /// The socket may be dropped. Nothing follows.
    Gone,
}

#[derive(Debug)]
enum State {
    Idle,
    Checking(Box<Running>),
    Busy(Box<Running>),
    Closing,
    Gone,
}

#[derive(Debug)]
struct Running {
    turn: Turn,
    seen: Option<Seen>,
    stored: bool,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    policy: Policy,
    state: State,
    table: Deadlines,
    outputs: VecDeque<Output>,
    opened: Instant,
    idle_since: Instant,
    last_inbound: Instant,
    unanswered: u32,
    ever_answered: bool,
    must_prove: bool,
    retire_when_idle: Option<Retired>,
    memory: Option<Memory>,
    turns: u32,
}

impl Session {
    /// A session whose socket was opened at `now`.
    pub fn new(policy: Policy, now: Instant) -> Self {
        let mut session = Session {
            policy,
            state: State::Idle,
            table: Deadlines::default(),
            outputs: VecDeque::new(),
            opened: now,
            idle_since: now,
            last_inbound: now,
            unanswered: 0,
            ever_answered: false,
            must_prove: false,
            retire_when_idle: None,
            memory: None,
            turns: 0,
        };
        session.table.set(Timer::Ping, now + policy.ping);
        session.schedule_retirement();
        session
    }

    /// The next output; `None` when all that followed from the last input is out.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Self::tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        let turn = match &self.state {
            State::Busy(running) => running.turn.deadline(),
            _ => None,
        };
        [self.table.next(), turn].into_iter().flatten().min()
    }

    /// What the socket remembers.
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// The running turn.
    pub fn turn(&self) -> Option<&Turn> {
        match &self.state {
            State::Busy(running) => Some(&running.turn),
            _ => None,
        }
    }

    /// Turns that were sent on this socket.
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// When the socket was opened.
    pub fn opened(&self) -> Instant {
        self.opened
    }

    /// Since when the socket has been idle, or had been before the running turn.
    pub fn idle_since(&self) -> Instant {
        self.idle_since
    }

    /// When no turn may start on it any more, but one that names its unstored response.
    pub fn too_old_at(&self) -> Instant {
        self.opened + self.policy.max_age
    }

    /// Takes an input. Drain [`Self::poll`] afterwards.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Lease { turn, arrived, seen, stored } => self.lease(now, turn, arrived, seen, stored),
            Input::Event { name, data, head } => {
                self.alive(now);
                self.event(now, name, data, head);
            }
            Input::Alive { pong } => {
                self.alive(now);
                if pong {
                    self.proved(now);
                }
            }
            Input::Closed { too_big } => self.closed(now, too_big),
            Input::Slept => self.must_prove = true,
            Input::Retire(reason) => match self.state {
                State::Idle => self.retire(now, reason),
                _ => self.retire_when_idle = Some(reason),
            },
            Input::ClientGone if matches!(self.state, State::Checking(_)) => {
                // Nothing was sent: the socket stays, and still owes its proof.
                self.state = State::Idle;
                self.idle(now);
            }
            Input::Wrote => self.turn_input(now, turn::Input::Wrote),
            Input::Flushed => self.turn_input(now, turn::Input::Flushed),
            Input::Durable => self.turn_input(now, turn::Input::Durable),
            Input::ClientGone => self.turn_input(now, turn::Input::ClientGone),
            Input::ClientFull => self.turn_input(now, turn::Input::ClientFull),
            Input::Cut => self.turn_input(now, turn::Input::Cut),
        }
    }

    /// Judges all deadlines. `waiting_since`: since when bytes wait for the client without any being taken.
    pub fn tick(&mut self, now: Instant, waiting_since: Option<Instant>) {
        if self.table.expired(Timer::Close, now) {
            self.gone();
            return;
        }
        if self.table.expired(Timer::ReuseCheck, now) && matches!(self.state, State::Checking(_)) {
            self.outputs.push_back(Output::Unsent);
            self.retire(now, Retired::Unfit);
            return;
        }
        if self.table.expired(Timer::Dead, now) {
            self.dead(now);
            return;
        }
        if self.table.expired(Timer::Retire, now) && matches!(self.state, State::Idle) {
            self.retire_by_time(now);
            return;
        }
        if self.table.expired(Timer::Ping, now) {
            self.ping(now);
        }
        if let State::Busy(running) = &mut self.state {
            running.turn.tick(now, waiting_since);
            self.drain_turn(now);
        }
    }

    fn lease(&mut self, now: Instant, turn: turn::Policy, arrived: Instant, seen: Option<Seen>, stored: bool) {
        if !matches!(self.state, State::Idle) {
            // The registry leases only idle sessions; one that began to close meanwhile gives the turn back.
            self.outputs.push_back(Output::Unsent);
            return;
        }
        self.table.clear(Timer::Retire);
        let late = self.memory.as_ref().map(|memory| memory.response_id.clone());
        let running = Box::new(Running { turn: Turn::new(turn, arrived, late), seen, stored });
        let quiet = now.duration_since(self.last_inbound) >= self.policy.reuse_check_after;
        if quiet || self.must_prove {
            self.state = State::Checking(running);
            self.table.set(Timer::ReuseCheck, now + self.policy.pong);
            self.ping(now);
        } else {
            self.send(now, running);
        }
    }

    fn send(&mut self, now: Instant, mut running: Box<Running>) {
        self.turns += 1;
        running.turn.handle(now, turn::Input::Wrote);
        self.state = State::Busy(running);
        self.outputs.push_back(Output::Send);
    }

    fn proved(&mut self, now: Instant) {
        self.ever_answered = true;
        self.must_prove = false;
        self.table.clear(Timer::ReuseCheck);
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Checking(running) => self.send(now, running),
            other => self.state = other,
        }
    }

    fn alive(&mut self, now: Instant) {
        self.last_inbound = now;
        self.unanswered = 0;
        self.table.clear(Timer::Dead);
    }

    fn ping(&mut self, now: Instant) {
        self.table.set(Timer::Ping, now + self.policy.ping);
        if matches!(self.state, State::Closing | State::Gone) {
            return;
        }
        self.unanswered += 1;
        self.outputs.push_back(Output::Ping);
        if self.ever_answered && self.unanswered >= 2 && self.table.of(Timer::Dead).is_none() {
            self.table.set(Timer::Dead, now.max(self.last_inbound + self.policy.dead_after));
        }
    }

    fn dead(&mut self, now: Instant) {
        match &mut self.state {
            State::Busy(running) => {
                running.turn.handle(now, turn::Input::Lost(Kind::SocketDead));
                self.drain_turn(now);
            }
            State::Checking(_) => {
                self.outputs.push_back(Output::Unsent);
                self.retire(now, Retired::Dead);
            }
            State::Idle => self.retire(now, Retired::Dead),
            State::Closing | State::Gone => {}
        }
    }

    fn event(&mut self, now: Instant, name: Bytes, data: Bytes, head: Head) {
        match &mut self.state {
            State::Busy(running) => {
                let fatal = matches!(&head, Head::Error(error) if retires(error.class()));
                if fatal {
                    self.retire_when_idle = Some(Retired::Refused);
                }
                running.turn.handle(now, turn::Input::Event { name, data, head });
                self.drain_turn(now);
            }
            State::Idle | State::Checking(_) => {
                let reason = match head {
                    Head::Telemetry | Head::Metadata | Head::Keepalive => return,
                    Head::Error(_) => Retired::Refused,
                    _ => Retired::UnexpectedFrame,
                };
                if matches!(self.state, State::Checking(_)) {
                    self.outputs.push_back(Output::Unsent);
                }
                self.retire(now, reason);
            }
            State::Closing | State::Gone => {}
        }
    }

    fn closed(&mut self, now: Instant, too_big: bool) {
        match &mut self.state {
            State::Busy(running) => {
                let kind = if too_big { Kind::FrameTooLarge } else { Kind::UpstreamClosed };
                self.retire_when_idle = Some(Retired::ClosedByUpstream);
                running.turn.handle(now, turn::Input::Lost(kind));
                self.drain_turn(now);
            }
            State::Checking(_) => {
                self.outputs.push_back(Output::Unsent);
                self.outputs.push_back(Output::Retired(Retired::ClosedByUpstream));
            }
            State::Idle => self.outputs.push_back(Output::Retired(Retired::ClosedByUpstream)),
            State::Closing | State::Gone => {}
        }
        self.gone();
    }

    fn turn_input(&mut self, now: Instant, input: turn::Input) {
        if let State::Busy(running) = &mut self.state {
            running.turn.handle(now, input);
            self.drain_turn(now);
        }
    }

    /// Passes the running turn's outputs on and, at its end, decides what becomes of the socket.
    fn drain_turn(&mut self, now: Instant) {
        let State::Busy(running) = &mut self.state else { return };
        let mut ended = None;
        while let Some(output) = running.turn.poll() {
            if let turn::Output::End(end) = &output {
                ended = Some(*end);
            }
            self.outputs.push_back(Output::Turn(output));
        }
        if let Some(end) = ended {
            self.turn_ended(now, end);
        }
    }

    fn turn_ended(&mut self, now: Instant, end: TurnEnd) {
        let State::Busy(running) = std::mem::replace(&mut self.state, State::Idle) else { return };
        if !end.upstream_done {
            let reason = self.retire_when_idle.unwrap_or(blame(end));
            self.retire(now, reason);
            return;
        }
        self.memory = match end.outcome {
            Outcome::Completed | Outcome::Incomplete => remembered(&running),
            // A failed turn evicts the id that it referenced.
            _ => None,
        };
        self.idle(now);
    }

    fn idle(&mut self, now: Instant) {
        self.idle_since = now;
        self.table.clear(Timer::ReuseCheck);
        if let Some(reason) = self.retire_when_idle {
            self.retire(now, reason);
            return;
        }
        self.schedule_retirement();
        self.outputs.push_back(Output::Idle);
    }

    /// An old socket is kept while it alone remembers a response; otherwise there is nothing left to use it for.
    fn schedule_retirement(&mut self) {
        let alone = self.memory.as_ref().is_some_and(|memory| !memory.stored);
        let ttl = self.idle_since + self.policy.idle_ttl;
        let at = if alone { ttl } else { ttl.min(self.too_old_at()).max(self.idle_since) };
        self.table.set(Timer::Retire, at);
    }

    fn retire_by_time(&mut self, now: Instant) {
        let idle_for_long = now >= self.idle_since + self.policy.idle_ttl;
        self.retire(now, if idle_for_long { Retired::IdleTtl } else { Retired::MaxAge });
    }

    fn retire(&mut self, now: Instant, reason: Retired) {
        self.state = State::Closing;
        self.table = Deadlines::default();
        self.table.set(Timer::Close, now + self.policy.close);
        self.outputs.push_back(Output::Retired(reason));
        self.outputs.push_back(Output::Close(reason.close_code()));
    }

    fn gone(&mut self) {
        if !matches!(std::mem::replace(&mut self.state, State::Gone), State::Gone) {
            self.table = Deadlines::default();
            self.outputs.push_back(Output::Gone);
        }
    }
}

/// Errors after which the socket is of no use, whatever the turn makes of them.
fn retires(class: ErrorClass) -> bool {
    matches!(class, ErrorClass::ConnectionLimit | ErrorClass::StreamLimit | ErrorClass::Authentication)
}

fn remembered(running: &Running) -> Option<Memory> {
    let response_id = running.turn.response_id()?.into();
    let input = running.seen.unwrap_or(Seen { length: usize::MAX, hash: [0; 16] });
    Some(Memory { response_id, stored: running.stored, input })
}

/// Why a session is retired whose turn the upstream did not end.
fn blame(end: TurnEnd) -> Retired {
    match (end.verdict, end.outcome) {
        (Some(Verdict::Silent(shape)), _) => Retired::Silent(shape),
        (_, Outcome::ClientGone) => Retired::ClientGone,
        (_, Outcome::Bridge(Kind::SocketDead)) => Retired::Dead,
        (_, Outcome::Bridge(Kind::Drained)) => Retired::Drained,
        (_, Outcome::Bridge(kind)) => Retired::TurnFailed(kind),
        _ => Retired::ClosedByUpstream,
    }
}

#[cfg(test)]
mod tests;
