//! One socket of the upstream: turns one after another, pings answered at once, and an end as the script wants it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::behaviour::{Ending, Fragments, Reading, Transport};
use super::compose::age_limit_error;
use super::create::Create;
use super::faults::ErrorFrame;
use super::frame::{self, Assembler, Breach, Inbound};
use super::inbound::Source;
use super::ledger::SocketEnd;
use super::origin::Head;
use super::outbound::Outbound;
use super::perform::{Stage, perform};
use super::state::State;
use super::turn::{Memory, Origin, Turn};

/// Creates that wait for the socket; beyond them it is not read.
const QUEUE: usize = 64;

/// How long the client may take to answer a close frame.
const FAREWELL: Duration = Duration::from_secs(2);

/// The writing side, shared by turns and pongs. A tokio mutex, held over a write: a control frame may stand between
/// two frames, not inside of one.
type Shared = Arc<Mutex<Outbound>>;

struct Message {
    text: Bytes,
    fragments: u32,
}

/// Why the socket's life is over.
enum End {
    Client(SocketEnd),
    Breach(Breach),
    Scripted(Ending),
}

/// Serves a socket to its end.
pub async fn serve(number: u64, head: &Head, mut source: Source, out: Outbound, state: &State) {
    let limits = state.script.load().limits.clone();
    let mut assembler = Assembler::new(limits.frame);
    let out = Arc::new(Mutex::new(out));
    let (messages, inbox) = mpsc::channel(QUEUE);
    let (pace, paces) = watch::channel(source.reading);
    let (kick, mut kicks) = mpsc::channel(1);
    let mut endings = state.endings.subscribe();
    let turns = Turns {
        number,
        head,
        state,
        out: &out,
        inbox,
        pace,
        kick,
        later: JoinSet::new(),
        memory: None,
    };
    let end = tokio::select! {
        end = read(number, &mut source, &mut assembler, &messages, paces, &out, state) => end,
        end = turns.run(Instant::now() + limits.age) => end,
        Some(ending) = kicks.recv() => End::Scripted(ending),
        Ok(ending) = endings.recv() => End::Scripted(ending),
    };
    let mut out = out.lock().await;
    let end = finish(end, &mut source, &mut assembler, &mut out).await;
    state.book.socket_ended(number, end);
}

/// Reads for as long as the socket lives: a turn that is running keeps nobody from seeing a close or a ping.
async fn read(
    number: u64,
    source: &mut Source,
    assembler: &mut Assembler,
    messages: &mpsc::Sender<Message>,
    mut paces: watch::Receiver<Option<Reading>>,
    out: &Shared,
    state: &State,
) -> End {
    loop {
        match assembler.next(&mut source.buffer) {
            Err(breach) => return End::Breach(breach),
            Ok(Some(Inbound::Close(code))) => return End::Client(SocketEnd::ClientClose(code)),
            Ok(Some(Inbound::Pong)) => continue,
            Ok(Some(Inbound::Ping(payload))) => {
                state.book.pinged(number);
                let mut out = out.lock().await;
                frame::pong(&mut out.buffer, payload);
                if out.flush().await.is_err() {
                    return End::Client(SocketEnd::ClientReset);
                }
                continue;
            }
            Ok(Some(Inbound::Message { text, fragments })) => {
                // The receiver lives as long as this loop: both end together.
                _ = messages.send(Message { text, fragments }).await;
                continue;
            }
            Ok(None) => {}
        }
        if paces.has_changed().unwrap_or(false) {
            source.reading = *paces.borrow_and_update();
        }
        match source.read().await {
            Ok(0) => return End::Client(SocketEnd::ClientFin),
            Err(_) => return End::Client(SocketEnd::ClientReset),
            Ok(_) => {}
        }
    }
}

/// The turns of one socket.
struct Turns<'a> {
    number: u64,
    head: &'a Head,
    state: &'a State,
    out: &'a Shared,
    inbox: mpsc::Receiver<Message>,
    pace: watch::Sender<Option<Reading>>,
    kick: mpsc::Sender<Ending>,
    /// What comes after a terminal, while the next turn may already be running.
    later: JoinSet<()>,
    memory: Option<Memory>,
}

