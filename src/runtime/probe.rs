//! The right and duty to probe, held by the turn that probes: whatever becomes of the turn, its place is freed (QUA-5).

use std::sync::Arc;

use super::Runtime;
use crate::bridge::key::AffinityKey;
use crate::bridge::ownership::AccountId;
use crate::bridge::quarantine::Probe;
use crate::bridge::transport;
use crate::event::Event;

/// Probes a quarantined key. Dropped without [`Self::cleared`], it frees the place and changes nothing else; if the probe
/// was silent, the key has tripped anew before, and freeing an older generation does nothing.
pub struct KeyProbe {
    runtime: Arc<Runtime>,
    account: AccountId,
    probe: Option<Probe>,
}

impl KeyProbe {
    /// Holds `probe`.
    pub fn new(runtime: Arc<Runtime>, account: AccountId, probe: Probe) -> Self {
        KeyProbe {
            runtime,
            account,
            probe: Some(probe),
        }
    }

    /// The probe's `response.created` came.
    pub fn cleared(mut self) {
        let Some(probe) = self.probe.take() else { return };
        let entry = self.runtime.registry().quarantine.cleared(probe, super::now());
        if let Some(entry) = entry {
            self.runtime.persist_quarantine(&probe.key, &entry);
            let at = self.runtime.at(self.account);
            let generation = probe.generation.0;
            self.runtime.events.emit(&Event::QuarantineCleared {
                at,
                key: probe.key.into(),
                generation,
            });
        }
    }
}

impl Drop for KeyProbe {
    fn drop(&mut self) {
        if let Some(probe) = self.probe.take() {
            self.runtime.registry().quarantine.freed(probe, super::now());
        }
    }
}

/// Probes an account's sick WebSocket transport.
pub struct TransportProbe {
    runtime: Arc<Runtime>,
    account: AccountId,
    probe: Option<transport::Probe>,
}

impl TransportProbe {
    /// Holds the account's half-open breaker.
    pub fn new(runtime: Arc<Runtime>, account: AccountId, probe: transport::Probe) -> Self {
        TransportProbe {
            runtime,
            account,
            probe: Some(probe),
        }
    }

    /// The probing turn was accepted.
    pub fn succeeded(mut self) {
        let Some(probe) = self.probe.take() else { return };
        let change = self
            .runtime
            .registry()
            .transport(self.account)
            .probe_succeeded(probe);
        self.runtime.breaker_changed(self.account, change);
    }
}

impl Drop for TransportProbe {
    fn drop(&mut self) {
        if let Some(probe) = self.probe.take() {
            self.runtime
                .registry()
                .transport(self.account)
                .probe_freed(probe, super::now());
        }
    }
}

/// A place for a session that is being opened. Dropped before [`Self::opened`], it is free again.
pub struct Place {
    runtime: Arc<Runtime>,
    key: AffinityKey,
    tenant: Option<[u8; 16]>,
    taken: bool,
}

impl Place {
    /// Holds the place that the registry has just given to `key`, which is this tenant's, if anybody's.
    pub fn new(runtime: Arc<Runtime>, key: AffinityKey, tenant: Option<[u8; 16]>) -> Self {
        Place {
            runtime,
            key,
            tenant,
            taken: true,
        }
    }

    /// The key that the place is for.
    pub fn key(&self) -> AffinityKey {
        self.key
    }

    /// Whose place it is.
    pub fn tenant(&self) -> Option<[u8; 16]> {
        self.tenant
    }

    /// The place has become a session: the registry has been told.
    pub fn opened(mut self) {
        self.taken = false;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.taken {
            self.runtime.registry().not_opened(&self.key);
        }
    }
}
