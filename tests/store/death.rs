//! Processes that hold a state directory, and are killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use responses_bridge::store::{Before, Change, Directory, Opened, StateFault, Store};

use responses_bridge::store::journal::{Query, Reader};

use super::{LONG, durable, open, owner, quarantine, sessions};

/// Where a child process keeps its state; set, it makes `as_a_child` do something.
const CHILD_STATE: &str = "RESPONSES_BRIDGE_TEST_CHILD_STATE";

/// Not a test: what the tests about the death of a process run as that process. It records without end, and says what
/// is durable.
#[tokio::test]
#[ignore = "run by other tests, as a process of its own"]
async fn as_a_child() {
    let Some(home) = std::env::var_os(CHILD_STATE) else {
        return;
    };
    let opened = open(Path::new(&home));
    for n in 1.. {
        durable(&opened.store, Change::Owner(owner(n)))
            .await
            .expect("durable");
        durable(&opened.store, Change::Quarantine(quarantine(n)))
            .await
            .expect("durable");
        opened.store.journal(super::journal::entry(n, &[n]));
        println!("\ndurable {n}");
    }
}

fn child(home: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().expect("this file"))
        .args(["--ignored", "--exact", "death::as_a_child", "--nocapture"])
        .env(CHILD_STATE, home)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let output = BufReader::new(child.stdout.take().expect("its output"));
    (child, output)
}

/// Reads on until the child has said of so many changes that they are durable, or has ended.
fn read_durable(output: &mut BufReader<ChildStdout>, enough: u64) -> u64 {
    let mut last = 0;
    for line in output.lines() {
        if let Some(number) = line.expect("a line").strip_prefix("durable ") {
            last = number.parse().expect("a number");
            if last >= enough {
                break;
            }
        }
    }
    last
}

/// [STATE-13] [JRN-7] Whatever a process said was durable before SIGKILL is there afterwards, and the generation goes on.
#[test]
fn a_kill_loses_nothing_that_was_durable() {
    let home = tempfile::tempdir().expect("a directory");
    for kill in 1..=3 {
        let (mut child, mut output) = child(home.path());
        assert!(read_durable(&mut output, 40 * kill) >= 40 * kill);
        child.kill().expect("SIGKILL");
        let last = read_durable(&mut output, u64::MAX).max(40 * kill);
        child.wait().expect("an end");
        let opened = open(home.path());
        assert!(opened.fault.is_none());
        assert!(opened.loaded.owners.last().expect("owners").session >= last);
        let found: std::collections::HashSet<u64> = sessions(&opened).into_iter().collect();
        assert!(
            (1..=last).all(|n| found.contains(&n)),
            "{last} were durable, {} are there",
            found.len()
        );
        assert!(opened.loaded.quarantine.len() as u64 >= last);
        assert!(opened.loaded.generation >= last);
        assert_eq!(opened.loaded.before, Before::Cut);
        journal_is_whole(home.path());
        opened.store.close(LONG);
    }
}

/// [STATE-20] The next process knows whether the one before it came to its end; of a file whose writer did not say so, and of
/// a new one, it claims nothing.
#[test]
fn how_the_one_before_ended() {
    let home = tempfile::tempdir().expect("a directory");
    /// Of the seventh entry.
    const AT: u64 = 1_700_000_000_007;
    let before = |opened: &Opened| (opened.loaded.before, opened.loaded.journal_until);
    let first = open(home.path());
    assert_eq!(before(&first), (Before::None, None));
    first.store.journal(super::journal::entry(7, &[7]));
    first.store.close(LONG);
    let second = open(home.path());
    assert_eq!(before(&second), (Before::Drained, Some(AT)));
    // Dropped without a close, it writes what waits, and yet came to no end.
    drop(second);
    let third = opened_again(home.path());
    assert_eq!(before(&third), (Before::Cut, Some(AT)));
    third.store.close(LONG);
    let database = rusqlite::Connection::open(home.path().join("state.db")).expect("a database");
    let deleted = database.execute("DELETE FROM counters WHERE name = 'ended'", []);
    assert_eq!(deleted, Ok(1));
    drop(database);
    assert_eq!(before(&open(home.path())), (Before::None, Some(AT)));
}

/// Once the writer of the store that was dropped is gone.
fn opened_again(home: &Path) -> Opened {
    let end = std::time::Instant::now() + LONG;
    while let Err(fault) = Directory::open(home) {
        assert!(std::time::Instant::now() < end, "{fault}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    open(home)
}

/// [STATE-11] A second process is refused and told who the first one is; a killed one's directory is free at once.
#[test]
fn a_directory_belongs_to_one_process() {
    let home = tempfile::tempdir().expect("a directory");
    let (mut child, mut output) = child(home.path());
    assert!(read_durable(&mut output, 1) >= 1);
    let fault = Directory::open(home.path()).expect_err("held");
    assert!(matches!(fault, StateFault::Held { .. }) && fault.forbids_serving());
    assert!(
        fault
            .to_string()
            .contains(&format!("process {} since 20", child.id())),
        "{fault}"
    );
    child.kill().expect("SIGKILL");
    child.wait().expect("an end");
    Directory::open(home.path()).expect("free");
}

/// After a kill every entry but those of the last moment is there, in order, and each is found.
fn journal_is_whole(home: &Path) {
    let reader = Reader::open(home).expect("a journal");
    let all = Query {
        most: usize::MAX,
        ..Query::default()
    };
    let rows = reader.rows(&all).expect("rows");
    let seqs: Vec<u64> = rows.iter().map(|row| row.seq).collect();
    assert_eq!(seqs, (1..=rows.len() as u64).collect::<Vec<_>>());
    for row in rows.iter().rev().take(20) {
        let found = reader.find(row.names[0], 10).expect("rows");
        assert!(found.contains(row));
    }
}
