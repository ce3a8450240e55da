//! One client call's life on one transport: from its send to its one end (INV-1..INV-4, SES-6..SES-19).
//!
//! ```text
//!   upstream's side:  unsent -> sent -> accepted (`response.created`) -> terminal
//!   client's side:    held -> committed (200, streaming) -> ended
//! ```
//! The two sides move independently: the status line is held until `response.created`, an error, or `commit_after`; a
//! JSON client's is held to the end. Whatever happens, exactly one end comes out, and nothing after it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::deadlines::{Deadlines, Timer};
use super::watchdog::{Limits, Transport, Verdict, Watchdog};
use crate::refusal::{Kind, Refusal};
use crate::wire::error::WireError;
use crate::wire::failure;
use crate::wire::head::{self, Created, Head, Terminal, TerminalKind};

/// Events that come before `response.created` are kept up to this many bytes: telemetry and a few early events, not a
/// whole answer.
const HOLD_CAP: usize = 256 * 1024;
/// Codex gives up after 300 s without a data event; some SDKs dislike the keepalive's type, so it is rare.
const KEEPALIVE: Duration = Duration::from_secs(120);
/// A stalled store may hold a terminal for this long at most (INV-11).
const DURABLE: Duration = Duration::from_millis(250);

/// How a turn is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    pub limits: Limits,
    pub transport: Transport,
    /// The client asked for SSE; otherwise it gets one JSON object.
    pub stream: bool,
    /// The status line is held for at most this long after the call's arrival.
    pub commit_after: Duration,
    /// Quiet after which a committed client hears an SSE comment.
    pub heartbeat: Duration,
    /// The client took no byte for this long although some waited.
    pub slow_client: Duration,
    /// Bytes of finished items kept for a JSON client.
    pub items_cap: usize,
}

/// What happens to a turn.
#[derive(Debug)]
pub enum Input {
    /// Bytes of the create moved on, or are about to.
    Wrote,
    /// The create's last byte was handed to the network.
    Flushed,
    /// Direct HTTP: a 2xx status and its headers arrived.
    Headers,
    /// An upstream event: its name, its payload as it came, and what it is.
    Event { name: Bytes, data: Bytes, head: Head },
    /// Direct HTTP: another status than 2xx.
    Rejected(Box<WireError>),
    /// The connection is gone, or could never be used.
    Lost(Kind),
    /// The owner of the response is on disk, or is known to be lost.
    Durable,
    /// The client left.
    ClientGone,
    /// The client's buffer is full.
    ClientFull,
    /// The bridge shuts down.
    Cut,
}

/// What a turn wants done.
#[derive(Debug)]
pub enum Output {
    /// `response.created` arrived.
    Accepted(Created),
    /// Send the status line: 200, an event stream.
    Commit,
    /// Send an event on, as it came.
    Forward { name: Bytes, data: Bytes },
    /// Send an SSE comment.
    Comment,
    /// Send a data keepalive.
    Keepalive,
    /// Committed: send `response.created` if none was sent, then `response.failed` with this code and message.
    Fail { code: Bytes, message: Bytes },
    /// Not committed: answer with the upstream's own error.
    Reject(Box<WireError>),
    /// Not committed: answer with an error of the bridge's own.
    Refuse(Refusal),
    /// Not committed, JSON: answer with this object.
    Json(Bytes),
    /// The last resort: tear the client's connection.
    Tear,
    /// The one end. Nothing follows.
    End(TurnEnd),
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Completed,
    Incomplete,
    /// The upstream accepted the turn and then reported a failure.
    Failed,
    /// The upstream answered with an error before accepting it: a definite rejection, unless the status is 408, 500, 502
    /// or 504.
    Rejected,
    /// The bridge ended it.
    Bridge(Kind),
    ClientGone,
}

impl Outcome {
    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Incomplete => "incomplete",
            Outcome::Failed => "failed",
            Outcome::Rejected => "rejected",
            Outcome::Bridge(kind) => kind.label(),
            Outcome::ClientGone => "client_gone",
        }
    }
}

