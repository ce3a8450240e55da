//! What leaves the journal, oldest first and in small steps (JRN-5).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};

use super::Bounds;
use super::pages::PAGES;
use super::table::{self, COUNTER, Table};
use crate::store::fault::Trouble;
use crate::store::schema::RAISE_COUNTER;

/// Rows that one step deletes at most: about a millisecond of work.
const STEP: i64 = 1024;
/// Rows of this process grow old by its own clock, which is read so often in the time that they are kept.
const MARKS: u32 = 8;

pub(super) struct Sweep {
    bounds: Bounds,
    /// How far the journal was, and when, by the clock that nobody sets.
    marks: VecDeque<(Instant, i64)>,
}

impl Sweep {
    pub(super) fn new(bounds: Bounds) -> Sweep {
        Sweep {
            bounds,
            marks: VecDeque::new(),
        }
    }

    /// Indexes what can be indexed and deletes what is over. Whether there is more of it.
    pub(super) fn tidy(
        &mut self,
        connection: &mut Connection,
        table: &mut Table,
        now: Instant,
        now_ms: u64,
    ) -> Result<bool, Trouble> {
        table.index(connection)?;
        let newest = table.next - 1;
        let old = self.old(now, newest);
        let Some(oldest) = table::oldest(connection)? else {
            return Ok(false);
        };
        let surplus = newest.saturating_sub(i64::try_from(self.bounds.max).unwrap_or(i64::MAX));
        let step = oldest.saturating_add(STEP - 1).min(newest);
        let over = self.over(connection, oldest, step.min(old), now_ms)?;
        let through = surplus.max(over).min(step);
        if through < oldest {
            return Ok(false);
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let delete = |sql: &str, until: i64| transaction.prepare_cached(sql)?.execute([until]);
        delete("DELETE FROM journal WHERE seq <= ?1", through)?;
        delete("DELETE FROM journal_indexed WHERE last <= ?1", through)?;
        // A page leaves when the last of its rows does.
        let pages = through.saturating_add(1).saturating_mul(PAGES);
        delete("DELETE FROM journal_pages WHERE id < ?1", pages)?;
        transaction
            .prepare_cached(RAISE_COUNTER)?
            .execute((COUNTER, through))?;
        transaction.commit()?;
        table.indexed = table.indexed.max(through);
        Ok(through == step && through < newest)
    }

    /// The last of the rows up to `step` that are over, all those before it being over too: rows leave in their order. So a
    /// row that was written while the clock went wrong leaves with its neighbours.
    fn over(&self, connection: &Connection, oldest: i64, step: i64, now_ms: u64) -> Result<i64, Trouble> {
        let keep = u64::try_from(self.bounds.keep.as_millis()).unwrap_or(u64::MAX);
        let Some(limit) = now_ms.checked_sub(keep) else {
            return Ok(0);
        };
        let fresh: Option<i64> = connection
            .prepare_cached("SELECT min(seq) FROM journal WHERE seq BETWEEN ?1 AND ?2 AND at_ms > ?3")?
            .query_row((oldest, step, limit.cast_signed()), |row| row.get(0))?;
        Ok(fresh.map_or(step, |fresh| fresh - 1))
    }

    /// The last row that may be over by its age. Whatever the wall clock says, a row of this process is not as old as the
    /// process is.
    fn old(&mut self, now: Instant, newest: i64) -> i64 {
        let keep = self.bounds.keep;
        let since = |at: Instant| now.saturating_duration_since(at);
        let apart = self.marks.back().map(|(at, _)| since(*at));
        if apart.is_none_or(|apart| apart >= keep / MARKS && apart > Duration::ZERO) {
            self.marks.push_back((now, newest));
        }
        // The first one of an age counts, until a later one is as old.
        while self.marks.get(1).is_some_and(|(at, _)| since(*at) >= keep) {
            self.marks.pop_front();
        }
        self.marks.front().map_or(newest, |(_, seq)| *seq)
    }
}
