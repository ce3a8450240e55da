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