/// The end of a turn, and what is known about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnEnd {
    pub outcome: Outcome,
    /// The watchdog's finding, when that ended the turn.
    pub verdict: Option<Verdict>,
    /// A byte of the create may have left.
    pub sent: bool,
    pub accepted: bool,
    pub committed: bool,
    /// The upstream itself ended the response: nothing more of this turn can arrive.
    pub upstream_done: bool,
    pub times: Times,
}

/// When what happened; for the completion line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    pub sent: Option<Instant>,
    pub flushed: Option<Instant>,
    pub accepted: Option<Instant>,
    pub first_output: Option<Instant>,
}

/// A turn.
#[derive(Debug)]
pub struct Turn {
    policy: Policy,
    table: Deadlines,
    watchdog: Watchdog,
    outputs: VecDeque<Output>,
    /// Events before `response.created`, in order, and their bytes.
    held: Vec<(Bytes, Bytes)>,
    held_bytes: usize,
    /// Finished items for a JSON client: output index and raw bytes.
    items: Vec<(u64, Bytes)>,
    items_bytes: usize,
    /// The response that this socket made before this turn: its late frames are not this turn's.
    late: Option<Box<str>>,
    terminal: Option<(Bytes, Bytes, Box<Terminal>)>,
    response_id: Option<Box<str>>,
    durable: bool,
    committed: bool,
    accepted: bool,
    ended: bool,
    times: Times,
}

impl Turn {
    /// A turn of a call that arrived at `arrived`. `late` is the id of the response that the same socket made before.
    pub fn new(policy: Policy, arrived: Instant, late: Option<Box<str>>) -> Self {
        let mut table = Deadlines::default();
        let whole = policy.transport == Transport::Http && !policy.stream;
        let watchdog = Watchdog::new(policy.limits, policy.transport, whole, arrived, &mut table);
        if policy.stream {
            table.set(Timer::Commit, arrived + policy.commit_after);
        }
        Turn {
            policy,
            table,
            watchdog,
            outputs: VecDeque::new(),
            held: Vec::new(),
            held_bytes: 0,
            items: Vec::new(),
            items_bytes: 0,
            late,
            terminal: None,
            response_id: None,
            durable: false,
            committed: false,
            accepted: false,
            ended: false,
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
            Input::Headers => self.watchdog.headers(now, &mut self.table),
            Input::Event { name, data, head } => self.event(now, name, data, head),
            Input::Rejected(error) => self.error(now, error),
            // What was read before the connection went is whole: a terminal that waits for the store is passed on.
            Input::Lost(_) if self.terminal.is_some() => self.pass_terminal(now),
            Input::Lost(kind) => self.fail(kind, None),
            Input::Durable => {
                self.durable = true;
                if self.terminal.is_some() {
                    self.pass_terminal(now);
                }
            }
            Input::ClientGone => self.end(Outcome::ClientGone, None),
            Input::ClientFull => self.tear(),
            Input::Cut if self.terminal.is_some() => self.pass_terminal(now),
            Input::Cut => self.fail(Kind::Drained, None),
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
            self.outputs.push_back(Output::Comment);
        }
        if self.table.expired(Timer::Heartbeat, now) {
            self.table.set(Timer::Heartbeat, now + self.policy.heartbeat);
            self.outputs.push_back(Output::Comment);
        }
        if self.table.expired(Timer::Keepalive, now) {
            self.table.set(Timer::Keepalive, now + KEEPALIVE);
            self.outputs.push_back(Output::Keepalive);
        }
    }

