use std::time::Duration;

use super::*;
use crate::store::Loaded;
use crate::store::load::{Bounds, load};
use crate::store::schema;

const HOUR: u64 = 3600;

/// A file, and the ledger that writes it.
struct Bench {
    home: tempfile::TempDir,
    ledger: Ledger,
}

impl Bench {
    fn new(max_owners: usize) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut connection = schema::open(&home.path().join("state.db"), Duration::ZERO).unwrap();
        let found = schema::examine(&connection).unwrap();
        schema::claim(&mut connection, found, 1).unwrap();
        Bench {
            home,
            ledger: Ledger::new(connection, max_owners, max_owners),
        }
    }

    fn load(&self, owners: usize, now: u64) -> Loaded {
        let connection = schema::open(&self.home.path().join("state.db"), Duration::ZERO).unwrap();
        load(
            &connection,
            schema::Found::Ours,
            Bounds {
                owners,
                pins: owners,
                quarantine: 2,
                now_ms: now * 1000,
            },
        )
        .unwrap()
    }

    fn numbers(&self, owners: usize, now: u64) -> Vec<u64> {
        self.load(owners, now)
            .owners
            .iter()
            .map(|row| row.session)
            .collect()
    }

    fn rows(&self) -> i64 {
        self.ledger
            .connection
            .query_row("SELECT count(*) FROM owners", [], |row| row.get(0))
            .unwrap()
    }
}

fn owner(number: u64, expires_at: u64) -> Change {
    Change::Owner(OwnerRow {
        hash: u128::from(number).to_le_bytes(),
        account: Arc::from(if number.is_multiple_of(2) {
            "openai/even"
        } else {
            "chatgpt/odd"
        }),
        session: number,
        stored: number.is_multiple_of(3),
        expires_at,
    })
}

fn quarantine(key: u8, generation: u64) -> QuarantineRow {
    QuarantineRow {
        key: [key; 16],
        generation,
        open: true,
        level: 2,
        until_ms: 5_000,
        level_until_ms: 9_000,
    }
}

/// [STATE-1] What is loaded is what was recorded, bit by bit, at the ends of the number range too.
#[test]
fn owners_come_back_as_they_were() {
    let mut bench = Bench::new(10);
    let rows = [
        (0, u64::MAX),
        (u64::MAX, HOUR),
        (1 << 63, i64::MAX as u64),
        (3, HOUR),
    ];
    let batch: Vec<Change> = rows
        .iter()
        .map(|(number, expiry)| owner(*number, *expiry))
        .collect();
    bench.ledger.commit(&batch).unwrap();
    let loaded: Vec<Change> = bench.load(10, 0).owners.into_iter().map(Change::Owner).collect();
    let expected = batch.into_iter().map(|change| match change {
        Change::Owner(row) => Change::Owner(OwnerRow {
            expires_at: row.expires_at.min(i64::MAX as u64),
            ..row
        }),
        other => other,
    });
    assert_eq!(loaded, expected.collect::<Vec<_>>());
}

/// [STATE-2] Expired rows are left out at the second of their expiry, and the bound keeps the newest, in order.
#[test]
fn loading_is_bounded_and_current() {
    let mut bench = Bench::new(10);
    let expiries = [90, 50, 91, 92, 90, 93];
    let batch: Vec<Change> = (0..).zip(expiries).map(|(n, expiry)| owner(n, expiry)).collect();
    bench.ledger.commit(&batch).unwrap();
    assert_eq!(bench.numbers(10, 60), [0, 2, 3, 4, 5]);
    assert_eq!(bench.numbers(5, 60), [0, 2, 3, 4, 5]);
    assert_eq!(bench.numbers(4, 60), [2, 3, 4, 5]);
    assert_eq!(bench.numbers(10, 90), [2, 3, 5]);
    assert!(bench.numbers(0, 60).is_empty());
    let owners = bench.load(10, 60).owners;
    assert!(
        Arc::ptr_eq(&owners[0].account, &owners[1].account),
        "rows of one account share its name"
    );
}

/// [STATE-1] A removal ends what was recorded before it and nothing that comes after, in one batch or in several.
#[test]
fn a_removed_owner_is_not_loaded() {
    let mut bench = Bench::new(10);
    let removed = |n: u64| Change::OwnerRemoved(u128::from(n).to_le_bytes());
    bench
        .ledger
        .commit(&[owner(1, HOUR), owner(2, HOUR), owner(1, HOUR), removed(1)])
        .unwrap();
    assert_eq!(bench.numbers(10, 0), [2]);
    bench.ledger.commit(&[owner(1, HOUR)]).unwrap();
    bench.ledger.commit(&[removed(2), removed(9)]).unwrap();
    assert_eq!(bench.numbers(10, 0), [1]);
}

/// [STATE-3] The latest state of a key is loaded until both its times are over, the newest generations first to stay.
#[test]
fn quarantines_come_back_until_they_are_over() {
    let mut bench = Bench::new(10);
    let cleared = QuarantineRow {
        open: false,
        level: u32::MAX,
        until_ms: 0,
        generation: 4,
        ..quarantine(1, 4)
    };
    bench
        .ledger
        .commit(&[
            Change::Quarantine(quarantine(1, 3)),
            Change::Quarantine(quarantine(2, 2)),
        ])
        .unwrap();
    bench.ledger.commit(&[Change::Quarantine(cleared)]).unwrap();
    assert_eq!(bench.load(0, 8).quarantine, [quarantine(2, 2), cleared]);
    let longer = QuarantineRow {
        until_ms: 20_000,
        ..quarantine(3, 5)
    };
    bench.ledger.commit(&[Change::Quarantine(longer)]).unwrap();
    assert_eq!(bench.load(0, 8).quarantine, [cleared, longer], "bounded");
    assert_eq!(bench.load(0, 9).quarantine, [longer]);
    assert_eq!(bench.load(0, 20).quarantine, []);
}

