//! Requests that name a response in their path go to the account that made it (INV-6, HTTP-20).

use std::sync::Arc;

use http::{Method, Response};
use http_body_util::Full;

use super::call::{Lookup, Reply, ReplyBody};
use super::direct::blame;
use super::relay::Relay;
use super::{Runtime, outgoing};
use crate::refusal::Kind;
use crate::store::Change;
use crate::upstream::{Answer, Base};
use crate::wire::headers;

/// Forwards the request to the response's owner.
pub async fn lookup(runtime: &Arc<Runtime>, lookup: Lookup) -> Reply {
    let caller = &lookup.caller;
    let owner = match runtime.route_to_owner(caller, &lookup.response_id, Kind::UnknownResponse) {
        Ok(account) => account,
        Err(refusal) => return runtime.refused(caller, refusal),
    };
    let account = runtime.account(owner);
    let mut path = format!("/responses/{}{}", lookup.response_id, lookup.tail);
    if let Some(query) = &lookup.query {
        path.push('?');
        path.push_str(query);
    }
    let mut request_headers = headers::passthrough(account.kind(), &caller.headers);
    runtime.strip_turn_state(
        &caller.tenant.hash,
        &mut request_headers,
        owner,
        runtime.has_several(caller),
    );
    request_headers.extend(account.credential(&caller.headers));
    outgoing::pass_trace(caller, &mut request_headers);
    let method = lookup.method.clone();
    let asked = account.forward(Base::Api, method, &path, request_headers, Full::new(lookup.body));
    let first_byte = runtime.policy().limits.first_byte;
    let reply = match tokio::time::timeout(first_byte, asked).await {
        Ok(Ok(answer)) => {
            runtime.reached(owner);
            answer
        }
        Ok(Err(fault)) => {
            runtime.not_answered(caller, owner, fault);
            return runtime.refused(caller, blame(fault).into());
        }
        Err(_) => return runtime.refused(caller, Kind::FirstByteTimeout.into()),
    };
    if lookup.method == Method::DELETE && reply.status().is_success() {
        let response = runtime.hasher.response(&caller.tenant.hash, &lookup.response_id);
        if runtime.registry().owners.forget(response) {
            runtime.store.record(Change::OwnerRemoved(response.0));
        }
    }
    runtime.relayed(reply)
}

impl Runtime {
    /// An answer passed on as it comes.
    pub(super) fn relayed(&self, answer: Answer) -> Reply {
        let (head, body) = answer.into_parts();
        let relay = Relay::new(body, self.policy().limits.between_events);
        let mut reply = Response::new(ReplyBody::Stream(Box::pin(relay)));
        *reply.status_mut() = head.status;
        *reply.headers_mut() = headers::passthrough_to_client(&head.headers);
        reply
    }
}
