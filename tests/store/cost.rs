//! What a row costs, and how long a start with a million of them takes.

use std::time::{Duration, Instant};

use responses_bridge::store::{Change, Store};

use super::{LONG, open, owner};

/// [STATE-2] A measure: prints what a row costs. `cargo test --release --test store -- --ignored --nocapture cost`
#[tokio::test]
#[ignore = "a measure, for a quiet machine"]
async fn cost_of_a_million_owners() {
    const ROWS: u64 = 1_000_000;
    let home = tempfile::tempdir().expect("a directory");
    let opened = open(home.path());
    let rows: Vec<Change> = (0..ROWS).map(|n| Change::Owner(owner(n))).collect();
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    let mut last = None;
    for (n, row) in rows.into_iter().enumerate() {
        last = Some(opened.store.record(row));
        if n % 20_000 == 0 {
            opened
                .store
                .standing()
                .durable(last.expect("a ticket"))
                .await
                .expect("durable");
        }
    }
    opened
        .store
        .standing()
        .durable(last.expect("a ticket"))
        .await
        .expect("durable");
    report("bulk", ROWS, begin, cpu);

    // One at a time, each waited for: what a lone turn pays.
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    for n in 0..2_000 {
        let ticket = opened.store.record(Change::Owner(owner(ROWS + n)));
        opened.store.standing().durable(ticket).await.expect("durable");
    }
    report("one by one", 2_000, begin, cpu);
    for gap in [100, 500, 5000] {
        let (begin, cpu) = (Instant::now(), cpu_seconds());
        let count = 2_000_000 / gap;
        let mut tickets = Vec::new();
        for n in 0..count {
            tickets.push(opened.store.record(Change::Owner(owner(ROWS + n))));
            std::thread::sleep(Duration::from_micros(gap));
        }
        opened
            .store
            .standing()
            .durable(tickets[tickets.len() - 1])
            .await
            .expect("durable");
        report(&format!("every {gap} µs"), count, begin, cpu);
    }
    let begin = Instant::now();
    assert_eq!(opened.store.close(LONG), 0);
    println!("close      {:?}", begin.elapsed());
    let size = std::fs::metadata(home.path().join("state.db"))
        .expect("the file")
        .len();
    println!("file       {} MB", size / 1_000_000);
    let begin = Instant::now();
    let again = open(home.path());
    println!(
        "start      {:?} for {} owners",
        begin.elapsed(),
        again.loaded.owners.len()
    );
    again.store.close(Duration::from_secs(5));
}

fn report(what: &str, rows: u64, begin: Instant, cpu: f64) {
    let wall = begin.elapsed().as_secs_f64() * 1e6 / rows as f64;
    let cpu = (cpu_seconds() - cpu) * 1e6 / rows as f64;
    println!("{what:<14} {wall:8.2} µs/row, {cpu:8.2} µs CPU/row");
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc");
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .expect("fields")
        .split_whitespace()
        .collect();
    (fields[11].parse::<f64>().expect("utime") + fields[12].parse::<f64>().expect("stime")) / 100.0
}
