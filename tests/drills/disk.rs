//! The disk is full, and the configuration is edited in a hurry: the bridge is a process of its own, as an operator has it.

use responses_bridge::simulator::Simulator;

use crate::client::Ask;
use crate::process::{CLIENTS, Home, config};
use crate::responder::{events_end_with, explained, explains};

fn ask(thread: &str) -> Ask {
    Ask::turn("hello").bearer("key-alice").thread(thread)
}

const SERVED: &str = "nothing went wrong with the call itself: the call was served by openai/main over WebSocket in D, \
                      response.created after D, first output after D";

/// [EXP-4] Drill 8: the disk is full while a call is served, and has room again later. The limit on the size of a process's files
/// stands in for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk() {
    let upstream = Simulator::start(Default::default()).await.unwrap();
    let home = Home::new(&config(&upstream.base_url(), CLIENTS));
    // In blocks of 512 bytes; a write beyond it fails instead of ending the process.
    let bridge = home.start_after("trap '' XFSZ; ulimit -S -f 400").await;
    let mut turns = 0;
    while bridge.events("store_degraded").is_empty() {
        ask(&format!("before-{}", turns % 3))
            .ask(bridge.address)
            .await
            .completed();
        turns += 1;
        assert!(turns < 5000, "the limit was never met");
    }
    ask("the-user").ask(bridge.address).await.completed();
    let hard = rlimit::INFINITY;
    let process = bridge.id().cast_signed();
    rlimit::prlimit(process, rlimit::Resource::FSIZE, Some((hard, hard)), None).unwrap();
    bridge.saw("store_recovered", 1).await;
    let reason = bridge.events("store_degraded")[0]["reason"].clone();
    let why = match reason.as_str().unwrap() {
        "full" => "the disk is full",
        "io" => "the disk failed",
        other => panic!("{other}"),
    };
    let sentence = format!("{SERVED}; the state could not be written from T until T: {why}");
    explains(&home.state(), "the-user", &sentence).await;
    let story = explained(&home.state(), "the-user");
    assert_eq!(
        (&story["cause"], &story["detail"]),
        (&"store_degraded".into(), &reason)
    );
    events_end_with(
        &home.state(),
        &["--kind", "store_degraded"],
        &["! store_degraded", reason.as_str().unwrap(), "writing resumes b"],
    )
    .await;
}

/// [EXP-4] Drill 10: a configuration with a fault is put in its place. Calls are served on, and whoever wonders why a window did
/// not change is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_reload() {
    let upstream = Simulator::start(Default::default()).await.unwrap();
    let good = config(&upstream.base_url(), CLIENTS);
    let home = Home::new(&good);
    let bridge = home.start().await;
    ask("before").ask(bridge.address).await.completed();
    let bad = format!("{good}\n[watchdog]\nidle_deadline = \"soon\"\n");
    let line = 1 + bad
        .lines()
        .position(|line| line.contains("idle_deadline"))
        .unwrap();
    std::fs::write(home.path().join("bridge.toml"), bad).unwrap();
    bridge.signal("HUP");
    bridge.saw("config_rejected", 1).await;
    ask("the-user").ask(bridge.address).await.completed();
    let sentence = format!(
        "{SERVED}; the configuration that was read at T was rejected (line {line}, watchdog.idle_deadline), and the one before \
         it stayed in force"
    );
    explains(&home.state(), "the-user", &sentence).await;
    assert_eq!(explained(&home.state(), "the-user")["cause"], "config_rejected");
    events_end_with(
        &home.state(),
        &["--kind", "config*"],
        &[
            "! config_rejected",
            &format!("line {line}"),
            "watchdog.idle_deadline",
        ],
    )
    .await;
    std::fs::write(home.path().join("bridge.toml"), good).unwrap();
    bridge.signal("HUP");
    bridge.saw("config_reloaded", 1).await;
    ask("after").ask(bridge.address).await.completed();
    let sentence = SERVED.replace(" with the call itself", "");
    explains(&home.state(), "after", &sentence).await;
}
