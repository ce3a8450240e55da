//! The reading side of a connection: request heads and bodies, fast or slow.

use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncReadExt;
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::sleep;

use super::behaviour::Reading;
use super::origin::Head;

/// The largest request head.
const MAX_HEAD: usize = 256 * 1024;

/// The largest body; a megabyte more than the largest that the bridge takes.
const MAX_BODY: usize = 129 << 20;

/// The tempo of slow reading.
const TICK: Duration = Duration::from_millis(50);

/// What the kernel may hold while reading is slow: a few of loopback's segments of 64 KiB, so that the window opens by
/// whole ones (with less, the sender waits for its timer and the rate is not reached), and no more, so that the sender
/// feels the rate.
const WINDOW: usize = 192 * 1024;

/// The reading side.
#[derive(Debug)]
pub struct Source {
    half: OwnedReadHalf,
    /// What has been read and not been used.
    pub buffer: BytesMut,
    /// How it is read; the delay is used up at the next read.
    pub reading: Option<Reading>,
    /// The kernel's buffer is [`WINDOW`].
    narrow: bool,
}

impl Source {
    /// A new one.
    pub fn new(half: OwnedReadHalf) -> Source {
        Source {
            half,
            buffer: BytesMut::new(),
            reading: None,
            narrow: false,
        }
    }

    /// Reads some more; 0 at the end of the stream.
    ///
    /// # Errors
    /// The client reset the connection.
    pub async fn read(&mut self) -> io::Result<usize> {
        let Some(reading) = &mut self.reading else {
            return self.half.read_buf(&mut self.buffer).await;
        };
        sleep(std::mem::take(&mut reading.delay)).await;
        let Some(rate) = reading.rate else {
            return self.half.read_buf(&mut self.buffer).await;
        };
        if !std::mem::replace(&mut self.narrow, true) {
            // Where the kernel does not take it, only the rate is less exact.
            _ = socket2::SockRef::from(self.half.as_ref()).set_recv_buffer_size(WINDOW);
        }
        sleep(TICK).await;
        let most = (rate / 20).max(1);
        // Without room a read takes as little as 64 bytes, and the rate would be a fraction of what was asked for.
        self.buffer.reserve(usize::try_from(most).unwrap_or(usize::MAX));
        (&mut self.half).take(most).read_buf(&mut self.buffer).await
    }

    /// Waits until the client is gone; what it sends meanwhile is kept up to a bound, then left unread.
    pub async fn until_gone(&mut self) {
        while self.buffer.len() < MAX_HEAD {
            match self.half.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        std::future::pending().await
    }

    /// Reads and throws away until the stream ends.
    pub async fn drain(&mut self) {
        loop {
            self.buffer.clear();
            match self.half.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// The next request head; `None` when the stream ended between two requests.
    ///
    /// # Errors
    /// `InvalidData` for what is no HTTP, else the client is gone.
    pub async fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some((head, length)) = parse(&self.buffer)? {
                self.buffer.advance(length);
                return Ok(Some(head));
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(invalid("the request head is too large"));
            }
            if self.read().await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    /// The body that belongs to `head`.
    ///
    /// # Errors
    /// `InvalidData` for a wrong length or chunk, else the client is gone.
    pub async fn body(&mut self, head: &Head) -> io::Result<Bytes> {
        if head.has_token("transfer-encoding", "chunked") {
            return self.chunks().await;
        }
        let length = match head.header("content-length") {
            None => 0,
            Some(length) => length
                .trim()
                .parse()
                .map_err(|_| invalid("content-length is no number"))?,
        };
        self.exactly(length).await
    }

    async fn chunks(&mut self) -> io::Result<Bytes> {
        let mut body = BytesMut::new();
        loop {
            let line = self.line().await?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let length = usize::from_str_radix(digits, 16).map_err(|_| invalid("wrong chunk length"))?;
            if length == 0 {
                while !self.line().await?.is_empty() {}
                return Ok(body.freeze());
            }
            if body.len() + length > MAX_BODY {
                return Err(invalid("the body is too large"));
            }
            body.extend_from_slice(&self.exactly(length).await?);
            self.line().await?;
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.buffer.split_to(end);
                self.buffer.advance(2);
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(invalid("a line is too long"));
            }
            self.more().await?;
        }
    }

    async fn exactly(&mut self, length: usize) -> io::Result<Bytes> {
        if length > MAX_BODY {
            return Err(invalid("the body is too large"));
        }
        self.buffer.reserve(length.saturating_sub(self.buffer.len()));
        while self.buffer.len() < length {
            self.more().await?;
        }
        Ok(self.buffer.split_to(length).freeze())
    }

    async fn more(&mut self) -> io::Result<()> {
        if self.read().await? == 0 {
            Err(io::ErrorKind::UnexpectedEof.into())
        } else {
            Ok(())
        }
    }
}

fn parse(buffer: &[u8]) -> io::Result<Option<(Head, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 256];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(buffer) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(invalid(&error.to_string())),
    };
    let target = request.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let header = |header: &httparse::Header| {
        (
            header.name.to_ascii_lowercase(),
            String::from_utf8_lossy(header.value).into_owned(),
        )
    };
    let head = Head {
        method: request.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: request.headers.iter().map(header).collect(),
    };
    Ok(Some((head, length)))
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
