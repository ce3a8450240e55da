//! The whole life of a session: one upstream socket, bound to one key and one account, carrying one turn at a time
//! (SES-22..SES-31).
//!
//! It begins `Idle`, when the handshake is done, and is nearly always leased at once by the turn that dialled. A warm one is
//! dialled ahead and bound to a key by its first turn (SES-32).
//!
//! ```text
//!              lease (heard from lately)
//!        +------------------------------------+
//!        |                                    v          turn ended by the upstream
//!      Idle --lease (quiet for long)--> Checking --pong--> Busy ------------------------> Idle
//!        |                                    |              |
//!        | idle_ttl, max_age,        no pong: the turn       | turn ended by the bridge or the client,
//!        | evicted, drained,         goes back, unsent       | or the upstream closed the socket,
//!        | a stray frame, dead                |              | or it was to go anyway
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
//! - A client that leaves while its turn is in `Checking` costs nothing: nothing was sent, and the session is `Idle` again,
//!   still owing its proof (SES-23).
//! - A close that comes together with the terminal waits, like the terminal, for the store (SES-30).
//! - A socket remembers its latest response only, and none after a failed turn (SES-27). Idle for `idle_ttl`, or older than
//!   `max_age`, it is retired; not for its age while it alone remembers a response (SES-28).
//! - What is told to go while it is busy finishes its turn first (SES-31). A silence is told as such, whatever else was planned
//!   for the socket.
//! - A socket that has been quiet for 30 s, or that has slept, proves itself with a pong within 1 s before it is given
//!   another turn (SES-23).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::deadlines::{Deadlines, Timer};
use super::turn::{self, Outcome, Previous, Turn, TurnEnd};
use crate::refusal::Kind;
use crate::wire::head::Head;

use reasons::{blame, retires, unexpected};

pub use io::{Input, Memory, Output, Policy, Retired};

