//! The words of scripts and markers, and what each one means. One table: names here, effects below.

use std::time::Duration;

use super::behaviour::{
    Effect, Ending, Eol, Fault, Filler, Fragments, Gate, Part, Reading, SseForm, Terminal, TerminalShape,
    Text, Transport, When,
};
use super::faults::{ErrorFrame, SHAPES, Shape, code_of, kind_of};
use super::words::{Call, Params, WordError};

/// Every behaviour with its parameters, as `simulate --help` prints them. All take `on=ws|http`, `times` and `nth`.
pub const WORDS: &[(&str, &str)] = &[
    ("healthy", "an ordinary turn"),
    ("text", "n, size, delay: deltas of text"),
    ("burst", "n, size: many deltas at once"),
    ("big", "size: one large delta"),
    ("tools", "rounds, parallel: tool calls, then text"),
    ("reasoning", "a reasoning item first"),
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

const MAX_DELTAS: u64 = 200_000;
const MAX_SIZE: u64 = 20 << 20;
/// What one turn may produce; beyond it a script is more likely wrong than daring.
const MAX_TURN: u64 = 256 << 20;
const FILLERS: &[(&str, Filler)] = &[
    ("nothing", Filler::Nothing),
    ("pings", Filler::Pings),
    ("keepalives", Filler::Keepalives),
    ("telemetry", Filler::Telemetry),
];
const TERMINALS: &[(&str, TerminalShape)] = &[
    ("completed", TerminalShape::Completed),
    ("failed", TerminalShape::Failed),
    ("incomplete", TerminalShape::Incomplete),
    ("incomplete_code", TerminalShape::IncompleteCode),
    ("done", TerminalShape::Done),
    ("typeless", TerminalShape::Typeless),
    ("none", TerminalShape::None),
];

impl Part {
    /// Reads one call of the vocabulary.
    ///
    /// # Errors
    /// [`WordError`] names the wrong word and the nearest right one.
    pub fn parse(text: &str) -> Result<Part, WordError> {
        let call = Call::parse(text)?;
        let mut params = Params::new(&call);
        let gate = gate(&mut params)?;
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
        "tools" => Effect::Tools {
            rounds: params.number("rounds", 1_000)?.map_or(1, narrow),
            parallel: params.number("parallel", 16)?.map_or(1, narrow).max(1),
        },
        "reasoning" => Effect::Reasoning,
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

fn text(params: &mut Params, usual: Text) -> Result<Effect, WordError> {
    let text = Text {
        n: params.number("n", MAX_DELTAS)?.map_or(usual.n, narrow),
        size: params.size("size", MAX_SIZE)?.unwrap_or(usual.size),
        delay: params.duration("delay")?.unwrap_or(usual.delay),
    };
    let total = u64::from(text.n) * text.size;
    if total > MAX_TURN {
        let expected = format!("n times size up to {MAX_TURN} bytes");
        return Err(WordError::Value {
            name: "size".into(),
            value: text.size.to_string(),
            expected,
        });
    }
    Ok(Effect::Text(text))
}

fn sse(params: &mut Params) -> Result<Effect, WordError> {
    let eols = [("lf", Eol::Lf), ("crlf", Eol::CrLf), ("cr", Eol::Cr)];
    Ok(Effect::Sse(SseForm {
        eol: params.choice("eol", &eols)?.unwrap_or(Eol::Lf),
        bom: params.flag("bom")?.unwrap_or(false),
        comments: params.flag("comments")?.unwrap_or(false),
        ids: params.flag("ids")?.unwrap_or(false),
        chunk: params.size("chunk", MAX_SIZE)?.map(|size| size.max(1)),
    }))
}

fn rate(params: &mut Params, usual: u64) -> Result<u64, WordError> {
    Ok(params.size("rate", u64::from(u32::MAX))?.unwrap_or(usual).max(1))
}

/// The parameters of `slow_read`, which is a word for turns and for upgrades.
///
/// # Errors
/// [`WordError`] for a value out of bounds.
pub fn reading(params: &mut Params) -> Result<Reading, WordError> {
    Ok(Reading {
        rate: Some(rate(params, 200_000)?),
        delay: params.duration("delay")?.unwrap_or_default(),
    })
}

fn quiet_start(filler: Filler, every: Duration, lasting: Option<Duration>) -> Effect {
    Effect::Fault(
        When::BeforeCreated,
        Fault::Quiet {
            filler,
            every,
            lasting,
        },
    )
}

fn every(params: &mut Params) -> Result<Duration, WordError> {
    let every = params.duration("every")?.unwrap_or(Duration::from_secs(1));
    Ok(every.max(Duration::from_millis(1)))
}

fn filler(params: &mut Params, filler: Filler) -> Result<Effect, WordError> {
    let (when, every) = (after(params, None)?, every(params)?);
    Ok(Effect::Fault(
        when,
        Fault::Quiet {
            filler,
            every,
            lasting: params.duration("for")?,
        },
    ))
}

fn pause(params: &mut Params) -> Result<Effect, WordError> {
    let (when, every) = (after(params, Some(1))?, every(params)?);
    let filler = params.choice("with", FILLERS)?.unwrap_or(Filler::Nothing);
    let lasting = match params.text("for") {
        Some("ever") => None,
        _ => Some(params.duration("for")?.unwrap_or(Duration::from_secs(5))),
    };
    Ok(Effect::Fault(
        when,
        Fault::Quiet {
            filler,
            every,
            lasting,
        },
    ))
}

/// `after=N`; without it the fault comes after `usual` deltas, or before `response.created`.
fn after(params: &mut Params, usual: Option<u32>) -> Result<When, WordError> {
    let after = params.number("after", u64::from(u32::MAX))?.map(narrow).or(usual);
    Ok(after.map_or(When::BeforeCreated, When::AfterDeltas))
}

fn end(params: &mut Params, ending: Ending) -> Result<Effect, WordError> {
    let delay = params.duration("delay")?.unwrap_or_default();
    Ok(Effect::Fault(after(params, None)?, Fault::End { ending, delay }))
}

fn close(params: &mut Params, usual: u16) -> Result<Ending, WordError> {
    let code = params
        .number("code", 4_999)?
        .and_then(|code| u16::try_from(code).ok())
        .unwrap_or(usual);
    Ok(Ending::Close {
        code,
        reason: params.text("reason").unwrap_or_default().to_owned(),
    })
}

fn afterwards(params: &mut Params) -> Result<Effect, WordError> {
    let close = close(params, 1000)?;
    let doings = [("close", 0), ("fin", 1), ("reset", 2), ("mute", 3)];
    let ending = match params.choice("do", &doings)? {
        Some(1) => Ending::Fin,
        Some(2) => Ending::Reset,
        Some(3) => Ending::Mute,
        _ => close,
    };
    let delay = params
        .duration("delay")?
        .unwrap_or(Duration::from_millis(20))
        .max(Duration::from_millis(1));
    Ok(Effect::Fault(When::AfterTerminal, Fault::End { ending, delay }))
}

fn error(params: &mut Params) -> Result<ErrorFrame, WordError> {
    let status = params
        .number("status", 599)?
        .and_then(|status| u16::try_from(status).ok())
        .unwrap_or(429);
    let retry_after = params
        .text("retry_after")
        .map(|value| ("retry-after".to_owned(), value.to_owned()));
    let limits = (status == 429).then(|| ("x-ratelimit-remaining-requests".to_owned(), "0".to_owned()));
    let page = params
        .flag("page")?
        .unwrap_or(false)
        .then(|| ("text/html", gateway_page(status)));
    Ok(ErrorFrame {
        shape: params.choice("shape", SHAPES)?.unwrap_or(Shape::Nested),
        status,
        kind: params.text("type").unwrap_or(kind_of(status)).to_owned(),
        code: Some(params.text("code").unwrap_or(code_of(status)).to_owned()),
        message: params
            .text("message")
            .unwrap_or("Scripted by the simulator.")
            .to_owned(),
        param: params.text("param").map(str::to_owned),
        headers: retry_after.into_iter().chain(limits).collect(),
        page,
    })
}

fn gateway_page(status: u16) -> String {
    format!(
        "<html><head><title>{status}</title></head><body><center><h1>{status}</h1></center></body></html>\r\n"
    )
}

fn telemetry_error(params: &mut Params) -> Result<Effect, WordError> {
    let error = error(params)?;
    let shape = params.choice("shape", SHAPES)?.unwrap_or(Shape::HeadersTop);
    Ok(Effect::Fault(
        When::BeforeCreated,
        Fault::TelemetryThen(ErrorFrame { shape, ..error }),
    ))
}

fn not_found(params: &mut Params) -> Result<ErrorFrame, WordError> {
    let forms = [
        ("code", 0),
        ("message", 1),
        ("invalid", 2),
        ("stream_incomplete", 3),
    ];
    let error = ErrorFrame::previous_not_found("resp_scripted");
    Ok(match params.choice("form", &forms)? {
        Some(1) => ErrorFrame {
            code: None,
            param: None,
            ..error
        },
        Some(2) => ErrorFrame {
            code: Some("invalid_previous_response_id".into()),
            ..error
        },
        Some(3) => ErrorFrame {
            code: Some("stream_incomplete".into()),
            ..error
        },
        _ => error,
    })
}

fn redirect(params: &mut Params) -> Result<Effect, WordError> {
    let status = params
        .number("status", 399)?
        .and_then(|status| u16::try_from(status).ok())
        .unwrap_or(302);
    let location = params.text("location").unwrap_or("/elsewhere").to_owned();
    let error = ErrorFrame::invalid("redirect", "Scripted redirect.", None).with_status(status);
    let error = ErrorFrame {
        headers: vec![("location".into(), location)],
        ..error
    };
    Ok(Effect::Fault(When::BeforeCreated, Fault::Error(error)))
}

fn age_limit(params: &mut Params) -> Result<Effect, WordError> {
    let after_turn = params.flag("after_turn")?.unwrap_or(false);
    let when = if after_turn {
        When::AfterTerminal
    } else {
        When::BeforeCreated
    };
    Ok(Effect::Fault(when, Fault::AgeLimit))
}

fn terminal(params: &mut Params) -> Result<Terminal, WordError> {
    Ok(Terminal {
        shape: params
            .choice("shape", TERMINALS)?
            .unwrap_or(TerminalShape::Completed),
        code: params.text("code").unwrap_or("server_error").to_owned(),
        message: params
            .text("message")
            .unwrap_or("Scripted by the simulator.")
            .to_owned(),
    })
}

/// Callers have checked the bound; beyond it the largest value is as good as any.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
