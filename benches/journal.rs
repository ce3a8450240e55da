//! What a journal entry costs the call that it tells of and the writer, what a row takes on the disk, and how long a look into
//! a million rows takes, by a process that has just started.
//!
//! `cargo bench --bench journal`
// A bench may panic: it has nobody to answer to.
#![allow(clippy::expect_used)]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use responses_bridge::bridge::key::{AffinityKey, Hash16, Hasher, KeyKind};
use responses_bridge::bridge::turn::Outcome;
use responses_bridge::bridge::watchdog::Transport;
use responses_bridge::event::{At, Event, Events, Ids, Level, Past, Phases, Who, name};
use responses_bridge::journal::Names;
use responses_bridge::store::journal::{Query, Reader};
use responses_bridge::store::{Directory, Options, Sqlite, Store};
use responses_bridge::telemetry::Telemetry;

const ROWS: u64 = 1_000_000;
/// Set in the process that looks.
const LOOK: &str = "JOURNAL_BENCH_LOOK";

/// The end of a healthy turn, each with ids of its own, of which a conversation has fifty.
fn turn(events: &Events, hasher: &Hasher, n: u64) {
    let request_id = format!("01a22aba-94e7-75b3-8247-{n:012x}");
    let hash = hasher.hash("bench", &[&(n / 50).to_le_bytes()]);
    let mut names = Names::default();
    names.add(hasher.name(&format!("session-{}", n / 50)));
    names.add(hasher.name(&format!("resp_{n}")));
    events.emit(&Event::TurnFinished {
        at: At {
            provider: name("openai"),
            account: name("main"),
        },
        who: Who {
            ids: Ids {
                request_id: &request_id,
                trace_id: None,
                parent_id: None,
                names: &names,
            },
            client: None,
            model: "gpt-5.1-codex",
            key: AffinityKey {
                kind: KeyKind::Thread,
                hash,
            }
            .into(),
        },
        transport: Transport::WebSocket,
        outcome: Outcome::Completed,
        route: "pinned",
        plan: "reused",
        attempt: 1,
        response: Some(Hash16([n as u8; 16])),
        session: Some(1_883_256_334_057_476 + n / 50),
        known_items: Some(40),
        stream: true,
        sent: true,
        committed: true,
        upstream: None,
        phases: Phases {
            total_ms: 1000 + n % 9000,
            queue_ms: None,
            sent_ms: Some(n % 7),
            upstream_ms: Some(900 + n % 9000),
            created_ms: Some(100 + n % 900),
            first_output_ms: Some(200 + n % 3000),
            longest_gap_ms: Some(300 + n % 4000),
        },
        socket: Some(Past::Exposure {
            age: "10m",
            idle: "30s",
        }),
    });
}

fn events() -> Events {
    Events::new(Level::Warn, Arc::new(Telemetry::new().expect("metrics")), |_| ())
}

fn ns_each(rounds: u64, mut act: impl FnMut(u64)) -> f64 {
    let began = Instant::now();
    (0..rounds).for_each(&mut act);
    began.elapsed().as_nanos() as f64 / rounds as f64
}

/// What the call's own thread pays.
fn emitting(hasher: &Hasher) {
    let quiet = events();
    let logged = Events::new(
        Level::Info,
        Arc::new(Telemetry::new().expect("metrics")),
        |line| {
            std::hint::black_box(line);
        },
    );
    let kept = events().kept(hasher.clone(), |entry| drop(std::hint::black_box(entry)));
    let rounds = 200_000;
    for (what, events) in [("neither", &quiet), ("log line", &logged), ("journal", &kept)] {
        let ns = ns_each(rounds, |n| turn(events, hasher, n));
        println!("emit, {what:<9} {ns:8.0} ns (with the making of its ids)");
    }
}

/// Seconds of CPU of the writer thread.
fn writer_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc");
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    let stat = stats
        .into_iter()
        .find(|stat| stat.contains("(state-writer)"))
        .expect("the writer");
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .expect("fields")
        .split_whitespace()
        .collect();
    (fields[11].parse::<f64>().expect("utime") + fields[12].parse::<f64>().expect("stime")) / 100.0
}

