//! Every decision on a request's way is one occurrence of this closed set: one log line and one count (INV-9, EVT-1).
//!
//! The set grows by spec change only. Labels are closed enums and configured names; ids are fields, hashed where they are
//! the client's or the upstream's; no credential, prompt or output text has a place here at all.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::{Serialize, Serializer};

use crate::bridge::availability::Reason;
use crate::bridge::key::{AffinityKey, Hash16};
use crate::bridge::plan::Direct;
use crate::bridge::session::Retired;
use crate::bridge::turn::Outcome;
use crate::bridge::watchdog::{Shape, Transport};
use crate::refusal::Kind;

mod labels;
mod level;
mod line;

pub use labels::{Label, Labels, NotContinued};
pub use level::Level;
pub use line::Events;

/// The account a thing happened at: configured names, kept for the life of the process (see [`name`]).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct At {
    pub provider: &'static str,
    pub account: &'static str,
}

/// An account that was out of the question, and why: `unreachable`, `credential`, `rate_limit`, `quota`, `model`, or
/// `tried`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Excluded {
    #[serde(flatten)]
    pub at: At,
    pub reason: &'static str,
}

/// A configured name as a label value. Each distinct name is kept once, for ever: they are few and come from the
/// configuration alone, and labels that need no copy keep a count cheap.
pub fn name(configured: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(configured) {
        return known;
    }
    let kept: &'static str = Box::leak(configured.into());
    names.insert(kept);
    kept
}

/// The client call that a thing happened to.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Who<'a> {
    pub request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<&'a str>,
    #[serde(serialize_with = "safe")]
    pub model: &'a str,
    #[serde(flatten)]
    pub key: Key,
}

/// An affinity key as it may be shown.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Key {
    #[serde(serialize_with = "short")]
    key: Hash16,
    key_kind: &'static str,
}

impl From<AffinityKey> for Key {
    fn from(key: AffinityKey) -> Self {
        Key {
            key: key.hash,
            key_kind: key.kind.label(),
        }
    }
}

/// What a socket had been through when something happened to it, in closed enums.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct History {
    /// `fresh` (its first turn) or `reused`.
    pub socket: &'static str,
    pub turns: u32,
    /// How old it was: `1m`, `10m`, `30m`, `1h`, `older`.
    pub age: &'static str,
    /// How long it had been idle before the turn: `1s`, `30s`, `5m`, `30m`, `longer`.
    pub idle: &'static str,
    /// How the upstream closed it, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close: Option<&'static str>,
    /// The class of the last event before: `none`, `telemetry`, `created`, `data`, `terminal`, `error`.
    pub last_event: &'static str,
}

/// How long the phases of a turn took, in milliseconds; absent where a phase was not reached.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Phases {
    pub total_ms: u64,
    /// From the call's arrival to the first byte sent upstream: planning, queueing, dialling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_ms: Option<u64>,
    /// From the flushed create to `response.created`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_ms: Option<u64>,
    /// From the call's arrival to the first event after `response.created`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_output_ms: Option<u64>,
}

/// Something that happened.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
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
        #[serde(flatten)]
        phases: Phases,
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        history: Option<History>,
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
        request_id: &'a str,
        #[serde(serialize_with = "short")]
        response: Hash16,
    },
    OwnerUnknown {
        request_id: &'a str,
        #[serde(serialize_with = "short")]
        response: Hash16,
    },
    /// The account of a create, by which reason, and which others were out of the question.
    RouteChosen {
        #[serde(flatten)]
        at: At,
        request_id: &'a str,
        reason: &'static str,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        excluded: &'a [Excluded],
    },
    /// The account that a request must go to is unavailable.
    OwnerUnavailable {
        #[serde(flatten)]
        at: At,
        request_id: &'a str,
        #[serde(serialize_with = "label")]
        reason: Reason,
        retry_after_s: u64,
    },
    /// A request names things of two accounts.
    OwnerConflict {
        request_id: &'a str,
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
        request_id: &'a str,
        #[serde(serialize_with = "label")]
        reason: Kind,
    },
    /// A credential's file is of no use, or the upstream refuses the credential and there is no other.
    CredentialRejected {
        #[serde(flatten)]
        at: At,
        reason: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<&'a str>,
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
    DrainStarted {
        turns: u64,
        sessions: u64,
    },
    DrainFinished {
        cut: u64,
        took_ms: u64,
    },
}

/// The short form of a hash: 12 hexadecimal digits.
fn short<S: Serializer>(hash: &Hash16, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(hash)
}

fn short_option<S: Serializer>(hash: &Option<Hash16>, to: S) -> Result<S::Ok, S::Error> {
    match hash {
        Some(hash) => short(hash, to),
        None => to.serialize_none(),
    }
}

fn label<L: Label, S: Serializer>(value: &L, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(value.label())
}

/// A model name is the client's text: 64 characters of a safe alphabet, the rest is cut or replaced.
fn safe<S: Serializer>(model: &str, to: S) -> Result<S::Ok, S::Error> {
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() || "._:/-".contains(c) {
            c
        } else {
            '?'
        }
    };
    to.collect_str(&model.chars().take(64).map(keep).collect::<String>())
}

#[cfg(test)]
mod tests;
