//! The words of scripts and markers, and what each one means. One table: names here, effects below.

use std::time::Duration;

use super::behaviour::{Effect, Ending, Fault, Filler, Fragments, Gate, Part, Rounds, Text, Transport, When};
use super::words::{Call, Params, WordError};

mod readers;

pub use readers::reading;
use readers::{
    MAX_DELTAS, MAX_SIZE, after, afterwards, age_limit, close, end, error, filler, narrow, not_found, pause,
    quiet_start, rate, redirect, sse, telemetry_error, terminal, text,
};

/// Every behaviour with its parameters, as `simulate --help` prints them. All take `on=ws|http`, `times` and `nth`.
pub const WORDS: &[(&str, &str)] = &[
    ("healthy", "an ordinary turn"),
    ("text", "n, size, delay: deltas of text"),
    ("burst", "n, size: many deltas at once"),
    ("big", "size: one large delta"),
    (
        "tools",
        "rounds, parallel, say, spaced: tool calls, after a sentence or not, then text",
    ),
    (
        "reasoning",
        "parts: a reasoning item first, and the parts of its summary",
    ),
    ("chatgpt", "output: [] in the terminal event"),
    ("pretty", "pretty-printed events"),
    ("type_last", "`type` is the last key"),
    ("fragments", "size, pings: messages in several frames"),
    ("slow_send", "rate: bytes per second that leave"),
    ("slow_read", "rate, delay: bytes per second that are taken"),
    (
        "sse",
        "eol=lf|crlf|cr, bom, comments, ids, chunk: the form of SSE",
    ),
    ("silent", "for: nothing before created"),
    ("created_after", "delay: a late created"),
    ("headers_only", "for: HTTP headers, then nothing"),
    ("no_created", "n, delay: deltas without created, then nothing"),
    ("pings", "every, for, after: pings only"),
    ("keepalives", "every, for, after: keepalive events only"),
    ("telemetry", "every, for, after: codex.rate_limits only"),
    ("telemetry_error", "like error, after one codex.rate_limits"),
    (
        "pause",
        "after, for, with=nothing|pings|keepalives|telemetry, every: a pause in mid-stream",
    ),
    (
        "error",
        "shape, status, code, message, type, param, retry_after, after, page: an error answer",
    ),
    (
        "not_found",
        "form=code|message|invalid|stream_incomplete, after: the anchor is unknown",
    ),
    ("redirect", "status, location: a redirect over HTTP"),
    (
        "age_limit",
        "after_turn: websocket_connection_limit_reached, then close",
    ),
    (
        "terminal",
        "shape=completed|failed|incomplete|incomplete_code|done|typeless|none, code, message: the last event",
    ),
    ("close", "code, reason, after, delay: a close frame"),
    ("fin", "after, delay: FIN without a close frame"),
    ("reset", "after, delay: RST"),
    ("mute", "after, delay: never a byte again, no pong either"),
    ("truncated", "after: a clean end without a terminal"),
    ("cut", "after: FIN in the middle of an event"),
    (
        "terminal_close",
        "code, reason: terminal and close frame in one write",
    ),
    (
        "afterwards",
        "do=close|fin|reset|mute, code, reason, delay: the idle socket ends",
    ),
    ("late", "n, delay: events after the terminal"),
    ("left_open", "for: the body stays open after the terminal"),
];

/// Words that mean something over HTTP only.
const HTTP_ONLY: &[&str] = &["headers_only", "redirect", "sse", "left_open"];

impl Part {
    /// Reads one call of the vocabulary.
    ///
    /// # Errors
    /// [`WordError`] names the wrong word and the nearest right one.
    pub fn parse(text: &str) -> Result<Part, WordError> {
        let call = Call::parse(text)?;
        let mut params = Params::new(&call);
        let mut gate = gate(&mut params)?;
        if HTTP_ONLY.contains(&call.name.as_str()) {
            gate.on = gate.on.or(Some(Transport::Http));
        }
        let effect = effect(&call.name, &mut params)?;
        params.finish()?;
        Ok(Part {
            label: text.trim().to_owned(),
            gate,
            effect,
        })
    }
}

/// Reads the parameters that every word has.
///
/// # Errors
/// [`WordError`] for a value out of bounds.
pub fn gate(params: &mut Params) -> Result<Gate, WordError> {
    let transports = [("ws", Transport::Websocket), ("http", Transport::Http)];
    Ok(Gate {
        on: params.choice("on", &transports)?,
        times: params.number("times", u64::from(u32::MAX))?.map(narrow),
        nth: params.number("nth", u64::from(u32::MAX))?.map(narrow),
    })
}

