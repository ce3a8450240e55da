//! The walk over the rows: by a name's index, or through the times that are asked for.

use std::collections::HashSet;
use std::ops::{ControlFlow, RangeInclusive};

use rusqlite::OptionalExtension;

use super::table::damaged;
use super::{Query, Reader, Row, Shapes, Trouble, names, pages, shape};

/// Numbers of rows, both ends included.
type Rows = RangeInclusive<i64>;
type Give<'a> = &'a mut dyn FnMut(Row) -> ControlFlow<()>;

const COLUMNS: &str =
    "SELECT seq, at_ms, shape, names, body FROM journal WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq";

/// What a walk is for.
struct Walk<'a> {
    query: &'a Query,
    shapes: &'a Shapes,
    /// Those that are asked for.
    wanted: HashSet<i64>,
    left: usize,
}

impl Reader {
    pub(super) fn scan(&self, query: &Query, give: Give<'_>) -> Result<(), Trouble> {
        // All of one moment, however long it takes: the bridge goes on writing, and nobody waits. A look from within
        // another one is a part of its moment.
        let moment = self
            .connection
            .is_autocommit()
            .then(|| self.connection.unchecked_transaction());
        let _moment = moment.transpose()?;
        let shapes = self.read_shapes()?;
        let wanted = shapes.iter().filter(|(_, shape)| shape.is_wanted(query));
        let mut walk = Walk {
            query,
            shapes: &shapes,
            wanted: wanted.map(|(id, _)| *id).collect(),
            left: query.most,
        };
        let mut ranges = self.ranges(query)?;
        if query.newest {
            ranges.reverse();
        }
        for range in ranges {
            let go_on = match query.name {
                Some(name) if range.indexed => self.by_name(name, &range.rows, &mut walk, give)?,
                _ => self.through(&range.rows, &mut walk, give)?,
            };
            if go_on.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The rows among which those asked for are, oldest first: what is indexed and of the right time, and what is not yet
    /// indexed.
    fn ranges(&self, query: &Query) -> Result<Vec<Range>, Trouble> {
        let after = query
            .after
            .map_or(0, |after| i64::try_from(after).unwrap_or(i64::MAX));
        let (since, until) = (query.since_ms.unwrap_or(0), query.until_ms.unwrap_or(u64::MAX));
        let mut statement = self.connection.prepare_cached(
            "SELECT first, last, from_ms, until_ms FROM journal_indexed WHERE last > ?1 ORDER BY last",
        )?;
        let mut rows = statement.query([after])?;
        let mut ranges = Vec::new();
        let mut indexed = after;
        while let Some(row) = rows.next()? {
            let (first, last): (i64, i64) = (row.get(0)?, row.get(1)?);
            let (from_ms, until_ms): (i64, i64) = (row.get(2)?, row.get(3)?);
            indexed = last;
            if until_ms.cast_unsigned() >= since && from_ms.cast_unsigned() <= until {
                ranges.push(Range {
                    rows: first..=last,
                    indexed: true,
                });
            }
        }
        ranges.push(Range {
            rows: indexed.saturating_add(1)..=i64::MAX,
            indexed: false,
        });
        Ok(ranges)
    }

    fn by_name(
        &self,
        name: u64,
        rows: &Rows,
        walk: &mut Walk<'_>,
        give: Give<'_>,
    ) -> Result<ControlFlow<()>, Trouble> {
        let last = *rows.end();
        let id = last.saturating_mul(pages::PAGES) + pages::page(name);
        let page: Option<Vec<u8>> = self
            .connection
            .prepare_cached("SELECT entries FROM journal_pages WHERE id = ?1")?
            .query_row([id], |row| row.get(0))
            .optional()?;
        let Some(page) = page else {
            return Ok(ControlFlow::Continue(()));
        };
        let found = pages::search(&page, name, last).ok_or_else(|| damaged("a page of the index is cut"))?;
        let mut found: Vec<i64> = found.collect();
        found.dedup();
        if !walk.query.newest {
            found.reverse();
        }
        for seq in found {
            if self.through(&(seq..=seq), walk, give)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn through(&self, rows: &Rows, walk: &mut Walk<'_>, give: Give<'_>) -> Result<ControlFlow<()>, Trouble> {
        if walk.left == 0 {
            return Ok(ControlFlow::Break(()));
        }
        let order = if walk.query.newest { " DESC" } else { "" };
        let mut statement = self.connection.prepare_cached(&format!("{COLUMNS}{order}"))?;
        let mut found = statement.query((rows.start(), rows.end()))?;
        while let Some(row) = found.next()? {
            let Some(row) = self.read(row, walk)? else {
                continue;
            };
            if give(row).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            walk.left -= 1;
            if walk.left == 0 {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The row, if it is one of those asked for.
    fn read(&self, row: &rusqlite::Row<'_>, walk: &Walk<'_>) -> Result<Option<Row>, Trouble> {
        let query = walk.query;
        let seq = row.get::<_, i64>(0)?.cast_unsigned();
        let at_ms = row.get::<_, i64>(1)?.cast_unsigned();
        let id: i64 = row.get(2)?;
        let in_time = query.since_ms.is_none_or(|since| at_ms >= since)
            && query.until_ms.is_none_or(|until| at_ms <= until)
            && query.after.is_none_or(|after| seq > after);
        if !in_time || !walk.wanted.contains(&id) {
            // One that nobody knows is nobody's wish either, but to be told.
            let known = walk.shapes.contains_key(&id);
            return if known {
                Ok(None)
            } else {
                Err(damaged("a row has an unknown shape"))
            };
        }
        let bytes = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
        let mut carried = names::read(bytes).ok_or_else(|| damaged("a row's names are cut"))?;
        if query
            .name
            .is_some_and(|name| !carried.any(|carried| carried == name))
        {
            return Ok(None);
        }
        let shape = walk
            .shapes
            .get(&id)
            .ok_or_else(|| damaged("a row has an unknown shape"))?;
        let values = row.get_ref(4)?.as_str().map_err(rusqlite::Error::from)?;
        let body =
            shape::join(&shape.shape, values).ok_or_else(|| damaged("a row does not fit its shape"))?;
        Ok(Some(Row {
            seq,
            at_ms,
            event: shape.event.clone(),
            account: shape.account.clone(),
            names: names::read(bytes).into_iter().flatten().collect(),
            body,
        }))
    }
}

/// Rows that follow each other.
struct Range {
    rows: Rows,
    indexed: bool,
}
