//! Pins, and files of the version that had none.

use super::*;

use responses_bridge::store::PinRow;
use responses_bridge::store::journal::Reader;

fn pin(number: u64, account: &str, bound: bool, expires_at: u64) -> PinRow {
    PinRow {
        key: u128::from(number).to_le_bytes(),
        account: Arc::from(account),
        bound,
        expires_at,
    }
}

fn open_with(path: &Path, max_pins: usize) -> Opened {
    Sqlite::open(
        Directory::open(path).expect("a usable directory"),
        Options::new(1000, max_pins, 100),
        SystemTime::now(),
    )
}

/// [STATE-18] The next process has the latest row of each key, without those that have expired, and no more than its bound.
#[tokio::test]
async fn pins_outlive_the_process() {
    let home = tempfile::tempdir().expect("a directory");
    let opened = open_with(home.path(), 3);
    let far = unix_now() + YEAR;
    let rows = [
        pin(1, "openai/a", false, far),
        pin(2, "openai/a", true, far),
        pin(3, "openai/a", true, unix_now() - 1),
        pin(1, "azure/b", true, far),
    ];
    for row in rows.clone() {
        durable(&opened.store, Change::Pin(row)).await.expect("durable");
    }
    opened.store.close(LONG);
    let again = open_with(home.path(), 3);
    assert!(again.fault.is_none());
    assert_eq!(again.loaded.pins, [rows[1].clone(), rows[3].clone()]);
    for n in 10..13 {
        durable(&again.store, Change::Pin(pin(n, "openai/a", false, far)))
            .await
            .expect("durable");
    }
    again.store.close(LONG);
    let again = open_with(home.path(), 3);
    let keys: Vec<_> = again.loaded.pins.iter().map(|row| row.key[0]).collect();
    assert_eq!(keys, [10, 11, 12], "the newest");
    again.store.close(LONG);
}

/// What version 1 made.
const VERSION_1: &str = "
    CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE owners (seq INTEGER PRIMARY KEY, hash BLOB NOT NULL, account INTEGER, session INTEGER NOT NULL,
        stored INTEGER NOT NULL, expires_at INTEGER NOT NULL) STRICT;
    CREATE TABLE quarantine (key BLOB PRIMARY KEY, generation INTEGER NOT NULL, open INTEGER NOT NULL,
        level INTEGER NOT NULL, until_ms INTEGER NOT NULL, level_until_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO accounts VALUES (1, 'openai/main');
    INSERT INTO owners VALUES (1, zeroblob(16), 1, 77, 1, 9000000000);
    INSERT INTO quarantine VALUES (zeroblob(16), 5, 1, 2, 9000000000000, 9000000000000);
    INSERT INTO counters VALUES ('generation', 5), ('epoch', 4000000000);
    PRAGMA application_id = 1380086644;
    PRAGMA user_version = 1;";

fn version(path: &Path) -> i64 {
    let connection = Connection::open(path).expect("a database");
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .expect("a version")
}

/// [STATE-19] A file of version 1: all of it is loaded, and it takes pins from then on.
#[tokio::test]
async fn version_1_is_brought_up_to_date() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("state.db");
    drop(Directory::open(home.path()).expect("a key"));
    Connection::open(&file)
        .and_then(|connection| connection.execute_batch(VERSION_1))
        .expect("a file of version 1");
    let opened = open(home.path());
    assert!(opened.fault.is_none(), "{:?}", opened.fault);
    assert_eq!(sessions(&opened), [77]);
    assert_eq!((opened.loaded.generation, opened.loaded.quarantine.len()), (5, 1));
    assert_eq!(opened.loaded.epoch, 4_000_000_001);
    let row = pin(1, "openai/main", true, unix_now() + YEAR);
    durable(&opened.store, Change::Pin(row.clone()))
        .await
        .expect("durable");
    opened.store.close(LONG);
    assert_eq!(version(&file), 3);
    let again = open(home.path());
    assert_eq!(
        (again.loaded.pins.clone(), sessions(&again)),
        (vec![row], vec![77])
    );
    again.store.close(LONG);
}

/// [STATE-19] [STATE-8] Where such a file cannot be written, what is in it is served all the same.
#[tokio::test]
async fn version_1_that_cannot_be_written() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("state.db");
    drop(Directory::open(home.path()).expect("a key"));
    let connection = Connection::open(&file).expect("a file");
    connection.execute_batch(VERSION_1).expect("a file of version 1");
    // Another program holds the write lock.
    connection.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let opened = open(home.path());
    assert_eq!(opened.fault.map(|fault| fault.reason()), Some(Reason::Locked));
    assert_eq!(opened.loaded.owners.len(), 1);
    assert_eq!(version(&file), 1, "as it was");
    connection.execute_batch("ROLLBACK").expect("free");
    until(&opened.store, |health| matches!(health, Health::Recovered(_))).await;
    opened.store.close(LONG);
    assert_eq!(version(&file), 3, "brought up to date as soon as it could be");
}

/// [STATE-19] [JRN-9] A file of version 2, which had pins and no journal: nobody reads a journal in it, and as soon as it is
/// opened to be written there is one.
#[tokio::test]
async fn version_2_is_brought_up_to_date() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("state.db");
    let opened = open(home.path());
    let row = pin(1, "openai/main", true, unix_now() + YEAR);
    durable(&opened.store, Change::Pin(row.clone()))
        .await
        .expect("durable");
    opened.store.close(LONG);
    let older =
        "DROP TABLE journal; DROP TABLE journal_shapes; DROP TABLE journal_indexed; DROP TABLE journal_pages;
        PRAGMA user_version = 2;";
    Connection::open(&file)
        .and_then(|connection| connection.execute_batch(older))
        .expect("a file of version 2");
    let fault = Reader::open(home.path()).err().expect("no journal").to_string();
    assert!(
        fault.contains("earlier version (format 2)") && fault.contains("serve"),
        "{fault}"
    );
    let again = open(home.path());
    assert!(again.fault.is_none(), "{:?}", again.fault);
    assert_eq!(again.loaded.pins, [row]);
    again.store.journal(super::journal::entry(1, &[1]));
    again.store.close(LONG);
    assert_eq!(version(&file), 3);
    assert_eq!(
        Reader::open(home.path())
            .expect("a journal")
            .newest()
            .expect("readable"),
        1
    );
}
