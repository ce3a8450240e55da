//! What is asked of the journal: a handful of questions, each bounded in time and in number (EXP-6).

use super::fact::{Body, key_name};
use super::{Cause, Row};
use crate::journal::{STARTS, SURROUNDINGS};

/// Rows that an id names, at most: of more, the newest.
const FOUND: usize = 200;
/// Calls that are asked for one by one.
const CALLS: usize = 8;
/// Keys whose rows are asked for.
const KEYS: usize = 4;
/// Rows of a key before and after what was found.
const AROUND: usize = 100;
/// Rows of the accounts and the process before and after the last one found.
const MOST_AROUND: usize = 100;
/// Other turns of the account.
const NEIGHBOURS: usize = 500;
/// So long before the first row found.
const BEFORE_MS: u64 = 10 * 60_000;
/// So long after the last one, or twice the quarantine, if that is longer.
const AFTER_MS: u64 = 10 * 60_000;
/// So long after the last row found the bridge may have ended to be of the story.
pub const ENDED_MS: u64 = AFTER_MS;
/// How far around a turn others of its account count as of the same moment.
pub const MOMENT_MS: u64 = 60_000;

/// A question to the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub since_ms: u64,
    pub until_ms: u64,
    /// An event's name.
    pub kind: Option<&'static str>,
    /// `provider/account`.
    pub account: Option<String>,
    pub name: Option<u64>,
    pub most: usize,
    /// Of more than `most` the newest; else the oldest.
    pub newest: bool,
}

/// A journal. Rows come oldest first.
pub trait Source {
    type Fault;
    /// The newest rows that carry a name.
    fn find(&self, name: u64, most: usize) -> Result<Vec<Row>, Self::Fault>;
    fn rows(&self, wanted: &Wanted) -> Result<Vec<Row>, Self::Fault>;
}

/// What is known.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// What was asked for.
    pub names: Vec<u64>,
    /// Rows that the id names.
    pub found: Vec<Row>,
    /// Other rows of their calls and keys, and of the accounts and the process in that time.
    pub around: Vec<Row>,
    /// Ends of other turns of the same accounts, at the same moment as one that an account rejected.
    pub neighbours: Vec<Row>,
    /// There was more than was asked for.
    pub cut: bool,
}

/// How often the bridge ended without a finished drain, as far as that is told where there is nothing else to tell.
const CUTS: usize = 3;
/// Starts of the bridge among which those are looked for.
const STARTS_SEEN: usize = 50;

/// An id that nothing is known of is most often of now: a start of longer ago would mislead.
const RECENT_MS: u64 = 60 * 60_000;

/// When the bridge started in the hour before `now_ms` after one that had ended without a finished drain: newest first, a handful at most.
///
/// # Errors
/// Those of the journal.
pub fn cuts<S: Source>(source: &S, now_ms: u64) -> Result<Vec<Row>, S::Fault> {
    let mut starts = source.rows(&Wanted {
        since_ms: now_ms.saturating_sub(RECENT_MS),
        until_ms: u64::MAX,
        name: Some(STARTS),
        most: STARTS_SEEN,
        newest: true,
        ..Wanted::default()
    })?;
    starts.retain(|row| body(row).before.as_deref() == Some("cut"));
    starts.reverse();
    starts.truncate(CUTS);
    Ok(starts)
}

