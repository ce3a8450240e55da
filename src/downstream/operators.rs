//! The way to the admin API: by the right door, with the keys that are known here (ADM-1 to ADM-6).

use std::sync::Arc;

use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Request};
use hyper::body::Incoming;

use super::ids::CallIds;
use super::{Door, Edge, Entrance, Shared};
use crate::admin::{self, Admin, Declined, Keys};
use crate::refusal::{Kind, Refusal};
use crate::runtime::call::{Bridge, Reply};

impl<B> Shared<B> {
    /// The admin API, where there is one and this is its door.
    pub(super) fn admin_at(&self, entrance: Entrance) -> Option<&Arc<Admin>> {
        let here = entrance.door == Door::Operators || !self.admin_elsewhere;
        self.operators
            .as_ref()
            .filter(|_| here && self.rules.load().admin.is_configured())
    }
}

impl<B: Send + Sync> Keys for Shared<B> {
    fn is_admin(&self, headers: &HeaderMap) -> bool {
        self.rules.load().admin.is_in(headers)
    }

    fn is_token(&self, secret: &[u8]) -> bool {
        self.rules.load().admin.is(secret)
    }

    fn fingerprint(&self) -> Option<[u8; 32]> {
        self.rules.load().admin.fingerprint()
    }

    fn clients(&self) -> Vec<([u8; 16], Arc<str>)> {
        self.rules.load().tenants.known()
    }
}

impl<B: Bridge> Edge<B> {
    /// The same edge with an admin API. Before the first clone: later there is nothing to be changed.
    pub fn with_admin(mut self, admin: Arc<Admin>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.operators = Some(admin);
        }
        self
    }

    /// Whether this is a request for the admin API that is here.
    pub(super) fn is_for_operators(&self, entrance: Entrance, request: &Request<Incoming>) -> bool {
        admin::is_below(request.uri().path()) && self.0.admin_at(entrance).is_some()
    }

    /// Answers an operator.
    pub(super) async fn operate(
        &self,
        entrance: Entrance,
        request: Request<Incoming>,
        id: &CallIds,
    ) -> Result<Reply, Refusal> {
        let admin = self.0.admin_at(entrance).ok_or(Kind::NotFound)?.clone();
        match admin.answer(request, &*self.0, &self.0.attempts).await {
            Ok(reply) => Ok(reply),
            Err(Declined::Refused(refusal)) => Err(refusal),
            Err(Declined::Method(allow)) => {
                let mut reply = self.refused(&Kind::MethodNotAllowed.into(), id);
                if let Ok(allow) = HeaderValue::from_str(&allow) {
                    reply.headers_mut().insert(ALLOW, allow);
                }
                Ok(reply)
            }
        }
    }
}
