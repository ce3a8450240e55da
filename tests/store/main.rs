//! The durable state as a process sees it: over its public door, with real files, real locks and real deaths.
// Clippy counts the functions that the tests share as code outside tests.
#![allow(clippy::expect_used)]

mod cost;
mod damage;
mod death;
mod journal;
mod pins;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use responses_bridge::store::{
    Change, Directory, Health, Memory, NotDurable, Opened, Options, OwnerRow, QuarantineRow, Reason, Sqlite,
    Store,
};
use rusqlite::Connection;
use tokio::time::timeout;

const YEAR: u64 = 365 * 24 * 3600;
/// The end of the time that SQLite can count.
const FAR: u64 = i64::MAX as u64;
const LONG: Duration = Duration::from_secs(20);
fn open(path: &Path) -> Opened {
    open_at(path, SystemTime::now())
}

fn open_at(path: &Path, now: SystemTime) -> Opened {
    let directory = Directory::open(path).expect("a usable directory");
    Sqlite::open(directory, Options::new(2_000_000, 100_000, 4096), now)
}

fn unix_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock after 1970")
        .as_secs()
}

fn owner(number: u64) -> OwnerRow {
    let hash = blake3::hash(&number.to_le_bytes());
    OwnerRow {
        hash: hash.as_bytes()[..16].try_into().expect("16 bytes"),
        account: Arc::from(format!("openai/account-{}", number % 3)),
        session: number,
        stored: number.is_multiple_of(2),
        expires_at: unix_now() + YEAR,
    }
}

fn quarantine(number: u64) -> QuarantineRow {
    QuarantineRow {
        key: u128::from(number).to_le_bytes(),
        generation: number,
        open: true,
        level: 1,
        until_ms: FAR,
        level_until_ms: FAR,
    }
}

async fn durable(store: &dyn Store, change: Change) -> Result<(), NotDurable> {
    let ticket = store.record(change);
    timeout(LONG, store.standing().durable(ticket))
        .await
        .expect("a ticket always resolves")
}

async fn until(store: &dyn Store, wanted: impl FnMut(&Health) -> bool) -> Health {
    *timeout(LONG, store.standing().watch().wait_for(wanted))
        .await
        .expect("in time")
        .expect("a store")
}

fn sessions(opened: &Opened) -> Vec<u64> {
    opened.loaded.owners.iter().map(|row| row.session).collect()
}

/// [STATE-1] [STATE-3] Hundreds of turns record and wait at once; all are durable, and the next process has them all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_turns_wait_at_once() {
    let home = tempfile::tempdir().expect("a directory");
    let opened = open(home.path());
    assert!(opened.fault.is_none());
    let store = Arc::new(opened.store);
    let mut turns = tokio::task::JoinSet::new();
    for turn in 0..200 {
        let store = store.clone();
        turns.spawn(async move {
            for n in 0..10 {
                durable(&*store, Change::Owner(owner(turn * 10 + n)))
                    .await
                    .expect("durable");
            }
            durable(&*store, Change::Quarantine(quarantine(turn)))
                .await
                .expect("durable");
        });
    }
    timeout(LONG, turns.join_all())
        .await
        .expect("every ticket resolves");
    assert_eq!((store.lag().changes, store.close(LONG)), (0, 0));

    let again = open(home.path());
    let mut found = again.loaded.owners.clone();
    found.sort_by_key(|row| row.session);
    assert_eq!(found.len(), 2000);
    for (n, row) in (0..).zip(&found) {
        let expected = OwnerRow {
            expires_at: row.expires_at,
            ..owner(n)
        };
        assert_eq!((row, row.expires_at > unix_now()), (&expected, true));
    }
    assert_eq!(
        again.loaded.quarantine,
        (0..200).map(quarantine).collect::<Vec<_>>()
    );
    assert_eq!(again.loaded.generation, 199);
}

/// [STATE-14] The directory is held until the last write is done, and free after the close.
#[tokio::test]
async fn a_close_frees_the_directory() {
    let home = tempfile::tempdir().expect("a directory");
    let opened = open(home.path());
    for n in 0..5_000 {
        opened.store.record(Change::Owner(owner(n)));
    }
    assert!(Directory::open(home.path()).is_err());
    assert_eq!(opened.store.close(LONG), 0);
    assert_eq!(
        durable(&opened.store, Change::Owner(owner(1))).await,
        Err(NotDurable::Lost)
    );
    assert_eq!(open(home.path()).loaded.owners.len(), 5_000);
}

/// [STATE-5] Epochs only rise, even when the clock goes back; about the unix seconds of the start otherwise.
#[test]
fn epochs_only_rise() {
    let home = tempfile::tempdir().expect("a directory");
    let at = |seconds| {
        let opened = open_at(home.path(), UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(opened.store.close(LONG), 0);
        opened.loaded.epoch
    };
    assert_eq!(
        [at(1_000), at(2_000), at(2_000), at(500), at(3_000)],
        [1_000, 2_000, 2_001, 2_002, 3_000]
    );
}

/// [STATE-8] Another program holds the database at the start: what is in it is served, and it is written later.
#[tokio::test]
async fn a_database_that_is_locked_at_the_start() {
    let home = tempfile::tempdir().expect("a directory");
    let first = open(home.path());
    durable(&first.store, Change::Owner(owner(1)))
        .await
        .expect("durable");
    first.store.close(LONG);

    let other = Connection::open(home.path().join("state.db")).expect("the file");
    other.execute_batch("BEGIN EXCLUSIVE").expect("its lock");
    let opened = open(home.path());
    let fault = opened.fault.as_ref().expect("a fault");
    assert_eq!((fault.reason(), fault.forbids_serving()), (Reason::Locked, false));
    assert!(
        fault.to_string().contains("state.db") && fault.to_string().contains("end the program"),
        "{fault}"
    );
    assert_eq!(sessions(&opened), [1]);
    assert_eq!(
        durable(&opened.store, Change::Owner(owner(2))).await,
        Err(NotDurable::Degraded(Reason::Locked))
    );
    other.execute_batch("ROLLBACK").expect("its end");
    until(&opened.store, |health| matches!(health, Health::Recovered(_))).await;
    opened.store.close(LONG);
    assert_eq!(sessions(&open(home.path())), [1, 2]);
}

/// [STATE-8] With no directory at all a store in memory stands in: by wish it is healthy, else it says what is lost.
#[tokio::test]
async fn memory_stands_in_for_a_directory() {
    let wished = Memory::new();
    durable(&wished, Change::Owner(owner(1)))
        .await
        .expect("as durable as it will be");
    assert_eq!(
        (wished.standing().health(), wished.standing().lost()),
        (Health::Healthy, 0)
    );

    let home = tempfile::tempdir().expect("a directory");
    std::fs::write(home.path().join("file"), "").expect("a file");
    let fault = Directory::open(&home.path().join("file/state")).expect_err("no directory");
    let forced = Memory::standing_in(fault.reason());
    assert_eq!(
        durable(&forced, Change::Owner(owner(1))).await,
        Err(NotDurable::Lost)
    );
    assert_eq!(forced.standing().lost(), 1);
    assert!(matches!(forced.standing().health(), Health::Degraded(now) if now.lost == 1));
}
