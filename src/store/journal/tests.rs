use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::pages::ROWS;
use super::sweep::Sweep;
use super::table::Table;
use super::*;
use crate::event::{At, name};
use crate::journal::{Entry, Names};
use crate::store::schema;

const DAY: u64 = 24 * 3600 * 1000;

/// A file, and what the writer thread has of it.
struct Bench {
    _home: tempfile::TempDir,
    connection: Connection,
    table: Option<Table>,
    sweep: Sweep,
}

impl Bench {
    fn new(bounds: Bounds) -> Bench {
        let home = tempfile::tempdir().unwrap();
        let mut connection = schema::open(&home.path().join("state.db"), Duration::ZERO).unwrap();
        let found = schema::examine(&connection).unwrap();
        schema::claim(&mut connection, found, 1).unwrap();
        Bench {
            _home: home,
            connection,
            table: None,
            sweep: Sweep::new(bounds),
        }
    }

    fn append(&mut self, entries: impl IntoIterator<Item = Entry>) {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let table = Table::of(&mut self.table, &self.connection).unwrap();
        table.append(&mut self.connection, entries.iter()).unwrap();
    }

    /// Whether there is more to do.
    fn tidy(&mut self, now: Instant, now_ms: u64) -> bool {
        let table = Table::of(&mut self.table, &self.connection).unwrap();
        self.sweep.tidy(&mut self.connection, table, now, now_ms).unwrap()
    }

    fn tidy_all(&mut self, now: Instant, now_ms: u64) {
        while self.tidy(now, now_ms) {}
    }

    fn number(&self, sql: &str) -> i64 {
        self.connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn rows(&self) -> i64 {
        self.number("SELECT count(*) FROM journal")
    }

    fn ends(&self) -> (i64, i64) {
        (
            self.number("SELECT min(seq) FROM journal"),
            self.number("SELECT max(seq) FROM journal"),
        )
    }
}

fn at(at_ms: u64) -> Entry {
    let mut names = Names::default();
    names.add(at_ms);
    Entry {
        at_ms,
        event: "refused",
        at: None,
        names,
        body: r#"{"event":"refused","reason":"draining"}"#.into(),
    }
}

fn bounds(keep_ms: u64, max: usize) -> Bounds {
    Bounds {
        keep: Duration::from_millis(keep_ms),
        max,
    }
}

/// [JRN-5] Beyond the bound the oldest leave, a thousand at a time, with what they are found by.
#[test]
fn the_oldest_leave_in_small_steps() {
    let mut bench = Bench::new(bounds(u64::MAX, 1500));
    bench.append((0..10_000).map(at));
    let now = Instant::now();
    assert!(bench.tidy(now, 0));
    assert_eq!(bench.ends(), (1025, 10_000));
    assert_eq!(bench.number("SELECT count(*) FROM journal_indexed"), 1);
    bench.tidy_all(now, 0);
    assert_eq!(bench.ends(), (8501, 10_000));
    // The second page's rows are all gone, those of a third one are not yet as many.
    assert_eq!(bench.number("SELECT count(*) FROM journal_indexed"), 0);
    assert_eq!(bench.number("SELECT count(*) FROM journal_pages"), 0);
    bench.append((0..2 * ROWS.unsigned_abs()).map(at));
    bench.tidy_all(now, 0);
    assert_eq!(bench.rows(), 1500);
    assert!(bench.number("SELECT count(*) FROM journal_pages") <= 32);
}

/// [JRN-5] When all rows have left, and the process is another one, the next row still has a number of its own.
#[test]
fn numbers_are_not_used_twice() {
    let mut bench = Bench::new(bounds(u64::MAX, 0));
    bench.append((0..10).map(at));
    bench.tidy_all(Instant::now(), 0);
    assert_eq!(bench.rows(), 0);
    bench.table = None;
    bench.append([at(1)]);
    assert_eq!(bench.ends(), (11, 11));
}

/// [JRN-5] Rows leave when they are as old as they may be, by their time.
#[test]
fn old_rows_leave() {
    let mut bench = Bench::new(bounds(7 * DAY, usize::MAX));
    bench.append((0..10).map(|day| at(day * DAY)));
    bench.table = None;
    bench.tidy_all(Instant::now(), 9 * DAY);
    assert_eq!(bench.ends(), (4, 10));
    bench.tidy_all(Instant::now(), 10 * DAY - 1);
    assert_eq!(bench.ends(), (4, 10));
    bench.tidy_all(Instant::now(), 10 * DAY);
    assert_eq!(bench.ends(), (5, 10));
}

/// [JRN-6] A clock that is set back for a while: what is written meanwhile looks old, and leaves with its neighbours.
#[test]
fn rows_of_a_wrong_time_leave_in_their_order() {
    let mut bench = Bench::new(bounds(7 * DAY, usize::MAX));
    let begin = Instant::now();
    bench.append([
        at(100 * DAY),
        at(80 * DAY),
        at(0),
        at(100 * DAY + 1),
        at(101 * DAY),
    ]);
    bench.tidy_all(begin, 101 * DAY);
    assert_eq!(bench.ends(), (1, 5));
    bench.tidy_all(begin, 107 * DAY);
    assert_eq!(bench.ends(), (4, 5), "with the first the two of a wrong time");
}

/// [JRN-6] A clock that jumps ahead: rows of this process are as old as they really are.
#[test]
fn a_clock_that_jumps_ahead_deletes_nothing_fresh() {
    let mut bench = Bench::new(bounds(7 * DAY, usize::MAX));
    let begin = Instant::now();
    let after = |days: u64| begin + Duration::from_millis(days * DAY);
    bench.append([at(0), at(1)]);
    bench.tidy_all(begin, 2);
    bench.append([at(3), at(4)]);
    // The first two are of an earlier look, for all that is known of another process.
    bench.tidy_all(after(1), 20_000 * DAY);
    assert_eq!(bench.ends(), (3, 4));
    bench.tidy_all(after(6), 20_006 * DAY);
    assert_eq!(bench.ends(), (3, 4));
    bench.append([at(20_006 * DAY)]);
    bench.tidy_all(after(9), 20_009 * DAY);
    assert_eq!(bench.ends(), (5, 5));
}

/// [JRN-4] Texts without end of kinds cost more, and do not make as many shapes.
#[test]
fn shapes_are_bounded() {
    let mut bench = Bench::new(Bounds::NONE);
    let odd = |n: u64| Entry {
        at: Some(At {
            provider: name("openai"),
            account: name("main"),
        }),
        body: format!(
            r#"{{"event":"refused","reason":"{}"}}"#,
            "x".repeat(n as usize % 5000)
        )
        .into(),
        ..at(n)
    };
    for begin in 0..10 {
        bench.append((begin * 600..(begin + 1) * 600).map(odd));
    }
    let shapes = bench.number("SELECT count(*) FROM journal_shapes");
    assert!((4096..=4097).contains(&shapes), "{shapes}");
    // Another process reads them, and goes on with them.
    bench.table = None;
    bench.append([odd(4999), odd(1)]);
    assert_eq!(bench.number("SELECT count(*) FROM journal_shapes"), shapes);
}
