//! Trouble with the disk, made real: SQLite itself refuses, because the connection is truly full or read-only.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rusqlite::{Connection, OpenFlags};
use tokio::time::timeout;

use super::*;
use crate::store::{Degradation, Health, NotDurable, OwnerRow, QuarantineRow};

const LONG: Duration = Duration::from_secs(20);

/// A disk that can be broken and mended.
#[derive(Default)]
struct Disk {
    full: AtomicBool,
    read_only: AtomicBool,
    tries: AtomicUsize,
}

impl Disk {
    fn connector(self: &Arc<Self>, path: &Path) -> Connector {
        let (disk, path) = (self.clone(), path.to_owned());
        Box::new(move || {
            disk.tries.fetch_add(1, Ordering::SeqCst);
            if disk.read_only.load(Ordering::SeqCst) {
                return schema::open_with(&path, OpenFlags::SQLITE_OPEN_READ_ONLY, PATIENCE);
            }
            let connection = schema::open(&path, PATIENCE)?;
            if disk.full.load(Ordering::SeqCst) {
                // Not below what the file has already: it may not grow any more.
                connection.pragma_update_and_check(None, "max_page_count", 1, |_| Ok(()))?;
            }
            Ok(connection)
        })
    }
}

fn open(disk: &Arc<Disk>, path: &Path, max_pending: usize) -> Opened {
    let options = Options {
        max_pending,
        ..Options::new(100_000, 100, 100)
    };
    Sqlite::with(
        disk.connector(path),
        path.to_owned(),
        None,
        options,
        SystemTime::now(),
    )
}

fn owner(number: u64) -> Change {
    Change::Owner(OwnerRow {
        hash: u128::from(number).to_le_bytes(),
        account: Arc::from("openai/main"),
        session: number,
        stored: false,
        expires_at: u64::MAX,
    })
}

async fn until(store: &Sqlite, wanted: impl FnMut(&Health) -> bool) -> Health {
    *timeout(LONG, store.standing().watch().wait_for(wanted))
        .await
        .expect("in time")
        .expect("a store")
}

async fn durable(store: &Sqlite, ticket: Ticket) -> Result<(), NotDurable> {
    timeout(LONG, store.standing().durable(ticket))
        .await
        .expect("a ticket always resolves")
}

fn reason(health: Health) -> Option<Reason> {
    match health {
        Health::Degraded(Degradation { reason, .. }) => Some(reason),
        Health::Healthy | Health::Recovered(_) => None,
    }
}

/// Goes through one whole incident: what comes in it is kept, told, and on the disk afterwards.
async fn incident(path: &Path, expected: Reason, opened: Opened, mend: impl FnOnce()) {
    // Enough rows that they do not fit into the pages that the file has already.
    let tickets: Vec<Ticket> = (0..500).map(|n| opened.store.record(owner(n))).collect();
    assert_eq!(
        durable(&opened.store, tickets[499]).await,
        Err(NotDurable::Degraded(expected))
    );
    let late = opened.store.record(owner(500));
    let begin = std::time::Instant::now();
    assert_eq!(
        durable(&opened.store, late).await,
        Err(NotDurable::Degraded(expected))
    );
    assert!(
        begin.elapsed() < Duration::from_millis(50),
        "no terminal is held while degraded"
    );
    assert_eq!(opened.store.lag().changes, 501);
    mend();
    let health = until(&opened.store, |health| matches!(health, Health::Recovered(_))).await;
    assert!(matches!(health, Health::Recovered(Degradation { reason, lost: 0, .. }) if reason == expected));
    assert_eq!(durable(&opened.store, late).await, Ok(()));
    assert_eq!(opened.store.close(LONG), 0);
    let again = open(&Arc::default(), path, 1000);
    assert_eq!(
        again
            .loaded
            .owners
            .iter()
            .map(|row| row.session)
            .collect::<Vec<_>>(),
        (0..=500).collect::<Vec<_>>()
    );
}

/// [STATE-7] A disk that fills up while serving, and is given space again.
#[tokio::test]
async fn a_disk_that_is_full_for_a_while() {
    let home = tempfile::tempdir().unwrap();
    let (disk, path) = (Arc::new(Disk::default()), home.path().join("state.db"));
    assert_eq!(open(&disk, &path, 1000).store.close(LONG), 0);
    disk.full.store(true, Ordering::SeqCst);
    let opened = open(&disk, &path, 1000);
    assert!(opened.fault.is_none());
    assert_eq!(opened.store.standing().health(), Health::Healthy);
    incident(&path, Reason::Full, opened, || {
        disk.full.store(false, Ordering::SeqCst)
    })
    .await;
}

