//! A create: read, checked, handed on.

use hyper::body::Incoming;

use super::Edge;
use super::bodies::Bodies;
use crate::refusal::{Kind, Refusal};
use crate::runtime::call::{Bridge, Call, Caller, Reply};
use crate::wire::request::{BodyFault, read_create};

impl<B: Bridge> Edge<B> {
    /// Runs a turn. Nothing reaches the bridge before the whole body is here and good (EDGE-50).
    pub(super) async fn create(
        &self,
        bodies: &Bodies,
        mut caller: Caller,
        body: Incoming,
    ) -> Result<Reply, Refusal> {
        let (body, held) = bodies.read(&mut caller.headers, body).await?;
        let create = read_create(body).map_err(invalid)?;
        Ok(self.0.bridge.create(Call { caller, create, held }).await)
    }
}

/// The fault as the client reads it: the field and the place, never the content.
fn invalid(fault: BodyFault) -> Refusal {
    let refusal = Refusal::because(Kind::InvalidBody, fault.to_string());
    match fault.param() {
        Some(param) => refusal.about(param.to_owned()),
        None => refusal,
    }
}