fn effect(name: &str, params: &mut Params) -> Result<Effect, WordError> {
    Ok(match name {
        "healthy" => Effect::Healthy,
        "text" => text(params, Text::default())?,
        "burst" => text(
            params,
            Text {
                n: 500,
                size: 64,
                delay: Duration::ZERO,
            },
        )?,
        "big" => text(
            params,
            Text {
                n: 1,
                size: 1 << 20,
                delay: Duration::ZERO,
            },
        )?,
        "tools" => Effect::Tools(Rounds {
            rounds: params.number("rounds", 1_000)?.map_or(1, narrow),
            parallel: params.number("parallel", 16)?.map_or(1, narrow).max(1),
            say: params.flag("say")?.unwrap_or(false),
            spaced: params.flag("spaced")?.unwrap_or(false),
        }),
        "reasoning" => Effect::Reasoning {
            parts: params.number("parts", 16)?.map_or(1, narrow),
        },
        "chatgpt" => Effect::ChatGpt,
        "pretty" => Effect::Pretty,
        "type_last" => Effect::TypeLast,
        "fragments" => Effect::Fragments(Fragments {
            size: params.size("size", MAX_SIZE)?.unwrap_or(50).max(1),
            pings: params.flag("pings")?.unwrap_or(true),
        }),
        "slow_send" => Effect::SlowSend {
            rate: rate(params, 2_000)?,
        },
        "slow_read" => Effect::SlowRead(reading(params)?),
        "sse" => sse(params)?,
        "silent" => quiet_start(Filler::Nothing, Duration::MAX, params.duration("for")?),
        "created_after" => {
            let delay = params.duration("delay")?.unwrap_or(Duration::from_secs(1));
            quiet_start(Filler::Nothing, Duration::MAX, Some(delay))
        }
        "headers_only" => Effect::Fault(
            When::BeforeCreated,
            Fault::HeadFirst {
                lasting: params.duration("for")?,
            },
        ),
        "no_created" => Effect::Fault(
            When::BeforeCreated,
            Fault::DeltasOnly {
                n: params.number("n", MAX_DELTAS)?.map_or(54, narrow),
                delay: params.duration("delay")?.unwrap_or(Duration::from_millis(20)),
            },
        ),
        "pings" => filler(params, Filler::Pings)?,
        "keepalives" => filler(params, Filler::Keepalives)?,
        "telemetry" => filler(params, Filler::Telemetry)?,
        "pause" => pause(params)?,
        "error" => Effect::Fault(after(params, None)?, Fault::Error(error(params)?)),
        "telemetry_error" => telemetry_error(params)?,
        "not_found" => Effect::Fault(after(params, None)?, Fault::Error(not_found(params)?)),
        "redirect" => redirect(params)?,
        "age_limit" => age_limit(params)?,
        "terminal" => Effect::Terminal(terminal(params)?),
        "close" => {
            let ending = close(params, 1011)?;
            end(params, ending)?
        }
        "fin" => end(params, Ending::Fin)?,
        "reset" => end(params, Ending::Reset)?,
        "mute" => end(params, Ending::Mute)?,
        "truncated" => end(params, Ending::Truncate)?,
        "cut" => end(params, Ending::Cut)?,
        "terminal_close" => {
            let ending = close(params, 1000)?;
            Effect::Fault(
                When::AfterTerminal,
                Fault::End {
                    ending,
                    delay: Duration::ZERO,
                },
            )
        }
        "afterwards" => afterwards(params)?,
        "late" => Effect::Fault(
            When::AfterTerminal,
            Fault::LateFrames {
                n: params.number("n", MAX_DELTAS)?.map_or(3, narrow),
                delay: params.duration("delay")?.unwrap_or_default(),
            },
        ),
        "left_open" => {
            let lasting = params.duration("for")?;
            let quiet = Fault::Quiet {
                filler: Filler::Nothing,
                every: Duration::MAX,
                lasting,
            };
            Effect::Fault(When::AfterTerminal, quiet)
        }
        _ => {
            return Err(WordError::unknown(
                "behaviour",
                name,
                WORDS.iter().map(|(word, _)| *word),
            ));
        }
    })
}

#[cfg(test)]
mod tests;
