//! One client call's life on one transport: from its send to its one end (INV-1..INV-4, SES-6..SES-19).
//!
//! ```text
//!   upstream's side:  unsent -> sent -> accepted (`response.created`) -> terminal
//!   client's side:    held -> committed (200, streaming) -> ended
//! ```
//! The two sides move independently: the status line is held until `response.created`, an error, or `commit_after`; a
//! JSON client's is held to the end. Whatever happens, exactly one end comes out, and nothing after it.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::continuation::History;
use super::deadlines::{Deadlines, Timer};
use super::watchdog::{Verdict, Watchdog};
use crate::refusal::{Kind, Refusal};
use crate::wire::error::WireError;
use crate::wire::head::{Created, Head};

use ending::Ending;
use held::{Event, Held, Items, Overflow, Part};
use late::Late;
use told::{blame, told};

pub use io::{Input, Outcome, Output, Policy, Times, TurnEnd};
pub use late::Previous;
pub use record::Recording;

mod ending;
mod held;
mod io;
mod late;
mod record;
mod told;

/// Codex gives up after 300 s without a data event; some SDKs dislike the keepalive's type, so it is rare.
const KEEPALIVE: Duration = Duration::from_secs(120);
const ITEM_BEGUN: &[u8] = b"response.output_item.added";
/// A stalled store may hold a terminal for this long at most (INV-11).
pub const DURABLE: Duration = Duration::from_millis(250);

/// A turn.
pub struct Turn {
    policy: Policy,
    table: Deadlines,
    watchdog: Watchdog,
    outputs: VecDeque<Output>,
    held: Held,
    items: Items,
    late: Late,
    record: Option<Box<Recording>>,
    history: Option<History>,
    /// The number of the terminal.
    last: Option<u64>,
    terminal: Option<Ending>,
    response_id: Option<Box<str>>,
    stored: Option<bool>,
    /// Accepted responses whose owner is not known to be durable: two, where the turn was steered.
    undurable: u32,
    committed: bool,
    accepted: bool,
    ended: bool,
    /// When the latest event was sent on.
    forwarded: Option<Instant>,
    times: Times,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("transport", &self.policy.transport)
            .field("watchdog", &self.watchdog)
            .field("committed", &self.committed)
            .field("accepted", &self.accepted)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl Turn {
    /// A turn of a call that arrived at `arrived`. `previous` is the response that the same socket made before.
    pub fn new(policy: Policy, arrived: Instant, previous: Option<Previous>) -> Self {
        let mut table = Deadlines::default();
        let watchdog = Watchdog::new(policy.limits, policy.transport, policy.whole, arrived, &mut table);
        if policy.stream {
            table.set(Timer::Commit, arrived + policy.commit_after);
        }
        Turn {
            policy,
            table,
            watchdog,
            outputs: VecDeque::new(),
            held: Held::default(),
            items: Items::new(policy.items_cap),
            late: Late::new(previous),
            record: None,
            history: None,
            last: None,
            terminal: None,
            response_id: None,
            stored: None,
            undurable: 0,
            committed: false,
            accepted: false,
            ended: false,
            forwarded: None,
            times: Times::default(),
        }
    }

    /// The next output; `None` when all that followed from the last input is out.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Self::tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.table.next()
    }

    /// The terminal is here and waits for the owner to be durable.
    pub fn awaits_durable(&self) -> bool {
        self.terminal.is_some() && !self.ended
    }

    /// Whether a byte of the create may have left.
    pub fn is_sent(&self) -> bool {
        self.times.sent.is_some()
    }

    /// The id of this turn's response, once accepted.
    pub fn response_id(&self) -> Option<&str> {
        self.response_id.as_deref()
    }

    /// The response of this turn as the one before the socket's next, once accepted.
    pub fn previous(&self) -> Option<Previous> {
        Some(Previous {
            response_id: self.response_id.clone()?,
            last: self.last,
        })
    }

    /// Whether frames of the response before came during this turn.
    pub fn met_late_frames(&self) -> bool {
        self.late.met()
    }

    /// The conversation up to and with this turn's response, once that has completed.
    pub fn take_history(&mut self) -> Option<History> {
        self.history.take()
    }

    /// Whether the upstream said that it keeps this turn's response.
    pub fn stored(&self) -> Option<bool> {
        self.stored
    }

