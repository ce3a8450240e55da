//! Request bodies: small, in time, and JSON.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;

use crate::refusal::{Kind, Refusal};

/// Longest body in bytes: a change is a handful of them.
pub const LONGEST: usize = 64 * 1024;
/// For a whole body.
const WITHIN: Duration = Duration::from_secs(10);

/// A request's body.
pub async fn read(body: Incoming) -> Result<Bytes, Refusal> {
    let whole = Limited::new(body, LONGEST).collect();
    match tokio::time::timeout(WITHIN, whole).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(fault)) if fault.is::<LengthLimitError>() => Err(Refusal::because(
            Kind::BodyTooLarge,
            "The body is larger than 64 KiB.",
        )),
        Ok(Err(_)) => Err(Refusal::because(
            Kind::InvalidBody,
            "The request body ended before it was complete.",
        )),
        Err(_elapsed) => Err(Kind::BodyTimeout.into()),
    }
}

/// A body as what it must be. `like` is a good one, for the refusal.
pub fn json<T: DeserializeOwned>(body: &[u8], like: &str) -> Result<T, Refusal> {
    // What is wrong with it is not told in the parser's words: they quote the request.
    serde_json::from_slice(body).map_err(|_| {
        let message = format!("The body must be a JSON object like {like}, with no other members.");
        Refusal::because(Kind::InvalidBody, message)
    })
}
