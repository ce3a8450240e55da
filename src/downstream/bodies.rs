//! Request bodies: whole, decoded, and within every bound (EDGE-40 to EDGE-47).

mod coding;

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body::Body;
use http_body_util::BodyExt;

use self::coding::Coding;
use crate::refusal::{Kind, Refusal};
use crate::runtime::budget::{Budget, Held};

/// Most that is allocated on the word of a Content-Length; beyond it the buffer grows with what really comes.
const TRUSTED: usize = 1024 * 1024;

/// Reads bodies under one cap and one budget.
pub(super) struct Bodies {
    max: usize,
    stall: Duration,
    budget: Budget,
}

impl Bodies {
    /// `max` is in bytes, of one body as it came and decoded; `stall` bounds the wait for each next byte.
    pub(super) fn new(max: usize, stall: Duration, budget: Budget) -> Self {
        Bodies { max, stall, budget }
    }

    pub(super) fn stall(&self) -> Duration {
        self.stall
    }

    /// The whole body, decoded, and its bytes in the budget. Takes `Content-Encoding` out of `headers`, since it no
    /// longer describes the body.
    pub(super) async fn read<B>(&self, headers: &mut HeaderMap, body: B) -> Result<(Bytes, Held), Refusal>
    where
        B: Body<Data = Bytes, Error: Error + 'static> + Unpin,
    {
        let codings = Coding::all(headers)?;
        headers.remove(CONTENT_ENCODING);
        let declared = declared(headers);
        if declared.is_some_and(|length| length > self.max) {
            return Err(Kind::BodyTooLarge.into());
        }
        let (mut body, mut held) = self.collect(body, declared).await?;
        let codings = if codings.is_empty() && coding::has_zstd_magic(&body) {
            vec![Coding::Zstd]
        } else {
            codings
        };
        for coding in codings.into_iter().rev() {
            let mut decoded = self.budget.nothing();
            body = coding.decode(&body, self.max, &mut decoded).await?;
            held = decoded;
        }
        Ok((body, held))
    }

    /// The body as it came.
    async fn collect<B>(&self, mut body: B, declared: Option<usize>) -> Result<(Bytes, Held), Refusal>
    where
        B: Body<Data = Bytes, Error: Error + 'static> + Unpin,
    {
        let mut held = self.budget.nothing();
        let mut whole = BytesMut::new();
        while let Some(frame) = tokio::time::timeout(self.stall, body.frame())
            .await
            .map_err(|_| Kind::BodyTimeout)?
        {
            let Ok(data) = frame.map_err(|fault| broken(&fault))?.into_data() else {
                continue;
            };
            if whole.len() + data.len() > self.max {
                return Err(Kind::BodyTooLarge.into());
            }
            if !held.grow(data.len()) {
                return Err(Kind::BodyBudget.into());
            }
            if whole.is_empty() {
                if body.is_end_stream() {
                    return Ok((data, held));
                }
                whole.reserve(declared.unwrap_or(0).clamp(data.len(), TRUSTED.max(data.len())));
            }
            whole.extend_from_slice(&data);
        }
        Ok((whole.freeze(), held))
    }
}

/// Why the end never came: what was sent is no body, or, as any other fault of the transport says, nothing more was sent.
fn broken(fault: &(dyn Error + 'static)) -> Refusal {
    let mut source = Some(fault);
    while let Some(fault) = source {
        let kind = fault.downcast_ref().map(io::Error::kind);
        if let Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) = kind {
            return Refusal::because(Kind::InvalidBody, "The chunks of the request body are not valid.");
        }
        source = fault.source();
    }
    Kind::BodyCut.into()
}

/// The Content-Length, where there is one that can be read; hyper has checked that it is true.
fn declared(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
