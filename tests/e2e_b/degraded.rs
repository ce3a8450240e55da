//! State that cannot be written: serving goes on, and says so.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use responses_bridge::app::{App, Outlets};
use responses_bridge::config::Config;
use responses_bridge::event::Level;
use responses_bridge::simulator::Simulator;
use rusqlite::Connection;
use serde_json::Value;
use tokio::time::Instant;

use crate::client::{Ask, MOMENT};
use crate::process::{CLIENTS, config};
use crate::world::eventually;

/// A bridge over a state that may be of no use.
struct Bridge {
    app: App,
    lines: Arc<Mutex<Vec<Value>>>,
    faults: Arc<Mutex<Vec<String>>>,
}

async fn start(upstream: &Simulator, state: &Path) -> Bridge {
    let text = config(
        &upstream.base_url(),
        &format!("{CLIENTS}[state]\npath = '{}'\n", state.display()),
    );
    let secret = |name: &str| Some(format!("key-{}", name.to_lowercase()));
    let config = Config::parse(&text, "degraded.toml", &secret).unwrap();
    let (lines, faults) = (
        Arc::<Mutex<Vec<Value>>>::default(),
        Arc::<Mutex<Vec<String>>>::default(),
    );
    let (sink, told) = (lines.clone(), faults.clone());
    let outlets = Outlets {
        level: Level::Debug,
        lines: Box::new(move |line| sink.lock().unwrap().push(serde_json::from_slice(line).unwrap())),
        state_fault: Box::new(move |fault| told.lock().unwrap().push(fault.to_string())),
        file_limit: 4096,
        trap: None,
        spans: None,
    };
    Bridge {
        app: App::start(config, outlets).await.unwrap(),
        lines,
        faults,
    }
}

impl Bridge {
    fn events(&self, name: &str) -> Vec<Value> {
        let lines = self.lines.lock().unwrap();
        lines
            .iter()
            .filter(|line| line["event"] == name)
            .cloned()
            .collect()
    }

