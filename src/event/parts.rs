//! What events are made of: accounts, ids, keys, histories and phases, as lines show them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::{Serialize, Serializer};

use super::Label;
use crate::bridge::key::{AffinityKey, Hash16};
use crate::journal::Names;

/// The account a thing happened at: configured names, kept for the life of the process (see [`name`]).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct At {
    pub provider: &'static str,
    pub account: &'static str,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.account)
    }
}

/// Whether `account`, as `provider/account`, is the one that is `wanted`: as that, or by its own name alone.
pub fn is_at(account: &str, wanted: &str) -> bool {
    account == wanted || account.split_once('/').is_some_and(|(_, name)| name == wanted)
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

/// By which ids a client call is known outside. A log line shows the first two; the journal has them as names only.
#[derive(Clone, Copy, Debug)]
pub struct Ids<'a> {
    pub request_id: &'a str,
    /// 32 hexadecimal digits, where the client sent a trace.
    pub trace_id: Option<&'a str>,
    /// The caller's span in it, 16 hexadecimal digits.
    pub parent_id: Option<&'a str>,
    /// What else the call can be looked up by: its session and its responses.
    pub names: &'a Names,
}

/// The client call that a thing happened to.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Who<'a> {
    #[serde(skip)]
    pub ids: Ids<'a>,
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
    pub(super) key: Hash16,
    pub(super) key_kind: &'static str,
}

impl From<AffinityKey> for Key {
    fn from(key: AffinityKey) -> Self {
        Key {
            key: key.hash,
            key_kind: key.kind.label(),
        }
    }
}

/// A refusal's door: what clients call.
pub const AT_CLIENTS: &str = "clients";
/// What operators and their programs ask: the admin API, its page, metrics, health, and all that is on their own listener.
pub const AT_OPERATORS: &str = "operators";

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

/// What a finished turn tells of its socket.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Past {
    /// A failed one needs all of it.
    Whole(History),
    /// A healthy one: without the turns that went well, those that failed at some age say nothing (TUNE-9). As in
    /// [`History`].
    Exposure { age: &'static str, idle: &'static str },
}

impl Past {
    /// As much of `history` as a turn with such an end tells.
    pub fn of(history: History, healthy: bool) -> Past {
        let History { age, idle, .. } = history;
        if healthy {
            Past::Exposure { age, idle }
        } else {
            Past::Whole(history)
        }
    }
}

/// An upstream's error, in numbers and closed words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Answered {
    /// Of the answer, or the one that its code stands for.
    pub status: u16,
    /// What the error means: the label of its `ErrorClass`.
    pub error: &'static str,
}

/// How long the phases of a turn took, in milliseconds; absent where a phase was not reached.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Phases {
    pub total_ms: u64,
    /// How much of it the call waited for a session; absent where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_ms: Option<u64>,
    /// From the call's arrival to the first byte sent upstream: planning, queueing, dialling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_ms: Option<u64>,
    /// From the first byte sent upstream to the end of the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_ms: Option<u64>,
    /// From the flushed create to `response.created`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_ms: Option<u64>,
    /// From the call's arrival to the first event after `response.created`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_output_ms: Option<u64>,
    /// After `response.created`: the longest time without an event, the time before the end among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_gap_ms: Option<u64>,
}

/// The short form of a hash: 12 hexadecimal digits.
pub(super) fn short<S: Serializer>(hash: &Hash16, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(hash)
}

pub(super) fn short_option<S: Serializer>(hash: &Option<Hash16>, to: S) -> Result<S::Ok, S::Error> {
    match hash {
        Some(hash) => short(hash, to),
        None => to.serialize_none(),
    }
}

pub(super) fn label<L: Label, S: Serializer>(value: &L, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(value.label())
}

fn safe<S: Serializer>(model: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&safe_model(model))
}

/// A model name is the client's text: 64 characters of a safe alphabet, the rest is cut or replaced.
pub fn safe_model(model: &str) -> String {
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() || "._:/-".contains(c) {
            c
        } else {
            '?'
        }
    };
    model.chars().take(64).map(keep).collect()
}
