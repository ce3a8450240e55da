//! What operators look at: liveness, readiness, metrics.

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::auth::AdminToken;
use super::ids::CallIds;
use super::routes::{Look, Methods};
use super::{Door, Edge, Entrance, reply};
use crate::refusal::{Kind, Refusal};
use crate::runtime;
use crate::runtime::call::{Bridge, Reply};

const JSON: &str = "application/json";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

impl<B: Bridge> Edge<B> {
    /// Answers an operator or a probe; needs no tenant.
    pub(super) fn look(
        &self,
        admin: &AdminToken,
        entrance: Entrance,
        look: Look,
        (method, headers): (&Method, &HeaderMap),
        id: &CallIds,
    ) -> Result<Reply, Refusal> {
        if !Methods::LOOK.take(method) {
            return Ok(self.not_allowed(Methods::LOOK, id));
        }
        match look {
            Look::Live if !self.0.bridge.live() => Ok(unavailable("{\"status\":\"stuck\"}")),
            Look::Live => Ok(reply::text(StatusCode::OK, JSON, "{\"status\":\"live\"}")),
            Look::Ready => Ok(self.ready()),
            Look::Metrics => self.metrics(admin, entrance, headers),
        }
    }

    /// Whether new requests are welcome. Why not is for the log: this answer needs no credential.
    fn ready(&self) -> Reply {
        if self.0.bridge.ready() {
            return reply::text(StatusCode::OK, JSON, "{\"status\":\"ready\"}");
        }
        unavailable("{\"status\":\"not ready\"}")
    }

    /// The metrics, to whom they may be shown (EDGE-17): where a token is configured, whoever has it, on loopback too,
    /// since a proxy in front brings everybody there; where none is, anybody on a loopback listener, which one
    /// of the operators' own then is, unless the token has just been taken away. With a listener of the operators' own there
    /// is nothing on the clients'.
    fn metrics(&self, admin: &AdminToken, entrance: Entrance, headers: &HeaderMap) -> Result<Reply, Refusal> {
        if entrance.door == Door::Clients && self.0.admin_elsewhere {
            return Err(Kind::NotFound.into());
        }
        let open = entrance.listen.ip().to_canonical().is_loopback();
        match admin.is_configured() {
            true if !admin.is_in(headers) => Err(self.0.attempts.refusal(headers, runtime::now()).into()),
            false if !open => Err(Kind::NotFound.into()),
            _ => Ok(reply::text(StatusCode::OK, PROMETHEUS, self.0.bridge.metrics())),
        }
    }
}

fn unavailable(body: &'static str) -> Reply {
    let mut reply = reply::text(StatusCode::SERVICE_UNAVAILABLE, JSON, body);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(1));
    reply
}
