//! WebSocket frames, one by one: a fault may need them fragmented, joined with others in one write, or cut off,
//! and the ledger counts the fragments of what comes in. Header codec by tungstenite.

use std::io::Cursor;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame, FrameHeader};

use super::behaviour::Fragments;

/// What comes in.
#[derive(Debug, PartialEq, Eq)]
pub enum Inbound {
    /// A whole message.
    Message {
        /// Its text.
        text: Bytes,
        /// In how many frames it came.
        fragments: u32,
    },
    /// A ping to answer.
    Ping(Bytes),
    /// The answer to a ping.
    Pong,
    /// A close frame with its code.
    Close(Option<u16>),
}

/// A breach of the protocol, or of a limit: the close code that it earns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breach {
    /// 1009
    TooBig,
    /// 1002
    Protocol,
}

impl Breach {
    /// The close code.
    pub fn code(self) -> u16 {
        match self {
            Breach::TooBig => 1009,
            Breach::Protocol => 1002,
        }
    }
}

/// Puts frames together.
#[derive(Debug)]
pub struct Assembler {
    limit: usize,
    message: BytesMut,
    fragments: u32,
}

impl Assembler {
    /// Messages above `limit` bytes are a breach, known as soon as their header is.
    pub fn new(limit: usize) -> Assembler {
        Assembler {
            limit,
            message: BytesMut::new(),
            fragments: 0,
        }
    }

    /// The next thing in `buffer`, if all of it is there.
    ///
    /// # Errors
    /// [`Breach`]: the connection cannot go on.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Inbound>, Breach> {
        loop {
            let mut cursor = Cursor::new(&buffer[..]);
            let Some((header, length)) = FrameHeader::parse(&mut cursor).map_err(|_| Breach::Protocol)?
            else {
                return Ok(None);
            };
            let start = usize::try_from(cursor.position()).map_err(|_| Breach::Protocol)?;
            let length = usize::try_from(length).map_err(|_| Breach::TooBig)?;
            if self.message.len().saturating_add(length) > self.limit {
                return Err(Breach::TooBig);
            }
            if buffer.len() < start + length {
                buffer.reserve(start + length - buffer.len());
                return Ok(None);
            }
            // Nothing was negotiated that would use the reserved bits, and clients must mask.
            let (Some(mask), false) = (header.mask, header.rsv1 || header.rsv2 || header.rsv3) else {
                return Err(Breach::Protocol);
            };
            buffer.advance(start);
            let mut payload = buffer.split_to(length);
            for (at, byte) in payload.iter_mut().enumerate() {
                *byte ^= mask[at % 4];
            }
            if let Some(inbound) = self.take(&header, payload)? {
                return Ok(Some(inbound));
            }
        }
    }

    fn take(&mut self, header: &FrameHeader, payload: BytesMut) -> Result<Option<Inbound>, Breach> {
        match header.opcode {
            OpCode::Control(Control::Ping) => Ok(Some(Inbound::Ping(payload.freeze()))),
            OpCode::Control(Control::Pong) => Ok(Some(Inbound::Pong)),
            OpCode::Control(_) => {
                let code = payload
                    .get(..2)
                    .map(|code| u16::from_be_bytes([code[0], code[1]]));
                Ok(Some(Inbound::Close(code)))
            }
            OpCode::Data(data) => {
                if (data == Data::Continue) != (self.fragments > 0) {
                    return Err(Breach::Protocol);
                }
                self.fragments += 1;
                if self.message.is_empty() {
                    self.message = payload;
                } else {
                    self.message.unsplit(payload);
                }
                if !header.is_final {
                    return Ok(None);
                }
                let fragments = std::mem::take(&mut self.fragments);
                Ok(Some(Inbound::Message {
                    text: std::mem::take(&mut self.message).freeze(),
                    fragments,
                }))
            }
        }
    }
}

/// Writes a text message, in several frames if asked.
pub fn text(out: &mut BytesMut, json: &str, fragments: Option<Fragments>) {
    let Some(Fragments { size, pings }) = fragments else {
        write(
            out,
            Frame::message(
                Bytes::copy_from_slice(json.as_bytes()),
                OpCode::Data(Data::Text),
                true,
            ),
        );
        return;
    };
    let size = usize::try_from(size).unwrap_or(usize::MAX).max(1);
    let count = json.len().div_ceil(size).max(1);
    for (number, piece) in json.as_bytes().chunks(size).enumerate() {
        let opcode = OpCode::Data(if number == 0 { Data::Text } else { Data::Continue });
        let last = number + 1 == count;
        write(out, Frame::message(Bytes::copy_from_slice(piece), opcode, last));
        if pings && !last {
            ping(out);
        }
    }
}

/// Writes a ping.
pub fn ping(out: &mut BytesMut) {
    write(out, Frame::ping(Bytes::from_static(b"sim")));
}

/// Writes a pong.
pub fn pong(out: &mut BytesMut, payload: Bytes) {
    write(out, Frame::pong(payload));
}

/// Writes a close frame.
pub fn close(out: &mut BytesMut, code: u16, reason: &str) {
    // 1005 and 1006 must not be sent: a frame without a code stands for them.
    let frame = CloseFrame {
        code: code.into(),
        reason: reason.into(),
    };
    write(
        out,
        Frame::close(Some(frame).filter(|_| !matches!(code, 1005 | 1006))),
    );
}

fn write(out: &mut BytesMut, frame: Frame) {
    // Writing to memory cannot fail.
    _ = frame.format(&mut out.writer());
}

#[cfg(test)]
mod tests;
