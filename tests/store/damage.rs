//! Files that cannot be used, and files that vanish.

use std::fs;
use std::path::Path;
use std::time::Duration;

use responses_bridge::store::{Before, Change, Health, NotDurable, Reason, Store};
use rusqlite::Connection;

use super::{LONG, durable, open, owner, sessions, until};

/// Makes a database of many pages, spoils it, and expects that it is refused, left alone, and replaced only when it has
/// been moved away.
async fn spoiled(expected: Reason, spoil: impl FnOnce(&Path), says: &str) {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("state.db");
    let first = open(home.path());
    for n in 0..3_000 {
        first.store.record(Change::Owner(owner(n)));
    }
    assert_eq!(first.store.close(LONG), 0);
    spoil(&path);
    let before = fs::read(&path).expect("the file");

    let opened = open(home.path());
    let fault = opened.fault.as_ref().expect("a fault");
    assert_eq!(
        (fault.reason(), fault.forbids_serving()),
        (expected, false),
        "{fault}"
    );
    let message = fault.to_string();
    assert!(
        message.contains(&path.display().to_string()) && message.contains("move"),
        "{message}"
    );
    assert!(message.contains(says), "{message}");
    assert_eq!(opened.loaded.before, Before::Unknown, "no first start");
    assert!(
        sessions(&opened).is_empty(),
        "nothing of a file that cannot be trusted"
    );
    assert_eq!(
        durable(&opened.store, Change::Owner(owner(7))).await,
        Err(NotDurable::Degraded(expected))
    );
    // Long enough for two more tries.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(matches!(opened.store.standing().health(), Health::Degraded(_)));
    assert!(
        fs::read(&path).expect("the file") == before,
        "the file was changed"
    );

    fs::rename(&path, home.path().join("away.db")).expect("a move");
    until(&opened.store, |health| matches!(health, Health::Recovered(_))).await;
    durable(&opened.store, Change::Owner(owner(8)))
        .await
        .expect("durable");
    assert_eq!(opened.store.close(LONG), 0);
    assert!(
        fs::read(home.path().join("away.db")).expect("the file") == before,
        "the file was changed"
    );
    assert_eq!(sessions(&open(home.path())), [7, 8]);
}

fn overwrite(path: &Path, begin: usize, bytes: &[u8]) {
    let mut content = fs::read(path).expect("the file");
    content[begin..begin + bytes.len()].copy_from_slice(bytes);
    fs::write(path, content).expect("the file");
}

/// [STATE-9] [STATE-20] The file's first bytes are overwritten.
#[tokio::test]
async fn a_file_that_is_no_database() {
    spoiled(
        Reason::Corrupt,
        |path| overwrite(path, 0, &[b'x'; 100]),
        "not a database",
    )
    .await;
}

/// [STATE-9] A page in the middle is overwritten: the start reads every row, so it is seen there and not at a turn.
#[tokio::test]
async fn a_file_with_a_damaged_page() {
    let spoil = |path: &Path| {
        let middle = fs::metadata(path).expect("the file").len() as usize / 2 / 4096 * 4096;
        overwrite(path, middle, &[0xff; 4096]);
    };
    spoiled(Reason::Corrupt, spoil, "malformed").await;
}

/// [STATE-9] The file is cut in the middle.
#[tokio::test]
async fn a_truncated_file() {
    let spoil = |path: &Path| {
        let file = fs::OpenOptions::new().write(true).open(path).expect("the file");
        file.set_len(file.metadata().expect("its length").len() / 2)
            .expect("a cut");
    };
    spoiled(Reason::Corrupt, spoil, "malformed").await;
}

fn execute(path: &Path, sql: &str) {
    Connection::open(path)
        .expect("the file")
        .execute_batch(sql)
        .expect("SQL");
}

/// [STATE-9] The file is of a newer program.
#[tokio::test]
async fn a_newer_file() {
    let says = "its format is 4, this program knows formats up to 3";
    spoiled(
        Reason::Newer,
        |path| execute(path, "PRAGMA user_version = 4"),
        says,
    )
    .await;
}

/// [STATE-9] A newer program was killed and left a journal: that is not folded into its file, nor into a new one.
#[tokio::test]
async fn a_newer_file_with_a_journal() {
    let (origin, home) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let newer = open(origin.path());
    durable(&newer.store, Change::Owner(owner(1)))
        .await
        .expect("durable");
    execute(&origin.path().join("state.db"), "PRAGMA user_version = 4");
    // What a kill at this moment would leave.
    for name in ["state.db", "state.db-wal", "install.key"] {
        fs::copy(origin.path().join(name), home.path().join(name)).expect("a copy");
    }
    let (path, journal) = (home.path().join("state.db"), home.path().join("state.db-wal"));
    let before = (
        fs::read(&path).expect("the file"),
        fs::read(&journal).expect("its journal"),
    );

    let opened = open(home.path());
    assert_eq!(opened.fault.as_ref().expect("a fault").reason(), Reason::Newer);
    assert_eq!(opened.store.close(LONG), 0);
    assert!(
        (
            fs::read(&path).expect("the file"),
            fs::read(&journal).expect("its journal")
        ) == before
    );

    let opened = open(home.path());
    fs::rename(&path, home.path().join("away.db")).expect("a move");
    until(&opened.store, |health| matches!(health, Health::Recovered(_))).await;
    durable(&opened.store, Change::Owner(owner(8)))
        .await
        .expect("durable");
    opened.store.close(LONG);
    assert_eq!(sessions(&open(home.path())), [8]);
}

/// [STATE-9] The file is of another program, whose versions mean nothing here.
#[tokio::test]
async fn a_file_of_another_program() {
    let says = "a database of another program";
    spoiled(
        Reason::Corrupt,
        |path| execute(path, "PRAGMA application_id = 7"),
        says,
    )
    .await;
    let spoil = |path: &Path| {
        fs::remove_file(path).expect("the file");
        execute(path, "CREATE TABLE notes (text)");
    };
    spoiled(Reason::Corrupt, spoil, says).await;
}

/// [STATE-9] An owner of an account that is not there: rows that contradict each other are damage too.
#[tokio::test]
async fn a_file_that_contradicts_itself() {
    spoiled(
        Reason::Corrupt,
        |path| execute(path, "DELETE FROM accounts"),
        "unknown account",
    )
    .await;
}

/// [STATE-17] The file is moved away while it is being written: that is noticed, and a new one is made.
#[tokio::test]
async fn a_file_that_is_moved_away_while_serving() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("state.db");
    let opened = open(home.path());
    durable(&opened.store, Change::Owner(owner(1)))
        .await
        .expect("durable");
    fs::rename(&path, home.path().join("away.db")).expect("a move");
    // So many that the next look at the file is due.
    for n in 0..3_000 {
        opened.store.record(Change::Owner(owner(n)));
    }
    until(
        &opened.store,
        |health| matches!(health, Health::Recovered(was) if was.reason == Reason::Io),
    )
    .await;
    durable(&opened.store, Change::Owner(owner(5_000)))
        .await
        .expect("durable");
    opened.store.close(LONG);
    assert_eq!(
        open(home.path()).loaded.owners.last().expect("an owner").session,
        5_000
    );
}