/// [STATE-8] A disk that is full at the start: the fault says so, and the state is made when there is space.
#[tokio::test]
async fn a_disk_that_is_full_at_the_start() {
    let home = tempfile::tempdir().unwrap();
    let (disk, path) = (Arc::new(Disk::default()), home.path().join("state.db"));
    disk.full.store(true, Ordering::SeqCst);
    let opened = open(&disk, &path, 1000);
    let fault = opened.fault.as_ref().unwrap();
    assert_eq!(fault.reason(), Reason::Full);
    assert!(fault.to_string().contains(&path.display().to_string()), "{fault}");
    incident(&path, Reason::Full, opened, || {
        disk.full.store(false, Ordering::SeqCst)
    })
    .await;
}

/// [STATE-8] A read-only file is read, and what it holds is served; it is written when that becomes possible.
#[tokio::test]
async fn a_read_only_file_is_read_and_served() {
    let home = tempfile::tempdir().unwrap();
    let (disk, path) = (Arc::new(Disk::default()), home.path().join("state.db"));
    let first = open(&disk, &path, 1000);
    let row = QuarantineRow {
        key: [1; 16],
        generation: 3,
        open: true,
        level: 1,
        until_ms: u64::MAX,
        level_until_ms: 0,
    };
    first.store.record(Change::Quarantine(row));
    assert_eq!(first.store.close(LONG), 0);

    disk.read_only.store(true, Ordering::SeqCst);
    let opened = open(&disk, &path, 1000);
    let fault = opened.fault.as_ref().unwrap();
    assert_eq!(
        (fault.reason(), fault.forbids_serving()),
        (Reason::ReadOnly, false)
    );
    assert_eq!((opened.loaded.quarantine.len(), opened.loaded.generation), (1, 3));
    assert!(opened.loaded.epoch > first.loaded.epoch);
    incident(&path, Reason::ReadOnly, opened, || {
        disk.read_only.store(false, Ordering::SeqCst)
    })
    .await;
}

