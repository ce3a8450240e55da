//! What an owner costs in the mirror: nanoseconds per look-up and insert, and bytes, from a thousand to a million. What a
//! start over a million costs, and what it costs to find in a body what names its owner.
//!
//! `cargo bench --bench owners`
// A bench may panic: it has nobody to answer to.
#![allow(clippy::expect_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use responses_bridge::bridge::key::{AffinityKey, Hash16, Hasher, KeyKind};
use responses_bridge::bridge::ownership::{AccountId, Owner, Owners, SessionId};
use responses_bridge::store::{Change, Directory, Options, OwnerRow, Sqlite, Store};
use responses_bridge::wire::bound::of_create;
use responses_bridge::wire::request::read_create;

/// Look-ups and inserts that are timed for each size.
const TIMED: usize = 1_000_000;

fn owner(hash: Hash16) -> Owner {
    let kind = KeyKind::Thread;
    Owner {
        account: AccountId(1),
        session: Some(SessionId(7)),
        key: Some(AffinityKey { kind, hash }),
        stored: true,
        expires_at: 4_000_000_000,
    }
}

/// A body of about 400 KB as an agent resends it: tool calls, their output with escaped code, encrypted reasoning.
fn body() -> String {
    let output = r#"fn main() {\n    println!(\"{}\", call_id);\n}\n"#.repeat(40);
    let item = |n: usize| {
        format!(
            r#"{{"type":"reasoning","id":"rs_{n}","summary":[],"encrypted_content":"{sealed}"}},{{"type":"function_call","id":"fc_{n}","call_id":"call_{n}","name":"shell","arguments":"{{\"command\":[\"ls\"]}}"}},{{"type":"function_call_output","call_id":"call_{n}","output":"{output}"}}"#,
            sealed = "gAAAAAB".repeat(200),
        )
    };
    let items: Vec<_> = (0..115).map(item).collect();
    format!(r#"{{"model":"m","input":[{}],"store":false}}"#, items.join(","))
}

fn bound() {
    let body = bytes::Bytes::from(body());
    let began = Instant::now();
    for _ in 0..200 {
        black_box(read_create(body.clone()).expect("a body"));
    }
    let read = began.elapsed().as_secs_f64() * 1e6 / 200.0;
    let create = read_create(body.clone()).expect("a body");
    let began = Instant::now();
    for _ in 0..200 {
        black_box(of_create(&create).sealed.len());
    }
    let found = began.elapsed().as_secs_f64() * 1e6 / 200.0;
    println!(
        "account-bound items of a body of {} KB: {found:.0} µs; reading it: {read:.0} µs",
        body.len() / 1000
    );
}

/// A start over a state with a million owners, and the mirror filled with them.
fn start(hashes: &[Hash16]) {
    let home = tempfile::tempdir().expect("a directory");
    let options = Options::new(2 * TIMED, 1, 1);
    let open = || {
        let directory = Directory::open(home.path()).expect("a state directory");
        Sqlite::open(directory, options, SystemTime::now())
    };
    let opened = open();
    let account: Arc<str> = Arc::from("openai/main");
    for hash in hashes {
        while opened.store.lag().changes > 50_000 {
            std::thread::sleep(Duration::from_millis(1));
        }
        opened.store.record(Change::Owner(OwnerRow {
            hash: hash.0,
            account: account.clone(),
            session: 7,
            stored: true,
            expires_at: u64::MAX,
        }));
    }
    opened.store.close(Duration::from_secs(60));
    drop(opened);
    let began = Instant::now();
    let opened = open();
    let loaded = began.elapsed();
    let mut owners = Owners::new(2 * TIMED);
    owners.reserve(opened.loaded.owners.len());
    for row in &opened.loaded.owners {
        owners.record(Hash16(row.hash), owner(Hash16(row.hash)));
    }
    println!(
        "a start with {} owners: {:.0} ms to load, {:.0} ms with the mirror filled",
        owners.len(),
        loaded.as_secs_f64() * 1e3,
        began.elapsed().as_secs_f64() * 1e3
    );
    opened.store.close(Duration::from_secs(5));
}

fn main() {
    bound();
    let hasher = Hasher::new([7; 32]);
    let hashes: Vec<Hash16> = (0..2 * TIMED as u64)
        .map(|n| hasher.hash("bench", &[&n.to_le_bytes()]))
        .collect();
    println!(
        "{:>9} {:>12} {:>12} {:>12} {:>12}",
        "owners", "fill ns", "look-up ns", "evict ns", "bytes each"
    );
    for size in [1_000, 10_000, 100_000, 1_000_000] {
        let mut owners = Owners::new(size);
        let began = Instant::now();
        for hash in &hashes[..size] {
            owners.record(*hash, owner(*hash));
        }
        let fill = began.elapsed().as_nanos() as f64 / size as f64;
        let bytes = owners.bytes() as f64 / size as f64;
        // A walk with a stride, so that neither the order of filling nor the cache's prefetch helps.
        let began = Instant::now();
        for n in 0..TIMED {
            black_box(owners.of(hashes[n.wrapping_mul(7919) % size], 0));
        }
        let look_up = began.elapsed().as_nanos() as f64 / TIMED as f64;
        let began = Instant::now();
        for hash in &hashes[TIMED..2 * TIMED] {
            black_box(owners.record(*hash, owner(*hash)));
        }
        let evict = began.elapsed().as_nanos() as f64 / TIMED as f64;
        println!("{size:>9} {fill:>12.0} {look_up:>12.0} {evict:>12.0} {bytes:>12.1}");
    }
    start(&hashes[..TIMED]);
}
