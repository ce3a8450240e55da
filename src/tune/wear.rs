//! `session.max_age` and `session.idle_ttl`: whether sockets fail more often the older they are, or the longer they were
//! idle, from how many turns failed with their socket in each bucket, of those that it carried (TUNE-8).

use serde::Serialize;

use super::proportion::{Share, needed};
use super::report::{Group, Section, Table, Verdict};
use crate::lapse::written_ms;

const MINUTE: u64 = 60_000;
/// Ages as events tell them: name, and what the bucket reaches up to.
pub const AGES: [(&str, u64); 5] = [
    ("1m", MINUTE),
    ("10m", 10 * MINUTE),
    ("30m", 30 * MINUTE),
    ("1h", 60 * MINUTE),
    ("older", u64::MAX),
];
/// Idle times before a turn, likewise.
pub const IDLES: [(&str, u64); 5] = [
    ("1s", 1000),
    ("30s", 30_000),
    ("5m", 5 * MINUTE),
    ("30m", 30 * MINUTE),
    ("longer", u64::MAX),
];
/// More turns than one in a hundred that fail with their socket are felt: the agent has to send them again.
const WORN: f64 = 0.01;
/// A shorter life is no session any more: it would cost a handshake for nearly every turn.
const FLOOR_MS: u64 = 30_000;

/// Turns, and how many of them failed with their socket, by bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buckets([(u64, u64); 5]);

impl Buckets {
    /// A turn on a socket of the `bucket`th bucket. There are five.
    pub fn add(&mut self, bucket: usize, failed: bool) {
        if let Some((turns, worn)) = self.0.get_mut(bucket) {
            *turns += 1;
            *worn += u64::from(failed);
        }
    }
}

/// One bucket.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// `up to 10m`.
    pub bucket: String,
    pub turns: u64,
    /// Those that failed with their socket.
    pub failed: u64,
    pub share: Share,
    /// What it begins at, in milliseconds.
    #[serde(skip)]
    from_ms: u64,
}

/// The section of `key`, of which `in_force_ms` is in force. `names`: the buckets' names and ends. `of`: what they are
/// buckets of.
pub fn section(
    key: &'static str,
    in_force_ms: u64,
    names: [(&'static str, u64); 5],
    of: &'static str,
    buckets: Buckets,
) -> Section {
    let lines = lines(names, buckets);
    let turns = lines.iter().map(|line| line.turns).sum();
    let verdict = verdict(in_force_ms, &lines, of);
    Section {
        key,
        in_force_ms,
        notes: vec![format!(
            "Turns on sessions by the {of} of their socket; failed: closed by the upstream, dead, or silent."
        )],
        groups: vec![Group {
            name: "(all models)".to_owned(),
            samples: turns,
            unfinished: 0,
            trips: lines.iter().map(|line| line.failed).sum(),
            longest_ms: None,
            table: Table::Wear(lines),
            verdict: verdict.clone(),
        }],
        verdict,
    }
}

fn lines(names: [(&'static str, u64); 5], Buckets(buckets): Buckets) -> Vec<Line> {
    let mut from_ms = 0;
    let mut lines = Vec::new();
    for ((_, to_ms), (turns, failed)) in names.into_iter().zip(buckets) {
        let bucket = if to_ms == u64::MAX {
            format!("over {}", written_ms(from_ms))
        } else {
            format!("up to {}", written_ms(to_ms))
        };
        lines.push(Line {
            bucket,
            turns,
            failed,
            share: Share::count(failed, turns),
            from_ms,
        });
        from_ms = to_ms;
    }
    lines
}

/// Judged from young to old: the first bucket that is worse than what is wanted and than all before it ends the life of a
/// socket where it begins.
fn verdict(in_force_ms: u64, lines: &[Line], of: &str) -> Verdict {
    let seen: Vec<_> = lines.iter().filter(|line| line.turns > 0).collect();
    let mut younger = (0, 0);
    for line in &seen {
        let before = Share::count(younger.0, younger.1);
        let worse = line.share.low > WORN && line.share.low > before.high && line.from_ms >= FLOOR_MS;
        if worse && line.from_ms < in_force_ms {
            return Verdict::Lower {
                to_ms: line.from_ms,
                why: format!(
                    "beyond it {} of {} turns failed with their socket, before it {} of {}",
                    line.failed, line.turns, younger.0, younger.1
                ),
            };
        }
        if worse {
            break;
        }
        younger = (younger.0 + line.failed, younger.1 + line.turns);
    }
    // A bucket that begins beyond the value in force was seen under a longer one, or by a turn that was bound to its socket.
    let sound = seen.iter().take_while(|line| line.share.low <= WORN);
    let beyond = sound
        .filter(|line| line.from_ms > in_force_ms && line.share.high <= WORN)
        .last();
    if let Some(line) = beyond {
        return Verdict::Raise {
            to_ms: line.from_ms,
            why: format!(
                "even beyond it at most 1 % of turns fail with their socket ({} of {})",
                line.failed, line.turns
            ),
        };
    }
    let within = lines.iter().rev().find(|line| line.from_ms < in_force_ms);
    let Some(last) = within else {
        return Verdict::keep("nothing shorter can be told from the buckets of the journal");
    };
    if last.share.high <= WORN {
        return Verdict::keep(format!(
            "at most 1 % of turns fail at that {of}; nothing is known about a longer one"
        ));
    }
    if last.share.low > WORN {
        return Verdict::keep(format!(
            "sockets fail ({} of {} turns), but not more often at a greater {of}",
            last.failed, last.turns
        ));
    }
    Verdict::NotEnough {
        samples: last.turns,
        needed: needed(last.share.share, WORN),
        what: format!("turn at an {of} over {}", written_ms(last.from_ms)),
    }
}

#[cfg(test)]
mod tests;
