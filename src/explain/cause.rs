//! What can be the matter with a call, in a closed set (EXP-4).

use serde::{Serialize, Serializer};

use super::call::Call;
use super::fact::{Fact, word};
use super::words;
use crate::refusal::Kind;

/// What was the matter. Closed: `--json` prints [`Cause::label`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The upstream took the request and sent nothing before the deadline.
    Silent,
    /// It sent events, and not `response.created`.
    Wedged,
    /// The connection ended, or became useless, under the turn.
    ConnectionLost,
    /// The upstream went silent after `response.created`.
    Idle,
    /// The upstream stopped taking the request.
    SlowUpstream,
    /// Direct HTTP, or the whole request, took longer than its deadline.
    Deadline,
    /// The client stopped taking the response.
    SlowClient,
    /// The client left.
    ClientLeft,
    /// The account could not be reached.
    Unreachable,
    /// The upstream limits the account's rate, or its plan is used up.
    RateLimited,
    /// The upstream does not take the account's credential.
    CredentialRejected,
    /// The upstream rejected the turn for a reason of its own or of the request's.
    UpstreamRejected,
    /// The upstream accepted the turn and then failed it.
    UpstreamFailed,
    /// The account that it must go to was unavailable.
    OwnerUnavailable,
    /// The bridge refused it.
    Refused,
    /// The bridge took no new turns, or was shutting down.
    Drained,
    /// A fault inside the bridge.
    BridgeFault,
    /// An account was left alone, and another one served the call.
    Cooldown,
    /// The account's WebSocket transport was not trusted.
    SickTransport,
    /// The conversation was in quarantine.
    Quarantined,
    /// The upgrade to a WebSocket was refused, failed or slow.
    UpgradeFailed,
    /// The state could not be written.
    StoreDegraded,
    /// The wall clock was set, or the machine slept.
    ClockStepped,
    /// A configuration with faults was read.
    ConfigRejected,
    /// The bridge ended without a finished drain.
    BridgeCut,
    /// There is no end of the call in the journal yet.
    Unfinished,
    /// Nothing.
    Healthy,
}

impl Cause {
    /// Every cause, for tests and for the documentation.
    pub const ALL: [Cause; 27] = [
        Cause::Silent,
        Cause::Wedged,
        Cause::ConnectionLost,
        Cause::Idle,
        Cause::SlowUpstream,
        Cause::Deadline,
        Cause::SlowClient,
        Cause::ClientLeft,
        Cause::Unreachable,
        Cause::RateLimited,
        Cause::CredentialRejected,
        Cause::UpstreamRejected,
        Cause::UpstreamFailed,
        Cause::OwnerUnavailable,
        Cause::Refused,
        Cause::Drained,
        Cause::BridgeFault,
        Cause::Cooldown,
        Cause::SickTransport,
        Cause::Quarantined,
        Cause::UpgradeFailed,
        Cause::StoreDegraded,
        Cause::ClockStepped,
        Cause::ConfigRejected,
        Cause::BridgeCut,
        Cause::Unfinished,
        Cause::Healthy,
    ];

    /// The word of `--json`.
    pub fn label(self) -> &'static str {
        match self {
            Cause::Silent => "silent",
            Cause::Wedged => "wedged",
            Cause::ConnectionLost => "connection_lost",
            Cause::Idle => "idle",
            Cause::SlowUpstream => "slow_upstream",
            Cause::Deadline => "deadline",
            Cause::SlowClient => "slow_client",
            Cause::ClientLeft => "client_left",
            Cause::Unreachable => "unreachable",
            Cause::RateLimited => "rate_limited",
            Cause::CredentialRejected => "credential_rejected",
            Cause::UpstreamRejected => "upstream_rejected",
            Cause::UpstreamFailed => "upstream_failed",
            Cause::OwnerUnavailable => "owner_unavailable",
            Cause::Refused => "refused",
            Cause::Drained => "drained",
            Cause::BridgeFault => "bridge_fault",
            Cause::Cooldown => "cooldown",
            Cause::SickTransport => "sick_transport",
            Cause::Quarantined => "quarantined",
            Cause::UpgradeFailed => "upgrade_failed",
            Cause::StoreDegraded => "store_degraded",
            Cause::ClockStepped => "clock_stepped",
            Cause::ConfigRejected => "config_rejected",
            Cause::BridgeCut => "bridge_cut",
            Cause::Unfinished => "unfinished",
            Cause::Healthy => "healthy",
        }
    }

    /// What was the matter with an attempt of a call; nothing with one that was served.
    pub fn of_attempt(call: &Call<'_>, finish: &Fact) -> Option<Cause> {
        match word(&finish.body.outcome) {
            "completed" | "incomplete" => None,
            "failed" => Some(Cause::UpstreamFailed),
            "rejected" => Some(Cause::of_error(finish.body.error.as_deref())),
            "client_gone" => Some(Cause::ClientLeft),
            label => match words::kind(label) {
                Some(Kind::CreatedTimeout) => {
                    let verdict = call.with("response_created_timeout");
                    let shape = verdict.map_or("", |verdict| word(&verdict.body.shape));
                    Some(match shape {
                        "events_without_created" => Cause::Wedged,
                        _ => Cause::Silent,
                    })
                }
                Some(kind) => Some(Cause::of_kind(kind)),
                None => Some(Cause::Refused),
            },
        }
    }

    /// What an error of the upstream's says, by its class.
    pub fn of_error(class: Option<&str>) -> Cause {
        match class {
            Some("rate_limit" | "quota") => Cause::RateLimited,
            Some("authentication") => Cause::CredentialRejected,
            _ => Cause::UpstreamRejected,
        }
    }

    /// What a row of the table of refusals and failures says.
    pub fn of_kind(kind: Kind) -> Cause {
        match kind {
            Kind::CreatedTimeout => Cause::Silent,
            Kind::UpstreamClosed
            | Kind::SocketDead
            | Kind::FrameTooLarge
            | Kind::Truncated
            | Kind::UpstreamNonsense
            | Kind::HoldOverflow => Cause::ConnectionLost,
            Kind::IdleTimeout => Cause::Idle,
            Kind::WriteStalled => Cause::SlowUpstream,
            Kind::FirstByteTimeout | Kind::FirstEventTimeout | Kind::RequestDeadline => Cause::Deadline,
            Kind::SlowClient => Cause::SlowClient,
            Kind::ConnectFailed | Kind::ConnectTimeout | Kind::ProxyFailed => Cause::Unreachable,
            Kind::OwnerUnavailable => Cause::OwnerUnavailable,
            Kind::Drained | Kind::Draining => Cause::Drained,
            Kind::Internal => Cause::BridgeFault,
            _ => Cause::Refused,
        }
    }

    /// Whether it lies with the account, so that another one may serve the call.
    pub fn is_of_the_account(self) -> bool {
        matches!(
            self,
            Cause::RateLimited | Cause::CredentialRejected | Cause::Unreachable
        )
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.label())
    }
}