/// [STATE-4] Trip, clear, trip: what the first trip's end says later changes nothing. The counter survives its rows.
#[test]
fn an_older_generation_changes_nothing() {
    let mut bench = Bench::new(10);
    let removed = |generation| Change::QuarantineRemoved {
        key: [1; 16],
        generation,
    };
    bench
        .ledger
        .commit(&[Change::Quarantine(quarantine(1, 7))])
        .unwrap();
    bench
        .ledger
        .commit(&[
            removed(6),
            Change::Quarantine(QuarantineRow {
                open: false,
                ..quarantine(1, 6)
            }),
        ])
        .unwrap();
    assert_eq!(bench.load(0, 0).quarantine, [quarantine(1, 7)]);
    bench.ledger.commit(&[removed(7)]).unwrap();
    let loaded = bench.load(0, 0);
    assert_eq!((loaded.quarantine, loaded.generation), (vec![], 7));
}

/// [STATE-16] Expired rows go, live ones stay, step by step and round after round, wherever in the file they are.
#[test]
fn the_sweep_deletes_what_has_expired() {
    let mut bench = Bench::new(1_000_000);
    let count = 3 * SWEPT as u64;
    let batch: Vec<Change> = (0..count)
        .map(|n| owner(n, if n % 4 == 0 { HOUR } else { 10 }))
        .collect();
    bench.ledger.commit(&batch).unwrap();
    bench.ledger.sweep(9_000).unwrap();
    assert_eq!(bench.rows(), count as i64, "nothing has expired");
    let mut before = bench.rows();
    for _ in 0..4 {
        bench.ledger.sweep(10_000).unwrap();
        assert!(before - bench.rows() <= SWEPT, "a step is a small one");
        before = bench.rows();
    }
    assert_eq!(bench.rows(), count as i64 / 4);
    for _ in 0..4 {
        bench.ledger.sweep(HOUR * 1000).unwrap();
    }
    assert_eq!(bench.rows(), 0);
    bench.ledger.sweep(HOUR * 1000).unwrap();
}

/// [STATE-16] However many owners come, the file keeps no more than about twice the bound, and the newest in any case.
#[test]
fn the_file_is_bounded_while_owners_keep_coming() {
    let mut bench = Bench::new(5_000);
    let mut newest = 0;
    for _ in 0..60 {
        let batch: Vec<Change> = (0..700).map(|n| owner(newest + n, HOUR)).collect();
        newest += 700;
        bench.ledger.commit(&batch).unwrap();
        if bench.ledger.sweep_is_due() {
            bench.ledger.sweep(0).unwrap();
        }
        assert!(bench.rows() <= 10_000 + 2 * APPENDED as i64, "{}", bench.rows());
    }
    assert_eq!(
        bench.numbers(5_000, 0),
        (newest - 5_000..newest).collect::<Vec<_>>()
    );
}

/// [STATE-16] Quarantines that are over are deleted.
#[test]
fn the_sweep_deletes_quarantines_that_are_over() {
    let mut bench = Bench::new(10);
    let longer = QuarantineRow {
        level_until_ms: 9_001,
        ..quarantine(2, 2)
    };
    bench
        .ledger
        .commit(&[Change::Quarantine(quarantine(1, 1)), Change::Quarantine(longer)])
        .unwrap();
    bench.ledger.sweep(9_000).unwrap();
    assert_eq!(bench.load(0, 0).quarantine, [longer]);
}

/// [STATE-18] [STATE-16] Pins that have expired go, and however many come, the file keeps no more than a few for each of the
/// bound.
#[test]
fn the_sweep_deletes_pins() {
    let mut bench = Bench::new(500);
    let rows = |bench: &Bench| -> i64 {
        let count = "SELECT count(*) FROM pins";
        bench
            .ledger
            .connection
            .query_row(count, [], |row| row.get(0))
            .unwrap()
    };
    let pins = |from: u64, expires_at| -> Vec<Change> {
        let pin = |n: u64| PinRow {
            key: u128::from(n).to_le_bytes(),
            account: Arc::from("openai/main"),
            bound: false,
            expires_at,
        };
        (from..from + 700).map(|n| Change::Pin(pin(n))).collect()
    };
    bench.ledger.commit(&pins(0, 10)).unwrap();
    bench.ledger.sweep(9_000).unwrap();
    assert_eq!(rows(&bench), 700);
    bench.ledger.sweep(10_000).unwrap();
    assert_eq!(rows(&bench), 0);
    for n in 1..60 {
        bench.ledger.commit(&pins(n * 700, HOUR)).unwrap();
        if bench.ledger.sweep_is_due() {
            bench.ledger.sweep(0).unwrap();
        }
        let most = (500 * ROWS_OF_A_PIN + 2 * APPENDED) as i64;
        assert!(rows(&bench) <= most, "{}", rows(&bench));
    }
    let loaded = bench.load(500, 0).pins;
    assert_eq!(loaded.len(), 500);
    assert_eq!(loaded[499].key, u128::from(60 * 700 - 1_u64).to_le_bytes());
}