/// [STATE-7] The writer tries again by itself, with pauses that grow, whether or not anything comes in.
#[tokio::test]
async fn pauses_between_tries_grow() {
    let home = tempfile::tempdir().unwrap();
    let (disk, path) = (Arc::new(Disk::default()), home.path().join("state.db"));
    disk.full.store(true, Ordering::SeqCst);
    let opened = open(&disk, &path, 1000);
    let mut gaps = Vec::new();
    let mut last = std::time::Instant::now();
    for tries in 3..=5 {
        while disk.tries.load(Ordering::SeqCst) < tries {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        gaps.push(last.elapsed());
        last = std::time::Instant::now();
    }
    assert!(
        gaps[1] > gaps[0] && gaps[2] > gaps[1] && gaps[2] >= Duration::from_millis(300),
        "{gaps:?}"
    );
    disk.full.store(false, Ordering::SeqCst);
    until(&opened.store, |health| matches!(health, Health::Recovered(_))).await;
}

/// [STATE-6] With the writer stuck, the change at cap + 1 is lost and says so at once; the others are written later.
#[tokio::test]
async fn a_full_queue_loses_the_surplus_and_only_that() {
    let home = tempfile::tempdir().unwrap();
    let (disk, path) = (Arc::new(Disk::default()), home.path().join("state.db"));
    let opened = open(&disk, &path, 10);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let begin = std::time::Instant::now();
    let tickets: Vec<Ticket> = (0..12).map(|n| opened.store.record(owner(n))).collect();
    assert!(begin.elapsed() < PATIENCE, "recording does not wait for the lock");
    assert_eq!(reason(opened.store.standing().health()), Some(Reason::QueueFull));
    assert_eq!(durable(&opened.store, tickets[10]).await, Err(NotDurable::Lost));
    assert_eq!(durable(&opened.store, tickets[11]).await, Err(NotDurable::Lost));
    until(&opened.store, |health| reason(*health) == Some(Reason::Locked)).await;
    other.execute_batch("ROLLBACK").unwrap();
    let health = until(&opened.store, |health| matches!(health, Health::Recovered(_))).await;
    assert!(
        matches!(health, Health::Recovered(Degradation { lost: 2, .. })),
        "{health:?}"
    );
    assert_eq!(opened.store.standing().lost(), 2);
    assert_eq!(opened.store.close(LONG), 0);
    assert_eq!(open(&disk, &path, 10).loaded.owners.len(), 10);
}

/// [STATE-14] A close with a broken disk ends soon, and tells how much could not be written; so do the tickets.
#[tokio::test]
async fn a_close_with_a_broken_disk_ends() {
    let home = tempfile::tempdir().unwrap();
    let (disk, path) = (Arc::new(Disk::default()), home.path().join("state.db"));
    disk.full.store(true, Ordering::SeqCst);
    let opened = open(&disk, &path, 10);
    let tickets: Vec<Ticket> = (0..3).map(|n| opened.store.record(owner(n))).collect();
    assert_eq!(opened.store.close(LONG), 3);
    assert_eq!(durable(&opened.store, tickets[2]).await, Err(NotDurable::Lost));
    let after = opened.store.record(owner(4));
    assert_eq!(durable(&opened.store, after).await, Err(NotDurable::Lost));
    assert_eq!(opened.store.standing().lost(), 4);
}

fn note(number: u64) -> Entry {
    Entry {
        at_ms: number,
        event: "refused",
        at: None,
        names: crate::journal::Names::default(),
        body: format!(r#"{{"event":"refused","number":{number}}}"#).into(),
    }
}

/// What the journal has, and how many entries it says were lost.
fn journal(path: &Path) -> (u64, u64) {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let number = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
            .unsigned_abs()
    };
    let lost = "FROM journal_shapes s JOIN journal j ON j.shape = s.id WHERE event = 'journal_lost'";
    (
        number("SELECT count(*) FROM journal"),
        number(&format!("SELECT coalesce(sum(CAST(body AS INTEGER)), 0) {lost}")),
    )
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + LONG;
    while !condition() {
        assert!(std::time::Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// [JRN-3] [JRN-7] A disk that is full: entries wait as far as there is room, the others are counted, and the journal tells of
/// them when the disk has room again.
#[tokio::test]
async fn a_full_disk_loses_entries_and_says_so() {
    let home = tempfile::tempdir().unwrap();
    let (disk, path) = (Arc::new(Disk::default()), home.path().join("state.db"));
    assert_eq!(open(&disk, &path, 1000).store.close(LONG), 0);
    disk.full.store(true, Ordering::SeqCst);
    let opened = open(&disk, &path, 1000);
    let begin = std::time::Instant::now();
    for n in 0..9000 {
        opened.store.journal(note(n));
    }
    assert!(begin.elapsed() < Duration::from_secs(2), "nobody waits");
    // Some of them may have fitted into the pages that the file has.
    let lost = opened.store.journal_lost();
    assert!((500..=808).contains(&lost), "{lost}");
    let tickets: Vec<Ticket> = (0..500).map(|n| opened.store.record(owner(n))).collect();
    assert!(durable(&opened.store, tickets[499]).await.is_err());
    disk.full.store(false, Ordering::SeqCst);
    wait_for("all is written", || journal(&path) == (9000 - lost + 1, lost));
    assert_eq!(opened.store.journal_lost(), lost);
    opened.store.journal(note(9000));
    assert_eq!(opened.store.close(LONG), 0);
    assert_eq!(
        journal(&path),
        (9000 - lost + 2, lost),
        "told once, and the close writes what waits"
    );
}

/// [JRN-7] The journal's own tables are gone: owners go on as if nothing were, and the entries are counted.
#[tokio::test]
async fn a_damaged_journal_endangers_no_owner() {
    let home = tempfile::tempdir().unwrap();
    let (disk, path) = (Arc::new(Disk::default()), home.path().join("state.db"));
    let opened = open(&disk, &path, 1000);
    Connection::open(&path)
        .unwrap()
        .execute_batch("DROP TABLE journal")
        .unwrap();
    for n in 0..3 {
        for m in 0..10 {
            opened.store.journal(note(n * 10 + m));
        }
        std::thread::sleep(Duration::from_millis(300));
        let ticket = opened.store.record(owner(n));
        assert_eq!(durable(&opened.store, ticket).await, Ok(()));
    }
    assert_eq!(opened.store.standing().health(), Health::Healthy);
    assert_eq!(opened.store.close(LONG), 0);
    assert_eq!(opened.store.journal_lost(), 30);
    assert_eq!(open(&disk, &path, 1000).loaded.owners.len(), 3);
}

/// [JRN-3] Another program holds the file: entries wait with the owners, and owners do not wait for entries.
#[tokio::test]
async fn entries_wait_for_a_lock() {
    let home = tempfile::tempdir().unwrap();
    let (disk, path) = (Arc::new(Disk::default()), home.path().join("state.db"));
    let opened = open(&disk, &path, 1000);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for n in 0..1000 {
        opened.store.journal(note(n));
    }
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(
        opened.store.standing().health(),
        Health::Healthy,
        "no owner is at stake"
    );
    other.execute_batch("ROLLBACK").unwrap();
    wait_for("all is written", || journal(&path) == (1000, 0));
    assert_eq!(opened.store.journal_lost(), 0);
    opened.store.close(LONG);
}