impl Turns<'_> {
    async fn run(mut self, aged: Instant) -> End {
        loop {
            let message = tokio::select! {
                Some(message) = self.inbox.recv() => message,
                () = sleep_until(aged) => return self.too_old().await,
            };
            while self.later.try_join_next().is_some() {}
            match self.message(&message).await {
                Ok(None) => {}
                Ok(Some(ending)) => return End::Scripted(ending),
                Err(_) => return End::Client(SocketEnd::ClientReset),
            }
        }
    }

    async fn too_old(&self) -> End {
        let error = age_limit_error();
        match self.say(&error).await {
            Ok(()) => End::Scripted(Ending::Close {
                code: 1000,
                reason: String::new(),
            }),
            Err(_) => End::Client(SocketEnd::ClientReset),
        }
    }

    async fn message(&mut self, message: &Message) -> io::Result<Option<Ending>> {
        let body = match serde_json::from_slice::<Value>(&message.text) {
            Ok(Value::Object(body)) => body,
            _ => {
                let error = ErrorFrame::invalid("invalid_json", "The frame is not a JSON object.", None);
                return self.say(&error).await.map(|()| None);
            }
        };
        match body.get("type").and_then(Value::as_str) {
            Some("response.create") => {}
            Some("response.processed") => return Ok(None),
            other => {
                let message = format!("Unsupported frame type {other:?}.");
                let error = ErrorFrame::invalid("invalid_value", message, Some("type"));
                return self.say(&error).await.map(|()| None);
            }
        }
        match Create::from_object(body, Transport::Websocket) {
            Ok(create) => self.turn(&create, message).await,
            Err(error) => self.say(&error).await.map(|()| None),
        }
    }

    async fn turn(&mut self, create: &Create, message: &Message) -> io::Result<Option<Ending>> {
        let origin = Origin {
            head: self.head,
            transport: Transport::Websocket,
            socket: Some(self.number),
            bytes: message.text.len(),
            fragments: message.fragments,
        };
        let turn = Turn::open(self.state, create, &origin, self.memory.as_ref());
        if turn.behaviour.reading.is_some() {
            self.pace.send_replace(turn.behaviour.reading);
        }
        self.out.lock().await.rate = turn.behaviour.send_rate;
        let mut stage = SocketStage {
            out: self.out.clone(),
            fragments: turn.behaviour.fragments,
        };
        let (state, memory) = (self.state, &mut self.memory);
        let ending = perform(&mut stage, &turn.score.steps, |conclusion| {
            turn.conclude(state, conclusion, memory);
        })
        .await?;
        if !turn.score.later.is_empty() {
            let (steps, kick) = (turn.score.later, self.kick.clone());
            self.later.spawn(async move {
                if let Ok(Some(ending)) = perform(&mut stage, &steps, |_| {}).await {
                    // Full means that the socket is ending already.
                    _ = kick.try_send(ending);
                }
            });
        }
        Ok(ending)
    }

    async fn say(&self, error: &ErrorFrame) -> io::Result<()> {
        let mut out = self.out.lock().await;
        frame::text(&mut out.buffer, &error.frame(0), None);
        out.flush().await
    }
}

struct SocketStage {
    out: Shared,
    fragments: Option<Fragments>,
}

impl Stage for SocketStage {
    async fn event(&mut self, _kind: &str, json: &str) -> io::Result<()> {
        let mut out = self.out.lock().await;
        frame::text(&mut out.buffer, json, self.fragments);
        out.flush_if_full().await
    }

    async fn error(&mut self, _error: &ErrorFrame, json: &str) -> io::Result<()> {
        self.event("error", json).await
    }

    async fn nudge(&mut self) -> io::Result<()> {
        frame::ping(&mut self.out.lock().await.buffer);
        Ok(())
    }

    async fn head(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.out.lock().await.flush().await
    }
}

/// Ends the connection, and says how the ledger is to remember it.
async fn finish(end: End, source: &mut Source, assembler: &mut Assembler, out: &mut Outbound) -> SocketEnd {
    let ending = match end {
        End::Client(end) => {
            if let SocketEnd::ClientClose(code) = end {
                frame::close(&mut out.buffer, code.unwrap_or(1005), "");
                _ = out.flush().await;
            }
            out.finish().await;
            return end;
        }
        End::Breach(breach) => {
            frame::close(&mut out.buffer, breach.code(), "");
            _ = out.flush().await;
            // Read on: a connection that is dropped with unread bytes is reset, and the close frame lost with it.
            _ = timeout(FAREWELL, source.drain()).await;
            return SocketEnd::Simulator;
        }
        End::Scripted(ending) => ending,
    };
    match ending {
        Ending::Close { code, reason } => close(code, &reason, source, assembler, out).await,
        Ending::Truncate => close(1000, "", source, assembler, out).await,
        Ending::Cut => {
            _ = out.flush().await;
            let start = out.buffer.len();
            frame::text(
                &mut out.buffer,
                r#"{"type":"response.output_text.delta","delta":"cut off"}"#,
                None,
            );
            let half = start + (out.buffer.len() - start) / 2;
            out.buffer.truncate(half);
            _ = out.flush().await;
            out.finish().await;
        }
        Ending::Fin => {
            _ = out.flush().await;
            out.finish().await;
        }
        Ending::Reset => {
            _ = out.flush().await;
            out.reset();
        }
        Ending::Mute => {
            out.mute = true;
            return farewell(source, assembler).await;
        }
    }
    SocketEnd::Simulator
}

async fn close(code: u16, reason: &str, source: &mut Source, assembler: &mut Assembler, out: &mut Outbound) {
    frame::close(&mut out.buffer, code, reason);
    _ = out.flush().await;
    _ = timeout(FAREWELL, farewell(source, assembler)).await;
    out.finish().await;
}

/// Reads without an answer until the client ends the socket.
async fn farewell(source: &mut Source, assembler: &mut Assembler) -> SocketEnd {
    loop {
        match assembler.next(&mut source.buffer) {
            Ok(Some(Inbound::Close(code))) => return SocketEnd::ClientClose(code),
            Ok(Some(_)) => {}
            Ok(None) => match source.read().await {
                Ok(0) => return SocketEnd::ClientFin,
                Err(_) => return SocketEnd::ClientReset,
                Ok(_) => {}
            },
            Err(_) => {
                source.drain().await;
                return SocketEnd::ClientFin;
            }
        }
    }
}
