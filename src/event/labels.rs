//! What of an event becomes a metric label: closed enums and configured names, never an id (INV-9).

use super::Event;
use crate::bridge::availability::Reason;
use crate::bridge::continuation::Rejected;
use crate::bridge::plan::Direct;
use crate::bridge::session::Retired;
use crate::bridge::turn::Outcome;
use crate::bridge::watchdog::{Shape, Transport};
use crate::refusal::Kind;

/// A closed enum whose values are label values.
pub trait Label {
    /// The label value.
    fn label(&self) -> &'static str;
}

macro_rules! label {
    ($($of:ty),*) => { $(impl Label for $of { fn label(&self) -> &'static str { <$of>::label(*self) } })* };
}
label!(
    Direct,
    Retired,
    Outcome,
    Shape,
    Transport,
    Kind,
    NotContinued,
    Reason
);

/// Why a conversation that a session remembers was sent in full. Closed: a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotContinued {
    /// The request does not extend it.
    Compared(Rejected),
    /// The session was not to be had: the turn went by another one, or by direct HTTP.
    Elsewhere,
    /// The upstream did not know the anchor.
    NotFound,
}

impl NotContinued {
    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            NotContinued::Compared(rejected) => rejected.label(),
            NotContinued::Elsewhere => "elsewhere",
            NotContinued::NotFound => "not_found",
        }
    }
}

/// The labels of one event. `None` where the event has no such label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels {
    pub event: &'static str,
    pub reason: Option<&'static str>,
    pub shape: Option<&'static str>,
    pub transport: Option<&'static str>,
    pub provider: Option<&'static str>,
    pub account: Option<&'static str>,
    pub key_kind: Option<&'static str>,
    pub outcome: Option<&'static str>,
}

impl Labels {
    /// Name and value of every label that is present.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        [
            ("event", Some(self.event)),
            ("reason", self.reason),
            ("shape", self.shape),
            ("transport", self.transport),
            ("provider", self.provider),
            ("account", self.account),
            ("key_kind", self.key_kind),
            ("outcome", self.outcome),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

impl Event<'_> {
    /// The labels under which the event is counted.
    pub fn labels(&self) -> Labels {
        let named = |event| Labels {
            event,
            ..Labels::default()
        };
        let at = |event, at: &super::At| Labels {
            provider: Some(at.provider),
            account: Some(at.account),
            ..named(event)
        };
        match self {
            Event::SessionOpened { at: a, key, .. } => Labels {
                key_kind: Some(key.key_kind),
                ..at("session_opened", a)
            },
            Event::SessionReused { at: a, key, .. } => Labels {
                key_kind: Some(key.key_kind),
                ..at("session_reused", a)
            },
            Event::SessionRetired { at: a, reason, .. } => Labels {
                reason: Some(reason.label()),
                ..at("session_retired", a)
            },
            Event::SessionRotated { at: a, .. } => at("session_rotated", a),
            Event::SessionEvicted { at: a, .. } => at("session_evicted", a),
            Event::TurnSent { at: a, transport, .. } => Labels {
                transport: Some(transport.label()),
                ..at("turn_sent", a)
            },
            Event::TurnAccepted { at: a, transport, .. } => Labels {
                transport: Some(transport.label()),
                ..at("turn_accepted", a)
            },
            Event::TurnFinished {
                at: a,
                transport,
                outcome,
                who,
                ..
            } => Labels {
                transport: Some(transport.label()),
                outcome: Some(outcome.label()),
                key_kind: Some(who.key.key_kind),
                ..at("turn_finished", a)
            },
            Event::ResponseCreatedTimeout { at: a, shape, .. } => Labels {
                shape: Some(shape.label()),
                ..at("response_created_timeout", a)
            },
            Event::IdleTimeout { at: a, transport, .. } => Labels {
                transport: Some(transport.label()),
                ..at("idle_timeout", a)
            },
            Event::SlowStream { at: a, transport, .. } => Labels {
                transport: Some(transport.label()),
                ..at("slow_stream", a)
            },
            Event::SlowClient { at: a, transport, .. } => Labels {
                transport: Some(transport.label()),
                ..at("slow_client", a)
            },
            Event::QuarantineOpened { at: a, key, .. } => Labels {
                key_kind: Some(key.key_kind),
                ..at("quarantine_opened", a)
            },
            Event::QuarantineHttpFallback { at: a, .. } => at("quarantine_http_fallback", a),
            Event::QuarantineProbe { at: a, .. } => at("quarantine_probe", a),
            Event::QuarantineCleared { at: a, .. } => at("quarantine_cleared", a),
            Event::QuarantineEvicted { .. } => named("quarantine_evicted"),
            Event::HttpFallback { at: a, reason, .. } => Labels {
                reason: Some(reason.label()),
                ..at("http_fallback", a)
            },
            Event::ContinuationUsed { at: a, .. } => at("continuation_used", a),
            Event::ContinuationRejected { at: a, reason, .. } => Labels {
                reason: Some(reason.label()),
                ..at("continuation_rejected", a)
            },
            Event::OwnerRouted { at: a, .. } => at("owner_routed", a),
            Event::OwnerUnknown { .. } => named("owner_unknown"),
            Event::RouteChosen { at: a, reason, .. } => Labels {
                reason: Some(reason),
                ..at("route_chosen", a)
            },
            Event::OwnerUnavailable { at: a, reason, .. } => Labels {
                reason: Some(reason.label()),
                ..at("owner_unavailable", a)
            },
            Event::OwnerConflict { .. } => named("owner_conflict"),
            Event::CooldownStarted { at: a, reason, .. } => Labels {
                reason: Some(reason.label()),
                ..at("cooldown_started", a)
            },
            Event::CooldownCleared { at: a, reason } => Labels {
                reason: Some(reason.label()),
                ..at("cooldown_cleared", a)
            },
            Event::Refused { reason, .. } => Labels {
                reason: Some(reason.label()),
                ..named("refused")
            },
            Event::BreakerChanged { at: a, reason } => Labels {
                reason: Some(reason),
                ..at("breaker_changed", a)
            },
            Event::CredentialRejected { at: a, reason, .. } => Labels {
                reason: Some(reason),
                ..at("credential_rejected", a)
            },
            Event::StoreDegraded { reason, .. } => Labels {
                reason: Some(reason),
                ..named("store_degraded")
            },
            Event::StoreRecovered { .. } => named("store_recovered"),
            Event::ClockStepped { reason, .. } => Labels {
                reason: Some(reason),
                ..named("clock_stepped")
            },
            Event::ConfigReloaded { .. } => named("config_reloaded"),
            Event::ConfigRejected { reason, .. } => Labels {
                reason: Some(reason),
                ..named("config_rejected")
            },
            Event::OperatorAction { reason, at: a, .. } => Labels {
                reason: Some(reason),
                provider: a.map(|at| at.provider),
                account: a.map(|at| at.account),
                ..named("operator_action")
            },
            Event::BridgeStarted { .. } => named("bridge_started"),
            Event::DrainStarted { .. } => named("drain_started"),
            Event::DrainFinished { .. } => named("drain_finished"),
        }
    }
}
