//! One TCP connection: requests one after another, or an upgrade.

use std::io;
use std::sync::Arc;

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use bytes::Bytes;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::answer::{Answer, usual_headers};
use super::behaviour::{Effect, Reading, Transport};
use super::create::Create;
use super::faults::ErrorFrame;
use super::http::{After, HttpStage, Place};
use super::inbound::Source;
use super::ledger::Request;
use super::origin::Head;
use super::outbound::Outbound;
use super::paths;
use super::perform::perform;
use super::score::Conclusion;
use super::script::{Script, UpgradeEffect};
use super::state::State;
use super::turn::{Origin, Turn, is_chatgpt};
use super::upgrade::{self, Upgrade};
use super::websocket;

/// The receive buffer where a script reads slowly: with the usual megabytes the client would not notice.
const SLOW_RECEIVE_BUFFER: usize = 16 * 1024;

/// The largest request body after decoding.
const MAX_DECODED: u64 = 129 << 20;

/// Serves a connection to its end.
pub async fn serve(stream: TcpStream, state: Arc<State>) {
    // Small events must not wait for each other; where the option fails the connection is dead anyway.
    _ = stream.set_nodelay(true);
    if reads_slowly(&state.script.load()) {
        _ = socket2::SockRef::from(&stream).set_recv_buffer_size(SLOW_RECEIVE_BUFFER);
    }
    let (read, write) = stream.into_split();
    let mut source = Source::new(read);
    let mut out = Outbound::new(write);
    loop {
        let head = match source.head().await {
            Ok(Some(head)) => head,
            Ok(None) => return,
            Err(error) => {
                if error.kind() == io::ErrorKind::InvalidData {
                    let error = ErrorFrame::invalid("bad_request", error.to_string(), None);
                    Answer::error(&error).write(&mut out.buffer);
                    _ = out.flush().await;
                    out.finish().await;
                }
                return;
            }
        };
        if upgrade::is_upgrade(&head) {
            match upgrade::answer(&head, &mut source, &mut out, &state).await {
                Ok(Upgrade::Accepted { number, reading }) => {
                    source.reading = reading;
                    return websocket::serve(number, &head, source, out, &state).await;
                }
                Ok(Upgrade::Refused) => continue,
                Ok(Upgrade::Over) | Err(_) => return,
            }
        }
        match request(&head, &mut source, &mut out, &state).await {
            Ok(After::Reuse) if !head.has_token("connection", "close") => {}
            Ok(After::Reuse) => return out.finish().await,
            Ok(After::Over) | Err(_) => return,
        }
    }
}

fn reads_slowly(script: &Script) -> bool {
    let upgrades = script
        .upgrades
        .iter()
        .any(|rule| matches!(rule.effect, UpgradeEffect::SlowRead(_)));
    let mut parts = script.rules.iter().flat_map(|rule| &rule.parts);
    upgrades || parts.any(|part| matches!(part.effect, Effect::SlowRead(_)))
}

/// Serves one request.
async fn request(head: &Head, source: &mut Source, out: &mut Outbound, state: &State) -> io::Result<After> {
    source.reading = slow_body(head, state);
    if head.has_token("expect", "100-continue") {
        out.buffer.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        out.flush().await?;
    }
    let body = source.body(head).await?;
    source.reading = None;
    if let Some(answer) = paths::control(head, &body, state) {
        answer.write(&mut out.buffer);
        return out.flush().await.map(|()| After::Reuse);
    }
    let (method, target) = (head.method.clone(), head.target());
    state.book.requested(Request {
        method,
        target,
        bytes: body.len(),
        headers: head.recorded(),
    });
    let body = match decoded(head, body).await {
        Ok(body) => body,
        Err(error) => return whole(Answer::error(&error), head, out, state).await,
    };
    if head.method == "POST" && head.path.ends_with("/responses") {
        return turn(head, &body, source, out, state).await;
    }
    whole(paths::answer(head, &body, state), head, out, state).await
}