    async fn metric(&self, name: &str) -> f64 {
        let answer = Ask::bare("GET", "/metrics").ask(self.app.address()).await;
        let line = answer
            .text()
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")))
            .unwrap()
            .to_owned();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// One turn: its response's id, and how long its terminal took after the text.
    async fn turn(&self, name: &str) -> (String, Duration) {
        let ask = Ask::turn(format!("sim:conv={name} hello"))
            .bearer("key-alice")
            .thread(name);
        let mut reply = ask.open(self.app.address()).await;
        reply.until("response.output_text.delta").await;
        let begun = Instant::now();
        let last = reply.until("response.completed").await;
        (
            last.data["response"]["id"].as_str().unwrap().to_owned(),
            begun.elapsed(),
        )
    }

    async fn knows(&self, id: &str) -> bool {
        let ask = Ask::bare("GET", format!("/v1/responses/{id}")).bearer("key-alice");
        ask.ask(self.app.address()).await.status == 200
    }

    async fn is(&self, degraded: f64) {
        let until = Instant::now() + MOMENT;
        while self.metric("bridge_store_degraded").await != degraded {
            assert!(
                Instant::now() < until,
                "bridge_store_degraded never becomes {degraded}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// [INV-11] [STATE-7] [STATE-8] The database is locked by another program while turns run: the first terminal waits for
/// 250 ms at most, the next not at all; an event and a gauge say what is at stake. Once it is free, all is written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_database() {
    let upstream = Simulator::start(Default::default()).await.unwrap();
    let state = tempfile::tempdir().unwrap();
    let bridge = start(&upstream, state.path()).await;
    let (before, _) = bridge.turn("before").await;
    let thief = Connection::open(state.path().join("state.db")).unwrap();
    thief.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (first, held) = bridge.turn("first").await;
    assert!(
        held < Duration::from_millis(900),
        "the terminal was held for {held:?}"
    );
    eventually("store_degraded", || !bridge.events("store_degraded").is_empty()).await;
    let event = &bridge.events("store_degraded")[0];
    assert_eq!(event["reason"], "locked");
    assert!(event["way_out"].as_str().unwrap().contains("end the program"));
    bridge.is(1.0).await;
    let mut least = Duration::MAX;
    for n in 0..5 {
        let (id, held) = bridge.turn(&format!("later{n}")).await;
        least = least.min(held);
        assert!(bridge.knows(&id).await, "known from memory");
    }
    assert!(
        least < Duration::from_millis(220),
        "held for a store that is known to be ill: {least:?}"
    );
    assert!(bridge.knows(&before).await && bridge.knows(&first).await);
    assert!(bridge.metric("bridge_store_queue").await >= 6.0);
    assert!(bridge.metric("bridge_store_lag_seconds").await > 0.0);
    thief.execute_batch("ROLLBACK").unwrap();
    bridge.is(0.0).await;
    eventually("store_recovered", || !bridge.events("store_recovered").is_empty()).await;
    bridge.app.drain().await;
    let again = start(&upstream, state.path()).await;
    assert!(
        again.knows(&before).await && again.knows(&first).await,
        "what waited was written"
    );
}

/// [STATE-8] [STATE-9] [STATE-20] Damaged, newer, foreign, or no folder at all: serving goes on from memory, the fault names the file and
/// the way out, the event and the gauge say so, and the file stays as it is.
#[tokio::test]
async fn a_state_of_no_use() {
    let upstream = Simulator::start(Default::default()).await.unwrap();
    let newer = |path: &Path| {
        Connection::open(path)
            .unwrap()
            .execute_batch("PRAGMA user_version = 99")
            .unwrap();
    };
    let damaged = |path: &Path| std::fs::write(path, [b'x'; 9000]).unwrap();
    let foreign = |path: &Path| {
        std::fs::remove_file(path).unwrap();
        Connection::open(path)
            .unwrap()
            .execute_batch("CREATE TABLE recipes (name TEXT)")
            .unwrap();
    };
    let cases: [(&str, &dyn Fn(&Path)); 3] =
        [("newer", &newer), ("corrupt", &damaged), ("corrupt", &foreign)];
    for (reason, spoil) in cases {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("state.db");
        let bridge = start(&upstream, state.path()).await;
        bridge.turn("a").await;
        bridge.app.drain().await;
        spoil(&file);
        let content = std::fs::read(&file).unwrap();
        let bridge = start(&upstream, state.path()).await;
        let fault = bridge.faults.lock().unwrap()[0].clone();
        assert!(
            fault.contains(file.to_str().unwrap()) && fault.contains("move"),
            "{fault}"
        );
        let (id, _) = bridge.turn("a").await;
        assert!(bridge.knows(&id).await);
        bridge.is(1.0).await;
        eventually("store_degraded", || !bridge.events("store_degraded").is_empty()).await;
        assert_eq!(bridge.events("store_degraded")[0]["reason"], reason);
        assert!(
            std::fs::read(&file).unwrap() == content,
            "{reason}: the file was changed"
        );
        std::fs::rename(&file, state.path().join("away.db")).unwrap();
        bridge.is(0.0).await;
    }
    let nowhere = tempfile::tempdir().unwrap();
    let file = nowhere.path().join("a file, no folder");
    std::fs::write(&file, "").unwrap();
    let bridge = start(&upstream, &file).await;
    let (id, _) = bridge.turn("a").await;
    assert!(bridge.knows(&id).await);
    bridge.is(1.0).await;
    assert_eq!(bridge.faults.lock().unwrap().len(), 1);
    assert_eq!(bridge.events("bridge_started")[0]["before"], "unknown");
    assert!(bridge.metric("bridge_store_lost_total").await >= 1.0);
}

/// [STATE-8] The disk is full: as it is for an operator. The limit on the size of files of a process stands in for it.
#[tokio::test]
async fn a_full_disk() {
    let upstream = Simulator::start(Default::default()).await.unwrap();
    let home = crate::process::Home::new(&config(&upstream.base_url(), CLIENTS));
    // In blocks of 512 bytes; a write beyond it fails instead of ending the process.
    let bridge = home.start_after("trap '' XFSZ; ulimit -f 200").await;
    let ask = |n: u32| {
        Ask::turn(format!("sim:conv=c{} hello", n % 3))
            .bearer("key-alice")
            .thread(&format!("c{}", n % 3))
    };
    let mut turns = 0;
    while bridge.events("store_degraded").is_empty() {
        let answer = ask(turns).ask(bridge.address).await;
        answer.completed();
        turns += 1;
        assert!(turns < 3000, "the limit was never met");
    }
    for _ in 0..20 {
        ask(turns).ask(bridge.address).await.completed();
        turns += 1;
    }
    let reason = bridge.events("store_degraded")[0]["reason"].clone();
    assert!(reason == "full" || reason == "io", "{reason}");
    let ready = Ask::bare("GET", "/health/ready").ask(bridge.address).await;
    assert_eq!(ready.status, 200);
}
