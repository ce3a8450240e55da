//! The journal over the store's public door, with real files.

use responses_bridge::bridge::key::Hasher;
use responses_bridge::event::{At, name};
use responses_bridge::journal::{Entry, Names};
use responses_bridge::store::journal::{Bounds, Query, Reader};

use super::*;

/// One entry as the bridge makes them, `number` being what tells it from others.
pub fn entry(number: u64, names: &[u64]) -> Entry {
    let mut all = Names::default();
    names.iter().for_each(|name| all.add(*name));
    Entry {
        at_ms: 1_700_000_000_000 + number,
        event: "turn_finished",
        at: Some(At {
            provider: name("openai"),
            account: name("main"),
        }),
        names: all,
        body: body(number).into(),
    }
}

fn body(number: u64) -> String {
    format!(
        r#"{{"event":"turn_finished","provider":"openai","account":"main","model":"m-{number}","outcome":"completed","total_ms":{number}}}"#
    )
}

fn open_bounded(path: &Path, bounds: Bounds) -> Opened {
    Sqlite::open(
        Directory::open(path).expect("a usable directory"),
        Options {
            journal: bounds,
            ..Options::new(1000, 1000, 1000)
        },
        SystemTime::now(),
    )
}

/// Waits until the journal is as is expected.
pub fn wait(reader: &Reader, expected: impl Fn(&Reader) -> bool) {
    let end = std::time::Instant::now() + LONG;
    while !expected(reader) {
        assert!(std::time::Instant::now() < end, "in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// [JRN-4] What is handed over can be read beside the running store, and after its close, field by field.
#[test]
fn entries_come_back_as_they_were() {
    let home = tempfile::tempdir().expect("a directory");
    let opened = open(home.path());
    for n in 0..10 {
        opened.store.journal(entry(n, &[n % 2, 100 + n]));
    }
    let reader = Reader::open(home.path()).expect("a journal");
    wait(&reader, |reader| reader.newest().expect("readable") == 10);
    let rows = reader.find(1, 3).expect("rows");
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [6, 8, 10]);
    let row = &rows[0];
    assert_eq!(
        (row.event.as_str(), row.account.as_deref()),
        ("turn_finished", Some("openai/main"))
    );
    assert_eq!((row.at_ms, &row.names[..]), (1_700_000_000_005, &[1, 105][..]));
    assert_eq!(row.body, body(5));
    opened.store.close(LONG);
    let all = Query {
        most: usize::MAX,
        ..Query::default()
    };
    assert_eq!(reader.rows(&all).expect("rows").len(), 10);
    assert_eq!(
        Reader::open(home.path())
            .expect("a journal")
            .rows(&all)
            .expect("rows")
            .len(),
        10
    );
}

/// [JRN-2] Whoever has an id finds its rows, among thousands, whether they are indexed by then or not.
#[test]
fn an_id_leads_to_its_rows() {
    let home = tempfile::tempdir().expect("a directory");
    let opened = open(home.path());
    let hasher = Hasher::new([7; 32]);
    for n in 0..10_000u64 {
        // As fast as it is taken, or the queue would be full.
        while n % 1000 == 0
            && Reader::open(home.path())
                .expect("a journal")
                .newest()
                .expect("readable")
                < n
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        let id = format!("req-{}", n % 5000);
        opened.store.journal(entry(n, &[hasher.name(&id), 42]));
    }
    opened.store.close(LONG);
    let reader = Reader::open(home.path()).expect("a journal");
    for n in [0u64, 1, 4095, 4096, 4999] {
        let found = reader.find(hasher.name(&format!("req-{n}")), 10).expect("rows");
        assert_eq!(
            found.iter().map(|row| row.seq).collect::<Vec<_>>(),
            [n + 1, n + 5001]
        );
    }
    assert_eq!(reader.find(hasher.name("req-5000"), 10).expect("rows"), []);
    let newest = reader.find(42, 3).expect("rows");
    assert_eq!(
        newest.iter().map(|row| row.seq).collect::<Vec<_>>(),
        [9998, 9999, 10_000]
    );
    let oldest = Query {
        name: Some(42),
        most: 3,
        ..Query::default()
    };
    let oldest = reader.rows(&oldest).expect("rows");
    assert_eq!(oldest.iter().map(|row| row.seq).collect::<Vec<_>>(), [1, 2, 3]);
}

/// [JRN-5] While it is written the table stays near its bound, and what is over leaves by itself.
#[test]
fn the_running_store_keeps_the_bound() {
    let home = tempfile::tempdir().expect("a directory");
    let bounds = Bounds {
        keep: Duration::from_secs(3600),
        max: 500,
    };
    let opened = open_bounded(home.path(), bounds);
    let reader = Reader::open(home.path()).expect("a journal");
    let rows = |reader: &Reader| {
        let all = Query {
            most: usize::MAX,
            ..Query::default()
        };
        reader.rows(&all).expect("rows").len()
    };
    for n in 1..=8_000 {
        opened.store.journal(Entry {
            at_ms: unix_now() * 1000,
            ..entry(n, &[n])
        });
        if n % 1000 == 0 {
            wait(&reader, |reader| reader.newest().expect("readable") == n);
            assert!(rows(&reader) < 500 + 4096, "{}", rows(&reader));
        }
    }
    // What is a few rows beyond it leaves at the next look, ten seconds later at the latest.
    wait(&reader, |reader| rows(reader) <= 500 + 600);
    assert_eq!(reader.find(7_501, 10).expect("rows").len(), 1);
    assert_eq!(reader.find(6_800, 10).expect("rows").len(), 0);
    opened.store.close(LONG);
}

/// [JRN-8] Each filter alone and all together, and the ends of time.
#[test]
fn rows_are_chosen() {
    let home = tempfile::tempdir().expect("a directory");
    let opened = open(home.path());
    let events = ["turn_finished", "quarantine_opened", "quarantine_cleared"];
    for n in 0..12u64 {
        opened.store.journal(Entry {
            event: events[n as usize % 3],
            at: (n % 2 == 0).then(|| At {
                provider: name(if n % 4 == 0 { "openai" } else { "azure" }),
                account: name("main"),
            }),
            body: format!(r#"{{"event":"{}","number":{n}}}"#, events[n as usize % 3]).into(),
            ..entry(n, &[n % 5])
        });
    }
    opened.store.close(LONG);
    let reader = Reader::open(home.path()).expect("a journal");
    let chosen = |query: Query| -> Vec<u64> {
        let rows = reader.rows(&query).expect("rows");
        rows.iter().map(|row| row.seq - 1).collect()
    };
    let all = || Query {
        most: 100,
        ..Query::default()
    };
    let kind = |kind: &str| Some(kind.to_owned());
    let begin = 1_700_000_000_000;
    assert_eq!(chosen(all()), (0..12).collect::<Vec<_>>());
    assert_eq!(
        chosen(Query {
            kind: kind("quarantine*"),
            ..all()
        }),
        [1, 2, 4, 5, 7, 8, 10, 11]
    );
    assert_eq!(
        chosen(Query {
            account: kind("main"),
            ..all()
        }),
        [0, 2, 4, 6, 8, 10]
    );
    assert_eq!(
        chosen(Query {
            account: kind("azure/main"),
            ..all()
        }),
        [2, 6, 10]
    );
    assert_eq!(
        chosen(Query {
            name: Some(3),
            ..all()
        }),
        [3, 8]
    );
    assert_eq!(
        chosen(Query {
            since_ms: Some(begin + 9),
            ..all()
        }),
        [9, 10, 11]
    );
    assert_eq!(
        chosen(Query {
            until_ms: Some(begin + 1),
            ..all()
        }),
        [0, 1]
    );
    assert_eq!(
        chosen(Query {
            after: Some(10),
            ..all()
        }),
        [10, 11]
    );
    assert_eq!(
        chosen(Query {
            after: Some(u64::MAX),
            ..all()
        }),
        [0; 0]
    );
    assert_eq!(chosen(Query { most: 2, ..all() }), [0, 1]);
    assert_eq!(
        chosen(Query {
            most: 2,
            newest: true,
            ..all()
        }),
        [10, 11]
    );
    assert_eq!(chosen(Query { most: 0, ..all() }), [0; 0]);
    let together = Query {
        kind: kind("*_opened"),
        account: kind("main"),
        since_ms: Some(begin + 2),
        name: Some(4),
        ..all()
    };
    assert_eq!(chosen(together), [4]);
    for strange in ["' OR 1=1 --", "\0", "%", "🦀", &"*".repeat(100_000)] {
        let found = chosen(Query {
            account: kind(strange),
            ..all()
        });
        assert_eq!(found, [0; 0]);
        chosen(Query {
            kind: kind(strange),
            ..all()
        });
    }
}

/// [JRN-9] Whatever bytes of the file are spoiled, a look says what is wrong or answers, and never panics.
#[test]
fn a_spoiled_file_is_told() {
    let home = tempfile::tempdir().expect("a directory");
    let opened = open(home.path());
    let reader = Reader::open(home.path()).expect("a journal");
    for n in 0..6_000u64 {
        if n % 2000 == 0 {
            wait(&reader, |reader| reader.newest().expect("readable") == n);
        }
        opened.store.journal(entry(n, &[n % 100, n]));
    }
    wait(&reader, |reader| reader.newest().expect("readable") == 6_000);
    drop(reader);
    opened.store.close(LONG);
    let path = home.path().join("state.db");
    let sound = std::fs::read(&path).expect("the file");
    let look = || {
        let reader = Reader::open(home.path()).map_err(|fault| fault.to_string())?;
        let found = reader.find(7, 1000).map_err(|fault| fault.to_string());
        let all = Query {
            most: usize::MAX,
            ..Query::default()
        };
        let mut given = 0;
        let read = reader.each(&all, |_| {
            given += 1;
            std::ops::ControlFlow::Continue(())
        });
        read.map_err(|fault| fault.to_string()).and(found).map(|_| given)
    };
    assert_eq!(look(), Ok(6_000));
    let (mut told, mut seed) = (0, 7u64);
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..60 {
        let mut spoiled = sound.clone();
        if next(4) == 0 {
            spoiled.truncate(next(sound.len()));
        } else {
            for _ in 0..=next(40) {
                let at = next(spoiled.len());
                spoiled[at] ^= 1 << next(8);
            }
            let page = next(sound.len() / 4096) * 4096;
            spoiled[page..page + 64].fill(next(256) as u8);
        }
        std::fs::write(&path, &spoiled).expect("the file");
        if let Err(message) = look() {
            told += 1;
            assert!(
                message.contains(home.path().to_str().expect("a path")),
                "{message}"
            );
        }
    }
    assert!(told > 10, "{told}");
}

/// [JRN-10] A dead bridge's folder that takes no files: what it wrote last is read from where it lies.
#[test]
fn a_folder_that_can_only_be_read() {
    let home = tempfile::tempdir().expect("a directory");
    let opened = open(home.path());
    opened.store.journal(entry(0, &[1]));
    let reader = Reader::open(home.path()).expect("a journal");
    wait(&reader, |reader| reader.newest().expect("readable") == 1);
    // As a kill would leave it, without the file that only the living need.
    let dead = tempfile::tempdir().expect("a directory");
    for file in ["state.db", "state.db-wal", "install.key"] {
        std::fs::copy(home.path().join(file), dead.path().join(file)).expect("a copy");
    }
    opened.store.close(LONG);
    drop(reader);
    let locked = |path: &Path, mode| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    };
    for folder in [home.path(), dead.path()] {
        locked(folder, 0o500);
        let reader = Reader::open(folder).expect("a journal");
        assert_eq!(reader.find(1, 10).expect("rows").len(), 1, "{}", folder.display());
        drop(reader);
        locked(folder, 0o700);
    }
}

/// [JRN-10] A long look does not hold the writer up, and sees one moment.
#[tokio::test]
async fn a_reader_holds_nobody_up() {
    let home = tempfile::tempdir().expect("a directory");
    let opened = open(home.path());
    let reader = Reader::open(home.path()).expect("a journal");
    (0..10).for_each(|n| opened.store.journal(entry(n, &[n])));
    wait(&reader, |reader| reader.newest().expect("readable") == 10);
    let all = Query {
        most: usize::MAX,
        ..Query::default()
    };
    let mut rows = 0;
    let mut tickets = Vec::new();
    let read = reader.each(&all, |row| {
        rows += 1;
        tickets.push(opened.store.record(Change::Owner(owner(row.seq))));
        opened.store.journal(entry(100 + row.seq, &[1]));
        std::thread::sleep(Duration::from_millis(40));
        // A look from within the look.
        assert_eq!(reader.find(row.seq - 1, 10).expect("rows").len(), 1);
        std::ops::ControlFlow::Continue(())
    });
    read.expect("rows");
    assert_eq!(rows, 10);
    for ticket in tickets {
        let durable = opened.store.standing().durable(ticket);
        timeout(LONG, durable).await.expect("in time").expect("durable");
    }
    opened.store.close(LONG);
    assert_eq!(reader.newest().expect("readable"), 20);
}