async fn whole(mut answer: Answer, head: &Head, out: &mut Outbound, state: &State) -> io::Result<After> {
    let chatgpt = is_chatgpt(state.script.load().kind, head);
    answer
        .headers
        .extend(usual_headers(chatgpt, &state.seed().to_hex()[..16]));
    match head.method.as_str() {
        "HEAD" => answer.write_head(&mut out.buffer),
        _ => answer.write(&mut out.buffer),
    }
    out.flush().await.map(|()| After::Reuse)
}

async fn turn(
    head: &Head,
    body: &Bytes,
    source: &mut Source,
    out: &mut Outbound,
    state: &State,
) -> io::Result<After> {
    let chatgpt = is_chatgpt(state.script.load().kind, head);
    let create = match Create::parse(body, Transport::Http) {
        Ok(create) if chatgpt && !create.stream => {
            let error = ErrorFrame::invalid("unsupported", "Stream must be set to true", None);
            let error = ErrorFrame {
                shape: super::faults::Shape::Detail,
                ..error
            };
            return whole(Answer::error(&error), head, out, state).await;
        }
        Ok(create) => create,
        Err(error) => return whole(Answer::error(&error), head, out, state).await,
    };
    let origin = Origin {
        head,
        transport: Transport::Http,
        socket: None,
        bytes: body.len(),
        fragments: 0,
    };
    let turn = Turn::open(state, &create, &origin, None);
    if turn.is_background() && !create.stream {
        return whole(Answer::json(turn.start_in_background(state)), head, out, state).await;
    }
    out.rate = turn.behaviour.send_rate;
    let stage = HttpStage {
        headers: usual_headers(chatgpt, &state.seed().to_hex()[..16]),
        sse: create.stream.then_some(turn.behaviour.sse),
        object: &turn.score.object,
        place: Place::Before,
        out: &mut *out,
    };
    let result = tokio::select! {
        result = play(stage, &turn, state) => result,
        () = source.until_gone() => Err(io::ErrorKind::ConnectionAborted.into()),
    };
    if result.is_err() {
        state.book.concluded(turn.number, Conclusion::ClientGone);
    }
    out.rate = None;
    result
}

async fn play(mut stage: HttpStage<'_>, turn: &Turn, state: &State) -> io::Result<After> {
    let ending = perform(&mut stage, &turn.score.steps, |conclusion| {
        turn.conclude(state, conclusion, &mut None);
    })
    .await?;
    match ending {
        None => stage.finish().await.map(|()| After::Reuse),
        Some(ending) => stage.end(&ending).await,
    }
}

/// A body is read before its prompt is known, so only a rule that asks for nothing in it can slow the reading.
fn slow_body(head: &Head, state: &State) -> Option<Reading> {
    let script = state.script.load();
    let here = script.rules.iter().filter(|rule| {
        let matches = &rule.matches;
        matches.conversation.is_none()
            && matches.model.is_none()
            && matches.transport != Some(Transport::Websocket)
            && matches.meets_head(head)
    });
    let mut parts = here.flat_map(|rule| &rule.parts);
    parts.find_map(|part| match part.effect {
        Effect::SlowRead(reading) if part.gate.on != Some(Transport::Websocket) => Some(reading),
        _ => None,
    })
}

async fn decoded(head: &Head, body: Bytes) -> Result<Bytes, ErrorFrame> {
    let mut decoded = Vec::new();
    let result = match head.header("content-encoding") {
        None | Some("identity") => return Ok(body),
        Some("zstd") => {
            ZstdDecoder::new(&body[..])
                .take(MAX_DECODED)
                .read_to_end(&mut decoded)
                .await
        }
        Some("gzip") => {
            GzipDecoder::new(&body[..])
                .take(MAX_DECODED)
                .read_to_end(&mut decoded)
                .await
        }
        Some(other) => {
            let message = format!("Content-Encoding {other} is not supported.");
            return Err(ErrorFrame::invalid("unsupported_content_encoding", message, None).with_status(415));
        }
    };
    match result {
        Ok(_) => Ok(decoded.into()),
        Err(error) => Err(ErrorFrame::invalid("invalid_body", error.to_string(), None)),
    }
}