fn fill(home: &Path) {
    let directory = Directory::open(home).expect("a state directory");
    let hasher = Hasher::new(*directory.key().bytes());
    let opened = Sqlite::open(directory, Options::new(1, 1, 1), SystemTime::now());
    let store = Arc::new(opened.store);
    let keep = store.clone();
    let events = events().kept(hasher.clone(), move |entry| keep.journal(entry));
    let reader = Reader::open(home).expect("a journal");
    let began = Instant::now();
    for n in 0..ROWS {
        // As fast as it is taken.
        if n % 2048 == 0 {
            while reader.newest().expect("readable") + 4096 < n {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        turn(&events, &hasher, n);
    }
    while reader.newest().expect("readable") < ROWS {
        std::thread::sleep(Duration::from_millis(1));
    }
    let took = began.elapsed().as_secs_f64();
    let cpu = writer_seconds() * 1e6 / ROWS as f64;
    println!(
        "writer           {cpu:8.2} µs CPU a row; {:.0} rows a second, emitted by one thread",
        ROWS as f64 / took
    );
    assert_eq!(store.journal_lost(), 0);
    drop(reader);
    store.close(Duration::from_secs(60));
    let size = std::fs::metadata(home.join("state.db")).expect("the file").len();
    println!("file             {:8.1} bytes a row", size as f64 / ROWS as f64);
}

/// One look, in a process of its own.
fn look(home: &str) {
    let began = Instant::now();
    let reader = Reader::open(Path::new(home)).expect("a journal");
    let hasher = reader.hasher();
    let opened = began.elapsed();
    for (what, id, rows) in [
        ("an old request", format!("01a22aba-94e7-75b3-8247-{:012x}", 3), 1),
        (
            "a new request",
            format!("01a22aba-94e7-75b3-8247-{:012x}", ROWS - 2),
            1,
        ),
        ("a session", format!("session-{}", ROWS / 100), 50),
        ("no such id", "nobody".to_owned(), 0),
    ] {
        let began = Instant::now();
        let found = reader.find(hasher.name(&id), 1000).expect("rows");
        assert_eq!(found.len(), rows);
        println!(
            "look-up          {:8.2} ms {what}",
            began.elapsed().as_secs_f64() * 1e3
        );
    }
    let began = Instant::now();
    let none = Query {
        kind: Some("quarantine*".to_owned()),
        most: 100,
        newest: true,
        ..Query::default()
    };
    assert_eq!(reader.rows(&none).expect("rows"), []);
    println!("through all rows {:8.2} ms", began.elapsed().as_secs_f64() * 1e3);
    println!("opening          {:8.2} ms", opened.as_secs_f64() * 1e3);
}

fn main() {
    if let Ok(home) = std::env::var(LOOK) {
        return look(&home);
    }
    emitting(&Hasher::new([7; 32]));
    let home = tempfile::tempdir().expect("a directory");
    fill(home.path());
    let own = std::env::current_exe().expect("this file");
    for _ in 0..2 {
        let status = Command::new(&own)
            .env(LOOK, home.path())
            .status()
            .expect("a process");
        assert!(status.success());
    }
    explain(home.path());
}

/// The whole command, as a responder waits for it: asked to take less than 200 ms.
fn explain(home: &Path) {
    let ids = [
        ("an old request", format!("01a22aba-94e7-75b3-8247-{:012x}", 3)),
        ("a session", format!("session-{}", ROWS / 100)),
        ("no such id", "nobody".to_owned()),
    ];
    for (what, id) in ids {
        let mut times: Vec<_> = (0..5)
            .map(|_| {
                let began = Instant::now();
                let told = Command::new(env!("CARGO_BIN_EXE_responses-bridge"))
                    .args(["explain", &id, "--state"])
                    .arg(home)
                    .output()
                    .expect("a process");
                assert_eq!(told.status.code(), Some(i32::from(id == "nobody")));
                began.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("explain          {:8.2} ms {what}, the median of five", times[2]);
    }
}
