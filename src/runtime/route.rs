//! Which account a request goes to.

use super::call::Caller;
use super::{Runtime, numbered, unix};
use crate::bridge::ownership::{AccountId, Owner};
use crate::event::Event;
use crate::wire::ProviderKind;

/// Which account a request goes to, and why.
pub struct Routed {
    pub account: AccountId,
    pub owner: Option<Owner>,
}

impl Runtime {
    /// The account for a request: the owner of the response that it names, else the first account of the provider that the
    /// caller chose. `None`: the response is nobody's here, and may not be looked for upstream, because clients share the
    /// accounts' credentials, or because more than one account could have made it (INV-6).
    pub(super) fn route(&self, caller: &Caller, names: Option<&str>) -> Option<Routed> {
        let of_kind =
            |account: &AccountId| (self.account(*account).kind() == ProviderKind::Chatgpt) == caller.chatgpt;
        let all = || numbered(&self.accounts).map(|(account, _)| account);
        let mut able: Vec<_> = all().filter(of_kind).collect();
        if able.is_empty() {
            able = all().collect();
        }
        let account = *able.first()?;
        let Some(id) = names else {
            return Some(Routed { account, owner: None });
        };
        let response = self.hasher.response(&caller.tenant.hash, id);
        let owner = self.registry().owners.of(response, unix().as_secs());
        let request_id = &caller.request_id;
        match owner {
            Some(owner) => {
                self.events.emit(&Event::OwnerRouted {
                    at: self.at(owner.account),
                    request_id,
                    response,
                });
                Some(Routed {
                    account: owner.account,
                    owner: Some(owner),
                })
            }
            None => {
                self.events.emit(&Event::OwnerUnknown { request_id, response });
                let certain = able.len() == 1 && !self.policy.shared_credentials;
                certain.then_some(Routed { account, owner: None })
            }
        }
    }
}
