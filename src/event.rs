//! Every decision on a request's way is one occurrence of this closed set: one log line and one count (INV-9, EVT-1).
//!
//! The set grows by spec change only. Labels are closed enums and configured names; ids are fields, hashed where they are
//! the client's or the upstream's; no credential, prompt or output text has a place here at all.

use serde::Serialize;

use crate::bridge::availability::Reason;
use crate::bridge::key::Hash16;
use crate::bridge::plan::Direct;
use crate::bridge::session::Retired;
use crate::bridge::turn::Outcome;
use crate::bridge::watchdog::{Shape, Transport};
use crate::refusal::Kind;

mod ids;
mod labels;
mod level;
mod line;
mod live;
mod parts;
mod strangers;

pub use labels::{Label, Labels, NotContinued};
pub use level::Level;
pub use line::Events;
pub use live::{Live, Seen};
pub use parts::{
    AT_CLIENTS, AT_OPERATORS, Answered, At, Excluded, History, Ids, Key, Past, Phases, Who, is_at, name,
    safe_model,
};

use parts::{label, short, short_option};

/// Something that happened.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(
    clippy::large_enum_variant,
    reason = "an event is told where it is made and never kept: a box would cost an allocation per turn"
)]
pub enum Event<'a> {
    SessionOpened {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        key: Key,
        session: u64,
        handshake_ms: u64,
    },
    SessionReused {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        key: Key,
        session: u64,
        turns: u32,
    },
    SessionRetired {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        key: Key,
        session: u64,
        #[serde(serialize_with = "label")]
        reason: Retired,
        #[serde(flatten)]
        history: History,
    },
    SessionRotated {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        key: Key,
        session: u64,
        #[serde(flatten)]
        history: History,
    },
    SessionEvicted {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        key: Key,
        session: u64,
        #[serde(flatten)]
        history: History,
    },
    TurnSent {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        who: Who<'a>,
        #[serde(serialize_with = "label")]
        transport: Transport,
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<u64>,
    },
    TurnAccepted {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        who: Who<'a>,
        #[serde(serialize_with = "label")]
        transport: Transport,
        #[serde(serialize_with = "short_option", skip_serializing_if = "Option::is_none")]
        response: Option<Hash16>,
        /// Since the call's arrival.
        waited_ms: u64,
    },
    TurnFinished {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        who: Who<'a>,
        #[serde(serialize_with = "label")]
        transport: Transport,
        #[serde(serialize_with = "label")]
        outcome: Outcome,
        /// Why the call went to this account, as in `route_chosen`.
        route: &'static str,
        /// By which plan the attempt went: `reused`, `opened`, or why it went by direct HTTP; `none` where there was no
        /// attempt.
        plan: &'static str,
        /// Which attempt of the call it was, from 1.
        attempt: u32,
        #[serde(serialize_with = "short_option", skip_serializing_if = "Option::is_none")]
        response: Option<Hash16>,
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<u64>,
        /// Items that its session had already, where it continued a conversation.
        #[serde(skip_serializing_if = "Option::is_none")]
        known_items: Option<usize>,
        stream: bool,
        sent: bool,
        committed: bool,
        /// Status and class of the upstream's error, where it rejected or failed the turn.
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        upstream: Option<Answered>,
        #[serde(flatten)]
        phases: Phases,
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        socket: Option<Past>,
    },
    ResponseCreatedTimeout {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        who: Who<'a>,
        #[serde(serialize_with = "label")]
        shape: Shape,
        session: u64,
        #[serde(flatten)]
        history: History,
        waited_ms: u64,
    },
    IdleTimeout {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        who: Who<'a>,
        #[serde(serialize_with = "label")]
        transport: Transport,
    },
    SlowStream {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        who: Who<'a>,
        #[serde(serialize_with = "label")]
        transport: Transport,
    },
    SlowClient {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        who: Who<'a>,
        #[serde(serialize_with = "label")]
        transport: Transport,
    },
    QuarantineOpened {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        key: Key,
        window_ms: u64,
        /// Which trip in a row it was, from 1: each doubles the window. A line's `level` is its own.
        #[serde(rename = "trip")]
        level: u32,
        generation: u64,
    },
    QuarantineHttpFallback {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        who: Who<'a>,
    },
    QuarantineProbe {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        who: Who<'a>,
        generation: u64,
    },
    QuarantineCleared {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        key: Key,
        generation: u64,
    },
    QuarantineEvicted {
        #[serde(serialize_with = "short")]
        key: Hash16,
    },
    HttpFallback {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        who: Who<'a>,
        #[serde(serialize_with = "label")]
        reason: Direct,
        #[serde(skip_serializing_if = "Option::is_none")]
        upgrade: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    },
    ContinuationUsed {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        who: Who<'a>,
        session: u64,
        /// Items of the input that the session had already, and were not sent again.
        known_items: usize,
        /// Bytes of the frame, and what the whole request has more.
        sent_bytes: usize,
        saved_bytes: usize,
    },
    ContinuationRejected {
        #[serde(flatten)]
        at: At,
        #[serde(flatten)]
        who: Who<'a>,
        #[serde(serialize_with = "label")]
        reason: NotContinued,
    },
    OwnerRouted {
        #[serde(flatten)]
        at: At,
        #[serde(skip)]
        ids: Ids<'a>,
        #[serde(serialize_with = "short")]
        response: Hash16,
    },
    OwnerUnknown {
        #[serde(skip)]
        ids: Ids<'a>,
        #[serde(serialize_with = "short")]
        response: Hash16,
    },
    /// The account of a create, by which reason, and which others were out of the question.
    RouteChosen {
        #[serde(flatten)]
        at: At,
        #[serde(skip)]
        ids: Ids<'a>,
        reason: &'static str,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        excluded: &'a [Excluded],
    },
    /// The account that a request must go to is unavailable.
    OwnerUnavailable {
        #[serde(flatten)]
        at: At,
        #[serde(skip)]
        ids: Ids<'a>,
        #[serde(serialize_with = "label")]
        reason: Reason,
        retry_after_s: u64,
    },
    /// A request names things of two accounts.
    OwnerConflict {
        #[serde(skip)]
        ids: Ids<'a>,
    },
    CooldownStarted {
        #[serde(flatten)]
        at: At,
        #[serde(serialize_with = "label")]
        reason: Reason,
        for_ms: u64,
    },
    CooldownCleared {
        #[serde(flatten)]
        at: At,
        #[serde(serialize_with = "label")]
        reason: Reason,
    },
    Refused {
        #[serde(skip)]
        ids: Ids<'a>,
        #[serde(serialize_with = "label")]
        reason: Kind,
        /// Where it was asked: `clients` or `operators` (the admin API, its page, `/metrics`, health).
        door: &'static str,
    },
    /// A credential's file is of no use, or the upstream refuses the credential and there is no other.
    CredentialRejected {
        #[serde(flatten)]
        at: At,
        reason: &'static str,
        #[serde(skip)]
        ids: Option<Ids<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    },
    BreakerChanged {
        #[serde(flatten)]
        at: At,
        reason: &'static str,
    },
    StoreDegraded {
        reason: &'static str,
        lost: u64,
        way_out: &'static str,
    },
    StoreRecovered {
        lost: u64,
    },
    /// The wall clock ran otherwise than the monotonic one between two looks: it was set, or the machine slept.
    ClockStepped {
        /// `forward`, which a sleep is too, or `back`.
        reason: &'static str,
        by_ms: u64,
    },
    /// Another configuration is in force, without what only a restart changes.
    ConfigReloaded {
        /// Paths of the keys that differ and are in force, as in `watchdog.idle_deadline`; never values.
        changed: &'a [String],
        /// Paths of keys that differ and wait for a restart.
        needs_restart: &'a [String],
    },
    /// A configuration with faults was read; the one before stays in force.
    ConfigRejected {
        /// `unreadable`, `faulty`, or `unsettled`: it changed while it was read.
        reason: &'static str,
        /// The line of the first fault, where it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
        /// The key of the first fault, where it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        key_path: Option<&'a str>,
        faults: usize,
    },
    /// An operator changed something by the admin API.
    OperatorAction {
        /// What was done: `session_closed`, `quarantine_added`, `quarantine_cleared`, `breaker_reset`, `drain_on`,
        /// `drain_off`, `signed_in`.
        reason: &'static str,
        /// Who did it, as they said in `x-operator`, in a safe alphabet; else `token` or `page`.
        by: &'a str,
        /// What it was done to, where that is an account.
        #[serde(flatten)]
        at: Option<At>,
        /// What it was done to, where that is a key.
        #[serde(serialize_with = "short_option", skip_serializing_if = "Option::is_none")]
        key: Option<Hash16>,
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<u64>,
        /// To how many things it was done.
        count: u64,
    },
    /// The bridge listens.
    BridgeStarted {
        version: &'static str,
        /// How the one before it on this state ended: `drained`, `cut` (its last turns may have left no trace), `unknown` (the state could not be read), `none` (there
        /// was none that would have said so).
        before: &'static str,
        /// When the latest entry of the journal was from, in unix milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_ms: Option<u64>,
    },
    DrainStarted {
        turns: u64,
        sessions: u64,
    },
    DrainFinished {
        cut: u64,
        took_ms: u64,
    },
}

#[cfg(test)]
mod tests;
