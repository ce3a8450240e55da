//! A request that names a response in its path.

use http::{Method, Uri};
use hyper::body::Incoming;

use super::Edge;
use super::bodies::Bodies;
use super::routes::Tail;
use crate::refusal::Refusal;
use crate::runtime::call::{Bridge, Caller, Lookup, Reply};

impl<B: Bridge> Edge<B> {
    /// Hands the request on to the response's owner. Its body, mostly empty, is held for the call's whole time.
    pub(super) async fn lookup(
        &self,
        bodies: &Bodies,
        mut caller: Caller,
        (method, uri): (Method, &Uri),
        (id, tail): (String, Tail),
        body: Incoming,
    ) -> Result<Reply, Refusal> {
        let (body, _held) = bodies.read(&mut caller.headers, body).await?;
        let query = uri.query().map(str::to_owned);
        let lookup = Lookup {
            caller,
            method,
            response_id: id,
            tail: tail.as_str().to_owned(),
            query,
            body,
        };
        Ok(self.0.bridge.lookup(lookup).await)
    }
}
