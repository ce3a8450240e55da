//! What a turn may be asked to do: its output, its form on the wire, its end, and its faults.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::faults::ErrorFrame;

/// How a create came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// A frame on a WebSocket.
    Websocket,
    /// A POST.
    Http,
}

/// When one part of a behaviour applies. `times` and `nth` count the creates of one conversation that carried
/// this part and came by the transport of `on`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gate {
    /// Only by this transport.
    pub on: Option<Transport>,
    /// Only the first so many times.
    pub times: Option<u32>,
    /// Only the n-th time, counted from 1.
    pub nth: Option<u32>,
}

impl Gate {
    /// Whether the part applies the `hit`-th time (counted from 1) that it was met.
    pub fn open(&self, hit: u32) -> bool {
        self.times.is_none_or(|times| hit <= times) && self.nth.is_none_or(|nth| hit == nth)
    }
}

/// One call of the vocabulary: `silent(on=ws, times=2)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The call as it was written; shown in the ledger.
    pub label: String,
    /// When it applies.
    pub gate: Gate,
    /// What it does.
    pub effect: Effect,
}

/// What one part changes.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Nothing: the healthy turn.
    Healthy,
    /// The shape of the text.
    Text(Text),
    /// Tool-call rounds before the text.
    Tools(Rounds),
    /// A reasoning item first, whether the request asks for one or not.
    Reasoning {
        /// Parts of its summary, where the request asks for one.
        parts: u32,
    },
    /// Output as the ChatGPT backend shapes it: `output: []` in the terminal event.
    ChatGpt,
    /// Pretty-printed JSON with line breaks in it.
    Pretty,
    /// `type` is the last key of each event.
    TypeLast,
    /// Text messages are split into frames.
    Fragments(Fragments),
    /// Bytes leave at this rate.
    SlowSend {
        /// Bytes per second.
        rate: u64,
    },
    /// Bytes are taken at this rate, from now on for the rest of the connection.
    SlowRead(Reading),
    /// How the SSE stream is written.
    Sse(SseForm),
    /// How the turn ends.
    Terminal(Terminal),
    /// Something goes wrong.
    Fault(When, Fault),
}

/// The text that a turn produces, and its tempo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// Number of deltas.
    pub n: u32,
    /// Bytes of each delta; the first is as long as the sentence about the transcript.
    pub size: u64,
    /// Pause between two deltas; zero means that all leave in one burst.
    pub delay: Duration,
}

impl Default for Text {
    fn default() -> Text {
        Text {
            n: 3,
            size: 16,
            delay: Duration::ZERO,
        }
    }
}

/// Rounds of tool calls; none where nothing asks for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rounds {
    /// Rounds, each one a turn with calls.
    pub rounds: u32,
    /// Calls per round.
    pub parallel: u32,
    /// A sentence before the calls.
    pub say: bool,
    /// Arguments with blanks after commas and colons.
    pub spaced: bool,
}

/// Splitting of text messages into WebSocket frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragments {
    /// Payload bytes per frame; may cut through a character.
    pub size: u64,
    /// A ping between every two frames.
    pub pings: bool,
}

/// Slow reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Bytes per second; `None` is as fast as possible.
    pub rate: Option<u64>,
    /// Nothing is read for this long first.
    pub delay: Duration,
}

/// The line ends of an SSE stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eol {
    /// `\n`
    Lf,
    /// `\r\n`
    CrLf,
    /// `\r`
    Cr,
}

/// How the SSE stream is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseForm {
    /// The line ends.
    pub eol: Eol,
    /// A byte order mark first.
    pub bom: bool,
    /// A comment line before every event.
    pub comments: bool,
    /// An `id:` line in every event.
    pub ids: bool,
    /// Bytes per chunk; cuts through characters and lines.
    pub chunk: Option<u64>,
}

impl Default for SseForm {
    fn default() -> SseForm {
        SseForm {
            eol: Eol::Lf,
            bom: false,
            comments: false,
            ids: false,
            chunk: None,
        }
    }
}

/// The last event of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terminal {
    /// Its shape.
    pub shape: TerminalShape,
    /// The error code, where the shape has one.
    pub code: String,
    /// The error message, where the shape has one.
    pub message: String,
}

/// The terminal shapes that protocol.md names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalShape {
    /// `response.completed`
    Completed,
    /// `response.failed` with `error.code`.
    Failed,
    /// `response.incomplete` with reason `max_output_tokens`.
    Incomplete,
    /// `response.incomplete` whose reason is an error code.
    IncompleteCode,
    /// `response.done`
    Done,
    /// The response object itself, without a `type`.
    Typeless,
    /// No terminal event at all, and no end either: the stream stays open.
    None,
}

