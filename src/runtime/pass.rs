//! Every other path is passed through untouched: people change one base URL, and files, embeddings and chat completions
//! go with it (HTTP-21).

use std::sync::Arc;

use super::call::{Base as Wanted, Caller, Pass, Reply};
use super::direct::blame;
use super::{Runtime, numbered, outgoing};
use crate::bridge::ownership::AccountId;
use crate::event::Event;
use crate::refusal::{Kind, Refusal};
use crate::upstream::Base;
use crate::wire::ProviderKind;
use crate::wire::headers;

/// Passes the request on to the one account that can serve it.
pub async fn pass(runtime: &Arc<Runtime>, pass: Pass) -> Reply {
    let caller = &pass.caller;
    let number = match runtime.owner_of_all(caller, &pass.names) {
        Ok(Some(account)) => account,
        Ok(None) => match runtime
            .only_account(caller, pass.base)
            .or_else(|| runtime.pinned_by_headers(caller))
        {
            Some(account) => account,
            None => return runtime.refused(caller, Kind::NoAccount.into()),
        },
        Err(refusal) => return runtime.refused(caller, refusal),
    };
    let account = runtime.account(number);
    let mut path = pass.path.clone();
    if let Some(query) = &pass.query {
        path.push('?');
        path.push_str(query);
    }
    let base = match pass.base {
        Wanted::Provider => Base::Api,
        Wanted::BesideCodex => Base::ChatgptBackend,
    };
    let mut request_headers = headers::passthrough(account.kind(), &caller.headers);
    runtime.strip_turn_state(
        &caller.tenant.hash,
        &mut request_headers,
        number,
        runtime.has_several(caller),
    );
    request_headers.extend(account.credential(&caller.headers));
    outgoing::pass_trace(caller, &mut request_headers);
    // Until the answer begins, an upload may take its time: the edge watches that it moves. The whole is bounded.
    let asked = account.forward(base, pass.method, &path, request_headers, pass.body);
    let whole = runtime.policy().limits.request;
    match tokio::time::timeout(whole, asked).await {
        Ok(Ok(answer)) => {
            runtime.reached(number);
            runtime.relayed(answer)
        }
        Ok(Err(fault)) => {
            runtime.not_answered(caller, number, fault);
            runtime.refused(caller, blame(fault).into())
        }
        Err(_) => runtime.refused(caller, Kind::RequestDeadline.into()),
    }
}

impl Runtime {
    /// The account that owns all these responses; `None` where none is named.
    fn owner_of_all(&self, caller: &Caller, names: &[String]) -> Result<Option<AccountId>, Refusal> {
        let mut owner = None;
        for id in names {
            let account = self.route_to_owner(caller, id, Kind::UnknownAnchor)?;
            if *owner.get_or_insert(account) != account {
                self.events.emit(&Event::OwnerConflict { ids: caller.ids() });
                return Err(Kind::OwnerConflict.into());
            }
        }
        Ok(owner)
    }

    /// The one account that can serve a path, if it is one.
    fn only_account(&self, caller: &Caller, base: Wanted) -> Option<AccountId> {
        let chatgpt = caller.chatgpt || base == Wanted::BesideCodex;
        let mut all = numbered(&self.accounts).map(|(account, _)| account);
        let serves =
            |account: &AccountId| (self.account(*account).kind() == ProviderKind::Chatgpt) == chatgpt;
        if self.accounts.len() == 1 && base == Wanted::Provider {
            return all.next();
        }
        let mut able = all.filter(serves);
        able.next().filter(|_| able.next().is_none())
    }
}
