//! A row of the journal, read.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Evidence, Row};
use crate::journal::{STARTS, SURROUNDINGS};

/// One thing that happened.
#[derive(Debug)]
pub struct Fact {
    pub seq: u64,
    pub at_ms: u64,
    pub event: String,
    pub account: Option<String>,
    /// The request's name, where it happened to one.
    pub call: Option<u64>,
    /// What else it is found by: its call's sessions, responses and trace.
    pub names: Vec<u64>,
    pub body: Body,
    /// The row was found by the id that was asked for.
    pub found: bool,
    /// It is of another conversation of the account: it counts, and is not told.
    pub neighbour: bool,
}

/// The fields of all events. What a row does not have, or has in another form, is not there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Body {
    pub key: Option<String>,
    pub key_kind: Option<String>,
    pub client: Option<String>,
    pub model: Option<String>,
    pub transport: Option<String>,
    pub outcome: Option<String>,
    pub route: Option<String>,
    pub plan: Option<String>,
    pub attempt: u32,
    pub session: Option<u64>,
    pub known_items: Option<u64>,
    pub sent: bool,
    pub committed: bool,
    pub status: Option<u16>,
    pub error: Option<String>,
    pub total_ms: u64,
    pub queue_ms: Option<u64>,
    pub sent_ms: Option<u64>,
    pub created_ms: Option<u64>,
    pub first_output_ms: Option<u64>,
    pub socket: Option<String>,
    pub turns: u64,
    pub close: Option<String>,
    pub shape: Option<String>,
    pub waited_ms: u64,
    pub window_ms: u64,
    pub reason: Option<String>,
    pub upgrade: Option<String>,
    pub for_ms: u64,
    pub retry_after_s: u64,
    pub lost: u64,
    pub way_out: Option<String>,
    pub changed: Vec<String>,
    pub needs_restart: Vec<String>,
    pub line: Option<u64>,
    pub key_path: Option<String>,
    pub faults: u64,
    pub by: Option<String>,
    pub count: u64,
    pub sessions: u64,
    pub cut: u64,
    pub took_ms: u64,
    pub by_ms: u64,
    pub before: Option<String>,
    pub last_ms: Option<u64>,
}

/// A word of a row, or nothing.
pub fn word(word: &Option<String>) -> &str {
    word.as_deref().unwrap_or_default()
}

impl Fact {
    pub fn of(row: &Row) -> Fact {
        // A row that cannot be read is still one that happened.
        let body: Body = serde_json::from_str(&row.body).unwrap_or_default();
        let key = body.key.as_deref().and_then(key_name);
        // An event of a session, a key, an account or the process has no request's.
        let of_ids = |name: &u64| Some(*name) != key && ![SURROUNDINGS, STARTS].contains(name);
        let call = row.names.first().copied().filter(of_ids);
        let of_it = |name: &u64| Some(*name) != call && of_ids(name);
        Fact {
            names: row.names.iter().copied().filter(of_it).collect(),
            seq: row.seq,
            at_ms: row.at_ms,
            event: row.event.clone(),
            account: row.account.clone(),
            call,
            body,
            found: false,
            neighbour: false,
        }
    }

    pub fn is(&self, event: &str) -> bool {
        self.event == event
    }

    /// A start of the bridge, after one that had ended without a finished drain.
    pub fn is_cut(&self) -> bool {
        self.is("bridge_started") && word(&self.body.before) == "cut"
    }

    /// A turn's end: its client had been sent heartbeats, and nothing of a response. Where its phases are not known, nor is this.
    pub fn is_heartbeats_only(&self) -> bool {
        let body = &self.body;
        let known = body.sent_ms.is_some() || !body.sent;
        body.committed && known && body.created_ms.is_none()
    }

    /// `provider/account`, or what stands for one that is not known.
    pub fn at(&self) -> &str {
        self.account.as_deref().unwrap_or("the account")
    }
}

/// The name of an affinity key by its printed form: 12 hexadecimal digits.
pub fn key_name(printed: &str) -> Option<u64> {
    let hexadecimal = printed.len() == 12 && printed.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(printed, 16).ok().filter(|_| hexadecimal)
}

/// All rows, each once, in the journal's order.
pub fn read(evidence: &Evidence) -> Vec<Fact> {
    let mut facts: BTreeMap<u64, Fact> = BTreeMap::new();
    for row in &evidence.neighbours {
        let neighbour = facts.entry(row.seq).or_insert_with(|| Fact::of(row));
        neighbour.neighbour = true;
    }
    for row in &evidence.around {
        facts.entry(row.seq).or_insert_with(|| Fact::of(row)).neighbour = false;
    }
    for row in &evidence.found {
        let fact = facts.entry(row.seq).or_insert_with(|| Fact::of(row));
        (fact.neighbour, fact.found) = (false, true);
    }
    facts.into_values().collect()
}
