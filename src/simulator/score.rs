//! The score of one turn: every event, pause and mishap in its order, independent of the transport that performs it.

use std::time::Duration;

use serde::Serialize;

use super::behaviour::{Ending, Filler};
use super::faults::ErrorFrame;
use super::object::{Identity, Usage};
use super::reply::Output;

/// One step of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// An event goes out; `kind` is empty where it has no type.
    Event {
        /// The value for `event:` over SSE.
        kind: &'static str,
        /// The JSON text.
        json: String,
    },
    /// An error; before the head of an HTTP answer it becomes a status.
    Error {
        /// What goes wrong.
        error: Box<ErrorFrame>,
        /// The frame's JSON text.
        json: String,
    },
    /// Over HTTP the head leaves now.
    Head,
    /// What was written so far leaves now.
    Flush,
    /// Nothing for this long.
    Wait(Duration),
    /// Something that is not progress, again and again.
    Repeat {
        /// What.
        filler: Filler,
        /// How often.
        every: Duration,
        /// For how long; `None` is for ever.
        lasting: Option<Duration>,
        /// The sequence number of keepalive events.
        sequence: u64,
    },
    /// The turn's result is known; memory and ledger take note before the client can.
    Conclude(Conclusion),
    /// The connection ends.
    End(Ending),
}

/// How a turn came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Not yet.
    Running,
    /// With all its output.
    Completed,
    /// Cut short, and yet a response that can be continued.
    Incomplete,
    /// `response.failed`
    Failed,
    /// An error with this status.
    Errored(u16),
    /// The script ended the connection first.
    Broken,
    /// The client went away first.
    ClientGone,
}

/// All steps of a turn.
#[derive(Debug, Default)]
pub struct Score {
    /// Up to the terminal event, and what leaves together with it.
    pub steps: Vec<Step>,
    /// What happens later, while the next turn may already be running.
    pub later: Vec<Step>,
    /// The object that a JSON client gets.
    pub object: String,
    /// The object with all its output, as storage keeps it.
    pub full: String,
}

/// What is said, and by whom.
pub struct Reply<'a> {
    /// The response.
    pub identity: &'a Identity,
    /// Its output; empty for a warm-up.
    pub output: &'a [Output],
    /// Its token counts.
    pub usage: Usage,
    /// Whether telemetry comes first and the terminal has no output, as on the ChatGPT backend.
    pub chatgpt: bool,
}
