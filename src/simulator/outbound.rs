//! The writing side of a connection: bytes are collected, and leave together in one write when flushed.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::time::sleep;

/// Beyond so many bytes a burst leaves in pieces; small enough to stay one write for a terminal and a close frame.
const FLUSH_AT: usize = 64 * 1024;

/// The tempo of a slow write.
const TICK: Duration = Duration::from_millis(50);

/// The writing side.
#[derive(Debug)]
pub struct Outbound {
    half: OwnedWriteHalf,
    /// What leaves with the next flush.
    pub buffer: BytesMut,
    /// Bytes per second; `None` is as fast as possible.
    pub rate: Option<u64>,
    /// Once true, nothing is written any more.
    pub mute: bool,
}

impl Outbound {
    /// An empty one.
    pub fn new(half: OwnedWriteHalf) -> Outbound {
        Outbound {
            half,
            buffer: BytesMut::new(),
            rate: None,
            mute: false,
        }
    }

    /// The socket itself, for its options.
    pub fn socket(&self) -> &TcpStream {
        self.half.as_ref()
    }

    /// Flushes if much has been collected.
    ///
    /// # Errors
    /// The client is gone.
    pub async fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() > FLUSH_AT {
            self.flush().await
        } else {
            Ok(())
        }
    }

    /// Sends all that was collected.
    ///
    /// # Errors
    /// The client is gone.
    pub async fn flush(&mut self) -> io::Result<()> {
        if self.mute {
            self.buffer.clear();
            return Ok(());
        }
        let Some(rate) = self.rate else {
            return self.half.write_all_buf(&mut self.buffer).await;
        };
        let piece = usize::try_from(rate / 20).unwrap_or(usize::MAX).max(1);
        while !self.buffer.is_empty() {
            let mut piece = self.buffer.split_to(piece.min(self.buffer.len()));
            self.half.write_all_buf(&mut piece).await?;
            sleep(TICK).await;
        }
        Ok(())
    }

    /// Ends the stream with FIN.
    pub async fn finish(&mut self) {
        // It fails only where the client has gone already.
        _ = self.half.shutdown().await;
    }

    /// Lets the stream end with RST when it is dropped.
    pub fn reset(&self) {
        // It fails only where the client has gone already.
        _ = self.socket().set_zero_linger();
    }
}
