//! Who wants to hear of what (EVT-1).

use super::{Event, NotContinued};
use crate::bridge::plan::Direct;
use crate::bridge::session::Retired;

/// How much a reader wants to hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Debug,
    Info,
    Warn,
}

impl Level {
    /// As a log line says it.
    pub fn label(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
        }
    }
}

impl Event<'_> {
    /// A healthy turn is one `info` line; what is routine is `debug`; what an operator should look at is `warn`.
    pub fn level(&self) -> Level {
        match self {
            Event::SessionRetired { reason, .. } => match reason {
                Retired::Silent(_) | Retired::Dead | Retired::TurnFailed(_) => Level::Warn,
                Retired::IdleTtl | Retired::ClientGone | Retired::Drained => Level::Debug,
                _ => Level::Info,
            },
            Event::SessionOpened { .. } | Event::SessionReused { .. } | Event::SessionRotated { .. } => {
                Level::Debug
            }
            Event::SessionEvicted { .. } | Event::TurnSent { .. } | Event::TurnAccepted { .. } => {
                Level::Debug
            }
            Event::ContinuationRejected {
                reason: NotContinued::NotFound,
                ..
            } => Level::Info,
            Event::ContinuationUsed { .. } | Event::ContinuationRejected { .. } => Level::Debug,
            Event::OwnerRouted { .. } | Event::OwnerUnknown { .. } | Event::RouteChosen { .. } => {
                Level::Debug
            }
            Event::OwnerUnavailable { .. } | Event::OwnerConflict { .. } | Event::CooldownCleared { .. } => {
                Level::Info
            }
            Event::CooldownStarted { .. } => Level::Warn,
            Event::HttpFallback {
                reason: Direct::Configured | Direct::Background,
                ..
            } => Level::Debug,
            Event::TurnFinished { .. } | Event::Refused { .. } | Event::HttpFallback { .. } => Level::Info,
            Event::QuarantineHttpFallback { .. } | Event::QuarantineProbe { .. } => Level::Info,
            Event::QuarantineCleared { .. } | Event::QuarantineEvicted { .. } => Level::Info,
            Event::StoreRecovered { .. } | Event::DrainStarted { .. } | Event::DrainFinished { .. } => {
                Level::Info
            }
            Event::ResponseCreatedTimeout { .. } | Event::IdleTimeout { .. } | Event::SlowStream { .. } => {
                Level::Warn
            }
            Event::SlowClient { .. } | Event::QuarantineOpened { .. } => Level::Warn,
            Event::BreakerChanged { .. } | Event::StoreDegraded { .. } | Event::ClockStepped { .. } => {
                Level::Warn
            }
            Event::CredentialRejected { .. } | Event::ConfigRejected { .. } => Level::Warn,
            Event::ConfigReloaded { .. } | Event::OperatorAction { .. } => Level::Info,
            Event::BridgeStarted { before: "cut", .. } => Level::Warn,
            Event::BridgeStarted { .. } => Level::Info,
        }
    }

    /// Whether it is a refusal of somebody who has shown nothing that the bridge knows.
    pub(super) fn is_of_a_stranger(&self) -> bool {
        matches!(self, Event::Refused { reason, .. } if reason.is_before_any_credential())
    }
}