mod io;
mod reasons;
mod renewed;

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
    idle_before_turn: Duration,
    last_inbound: Instant,
    unanswered: u32,
    ever_answered: bool,
    must_prove: bool,
    retire_when_idle: Option<Retired>,
    /// The upstream closed the socket; the running turn only waits for the store.
    closed: bool,
    memory: Option<Memory>,
    /// The latest response that was made on this socket, remembered by it or not.
    last_response: Option<Previous>,
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
            idle_before_turn: Duration::ZERO,
            last_inbound: now,
            unanswered: 0,
            ever_answered: false,
            must_prove: false,
            retire_when_idle: None,
            closed: false,
            memory: None,
            last_response: None,
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

    /// What the socket remembers, for the one who chooses among sockets: the conversation itself goes along, once, and is
    /// kept here no longer.
    pub fn tell_memory(&mut self) -> Option<Memory> {
        let memory = self.memory.as_mut()?;
        let history = memory.history.take();
        Some(Memory {
            history,
            ..memory.clone()
        })
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

    /// For how long the socket had been idle when its latest turn was leased.
    pub fn idle_before_turn(&self) -> Duration {
        self.idle_before_turn
    }

    /// When no turn may start on it any more, but one that names its unstored response.
    pub fn too_old_at(&self) -> Instant {
        self.opened + self.policy.max_age
    }

    /// Takes an input. Drain [`Self::poll`] afterwards. After [`Output::Gone`] every input is lost, a lease too.
    pub fn handle(&mut self, now: Instant, input: Input) {
        if matches!(self.state, State::Gone) {
            return;
        }
        match input {
            Input::Lease {
                turn,
                arrived,
                stored,
            } => self.lease(now, turn, arrived, stored),
            Input::Record(recording) => self.turn_input(now, turn::Input::Record(recording)),
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
            Input::Cut if matches!(self.state, State::Checking(_)) => {
                self.outputs.push_back(Output::Unsent);
                self.retire(now, Retired::Drained);
            }
            Input::ClientGone if matches!(self.state, State::Checking(_)) => {
                // Nothing was sent: the socket stays, and still owes its proof.
                self.outputs.push_back(Output::Unsent);
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
        }
        if self.table.expired(Timer::Dead, now) {
            self.dead(now);
        }
        if self.table.expired(Timer::Retire, now) && matches!(self.state, State::Idle) {
            self.retire_by_time(now);
        }
        if self.table.expired(Timer::Ping, now) {
            self.ping(now);
        }
        if let State::Busy(running) = &mut self.state {
            running.turn.tick(now, waiting_since);
            self.drain_turn(now);
        }
    }

    fn lease(&mut self, now: Instant, turn: turn::Policy, arrived: Instant, stored: bool) {
        if !matches!(self.state, State::Idle) {
            // The registry leases only idle sessions; one that began to close meanwhile gives the turn back.
            self.outputs.push_back(Output::Unsent);
            return;
        }
        self.table.clear(Timer::Retire);
        self.idle_before_turn = now.duration_since(self.idle_since);
        let running = Box::new(Running {
            turn: Turn::new(turn, arrived, self.last_response.clone()),
            stored,
        });
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
        self.unanswered += 1;
        self.outputs.push_back(Output::Ping);
        if self.ever_answered && self.unanswered >= 2 && self.table.of(Timer::Dead).is_none() {
            self.table
                .set(Timer::Dead, now.max(self.last_inbound + self.policy.dead_after));
        }
    }

    fn dead(&mut self, now: Instant) {
        match &mut self.state {
            State::Busy(running) => {
                self.retire_when_idle = Some(Retired::Dead);
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
                let unwanted = if running.turn.awaits_durable() {
                    unexpected(&head)
                } else {
                    matches!(&head, Head::Error(error) if retires(error.class())).then_some(Retired::Refused)
                };
                self.retire_when_idle = self.retire_when_idle.or(unwanted);
                running.turn.handle(now, turn::Input::Event { name, data, head });
                self.drain_turn(now);
            }
            State::Idle | State::Checking(_) => {
                let Some(reason) = unexpected(&head) else {
                    return;
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
        self.closed = true;
        match &mut self.state {
            State::Busy(running) => {
                let kind = if too_big {
                    Kind::FrameTooLarge
                } else {
                    Kind::UpstreamClosed
                };
                self.retire_when_idle = Some(Retired::ClosedByUpstream);
                self.table.clear(Timer::Ping);
                self.table.clear(Timer::Dead);
                running.turn.handle(now, turn::Input::Lost(kind));
                self.drain_turn(now);
            }
            State::Checking(_) => {
                self.outputs.push_back(Output::Unsent);
                self.retire(now, Retired::ClosedByUpstream);
            }
            State::Idle => self.retire(now, Retired::ClosedByUpstream),
            State::Closing | State::Gone => self.gone(),
        }
    }

    fn turn_input(&mut self, now: Instant, input: turn::Input) {
        if let State::Busy(running) = &mut self.state {
            running.turn.handle(now, input);
            self.drain_turn(now);
        }
    }

    /// Passes the running turn's outputs on and, at its end, decides what becomes of the socket.
    fn drain_turn(&mut self, now: Instant) {
        let State::Busy(running) = &mut self.state else {
            return;
        };
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
        let State::Busy(mut running) = std::mem::replace(&mut self.state, State::Idle) else {
            return;
        };
        if !end.upstream_done {
            let reason = match blame(end) {
                // What an incident is told by, whatever else was planned for the socket.
                silent @ Retired::Silent(_) => silent,
                other => self.retire_when_idle.unwrap_or(other),
            };
            self.retire(now, reason);
            return;
        }
        if let Some(previous) = running.turn.previous() {
            self.last_response = Some(previous);
        }
        if running.turn.met_late_frames() {
            self.retire_when_idle.get_or_insert(Retired::UnexpectedFrame);
        }
        self.memory = match end.outcome {
            Outcome::Completed | Outcome::Incomplete => remembered(&mut running),
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
        let at = if alone {
            ttl
        } else {
            ttl.min(self.too_old_at()).max(self.idle_since)
        };
        self.table.set(Timer::Retire, at);
    }

    fn retire_by_time(&mut self, now: Instant) {
        let idle_for_long = now >= self.idle_since + self.policy.idle_ttl;
        self.retire(
            now,
            if idle_for_long {
                Retired::IdleTtl
            } else {
                Retired::MaxAge
            },
        );
    }

    fn retire(&mut self, now: Instant, reason: Retired) {
        self.state = State::Closing;
        self.table = Deadlines::default();
        self.table.set(Timer::Close, now + self.policy.close);
        self.outputs.push_back(Output::Retired(reason));
        if self.closed {
            self.gone();
        } else {
            self.outputs.push_back(Output::Close(reason.close_code()));
        }
    }

    fn gone(&mut self) {
        if !matches!(std::mem::replace(&mut self.state, State::Gone), State::Gone) {
            self.table = Deadlines::default();
            self.outputs.push_back(Output::Gone);
        }
    }
}

fn remembered(running: &mut Running) -> Option<Memory> {
    let history = running.turn.take_history().map(Arc::new);
    Some(Memory {
        response_id: running.turn.response_id()?.into(),
        stored: running.turn.stored().unwrap_or(running.stored),
        history,
    })
}

#[cfg(test)]
mod tests;
