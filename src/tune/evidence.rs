//! What the rows of a journal say about windows. Rows may be cut, forged or of another program: what cannot be read is
//! counted and left out, and no text of theirs is kept but model names in a safe alphabet (TUNE-2).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Deserialize;

use super::incidents::{Incident, Incidents};
use super::survival::{End, Wait};
use super::wear::{AGES, Buckets, IDLES};

/// No window may be longer than 30 days: neither can a wait be.
const LONGEST_MS: u64 = 30 * 24 * 3600 * 1000;
/// Other models that are named.
const NAMED: usize = 10;
/// Outcomes that are a socket's fault.
const WORN: [&str; 3] = ["upstream_closed", "socket_dead", "response_created_timeout"];

/// One row of the journal.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Unix milliseconds.
    pub at_ms: u64,
    /// The event's name.
    pub event: &'a str,
    /// The event as a JSON object.
    pub body: &'a str,
}

/// The waits of the turns on sessions of one model, or of all turns by direct HTTP.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// From the flushed create to `response.created`.
    pub created: Vec<Wait>,
    /// The longest silence of each accepted turn.
    pub gaps: Vec<Wait>,
}

/// All that was read.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Only turns of this model count.
    only: Option<String>,
    /// Providers with a `max_age` of their own.
    own_max_age: Vec<String>,
    /// Rows that say something about windows.
    rows: u64,
    unreadable: u64,
    span: Option<(u64, u64)>,
    models: BTreeMap<String, Turns>,
    direct: Turns,
    incidents: Incidents,
    ages: Buckets,
    idles: Buckets,
    /// Sessions whose silence has been counted: the turn's own row repeats it.
    silent: HashSet<u64>,
    /// Keys of which a session went silent, where only one model counts.
    keys: HashSet<String>,
    /// Models that do not count, where only one does: some of them.
    others: BTreeSet<String>,
}

/// What the estimates are made from.
#[derive(Debug)]
pub struct Read {
    /// Some of the models whose turns were left out.
    pub others: Vec<String>,
    pub rows: u64,
    pub unreadable: u64,
    /// Of the first and the last row, in Unix milliseconds.
    pub span: Option<(u64, u64)>,
    /// Turns on sessions, by model.
    pub models: BTreeMap<String, Turns>,
    pub direct: Turns,
    pub incidents: Vec<Incident>,
    pub ages: Buckets,
    pub idles: Buckets,
}

#[derive(Deserialize)]
struct Turn<'a> {
    #[serde(borrow)]
    provider: Cow<'a, str>,
    #[serde(borrow)]
    model: Cow<'a, str>,
    #[serde(borrow)]
    transport: Cow<'a, str>,
    #[serde(borrow)]
    outcome: Cow<'a, str>,
    session: Option<u64>,
    stream: bool,
    sent: bool,
    total_ms: u64,
    upstream_ms: Option<u64>,
    created_ms: Option<u64>,
    longest_gap_ms: Option<u64>,
    age: Option<Cow<'a, str>>,
    idle: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Trip<'a> {
    #[serde(borrow)]
    model: Cow<'a, str>,
    #[serde(borrow)]
    key: Cow<'a, str>,
    session: u64,
    waited_ms: u64,
}

#[derive(Deserialize)]
struct Quarantined<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Action<'a> {
    #[serde(borrow)]
    reason: Cow<'a, str>,
    key: Option<Cow<'a, str>>,
}

/// Whether a row is of the model that counts.
enum Counted {
    Yes,
    No,
}

/// The row is not what its event's rows are.
struct Unreadable;

impl From<serde_json::Error> for Unreadable {
    fn from(_: serde_json::Error) -> Self {
        Unreadable
    }
}

impl Evidence {
    /// Nothing yet. `only`: the one model whose turns count. `own_max_age`: the providers that `session.max_age` does not
    /// rule.
    pub fn new(only: Option<&str>, own_max_age: Vec<String>) -> Evidence {
        Evidence {
            only: only.map(safe),
            own_max_age,
            ..Evidence::default()
        }
    }

    /// Takes the next row, in the journal's order.
    pub fn take(&mut self, row: Row<'_>) {
        let taken = match row.event {
            "turn_finished" => self.turn(row),
            "response_created_timeout" => self.trip(row),
            "quarantine_opened" | "quarantine_probe" | "quarantine_cleared" | "quarantine_evicted" => {
                self.quarantine(row)
            }
            "operator_action" => self.action(row),
            _ => return,
        };
        self.rows += u64::from(!matches!(taken, Ok(Counted::No)));
        match taken {
            Ok(Counted::No) => {}
            Ok(Counted::Yes) => {
                let (first, last) = self.span.unwrap_or((row.at_ms, row.at_ms));
                self.span = Some((first.min(row.at_ms), last.max(row.at_ms)));
            }
            Err(Unreadable) => self.unreadable += 1,
        }
    }

    /// All rows are in.
    pub fn read(self) -> Read {
        Read {
            others: self.others.into_iter().collect(),
            rows: self.rows,
            unreadable: self.unreadable,
            span: self.span,
            models: self.models,
            direct: self.direct,
            incidents: self.incidents.all(),
            ages: self.ages,
            idles: self.idles,
        }
    }

