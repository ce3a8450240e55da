//! Another policy while turns run (REL-10 to REL-17): running turns keep theirs, all that comes later gets the new one.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::Notify;

use super::call::Tenant;
use super::registry::Command;
use super::{Policy, Runtime};
use crate::bridge::session::Retired;
use crate::event::Event;
use crate::store::Change;
use crate::upstream::{AccountFault, Clients};

/// Clients that were configured once, and are not any more.
#[derive(Default)]
pub struct Dismissed {
    tenants: ArcSwap<HashSet<[u8; 16]>>,
    changed: Notify,
}

impl Dismissed {
    /// Whether this tenant is one of them.
    pub fn has(&self, tenant: &[u8; 16]) -> bool {
        self.tenants.load().contains(tenant)
    }

    /// Resolves when this tenant is one of them. Cancel-safe.
    pub async fn wait_for(&self, tenant: &[u8; 16]) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before the look: what changes after it is heard of.
            changed.as_mut().enable();
            if self.has(tenant) {
                return;
            }
            changed.await;
        }
    }
}

impl Runtime {
    /// Puts another policy in force. `gone`: clients that are known no more; `here`: those that are known, again perhaps.
    ///
    /// Turns that run keep the policy of their start. Idle sessions are kept by the new one from now on, those at work from
    /// the end of their turn. Idle sessions beyond a cap, and those of clients that have gone, are closed. One caller at a
    /// time.
    pub fn change_policy(&self, policy: Policy, gone: &[Tenant], here: &[Tenant]) {
        let policy = Arc::new(Policy {
            number: self.policy().number + 1,
            ..policy
        });
        self.policy.store(policy.clone());
        self.routes().reconfigure(&policy.routing);
        let surplus = self
            .registry()
            .reconfigure(policy.caps, policy.quarantine, policy.transport);
        for lane in surplus.sessions {
            // A full lane has a command that ends the session anyway, and a closed one has ended.
            let _ = lane.try_send(Command::Retire(Retired::Evicted));
        }
        for key in surplus.keys {
            self.store.record(Change::QuarantineRemoved {
                key: key.hash.0,
                generation: surplus.generation.0,
            });
            self.events.emit(&Event::QuarantineEvicted { key: key.hash });
        }
        self.dismiss(gone, here);
        let idle = self.registry().idle_lanes();
        for lane in idle {
            // One that was leased meanwhile sees the policy then.
            let _ = lane.try_send(Command::Look);
        }
    }

    /// What connects to each account with another deadline, in the order of the configuration. Blocks for as long as reading the
    /// system's certificates takes.
    ///
    /// # Errors
    /// There are none any more.
    pub fn clients(&self, connect_deadline: Duration) -> Result<Vec<Clients>, AccountFault> {
        let accounts = self.accounts.iter();
        accounts
            .map(|named| named.upstream.clients(connect_deadline))
            .collect()
    }

    /// Connections are made by these from now on.
    pub fn connect_with(&self, clients: Vec<Clients>) {
        for (named, clients) in self.accounts.iter().zip(clients) {
            named.upstream.connect_with(clients);
        }
    }

    fn dismiss(&self, gone: &[Tenant], here: &[Tenant]) {
        let mut tenants = HashSet::clone(&self.dismissed.tenants.load());
        tenants.extend(gone.iter().map(|tenant| tenant.hash));
        for tenant in here {
            tenants.remove(&tenant.hash);
        }
        self.dismissed.tenants.store(Arc::new(tenants));
        self.dismissed.changed.notify_waiters();
    }
}
