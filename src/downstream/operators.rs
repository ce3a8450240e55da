//! The way to the admin API: by the right door, with the keys that are known here (ADM-1 to ADM-6).

use std::sync::Arc;

use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Request};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

use super::ids::CallIds;
use super::routes::Look;
use super::{Door, Edge, Entrance, Rules, Shared};
use crate::admin::ui::{Ask, Judged, Token, Ui};
use crate::admin::{self, Admin, Declined, Keys};
use crate::refusal::{Kind, Refusal};
use crate::runtime;
use crate::runtime::call::{Bridge, Reply};

impl<B> Shared<B> {
    /// The admin API, where there is one and this is its door.
    fn admin_at(&self, rules: &Rules, entrance: Entrance) -> Option<&Arc<Admin>> {
        let here = entrance.door == Door::Operators || !self.admin_elsewhere;
        self.operators
            .as_ref()
            .filter(|_| here && rules.admin.is_configured())
    }
}

impl Keys for Rules {
    fn is_admin(&self, headers: &HeaderMap) -> bool {
        self.admin.is_in(headers)
    }

    fn fingerprint(&self) -> Option<[u8; 32]> {
        self.admin.fingerprint()
    }

    fn revoked(&self) -> CancellationToken {
        self.admin.revoked()
    }

    fn clients(&self) -> Vec<([u8; 16], Arc<str>)> {
        self.tenants.known()
    }
}

impl<B: Send + Sync> Token for Shared<B> {
    fn judge(&self, secret: &str) -> Judged {
        if self.rules.load().admin.is(secret.as_bytes()) {
            Judged::Right
        } else if self.attempts.wrong(runtime::now()) {
            Judged::Wrong
        } else {
            Judged::TooMany
        }
    }

    fn fingerprint(&self) -> Option<[u8; 32]> {
        self.rules.load().admin.fingerprint()
    }

    fn revoked(&self) -> CancellationToken {
        self.rules.load().admin.revoked()
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

    /// The same edge with a status page. As [`Self::with_admin`], and only together with it.
    pub fn with_page(mut self, page: Arc<Ui>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.page = Some(page);
        }
        self
    }

    /// Answers an operator's browser.
    async fn show(&self, page: &Arc<Ui>, request: Request<Incoming>, id: &CallIds) -> Reply {
        let (head, body) = request.into_parts();
        let ask = Ask {
            method: &head.method,
            path: head.uri.path(),
            query: head.uri.query(),
            headers: &head.headers,
            token: self.0.clone(),
        };
        let answer = page.answer(ask, body).await;
        if let Some(kind) = answer.refused {
            self.refused(&kind.into(), id);
        }
        answer.reply
    }

    /// The admin API, where this is a request for the one that is here.
    pub(super) fn asked_by_operator(
        &self,
        rules: &Rules,
        entrance: Entrance,
        request: &Request<Incoming>,
    ) -> Option<&Arc<Admin>> {
        let asked = admin::is_below(request.uri().path());
        self.0.admin_at(rules, entrance).filter(|_| asked)
    }

    /// Whether this is for operators and their probes, though not for the admin API.
    pub(super) fn is_looked(&self, entrance: Entrance, request: &Request<Incoming>) -> bool {
        entrance.door == Door::Operators || Look::at(request.uri().path()).is_some()
    }

    /// Answers an operator.
    pub(super) async fn operate(
        &self,
        admin: &Arc<Admin>,
        rules: &Rules,
        request: Request<Incoming>,
        id: &CallIds,
    ) -> Result<Reply, Refusal> {
        if let Some(page) = self.0.page.as_ref().filter(|_| Ui::has(request.uri().path())) {
            return Ok(self.show(page, request, id).await);
        }
        match admin.clone().answer(request, rules, &self.0.attempts).await {
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