    /// Takes an input. Drain [`Self::poll`] afterwards.
    pub fn handle(&mut self, now: Instant, input: Input) {
        if self.ended {
            return;
        }
        match input {
            Input::Wrote => {
                self.times.sent.get_or_insert(now);
                self.watchdog.wrote(now, &mut self.table);
            }
            Input::Flushed => {
                self.times.sent.get_or_insert(now);
                self.times.flushed.get_or_insert(now);
                self.watchdog.flushed(now, &mut self.table);
            }
            Input::Record(recording) if !self.accepted => self.record = Some(recording),
            // Too late: items of the answer may have passed. Nothing is remembered.
            Input::Record(_) => {}
            Input::Headers => self.watchdog.headers(now, &mut self.table),
            Input::Event { name, data, head } => self.event(now, name, data, head),
            Input::Whole { object, response_id } => self.whole(now, &object, response_id),
            Input::Rejected(error) => self.error(error),
            // What was read before the connection went is whole. The terminal goes on waiting for the store, which is
            // 250 ms at most: passed on earlier it could outlive its owner (INV-11).
            Input::Lost(_) | Input::Cut if self.terminal.is_some() => {}
            Input::Lost(kind) => self.fail(kind, None),
            Input::Cut => self.fail(Kind::Drained, None),
            Input::Durable => {
                self.undurable = self.undurable.saturating_sub(1);
                if self.undurable == 0 {
                    self.pass_terminal(now);
                }
            }
            Input::ClientGone => self.end(Outcome::ClientGone, None),
            Input::ClientFull => self.tear(),
        }
    }

    /// Judges all deadlines. `waiting_since`: since when bytes wait for the client without any being taken.
    pub fn tick(&mut self, now: Instant, waiting_since: Option<Instant>) {
        if self.ended {
            return;
        }
        if self.table.expired(Timer::Durable, now) {
            self.pass_terminal(now);
            return;
        }
        if let Some(verdict) = self.watchdog.judge(now, &mut self.table) {
            self.fail(blame(verdict), Some(verdict));
            return;
        }
        if self.table.expired(Timer::SlowClient, now)
            && let Some(since) = waiting_since
        {
            if now >= since + self.policy.slow_client {
                self.tear();
                return;
            }
            self.table.set(Timer::SlowClient, since + self.policy.slow_client);
        }
        if self.table.expired(Timer::Commit, now) {
            self.commit(now);
            self.say(now, Output::Comment);
        }
        if self.table.expired(Timer::Heartbeat, now) {
            self.table.set(Timer::Heartbeat, now + self.policy.heartbeat);
            self.say(now, Output::Comment);
        }
        if self.table.expired(Timer::Keepalive, now) {
            self.table.set(Timer::Keepalive, now + KEEPALIVE);
            self.say(now, Output::Keepalive);
        }
    }

    fn event(&mut self, now: Instant, name: Bytes, data: Bytes, head: Head) {
        if self.terminal.is_some() {
            return;
        }
        let part = Part::of(&name, &head);
        match head {
            Head::Created(created) => self.created(now, name, data, created),
            Head::Terminal(terminal) => self.terminal(now, name, data, terminal),
            Head::Error(error) => self.error(error),
            Head::NotJson => self.fail(Kind::UpstreamNonsense, None),
            Head::ItemDone | Head::Data | Head::Metadata if self.late.takes(&data) => {}
            Head::ItemDone | Head::Data | Head::Keepalive | Head::Metadata => {
                self.watchdog.event(now, &mut self.table);
                self.data(now, Event { name, data, part });
            }
            Head::Telemetry => {
                self.watchdog.telemetry();
                self.data(now, Event { name, data, part });
            }
        }
    }

    fn data(&mut self, now: Instant, event: Event) {
        if self.accepted {
            self.deliver(now, event);
            return;
        }
        let kept = self.held.push(event);
        self.unless_overflown(kept);
    }

    fn unless_overflown(&mut self, kept: Result<(), Overflow>) {
        if kept.is_err() {
            self.fail(Kind::HoldOverflow, None);
        }
    }

