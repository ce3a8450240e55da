//! One upstream WebSocket: a create goes out, messages come in, and neither waits for the other.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Sleep;
use tokio_tungstenite::tungstenite;
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Message, Utf8Bytes};

use super::close::{Close, CloseClass};
use super::link::Link;

/// The largest inbound message, in bytes. Single events far above 64 KiB are normal (encrypted reasoning).
const MAX_INBOUND: usize = 64 << 20;
/// Allocated per socket for its whole life, so it is what an idle session costs.
const READ_BUFFER: usize = 4 << 10;
/// A create up to this many bytes is one frame.
const WHOLE_UP_TO: usize = 64 << 10;
/// One fragment of a larger create.
const FRAGMENT: usize = 16 << 10;
/// Upstreams that cannot join fragments get one frame up to this size, which the write buffer then holds.
const MAX_WHOLE: usize = 16 << 20;
/// Fragments that leave in one write to the kernel: 64 KiB of a large create, instead of a system call for each.
const WRITE_BATCH: usize = 64 << 10;
/// Frames written before reading has its turn again.
const FRAMES_PER_TURN: usize = 16;
/// A frame above this, in either direction, leaves a buffer worth giving back.
const SWOLLEN: usize = READ_BUFFER;
/// How long our close frame may go unanswered.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);

/// What happened on a socket. `Debug` shows no text (INV-9).
#[derive(PartialEq, Eq)]
pub enum SocketEvent {
    /// A whole message. Binary messages of UTF-8 count as text.
    Text(Utf8Bytes),
    /// The peer pinged; the answer is already on its way.
    Ping,
    /// The peer answered a ping of ours, or sent a pong of its own accord.
    Pong,
    /// The connection took this many more bytes of the create.
    Wrote(u64),
    /// The create's last byte was handed to the kernel.
    Flushed,
    /// The end. Every later call yields it again.
    Closed(Close),
}

impl fmt::Debug for SocketEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SocketEvent::Text(text) => write!(f, "Text({} bytes)", text.len()),
            SocketEvent::Ping => f.write_str("Ping"),
            SocketEvent::Pong => f.write_str("Pong"),
            SocketEvent::Wrote(bytes) => write!(f, "Wrote({bytes})"),
            SocketEvent::Flushed => f.write_str("Flushed"),
            SocketEvent::Closed(close) => write!(f, "Closed({close:?})"),
        }
    }
}

/// A WebSocket as its client sees it. The owner keeps polling [`Socket::event`], also while idle: that is what answers
/// pings and notices a close. Dropping it closes the connection at once.
pub struct Socket<S = reqwest::Upgraded> {
    link: Link<S>,
    ws: WebSocketContext,
    fragment: bool,
    create: Option<Create>,
    ping_due: bool,
    /// tungstenite may hold bytes that the link has not taken.
    unflushed: bool,
    /// A frame above [`SWOLLEN`] was written since the buffers were last given back.
    swollen: bool,
    /// How much of `link.written` was reported.
    reported: u64,
    /// Whoever did not yield the last event goes first, so that neither direction starves the other.
    read_first: bool,
    phase: Phase,
}

enum Phase {
    Open,
    /// Our close frame is out, or on its way.
    Closing(Pin<Box<Sleep>>),
    Closed(Close),
}

/// A create on its way out.
struct Create {
    rest: Bytes,
    piece: usize,
    opcode: Data,
    written: bool,
}

impl Create {
    fn new(text: Bytes, fragment: bool) -> Create {
        let whole = text.len() <= WHOLE_UP_TO || (!fragment && text.len() <= MAX_WHOLE);
        let piece = if whole { text.len() } else { FRAGMENT };
        Create {
            rest: text,
            piece,
            opcode: Data::Text,
            written: false,
        }
    }

    fn next_frame(&mut self) -> Option<Frame> {
        if self.written {
            return None;
        }
        let payload = self.rest.split_to(self.piece.min(self.rest.len()));
        self.written = self.rest.is_empty();
        let opcode = std::mem::replace(&mut self.opcode, Data::Continue);
        Some(Frame::message(payload, OpCode::Data(opcode), self.written))
    }
}

fn protocol() -> WebSocketContext {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BATCH)
        .max_write_buffer_size(MAX_WHOLE + WHOLE_UP_TO)
        .max_message_size(Some(MAX_INBOUND))
        .max_frame_size(Some(MAX_INBOUND));
    WebSocketContext::new(Role::Client, Some(config))
}