    fn event(&mut self, now: Instant, name: Bytes, data: Bytes, head: Head) {
        if self.terminal.is_some() {
            return;
        }
        match head {
            Head::Created(created) => self.created(now, name, data, created),
            Head::Terminal(terminal) => self.terminal(now, name, data, terminal),
            Head::Error(error) => self.error(now, error.into()),
            Head::NotJson => self.fail(Kind::UpstreamNonsense, None),
            Head::ItemDone => {
                self.keep_item(&data);
                self.data(now, name, data);
            }
            Head::Data | Head::Keepalive | Head::Telemetry | Head::Metadata => self.data(now, name, data),
        }
    }

    fn data(&mut self, now: Instant, name: Bytes, data: Bytes) {
        self.watchdog.event(now, &mut self.table);
        if self.accepted {
            self.times.first_output.get_or_insert(now);
            self.forward(now, name, data);
        } else {
            self.hold(name, data);
        }
    }

    fn created(&mut self, now: Instant, name: Bytes, data: Bytes, created: Created) {
        self.watchdog.created(now, &mut self.table);
        // A second `response.created` in one turn is a steered response: its id is owned too.
        self.response_id.clone_from(&created.response_id);
        self.durable = created.response_id.is_none();
        self.outputs.push_back(Output::Accepted(created));
        let first = !std::mem::replace(&mut self.accepted, true);
        if first {
            self.times.accepted = Some(now);
            if self.policy.stream {
                self.commit(now);
                self.table.set(Timer::Keepalive, now + KEEPALIVE);
            }
        }
        self.forward(now, name, data);
        for (name, data) in std::mem::take(&mut self.held) {
            self.forward(now, name, data);
        }
        self.held_bytes = 0;
    }

    fn terminal(&mut self, now: Instant, name: Bytes, data: Bytes, terminal: Terminal) {
        if !self.accepted && terminal.response_id.is_some() && terminal.response_id == self.late {
            // A repeated terminal of the response before: it is nobody's.
            return;
        }
        self.watchdog.event(now, &mut self.table);
        let (name, data) = if terminal.typed { (name, data) } else { typed(name, data, &terminal) };
        self.terminal = Some((name, data, terminal.into()));
        // Nothing but the store is waited for any more.
        self.watchdog.finish(&mut self.table);
        if self.durable || !self.accepted {
            self.pass_terminal(now);
        } else {
            self.table.set(Timer::Durable, now + DURABLE);
        }
    }

    fn pass_terminal(&mut self, now: Instant) {
        let Some((name, data, terminal)) = self.terminal.take() else { return };
        let outcome = match terminal.kind {
            TerminalKind::Completed => Outcome::Completed,
            TerminalKind::Incomplete => Outcome::Incomplete,
            TerminalKind::Failed if self.accepted => Outcome::Failed,
            TerminalKind::Failed => Outcome::Rejected,
        };
        let failed = terminal.kind == TerminalKind::Failed || terminal.error.is_some();
        if failed && !self.committed {
            let error = terminal.error.unwrap_or_default();
            self.outputs.push_back(Output::Reject(error.into()));
        } else if self.policy.stream {
            self.commit(now);
            for (name, data) in std::mem::take(&mut self.held) {
                self.forward(now, name, data);
            }
            self.forward(now, name, data);
        } else {
            self.json(&data, &terminal);
        }
        self.finish(outcome, None, true);
    }

    fn json(&mut self, data: &Bytes, terminal: &Terminal) {
        let Some(span) = head::response_object(data) else {
            self.outputs.push_back(Output::Refuse(Kind::UpstreamNonsense.into()));
            return;
        };
        let object = data.slice(span);
        if terminal.output_empty && !self.items.is_empty() {
            self.items.sort_by_key(|(index, _)| *index);
            let items = self.items.iter().map(|(_, item)| item.as_ref());
            self.outputs.push_back(Output::Json(failure::filled(&object, items).into()));
        } else {
            self.outputs.push_back(Output::Json(object));
        }
    }

    fn keep_item(&mut self, data: &Bytes) {
        if self.policy.stream {
            return;
        }
        let Some((index, span)) = head::done_item(data) else { return };
        let item = data.slice(span);
        self.items_bytes += item.len();
        if self.items_bytes > self.policy.items_cap {
            self.fail(Kind::HoldOverflow, None);
        } else {
            self.items.push((index, item));
        }
    }

