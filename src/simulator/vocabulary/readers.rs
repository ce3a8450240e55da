//! Reads the parameters of single words.

use std::time::Duration;

use super::super::behaviour::{
    Effect, Ending, Eol, Fault, Filler, Reading, SseForm, Terminal, TerminalShape, Text, When,
};
use super::super::faults::{ErrorFrame, SHAPES, Shape, code_of, kind_of};
use super::super::words::{Params, WordError};

/// The most deltas of one turn.
pub const MAX_DELTAS: u64 = 200_000;
/// The largest delta, in bytes.
pub const MAX_SIZE: u64 = 20 << 20;
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

/// The shape of the text; one turn stays within [`MAX_TURN`].
pub fn text(params: &mut Params, usual: Text) -> Result<Effect, WordError> {
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

/// The form of SSE.
pub fn sse(params: &mut Params) -> Result<Effect, WordError> {
    let eols = [("lf", Eol::Lf), ("crlf", Eol::CrLf), ("cr", Eol::Cr)];
    Ok(Effect::Sse(SseForm {
        eol: params.choice("eol", &eols)?.unwrap_or(Eol::Lf),
        bom: params.flag("bom")?.unwrap_or(false),
        comments: params.flag("comments")?.unwrap_or(false),
        ids: params.flag("ids")?.unwrap_or(false),
        chunk: params.size("chunk", MAX_SIZE)?.map(|size| size.max(1)),
    }))
}

/// Bytes per second.
pub fn rate(params: &mut Params, usual: u64) -> Result<u64, WordError> {
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

/// A quiet time before `response.created`.
pub fn quiet_start(filler: Filler, every: Duration, lasting: Option<Duration>) -> Effect {
    Effect::Fault(
        When::BeforeCreated,
        Fault::Quiet {
            filler,
            every,
            lasting,
        },
    )
}

/// How often a filler comes.
fn every(params: &mut Params) -> Result<Duration, WordError> {
    let every = params.duration("every")?.unwrap_or(Duration::from_secs(1));
    Ok(every.max(Duration::from_millis(1)))
}

/// A quiet time with something that is not progress.
pub fn filler(params: &mut Params, filler: Filler) -> Result<Effect, WordError> {
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

/// A quiet time in mid-stream.
pub fn pause(params: &mut Params) -> Result<Effect, WordError> {
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
pub fn after(params: &mut Params, usual: Option<u32>) -> Result<When, WordError> {
    let after = params.number("after", u64::from(u32::MAX))?.map(narrow).or(usual);
    Ok(after.map_or(When::BeforeCreated, When::AfterDeltas))
}

/// The connection ends.
pub fn end(params: &mut Params, ending: Ending) -> Result<Effect, WordError> {
    let delay = params.duration("delay")?.unwrap_or_default();
    Ok(Effect::Fault(after(params, None)?, Fault::End { ending, delay }))
}

/// A close frame.
pub fn close(params: &mut Params, usual: u16) -> Result<Ending, WordError> {
    let code = params
        .number("code", 4_999)?
        .and_then(|code| u16::try_from(code).ok())
        .unwrap_or(usual);
    Ok(Ending::Close {
        code,
        reason: params.text("reason").unwrap_or_default().to_owned(),
    })
}

/// The idle socket ends.
pub fn afterwards(params: &mut Params) -> Result<Effect, WordError> {
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

/// An error answer. Where nothing says its shape it has one in which nothing of it is lost.
pub fn error(params: &mut Params) -> Result<ErrorFrame, WordError> {
    let status = params
        .number("status", 599)?
        .and_then(|status| u16::try_from(status).ok())
        .unwrap_or(429);
    let retry_after = params
        .text("retry_after")
        .map(|value| ("retry-after".to_owned(), value.to_owned()));
    let limits = (status == 429).then(|| ("x-ratelimit-remaining-requests".to_owned(), "0".to_owned()));
    let headers: Vec<_> = retry_after.into_iter().chain(limits).collect();
    let usual = if headers.is_empty() {
        Shape::Nested
    } else {
        Shape::HeadersTop
    };
    let page = params
        .flag("page")?
        .unwrap_or(false)
        .then(|| ("text/html", gateway_page(status)));
    Ok(ErrorFrame {
        shape: params.choice("shape", SHAPES)?.unwrap_or(usual),
        status,
        kind: params.text("type").unwrap_or(kind_of(status)).to_owned(),
        code: Some(params.text("code").unwrap_or(code_of(status)).to_owned()),
        message: params
            .text("message")
            .unwrap_or("Scripted by the simulator.")
            .to_owned(),
        param: params.text("param").map(str::to_owned),
        headers,
        page,
    })
}

fn gateway_page(status: u16) -> String {
    format!(
        "<html><head><title>{status}</title></head><body><center><h1>{status}</h1></center></body></html>\r\n"
    )
}

/// Telemetry, then an error.
pub fn telemetry_error(params: &mut Params) -> Result<Effect, WordError> {
    let error = error(params)?;
    let shape = params.choice("shape", SHAPES)?.unwrap_or(Shape::HeadersTop);
    Ok(Effect::Fault(
        When::BeforeCreated,
        Fault::TelemetryThen(ErrorFrame { shape, ..error }),
    ))
}

/// The anchor is unknown, in one of the forms in which upstreams say so.
pub fn not_found(params: &mut Params) -> Result<ErrorFrame, WordError> {
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

/// A redirect.
pub fn redirect(params: &mut Params) -> Result<Effect, WordError> {
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

/// The socket is too old.
pub fn age_limit(params: &mut Params) -> Result<Effect, WordError> {
    let after_turn = params.flag("after_turn")?.unwrap_or(false);
    let when = if after_turn {
        When::AfterTerminal
    } else {
        When::BeforeCreated
    };
    Ok(Effect::Fault(when, Fault::AgeLimit))
}

/// The last event.
pub fn terminal(params: &mut Params) -> Result<Terminal, WordError> {
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
pub fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