    fn counts(&mut self, model: &str) -> bool {
        let counts = self.only.as_deref().is_none_or(|only| only == model);
        if !counts && self.others.len() < NAMED {
            self.others.insert(model.to_owned());
        }
        counts
    }

    fn turn(&mut self, row: Row<'_>) -> Result<Counted, Unreadable> {
        let turn: Turn<'_> = serde_json::from_str(row.body)?;
        let upstream = turn.upstream_ms.unwrap_or(0);
        // A part is never longer than its whole.
        let parts = [turn.created_ms.unwrap_or(0), turn.longest_gap_ms.unwrap_or(0)];
        if turn.total_ms > LONGEST_MS || upstream > turn.total_ms || parts.iter().any(|part| *part > upstream)
        {
            return Err(Unreadable);
        }
        let model = safe(&turn.model);
        if !self.counts(&model) {
            return Ok(Counted::No);
        }
        let websocket = match &*turn.transport {
            "websocket" => true,
            "http" => false,
            _ => return Err(Unreadable),
        };
        if websocket {
            self.wear(&turn)?;
        }
        // What was not sent, or not to its end, waited for nothing; what is answered in one piece has no `response.created` of its own.
        if !turn.sent || turn.outcome == "write_stalled" || (!websocket && !turn.stream) {
            return Ok(Counted::Yes);
        }
        let told = turn.session.is_some_and(|session| self.silent.contains(&session));
        let of = if websocket {
            self.models.entry(model).or_default()
        } else {
            &mut self.direct
        };
        let outcome = &*turn.outcome;
        let (ms, end) = match (turn.created_ms, outcome) {
            (Some(ms), _) => (ms, End::Came),
            (None, "response_created_timeout") => (upstream, End::Tripped),
            (None, _) => (upstream, End::GivenUp),
        };
        if !(told && end == End::Tripped) {
            of.created.push(Wait { ms, end });
        }
        if let (Some(_), Some(ms)) = (turn.created_ms, turn.longest_gap_ms) {
            let end = match outcome {
                "completed" | "incomplete" | "failed" => End::Came,
                "idle_timeout" => End::Tripped,
                _ => End::GivenUp,
            };
            of.gaps.push(Wait { ms, end });
        }
        Ok(Counted::Yes)
    }

    /// How old and how long idle its socket was.
    fn wear(&mut self, turn: &Turn<'_>) -> Result<(), Unreadable> {
        let (Some(age), Some(idle)) = (&turn.age, &turn.idle) else {
            return Ok(());
        };
        let place = |names: [&str; 5], name: &str| names.iter().position(|known| *known == name);
        let age = place(AGES.map(|(name, _)| name), age).ok_or(Unreadable)?;
        let idle = place(IDLES.map(|(name, _)| name), idle).ok_or(Unreadable)?;
        let failed = WORN.contains(&&*turn.outcome);
        if !self.own_max_age.iter().any(|own| *own == turn.provider) {
            self.ages.add(age, failed);
        }
        self.idles.add(idle, failed);
        Ok(())
    }

    fn trip(&mut self, row: Row<'_>) -> Result<Counted, Unreadable> {
        let trip: Trip<'_> = serde_json::from_str(row.body)?;
        if trip.waited_ms == 0 || trip.waited_ms > LONGEST_MS {
            return Err(Unreadable);
        }
        let model = safe(&trip.model);
        if !self.counts(&model) {
            return Ok(Counted::No);
        }
        if self.only.is_some() {
            self.keys.insert(trip.key.into_owned());
        }
        self.silent.insert(trip.session);
        let (ms, end) = (trip.waited_ms, End::Tripped);
        self.models
            .entry(model)
            .or_default()
            .created
            .push(Wait { ms, end });
        Ok(Counted::Yes)
    }

    fn quarantine(&mut self, row: Row<'_>) -> Result<Counted, Unreadable> {
        let Quarantined { key } = serde_json::from_str(row.body)?;
        if self.only.is_some() && !self.keys.contains(&*key) {
            return Ok(Counted::No);
        }
        match row.event {
            "quarantine_opened" => self.incidents.opened(key.into_owned(), row.at_ms),
            "quarantine_probe" => self.incidents.probed(&key, row.at_ms),
            "quarantine_cleared" => self.incidents.cleared(&key),
            _ => self.incidents.ended(&key),
        }
        Ok(Counted::Yes)
    }

    /// What an operator clears was not cleared by a probe.
    fn action(&mut self, row: Row<'_>) -> Result<Counted, Unreadable> {
        let action: Action<'_> = serde_json::from_str(row.body)?;
        // Of one model, an action is only there for its keys.
        let of_others =
            self.only.is_some() && !action.key.as_ref().is_some_and(|key| self.keys.contains(&**key));
        if action.reason == "quarantine_cleared" {
            match action.key {
                Some(key) => self.incidents.ended(&key),
                None => self.incidents.ended_all(),
            }
        }
        Ok(if of_others { Counted::No } else { Counted::Yes })
    }
}

/// A model's name as it may be shown, whoever wrote the row: 64 characters of a safe alphabet.
fn safe(model: &str) -> String {
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() || "._:/-".contains(c) {
            c
        } else {
            '?'
        }
    };
    model.chars().take(64).map(keep).collect()
}

#[cfg(test)]
mod tests;
