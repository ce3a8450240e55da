//! What goes into a turn, and what comes out of it.
//!
//! `Debug` shows what an input or output is and how long its payload is, never the payload (INV-9).

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::record::Recording;
use crate::bridge::watchdog::{Limits, Quiet, Transport, Verdict};
use crate::refusal::{Kind, Refusal};
use crate::wire::error::WireError;
use crate::wire::head::{Created, Head};

/// How a turn is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    pub limits: Limits,
    pub transport: Transport,
    /// The client asked for SSE; otherwise it gets one JSON object.
    pub stream: bool,
    /// Direct HTTP: the upstream was asked for one JSON object, so that nothing comes before the end.
    pub whole: bool,
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
pub enum Input {
    /// Bytes of the create moved on, or are about to.
    Wrote,
    /// The create's last byte was handed to the network.
    Flushed,
    /// What the turn said, to be remembered with what comes out of it.
    Record(Box<Recording>),
    /// Direct HTTP: a 2xx status and its headers arrived.
    Headers,
    /// An upstream event: its name, its payload as it came, and what it is.
    Event { name: Bytes, data: Bytes, head: Head },
    /// Direct HTTP: the whole answer, one JSON object that is no terminal: a background response that is only queued.
    Whole {
        object: Bytes,
        response_id: Option<Box<str>>,
    },
    /// Direct HTTP: another status than 2xx.
    Rejected(Box<WireError>),
    /// The connection is gone, or could never be used.
    Lost(Kind),
    /// The owner of one response is on disk, or is known to be lost: once for each [`Output::Accepted`] with an id.
    Durable,
    /// The client left.
    ClientGone,
    /// The client's buffer is full.
    ClientFull,
    /// The bridge shuts down.
    Cut,
}

/// What a turn wants done.
pub enum Output {
    /// `response.created` arrived; or the whole answer at once, which proves even more. The response is owned from
    /// here.
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
    Fail {
        code: Cow<'static, str>,
        message: Cow<'static, str>,
    },
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

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Wrote => f.write_str("Wrote"),
            Input::Flushed => f.write_str("Flushed"),
            Input::Record(_) => f.write_str("Record"),
            Input::Headers => f.write_str("Headers"),
            Input::Event { data, .. } => write!(f, "Event({} bytes)", data.len()),
            Input::Whole { object, .. } => write!(f, "Whole({} bytes)", object.len()),
            Input::Rejected(error) => write!(f, "Rejected({error:?})"),
            Input::Lost(kind) => write!(f, "Lost({kind:?})"),
            Input::Durable => f.write_str("Durable"),
            Input::ClientGone => f.write_str("ClientGone"),
            Input::ClientFull => f.write_str("ClientFull"),
            Input::Cut => f.write_str("Cut"),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Accepted(_) => f.write_str("Accepted"),
            Output::Commit => f.write_str("Commit"),
            Output::Forward { data, .. } => write!(f, "Forward({} bytes)", data.len()),
            Output::Comment => f.write_str("Comment"),
            Output::Keepalive => f.write_str("Keepalive"),
            Output::Fail { message, .. } => write!(f, "Fail({} bytes)", message.len()),
            Output::Reject(error) => write!(f, "Reject({error:?})"),
            Output::Refuse(refusal) => write!(f, "Refuse({:?})", refusal.kind),
            Output::Json(object) => write!(f, "Json({} bytes)", object.len()),
            Output::Tear => f.write_str("Tear"),
            Output::End(end) => write!(f, "End({end:?})"),
        }
    }
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

    /// The label of an end that is no answer.
    pub fn failure(self) -> Option<&'static str> {
        match self {
            Outcome::Completed | Outcome::Incomplete => None,
            other => Some(other.label()),
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
    /// The first data event of the response's own output.
    pub first_output: Option<Instant>,
    /// The silences after `response.created`.
    pub quiet: Option<Quiet>,
}