/// The place of a fault in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before `response.created`.
    BeforeCreated,
    /// After so many deltas; 0 is right after `response.in_progress`, more than there are is before the terminal.
    AfterDeltas(u32),
    /// After the terminal event.
    AfterTerminal,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// No progress, perhaps with something that is not progress.
    Quiet {
        /// What comes in the meantime.
        filler: Filler,
        /// How often.
        every: Duration,
        /// For how long; `None` is for ever.
        lasting: Option<Duration>,
    },
    /// Over HTTP the response head leaves at once, then nothing.
    HeadFirst {
        /// For how long; `None` is for ever.
        lasting: Option<Duration>,
    },
    /// Deltas although no `response.created` came, then nothing for ever.
    DeltasOnly {
        /// How many.
        n: u32,
        /// Pause between two of them.
        delay: Duration,
    },
    /// An error frame, or over HTTP before `response.created` a status.
    Error(ErrorFrame),
    /// One `codex.rate_limits`, then an error frame.
    TelemetryThen(ErrorFrame),
    /// `websocket_connection_limit_reached`, then a close frame.
    AgeLimit,
    /// More events.
    LateFrames {
        /// How many.
        n: u32,
        /// Pause before each.
        delay: Duration,
    },
    /// The connection ends.
    End {
        /// How.
        ending: Ending,
        /// Pause before it; zero and after the terminal means: in the same write.
        delay: Duration,
    },
}

/// What comes while a turn makes no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filler {
    /// Nothing at all.
    Nothing,
    /// WebSocket pings, SSE comments.
    Pings,
    /// `{"type":"keepalive","sequence_number":N}`
    Keepalives,
    /// `codex.rate_limits`
    Telemetry,
}

/// How a connection ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// A close frame; over HTTP the connection is torn.
    Close {
        /// The close code.
        code: u16,
        /// The close reason.
        reason: String,
    },
    /// FIN without a close frame; over HTTP without the last chunk.
    Fin,
    /// RST.
    Reset,
    /// The connection stays open, is read, and never says anything again, not even a pong.
    Mute,
    /// A clean end without a terminal event; on a WebSocket a close frame with 1000.
    Truncate,
    /// FIN in the middle of an event.
    Cut,
}

/// A whole turn's behaviour: all parts that apply, put together.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// The parts as they were written, for the ledger.
    pub label: String,
    /// The text.
    pub text: Text,
    /// Tool-call rounds.
    pub tools: Rounds,
    /// A reasoning item first, with so many parts in its summary.
    pub reasoning: Option<u32>,
    /// ChatGPT-shaped output.
    pub chatgpt: bool,
    /// Pretty-printed events.
    pub pretty: bool,
    /// `type` comes last.
    pub type_last: bool,
    /// Frames are split.
    pub fragments: Option<Fragments>,
    /// Bytes per second that leave.
    pub send_rate: Option<u64>,
    /// How this connection is read from now on.
    pub reading: Option<Reading>,
    /// How SSE is written.
    pub sse: SseForm,
    /// The end of the turn.
    pub terminal: Option<Terminal>,
    /// What goes wrong, and when.
    pub faults: Vec<(When, Fault)>,
}

impl Behaviour {
    /// Puts parts together; a later part overrides an earlier one of the same effect, faults add up.
    pub fn assemble<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Behaviour {
        let mut whole = Behaviour::default();
        for part in parts {
            if !whole.label.is_empty() {
                whole.label.push(' ');
            }
            whole.label.push_str(&part.label);
            whole.apply(&part.effect);
        }
        if whole.label.is_empty() {
            whole.label.push_str("healthy");
        }
        whole
    }

    fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::Healthy => {}
            Effect::Text(text) => self.text = *text,
            Effect::Tools(rounds) => self.tools = *rounds,
            Effect::Reasoning { parts } => self.reasoning = Some(*parts),
            Effect::ChatGpt => self.chatgpt = true,
            Effect::Pretty => self.pretty = true,
            Effect::TypeLast => self.type_last = true,
            Effect::Fragments(fragments) => self.fragments = Some(*fragments),
            Effect::SlowSend { rate } => self.send_rate = Some(*rate),
            Effect::SlowRead(reading) => self.reading = Some(*reading),
            Effect::Sse(form) => self.sse = *form,
            Effect::Terminal(terminal) => self.terminal = Some(terminal.clone()),
            Effect::Fault(when, fault) => self.faults.push((*when, fault.clone())),
        }
    }

    /// The faults of one place, in the order in which they were written.
    pub fn faults_at(&self, place: When) -> impl Iterator<Item = &Fault> {
        self.faults
            .iter()
            .filter(move |(when, _)| *when == place)
            .map(|(_, fault)| fault)
    }
}