fn would_block(error: &tungstenite::Error) -> bool {
    matches!(error, tungstenite::Error::Io(error) if error.kind() == io::ErrorKind::WouldBlock)
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// A socket over a connection whose handshake is done. With `fragment`, a create above 64 KiB goes out in pieces.
    pub fn over(stream: S, fragment: bool) -> Socket<S> {
        Socket {
            link: Link::new(stream),
            ws: protocol(),
            fragment,
            create: None,
            ping_due: false,
            unflushed: false,
            swollen: false,
            reported: 0,
            read_first: false,
            phase: Phase::Open,
        }
    }

    /// Queues one text message, which must be UTF-8. It is written by [`Socket::event`], which says
    /// [`SocketEvent::Flushed`] at its end. Begun before the previous one is flushed, it ends the socket: frames of
    /// two messages must not mix.
    pub fn begin(&mut self, create: Bytes) {
        if self.create.is_some() {
            self.end(Close::unclean(CloseClass::Protocol));
        } else if matches!(self.phase, Phase::Open) {
            self.create = Some(Create::new(create, self.fragment));
        }
    }

    /// Queues a ping; it goes out between the frames of a create.
    pub fn ping(&mut self) {
        self.ping_due = matches!(self.phase, Phase::Open);
    }

    /// Starts the closing handshake; what is left of a create is dropped. [`Socket::event`] then yields
    /// [`SocketEvent::Closed`] within a second, whatever the peer does.
    pub fn close(&mut self, code: u16) {
        if !matches!(self.phase, Phase::Open) {
            return;
        }
        self.create = None;
        self.ping_due = false;
        self.unflushed = true;
        self.phase = Phase::Closing(Box::pin(tokio::time::sleep(CLOSE_PATIENCE)));
        let frame = CloseFrame {
            code: code.into(),
            reason: Utf8Bytes::default(),
        };
        match self.ws.close(&mut self.link, Some(frame)) {
            Ok(()) => {}
            Err(error) if would_block(&error) => {}
            Err(error) => {
                self.end(Close::by_error(&error));
            }
        }
    }

    /// Bytes read since the start. Any byte is a sign of life.
    pub fn inbound_bytes(&self) -> u64 {
        self.link.read
    }

    /// The next event. It writes and reads in turns, so that pings are answered while a create goes out. Cancel-safe:
    /// nothing is lost when the future is dropped.
    pub async fn event(&mut self) -> SocketEvent {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// The next event if there is one without waiting: to gather what came in one wake-up.
    pub fn try_event(&mut self) -> Option<SocketEvent> {
        match self.poll_event(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => Some(event),
            Poll::Pending => None,
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<SocketEvent> {
        if let Phase::Closed(close) = &self.phase {
            return Poll::Ready(SocketEvent::Closed(*close));
        }
        self.link.wake(cx.waker());
        for _direction in 0..2 {
            let event = if self.read_first {
                self.read()
            } else {
                self.write()
            };
            self.read_first = !self.read_first;
            if let Some(event) = event {
                return Poll::Ready(event);
            }
        }
        if let Some(kind) = self.link.write_fault {
            return Poll::Ready(self.end(Close::unclean(CloseClass::of_io(kind))));
        }
        if let Phase::Closing(patience) = &mut self.phase
            && patience.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(self.end(Close::unclean(CloseClass::Abnormal)));
        }
        self.give_back_buffers();
        Poll::Pending
    }

    /// Writes what is due until the connection takes no more, or reading should have its turn.
    fn write(&mut self) -> Option<SocketEvent> {
        for _frame in 0..FRAMES_PER_TURN {
            if !self.flush() {
                break;
            }
            if self.ping_due {
                self.ping_due = false;
                self.enqueue(Frame::ping(Bytes::new()));
                continue;
            }
            match self.create.as_mut().map(Create::next_frame) {
                Some(Some(frame)) => self.enqueue(frame),
                Some(None) => {
                    self.create = None;
                    return Some(SocketEvent::Flushed);
                }
                None => break,
            }
        }
        let progress = self.link.written - self.reported;
        self.reported = self.link.written;
        (progress > 0 && self.create.is_some()).then_some(SocketEvent::Wrote(progress))
    }

    /// Whether all that tungstenite held is with the kernel.
    fn flush(&mut self) -> bool {
        // It fails where the connection would block, or with the link's write fault; then the buffer keeps its bytes, so
        // that a create whose write failed is never flushed.
        self.unflushed = self.unflushed && self.ws.flush(&mut self.link).is_err();
        !self.unflushed
    }

    fn enqueue(&mut self, frame: Frame) {
        self.unflushed = true;
        self.swollen |= frame.payload().len() > SWOLLEN;
        // A frame that would block stays in tungstenite's buffer, which was empty before and holds any one frame.
        let _buffered = self.ws.write(&mut self.link, Message::Frame(frame));
    }

    fn read(&mut self) -> Option<SocketEvent> {
        match self.ws.read(&mut self.link) {
            Ok(Message::Text(text)) => Some(SocketEvent::Text(text)),
            Ok(Message::Binary(bytes)) => Some(match Utf8Bytes::try_from(bytes) {
                Ok(text) => SocketEvent::Text(text),
                Err(_) => self.end(Close::unclean(CloseClass::Protocol)),
            }),
            Ok(Message::Ping(_)) => {
                self.unflushed = true;
                self.flush();
                Some(SocketEvent::Ping)
            }
            Ok(Message::Pong(_)) => Some(SocketEvent::Pong),
            Ok(Message::Close(frame)) => {
                // The peer is owed an answer, and may have it if the connection takes it now.
                self.unflushed = true;
                self.flush();
                Some(self.end(Close::by_peer(frame.as_ref())))
            }
            Ok(Message::Frame(_)) => Some(self.end(Close::unclean(CloseClass::Protocol))),
            Err(error) if would_block(&error) => None,
            Err(error) => {
                let close = Close::by_error(&error);
                // After a failed write the stream merely ends: the write knows better why.
                let fault = self
                    .link
                    .write_fault
                    .filter(|_| close.class == CloseClass::Abnormal);
                Some(self.end(fault.map_or(close, |kind| Close::unclean(CloseClass::of_io(kind)))))
            }
        }
    }

    fn end(&mut self, close: Close) -> SocketEvent {
        self.create = None;
        self.phase = Phase::Closed(close);
        SocketEvent::Closed(close)
    }

    /// tungstenite's buffers stay as large as the largest frame was. Between messages there is nothing in them.
    fn give_back_buffers(&mut self) {
        let swollen = self.swollen || self.link.inbound.largest() > SWOLLEN as u64;
        let empty = self.create.is_none() && !self.unflushed && self.link.inbound.at_rest();
        if swollen && empty && matches!(self.phase, Phase::Open) {
            self.ws = protocol();
            self.swollen = false;
            self.link.inbound.forget_largest();
        }
    }
}

impl<S> fmt::Debug for Socket<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("read", &self.link.read)
            .field("written", &self.link.written)
            .finish()
    }
}
