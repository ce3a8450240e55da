//! By what an event can be found again.

use super::{At, Event, Ids, Who};
use crate::bridge::key::{Hash16, Hasher};
use crate::journal::{self, Names};

impl<'a> Event<'a> {
    /// The turn it happened to, where there is one.
    fn who(&self) -> Option<&Who<'a>> {
        match self {
            Event::TurnSent { who, .. }
            | Event::TurnAccepted { who, .. }
            | Event::TurnFinished { who, .. }
            | Event::ResponseCreatedTimeout { who, .. }
            | Event::IdleTimeout { who, .. }
            | Event::SlowStream { who, .. }
            | Event::SlowClient { who, .. }
            | Event::QuarantineHttpFallback { who, .. }
            | Event::QuarantineProbe { who, .. }
            | Event::HttpFallback { who, .. }
            | Event::ContinuationUsed { who, .. }
            | Event::ContinuationRejected { who, .. } => Some(who),
            _ => None,
        }
    }

    /// The ids of the client call it happened to, where there is one.
    pub fn ids(&self) -> Option<Ids<'a>> {
        match self {
            Event::OwnerRouted { ids, .. }
            | Event::OwnerUnknown { ids, .. }
            | Event::RouteChosen { ids, .. }
            | Event::OwnerUnavailable { ids, .. }
            | Event::OwnerConflict { ids }
            | Event::Refused { ids, .. } => Some(*ids),
            Event::CredentialRejected { ids, .. } => *ids,
            _ => self.who().map(|who| who.ids),
        }
    }

    /// The account it happened at, where there is one.
    pub fn at(&self) -> Option<At> {
        let labels = self.labels();
        Some(At {
            provider: labels.provider?,
            account: labels.account?,
        })
    }

    /// The affinity key it happened to, where there is one.
    pub fn key(&self) -> Option<Hash16> {
        match self {
            Event::SessionOpened { key, .. }
            | Event::SessionReused { key, .. }
            | Event::SessionRetired { key, .. }
            | Event::SessionRotated { key, .. }
            | Event::SessionEvicted { key, .. }
            | Event::QuarantineOpened { key, .. }
            | Event::QuarantineCleared { key, .. } => Some(key.key),
            Event::QuarantineEvicted { key } => Some(*key),
            Event::OperatorAction { key, .. } => *key,
            _ => self.who().map(|who| who.key.key),
        }
    }

    /// All names under which the journal keeps it: those of the call, and that of the key.
    pub fn names(&self, hasher: &Hasher) -> Names {
        let mut names = Names::default();
        if let Some(ids) = self.ids() {
            // First, so that events of one call are seen to be that (EXP-2).
            names.add(hasher.name(ids.request_id));
            ids.names.as_slice().iter().for_each(|name| names.add(*name));
            if let Some(trace) = ids.trace_id {
                names.add(hasher.name(trace));
            }
        }
        if let Some(key) = self.key() {
            names.add(journal::of_key(key));
        }
        if self.is_around() {
            names.add(journal::SURROUNDINGS);
        }
        if matches!(self, Event::BridgeStarted { .. }) {
            names.add(journal::STARTS);
        }
        names
    }

    /// Whether it happened to an account or to the process, and so may matter to calls that it does not name.
    fn is_around(&self) -> bool {
        matches!(
            self,
            Event::CooldownStarted { .. }
                | Event::CooldownCleared { .. }
                | Event::CredentialRejected { .. }
                | Event::BreakerChanged { .. }
                | Event::StoreDegraded { .. }
                | Event::StoreRecovered { .. }
                | Event::ClockStepped { .. }
                | Event::ConfigReloaded { .. }
                | Event::ConfigRejected { .. }
                | Event::OperatorAction { .. }
                | Event::BridgeStarted { .. }
                | Event::DrainStarted { .. }
                | Event::DrainFinished { .. }
        )
    }
}
