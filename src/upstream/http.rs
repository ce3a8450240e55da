//! Requests over HTTP to one account: the answer's head, then its body as it comes.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyDataStream, BodyExt};

use super::fault::{Broken, PostFault, Unreached};

/// An upstream's answer: status and headers as they came, redirects and errors included.
pub type Answer = http::Response<AnswerBody>;

/// The body of an [`Answer`]. Dropping it before its end closes the connection.
pub struct AnswerBody(reqwest::Body);

impl AnswerBody {
    /// The next piece, none at the end. Cancel-safe.
    ///
    /// Fails where the connection broke before the body was whole, and yields nothing after that.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Broken> {
        while let Some(frame) = self.frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        Pin::new(&mut self.get_mut().0)
            .poll_frame(cx)
            .map_err(|error| Broken::of(&error))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerBody")
    }
}

/// Sends `request` and waits for the head of its answer. `proxied`: through a proxy.
pub(super) async fn send(request: reqwest::RequestBuilder, proxied: bool) -> Result<Answer, PostFault> {
    let response = request
        .send()
        .await
        .map_err(|error| PostFault::of(&error, proxied))?;
    if proxied && response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        // A plain http upstream's: the proxy answers in its place, and has passed nothing on.
        return Err(Unreached::Proxy.into());
    }
    Ok(http::Response::from(response).map(AnswerBody))
}

/// Gives `request` a body that is passed on as it comes, with its length where that is known. One that is empty from
/// the start is none at all, so that a GET stays a GET without a body.
pub(super) fn pass_on<B>(request: reqwest::RequestBuilder, body: B) -> reqwest::RequestBuilder
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if body.is_end_stream() {
        return request;
    }
    let request = match body.size_hint().exact() {
        Some(length) => request.header(CONTENT_LENGTH, length),
        None => request,
    };
    request.body(reqwest::Body::wrap_stream(BodyDataStream::new(body)))
}