/// Asks for all that is needed to explain what `names` stand for.
///
/// # Errors
/// Those of the journal.
pub fn gather<S: Source>(source: &S, names: &[u64]) -> Result<Evidence, S::Fault> {
    let mut evidence = Evidence {
        names: names.to_vec(),
        ..Evidence::default()
    };
    for name in names {
        evidence.found.extend(source.find(*name, FOUND)?);
    }
    evidence.found.sort_by_key(|row| row.seq);
    evidence.found.dedup_by_key(|row| row.seq);
    evidence.cut = evidence.found.len() >= FOUND;
    let times = evidence.found.iter().map(|row| row.at_ms);
    let (Some(first), Some(last)) = (times.clone().min(), times.max()) else {
        return Ok(evidence);
    };
    let bodies: Vec<Body> = evidence.found.iter().map(body).collect();
    let began = bodies.iter().map(|body| body.total_ms).max().unwrap_or(0);
    let since_ms = first.saturating_sub(began).saturating_sub(BEFORE_MS);

    // The rest of the calls themselves: a refusal, say, has no key by which it could be found.
    let keys = latest(
        bodies
            .iter()
            .rev()
            .filter_map(|body| key_name(body.key.as_deref()?)),
        KEYS,
    );
    let calls = evidence
        .found
        .iter()
        .rev()
        .filter_map(|row| row.names.first().copied());
    for call in latest(
        calls.filter(|name| !keys.contains(name) && *name != SURROUNDINGS),
        CALLS,
    ) {
        evidence.around.extend(source.find(call, FOUND)?);
    }
    // As long as its quarantine may have lasted, and what came after it.
    let mut until_ms = last.saturating_add(AFTER_MS);
    for key in keys {
        let mut wanted = Wanted {
            since_ms,
            until_ms: last,
            name: Some(key),
            most: AROUND,
            newest: true,
            ..Wanted::default()
        };
        let before = source.rows(&wanted)?;
        let window = before.iter().map(|row| body(row).window_ms).max().unwrap_or(0);
        until_ms = until_ms.max(last.saturating_add(window.saturating_mul(2)));
        wanted = Wanted {
            since_ms: last,
            until_ms,
            newest: false,
            ..wanted
        };
        let after = source.rows(&wanted)?;
        evidence.cut |= before.len() >= AROUND || after.len() >= AROUND;
        evidence.around.extend(before);
        evidence.around.extend(after);
    }
    // Of too much, what is nearest to what was found.
    let mut wanted = Wanted {
        since_ms,
        until_ms: last,
        name: Some(SURROUNDINGS),
        most: MOST_AROUND,
        newest: true,
        ..Wanted::default()
    };
    let before = source.rows(&wanted)?;
    (wanted.since_ms, wanted.until_ms, wanted.newest) = (last.saturating_add(1), until_ms, false);
    let after = source.rows(&wanted)?;
    evidence.cut |= before.len() >= MOST_AROUND || after.len() >= MOST_AROUND;
    evidence.around.extend(before);
    evidence.around.extend(after);
    // However much else happened.
    evidence.around.extend(source.rows(&Wanted {
        since_ms,
        until_ms: last,
        name: Some(STARTS),
        most: STARTS_SEEN,
        newest: true,
        ..Wanted::default()
    })?);
    // Whatever time there was nobody to write anything.
    evidence.around.extend(source.rows(&Wanted {
        since_ms: last,
        until_ms: u64::MAX,
        name: Some(STARTS),
        most: 1,
        ..Wanted::default()
    })?);
    if let Some((row, _)) = evidence
        .found
        .iter()
        .zip(&bodies)
        .rfind(|(_, body)| is_rejected(body))
    {
        evidence.neighbours = source.rows(&Wanted {
            since_ms: row.at_ms.saturating_sub(MOMENT_MS),
            until_ms: row.at_ms.saturating_add(MOMENT_MS),
            kind: Some("turn_finished"),
            account: row.account.clone(),
            most: NEIGHBOURS,
            newest: true,
            ..Wanted::default()
        })?;
    }
    Ok(evidence)
}

fn is_rejected(body: &Body) -> bool {
    body.outcome.as_deref() == Some("rejected") && Cause::of_error(body.error.as_deref()).is_of_the_account()
}

fn body(row: &Row) -> Body {
    serde_json::from_str(&row.body).unwrap_or_default()
}

/// The first `most` that differ.
fn latest(names: impl Iterator<Item = u64>, most: usize) -> Vec<u64> {
    let mut distinct = Vec::new();
    for name in names {
        if distinct.len() < most && !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}
