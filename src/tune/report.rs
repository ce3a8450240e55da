//! What is told of each window: the estimates, and one sentence.

use serde::Serialize;
use serde_json::{Value, json};

use super::{deadline, recovery, wear};
use crate::counted::counted;
use crate::lapse::written_ms;

/// All that `tune` says.
#[derive(Clone, Debug)]
pub struct Report {
    /// Unix milliseconds of the first and the last row that counts.
    pub span: Option<(u64, u64)>,
    /// Rows that say something about windows.
    pub rows: u64,
    /// Those of them that could not be read, and are left out.
    pub unreadable: u64,
    pub sections: Vec<Section>,
}

/// One key of the configuration.
#[derive(Clone, Debug, Serialize)]
pub struct Section {
    /// Its full path.
    pub key: &'static str,
    pub in_force_ms: u64,
    /// What to know before reading the tables.
    pub notes: Vec<String>,
    pub groups: Vec<Group>,
    /// About the key, all models considered.
    pub verdict: Verdict,
}

impl Section {
    /// For programs: all numbers, and the sentence.
    pub fn json(&self) -> Value {
        let mut told = json!(self);
        told["sentence"] = self.verdict.sentence(self.in_force_ms).into();
        told
    }
}

/// The estimates of one model, or of all.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// A model's name, or `(all models)`, `(others)`: brackets are in no name.
    pub name: String,
    /// Turns, or incidents.
    pub samples: u64,
    /// Of which the end was not seen, trips among them.
    pub unfinished: u64,
    /// That the watchdog ended; for sockets, turns that failed with theirs.
    pub trips: u64,
    /// The longest that came.
    pub longest_ms: Option<u64>,
    pub table: Table,
    /// About this model alone.
    pub verdict: Verdict,
}

/// One line for each candidate, or bucket.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Table {
    Deadline(Vec<deadline::Line>),
    Recovery(Vec<recovery::Line>),
    Wear(Vec<wear::Line>),
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    Keep {
        why: String,
    },
    Raise {
        to_ms: u64,
        why: String,
    },
    Lower {
        to_ms: u64,
        why: String,
    },
    /// `needed` is absent where no number of such samples would decide it.
    NotEnough {
        samples: u64,
        needed: Option<u64>,
        /// What a sample is; its first word is the noun.
        what: String,
    },
}

impl Verdict {
    /// As it is.
    pub fn keep(why: impl Into<String>) -> Verdict {
        Verdict::Keep { why: why.into() }
    }

    /// The value to write, where there is another than the one in force.
    pub fn value(&self) -> Option<u64> {
        match self {
            Verdict::Raise { to_ms, .. } | Verdict::Lower { to_ms, .. } => Some(*to_ms),
            Verdict::Keep { .. } | Verdict::NotEnough { .. } => None,
        }
    }

    /// One plain sentence about a key of which `in_force_ms` is in force.
    pub fn sentence(&self, in_force_ms: u64) -> String {
        match self {
            Verdict::Keep { why } => format!("keep {}: {why}.", written_ms(in_force_ms)),
            Verdict::Raise { to_ms, why } => format!("raise to {}: {why}.", written_ms(*to_ms)),
            Verdict::Lower { to_ms, why } => format!("lower to {}: {why}.", written_ms(*to_ms)),
            Verdict::NotEnough {
                samples,
                needed: Some(needed),
                what,
            } => format!("not enough evidence: {}, {needed} needed.", of(*samples, what)),
            Verdict::NotEnough {
                samples,
                needed: None,
                what,
            } => format!(
                "not enough evidence: {}, and too close to the bound for any number to decide.",
                of(*samples, what)
            ),
        }
    }
}

/// `2 turns at an age over 30m`
fn of(samples: u64, what: &str) -> String {
    let (noun, which) = what.split_at(what.find(' ').unwrap_or(what.len()));
    format!("{}{which}", counted(samples, noun))
}
