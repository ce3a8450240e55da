//! What was seen in a drill, by whom. All times are those of the drill, since its start.

use std::time::Duration;

use serde::Serialize;

/// How a turn travelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    Websocket,
    Http,
}

/// One call of a client.
#[derive(Clone, Debug)]
pub struct Call {
    /// From 0.
    pub client: usize,
    /// Which of the client's questions, from 1.
    pub question: u32,
    /// Which call for it, from 1.
    pub attempt: u32,
    pub began: Duration,
    /// Until `response.created`, an error, or the end.
    pub waited: Duration,
    /// Until the end.
    pub took: Duration,
    pub ended: Ended,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With a whole answer. `None`: the upstream does not remember it.
    Answered(Option<Way>),
    /// With an error: an HTTP status, or `None` where it ended a stream.
    Error {
        status: Option<u16>,
        code: String,
        /// In seconds, as the client was told.
        retry_after: Option<u64>,
    },
    /// Without either: the connection broke, or nothing came for far too long.
    Broken,
}

impl Call {
    /// Whether it was answered.
    pub fn is_answered(&self) -> bool {
        matches!(self.ended, Ended::Answered(_))
    }

    /// When it ended.
    pub fn end(&self) -> Duration {
        self.began + self.took
    }
}

/// One create in the upstream's ledger.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Of which call: the same for no two calls.
    pub call: String,
    pub way: Way,
    /// It was rejected before it was accepted, so that the same call may send another.
    pub rejected: bool,
    /// It met a reset in place of an answer.
    pub broken: bool,
}

/// One event of the bridge.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub at: Duration,
    pub event: String,
    /// The conversation.
    pub key: Option<String>,
    /// `provider/account`
    pub account: Option<String>,
    /// What the event says beside its name, in its own words.
    pub detail: String,
    pub way: Option<Way>,
    pub reason: Option<String>,
    pub shape: Option<String>,
    /// Of a quarantine.
    pub window: Option<Duration>,
    /// Of a watchdog's verdict.
    pub waited: Option<Duration>,
    /// Routine, which the sequence leaves out.
    pub routine: bool,
}

/// A part of the drill.
#[derive(Clone, Debug)]
pub struct Phase {
    pub name: String,
    pub began: Duration,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// In their order.
    pub phases: Vec<Phase>,
    /// When the fault began, and when it was over for good.
    pub fault: (Duration, Duration),
    pub calls: Vec<Call>,
    pub sent: Vec<Sent>,
    pub events: Vec<Told>,
    /// The longest time for which this machine did not get round to the drill.
    pub stall: Duration,
}

impl Record {
    /// The events of this name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Told> {
        self.events.iter().filter(move |told| told.event == name)
    }
}
