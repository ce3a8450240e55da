//! Reading server-sent events from a stream that is cut anywhere.

use std::borrow::Cow;
use std::fmt;

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr2;
use thiserror::Error;

/// One dispatched event.
#[derive(PartialEq, Eq)]
pub struct SseEvent {
    /// The `event:` field, where there was one.
    pub event: Option<String>,
    /// The `data:` lines, joined by LF. Always valid UTF-8: bad bytes became U+FFFD, as the standard says, since an SDK
    /// raises on them.
    pub data: Bytes,
}

impl SseEvent {
    /// Whether this is the `[DONE]` of older APIs, which ends nothing and means nothing here.
    pub fn is_done_marker(&self) -> bool {
        self.data.trim_ascii() == b"[DONE]"
    }
}

/// Shows a size, never the data (INV-9).
impl fmt::Debug for SseEvent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SseEvent")
            .field("bytes", &self.data.len())
            .finish_non_exhaustive()
    }
}

/// Why a stream cannot be read on.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SseFault {
    /// A line, or the data of one event, beyond the cap.
    #[error("an event of the stream is longer than {limit} bytes")]
    TooLong {
        /// The cap, in bytes.
        limit: usize,
    },
}

/// A push parser: [`Decoder::feed`] bytes, then take events until there are none [WIRE-18].
///
/// LF, CRLF and bare CR end a line; a BOM at the start, comments and unknown fields are dropped; so is a last block
/// without its blank line. Holds one unfinished event, at most about twice `max_line` bytes [WIRE-19].
pub struct Decoder {
    max_line: usize,
    buffer: BytesMut,
    /// How much of `buffer` is known to hold no line end.
    scanned: usize,
    /// The last line ended in CR: an LF right after it belongs to that line end.
    after_cr: bool,
    /// Nothing but a BOM may have come yet.
    at_start: bool,
    event: Option<String>,
    data: Data,
    /// The cap was passed: where the next line starts is not known any more.
    broken: bool,
}

/// The data lines of the event under way. One line, the usual case, is never copied.
#[derive(Default)]
enum Data {
    #[default]
    None,
    One(Bytes),
    More(BytesMut),
}

const BOM: &[u8] = b"\xEF\xBB\xBF";

impl Decoder {
    /// `max_line`: the longest line, and the longest data of one event, in bytes.
    pub fn new(max_line: usize) -> Self {
        Self {
            max_line,
            buffer: BytesMut::new(),
            scanned: 0,
            after_cr: false,
            at_start: true,
            event: None,
            data: Data::None,
            broken: false,
        }
    }

    /// Appends what has been read from the stream.
    pub fn feed(&mut self, chunk: &[u8]) {
        if !self.broken {
            self.buffer.extend_from_slice(chunk);
        }
    }

    /// The next whole event, `None` until more has been fed.
    ///
    /// # Errors
    /// When the cap is passed, and ever after: the stream cannot be read on.
    pub fn next_event(&mut self) -> Result<Option<SseEvent>, SseFault> {
        if self.broken {
            return Err(self.too_long());
        }
        while let Some(line) = self.next_line()? {
            if line.is_empty() {
                if let Some(event) = self.dispatch() {
                    return Ok(Some(event));
                }
            } else {
                self.take_field(line)?;
            }
        }
        Ok(None)
    }

    fn next_line(&mut self) -> Result<Option<Bytes>, SseFault> {
        if self.after_cr && !self.buffer.is_empty() {
            self.after_cr = false;
            if self.buffer[0] == b'\n' {
                self.buffer.advance(1);
            }
        }
        if self.at_start {
            if self.buffer.len() < BOM.len() && BOM.starts_with(&self.buffer) {
                return Ok(None); // nothing yet, or what may become a BOM
            }
            self.at_start = false;
            if self.buffer.starts_with(BOM) {
                self.buffer.advance(BOM.len());
            }
        }
        let Some(found) = memchr2(b'\n', b'\r', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            return if self.scanned > self.max_line {
                Err(self.too_long())
            } else {
                Ok(None)
            };
        };
        let end = self.scanned + found;
        if end > self.max_line {
            return Err(self.too_long());
        }
        self.after_cr = self.buffer[end] == b'\r';
        self.scanned = 0;
        let line = self.buffer.split_to(end).freeze();
        self.buffer.advance(1);
        Ok(Some(line))
    }

    fn take_field(&mut self, line: Bytes) -> Result<(), SseFault> {
        let colon = memchr::memchr(b':', &line);
        let name = &line[..colon.unwrap_or(line.len())];
        let mut start = colon.map_or(line.len(), |colon| colon + 1);
        if line.get(start) == Some(&b' ') {
            start += 1;
        }
        match name {
            b"data" => self.add_data(line.slice(start..))?,
            b"event" => self.event = Some(String::from_utf8_lossy(&line[start..]).into_owned()),
            _ => {} // a comment, `id`, `retry`, or a field of the future
        }
        Ok(())
    }

    fn add_data(&mut self, line: Bytes) -> Result<(), SseFault> {
        let mut more = match std::mem::take(&mut self.data) {
            Data::None => {
                self.data = Data::One(line);
                return Ok(());
            }
            Data::One(first) => BytesMut::from(first),
            Data::More(more) => more,
        };
        if more.len() + 1 + line.len() > self.max_line {
            return Err(self.too_long());
        }
        more.extend_from_slice(b"\n");
        more.extend_from_slice(&line);
        self.data = Data::More(more);
        Ok(())
    }

    /// An event without data is none, whatever its name.
    fn dispatch(&mut self) -> Option<SseEvent> {
        let event = self.event.take().filter(|event| !event.is_empty());
        let data = match std::mem::take(&mut self.data) {
            Data::None => return None,
            Data::One(line) => line,
            Data::More(lines) => lines.freeze(),
        };
        let data = match String::from_utf8_lossy(&data) {
            Cow::Borrowed(_) => data,
            Cow::Owned(repaired) => Bytes::from(repaired),
        };
        Some(SseEvent { event, data })
    }

    fn too_long(&mut self) -> SseFault {
        self.broken = true;
        self.buffer = BytesMut::new();
        self.data = Data::None;
        SseFault::TooLong { limit: self.max_line }
    }
}

#[cfg(test)]
mod tests;