    /// An error of the upstream's: before acceptance the answer to this turn, after it its failure.
    fn error(&mut self, now: Instant, error: Box<WireError>) {
        self.watchdog.event(now, &mut self.table);
        let outcome = if self.accepted { Outcome::Failed } else { Outcome::Rejected };
        if self.committed {
            self.outputs.push_back(told(&error));
        } else {
            self.outputs.push_back(Output::Reject(error));
        }
        self.finish(outcome, None, true);
    }

    fn hold(&mut self, name: Bytes, data: Bytes) {
        self.held_bytes += data.len();
        if self.held_bytes > HOLD_CAP {
            self.fail(Kind::HoldOverflow, None);
        } else {
            self.held.push((name, data));
        }
    }

    fn forward(&mut self, now: Instant, name: Bytes, data: Bytes) {
        if !self.policy.stream {
            return;
        }
        self.table.set(Timer::Heartbeat, now + self.policy.heartbeat);
        self.table.set(Timer::Keepalive, now + KEEPALIVE);
        if self.table.of(Timer::SlowClient).is_none() {
            self.table.set(Timer::SlowClient, now + self.policy.slow_client);
        }
        self.outputs.push_back(Output::Forward { name, data });
    }

    fn commit(&mut self, now: Instant) {
        if self.policy.stream && !std::mem::replace(&mut self.committed, true) {
            self.table.clear(Timer::Commit);
            self.table.set(Timer::Heartbeat, now + self.policy.heartbeat);
            self.outputs.push_back(Output::Commit);
        }
    }

    fn fail(&mut self, kind: Kind, verdict: Option<Verdict>) {
        let refusal = Refusal::from(kind);
        if self.committed {
            let code = Bytes::from_static(kind.code().as_bytes());
            self.outputs.push_back(Output::Fail { code, message: Bytes::copy_from_slice(refusal.message.as_bytes()) });
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
        self.table = Deadlines::default();
        self.watchdog.finish(&mut self.table);
        self.held.clear();
        self.items.clear();
        let (sent, accepted, committed, times) = (self.is_sent(), self.accepted, self.committed, self.times);
        let end = TurnEnd { outcome, verdict, sent, accepted, committed, upstream_done, times };
        self.outputs.push_back(Output::End(end));
    }
}

/// The documented terminal event for one that came as `response.done` or as a bare response object.
fn typed(name: Bytes, data: Bytes, terminal: &Terminal) -> (Bytes, Bytes) {
    match head::response_object(&data) {
        Some(span) => {
            let whole = failure::retyped(terminal.kind, head::sequence_number(&data), &data[span]);
            (Bytes::from_static(terminal.kind.event().as_bytes()), whole.into())
        }
        None => (name, data),
    }
}

/// The upstream's error frame as the `response.failed` that it becomes after commit: same code, same message.
fn told(error: &WireError) -> Output {
    let code = error.code.as_deref().or(error.kind.as_deref()).unwrap_or(error.class().label());
    let message = error.message.as_deref().unwrap_or("The upstream reported an error without a message.");
    Output::Fail { code: Bytes::copy_from_slice(code.as_bytes()), message: Bytes::copy_from_slice(message.as_bytes()) }
}

/// Which row of the refusal table a verdict is.
fn blame(verdict: Verdict) -> Kind {
    match verdict {
        Verdict::WriteStalled => Kind::WriteStalled,
        Verdict::Silent(_) => Kind::CreatedTimeout,
        Verdict::FirstByte => Kind::FirstByteTimeout,
        Verdict::FirstEvent => Kind::FirstEventTimeout,
        Verdict::Idle => Kind::IdleTimeout,
        Verdict::RequestDeadline => Kind::RequestDeadline,
    }
}

#[cfg(test)]
mod tests;
