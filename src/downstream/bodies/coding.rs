//! Content codings of request bodies.

use async_compression::tokio::bufread::{DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::refusal::{Kind, Refusal};
use crate::runtime::budget::Held;

/// Most codings over each other. Nobody needs more than one; two are met where a proxy adds its own.
const MOST: usize = 2;
/// 2^23 bytes, 8 MiB: what RFC 8878 asks of every decoder. A frame may demand up to 2 GiB.
const ZSTD_WINDOW_LOG: u32 = 23;
/// How every zstd frame begins, and no JSON.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Decoded bytes between two looks at the bounds, and between two chances for other tasks.
const STEP: usize = 64 * 1024;

/// One content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Zstd,
    Gzip,
    Deflate,
}

/// Whether a body is zstd that says so only by itself, as Codex sends it at times.
pub(super) fn has_zstd_magic(body: &[u8]) -> bool {
    body.starts_with(&ZSTD_MAGIC)
}

impl Coding {
    /// The codings of `headers` in the order they were applied.
    pub(super) fn all(headers: &HeaderMap) -> Result<Vec<Coding>, Refusal> {
        let mut codings = Vec::new();
        for value in headers.get_all(CONTENT_ENCODING) {
            let value = value.to_str().map_err(|_| Kind::UnsupportedEncoding)?;
            for name in value.split(',').map(str::trim) {
                match name.to_ascii_lowercase().as_str() {
                    "" | "identity" => {}
                    "zstd" => codings.push(Coding::Zstd),
                    "gzip" | "x-gzip" => codings.push(Coding::Gzip),
                    "deflate" => codings.push(Coding::Deflate),
                    _ => return Err(Kind::UnsupportedEncoding.into()),
                }
            }
        }
        if codings.len() > MOST {
            Err(Kind::UnsupportedEncoding.into())
        } else {
            Ok(codings)
        }
    }

    /// Undoes the coding. At most `max` bytes come out, each counted in `held` before the next are made.
    pub(super) async fn decode(self, body: &[u8], max: usize, held: &mut Held) -> Result<Bytes, Refusal> {
        match self {
            Coding::Zstd => {
                let mut decoder =
                    ZstdDecoder::with_params(body, &[DParameter::window_log_max(ZSTD_WINDOW_LOG)]);
                decoder.multiple_members(true);
                drain(decoder, max, held).await
            }
            Coding::Gzip => {
                let mut decoder = GzipDecoder::new(body);
                decoder.multiple_members(true);
                drain(decoder, max, held).await
            }
            // RFC 9110 means zlib, and some clients send the raw stream inside it.
            Coding::Deflate if is_zlib(body) => drain(ZlibDecoder::new(body), max, held).await,
            Coding::Deflate => drain(DeflateDecoder::new(body), max, held).await,
        }
    }
}

/// A zlib header (RFC 1950): method 8, a window of at most 32 KiB, and a check sum over both bytes.
fn is_zlib(body: &[u8]) -> bool {
    matches!(body, [method, flags, ..]
        if method & 0x0f == 8 && method >> 4 <= 7 && (u16::from(*method) * 256 + u16::from(*flags)) % 31 == 0)
}

async fn drain(mut decoder: impl AsyncRead + Unpin, max: usize, held: &mut Held) -> Result<Bytes, Refusal> {
    let mut out = BytesMut::new();
    loop {
        out.reserve(STEP);
        let count = decoder.read_buf(&mut (&mut out).limit(STEP)).await.map_err(|_| {
            Refusal::because(
                Kind::InvalidBody,
                "The compressed request body is truncated, corrupt, or zstd with a window above 8 MiB.",
            )
        })?;
        if count == 0 {
            return Ok(out.freeze());
        }
        if out.len() > max {
            return Err(Kind::BodyTooLarge.into());
        }
        if !held.grow(count) {
            return Err(Kind::BodyBudget.into());
        }
        // The input is in memory, so that nothing above ever waits: without this a large body would keep the thread.
        tokio::task::consume_budget().await;
    }
}