    fn created(&mut self, now: Instant, name: Bytes, data: Bytes, created: Created) {
        self.watchdog.created(now, &mut self.table);
        // A second `response.created` in one turn is a steered response: its id is owned too. What the model has seen
        // then is not only what the turn said.
        if self.accepted {
            self.record = None;
        }
        self.accept(now, created);
        self.commit(now);
        let number = self.late.begin(&data);
        self.forward(now, name, data);
        for event in self.held.release(number) {
            self.deliver(now, event);
        }
    }

    /// The response is this turn's, and owned from here.
    fn accept(&mut self, now: Instant, created: Created) {
        self.accepted = true;
        self.times.accepted.get_or_insert(now);
        self.response_id.clone_from(&created.response_id);
        self.stored = created.store;
        self.undurable += u32::from(created.response_id.is_some());
        self.outputs.push_back(Output::Accepted(created));
    }

    /// An error of the upstream's: before acceptance the answer to this turn, after it its failure.
    fn error(&mut self, error: Box<WireError>) {
        let outcome = if self.accepted {
            Outcome::Failed
        } else {
            Outcome::Rejected
        };
        self.refuse_with(error);
        self.finish(outcome, None, true);
    }

    /// Tells the client the upstream's own error: with its status, if the status line is still held.
    fn refuse_with(&mut self, error: Box<WireError>) {
        self.outputs.push_back(if self.committed {
            told(&error)
        } else {
            Output::Reject(error)
        });
    }

    /// An event of this turn's for the client.
    fn deliver(&mut self, now: Instant, event: Event) {
        if let Some(record) = &mut self.record {
            match event.part {
                Part::Item => record.done(&event.data),
                Part::Output if event.name == ITEM_BEGUN => record.begun(),
                Part::Output | Part::Aside => {}
            }
        }
        if event.part != Part::Aside {
            self.times.first_output.get_or_insert(now);
        }
        if self.policy.stream {
            self.forward(now, event.name, event.data);
        } else if event.part == Part::Item {
            self.items.push(&event.data);
        }
    }

    fn forward(&mut self, now: Instant, name: Bytes, data: Bytes) {
        if self.policy.stream {
            // Events that came together have one `now`, and the same deadlines.
            if self.forwarded.replace(now) != Some(now) {
                self.table.set(Timer::Heartbeat, now + self.policy.heartbeat);
                self.table.set(Timer::Keepalive, now + KEEPALIVE);
            }
            self.say(now, Output::Forward { name, data });
        }
    }

    /// Bytes for the client: from here on it has to take some.
    fn say(&mut self, now: Instant, output: Output) {
        if self.table.of(Timer::SlowClient).is_none() {
            self.table.set(Timer::SlowClient, now + self.policy.slow_client);
        }
        self.outputs.push_back(output);
    }

    fn commit(&mut self, now: Instant) {
        if self.policy.stream && !std::mem::replace(&mut self.committed, true) {
            self.table.clear(Timer::Commit);
            self.table.set(Timer::Heartbeat, now + self.policy.heartbeat);
            self.say(now, Output::Commit);
        }
    }

    fn fail(&mut self, kind: Kind, verdict: Option<Verdict>) {
        let refusal = Refusal::from(kind);
        if self.committed {
            self.outputs.push_back(Output::Fail {
                code: kind.code().into(),
                message: refusal.message,
            });
        } else {
            self.outputs.push_back(Output::Refuse(refusal));
        }
        self.end(Outcome::Bridge(kind), verdict);
    }

    fn tear(&mut self) {
        self.outputs.push_back(Output::Tear);
        self.end(Outcome::Bridge(Kind::SlowClient), None);
    }

    fn end(&mut self, outcome: Outcome, verdict: Option<Verdict>) {
        self.finish(outcome, verdict, false);
    }

    fn finish(&mut self, outcome: Outcome, verdict: Option<Verdict>, upstream_done: bool) {
        self.ended = true;
        self.times.quiet = self.watchdog.quiet();
        self.table = Deadlines::default();
        self.watchdog.finish(&mut self.table);
        self.held = Held::default();
        self.items = Items::new(0);
        let (sent, accepted, committed, times) = (self.is_sent(), self.accepted, self.committed, self.times);
        let end = TurnEnd {
            outcome,
            verdict,
            sent,
            accepted,
            committed,
            upstream_done,
            times,
        };
        self.outputs.push_back(Output::End(end));
    }
}

#[cfg(test)]
mod tests;
