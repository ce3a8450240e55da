//! What an incident costs, and whom: late results of old turns, transport faults, and anchors in quarantine.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use crate::client::Ask;
use crate::shared::{metric, under_way, user};
use crate::world::{Setup, World, eventually};

fn turn(prompt: &str) -> Ask {
    Ask::turn(format!("sim:conv=a {prompt}")).thread("a")
}

async fn ask_later(world: &World, ask: Ask) -> tokio::task::JoinHandle<crate::client::Answer> {
    let address = world.address;
    tokio::spawn(async move { ask.ask(address).await })
}

/// [QUA-8] row 32: a turn that was sent before the trip and is accepted after it proves nothing about the sessions of
/// today: the quarantine stays.
#[tokio::test]
async fn an_older_turn_does_not_clear_the_quarantine() {
    let config = "[watchdog]\nresponse_created_deadline = \"900ms\"\n[quarantine]\nwindow = \"10s\"\nmax_window = \"10s\"";
    let world = Setup::new().config(config).start().await;
    let silent = ask_later(&world, turn("sim:silent(on=ws)")).await;
    world.saw("turn_sent", 1).await;
    sleep(Duration::from_millis(500)).await;
    let slow = ask_later(&world, turn("sim:created_after(delay=700ms)")).await;
    assert_eq!(silent.await.unwrap().error(), "bridge_response_created_timeout");
    slow.await.unwrap().completed();
    world.ask(&turn("next")).await.completed();
    assert_eq!(
        world.sockets("a").last().unwrap(),
        &None,
        "the key is still in quarantine"
    );
    assert!(world.events("quarantine_cleared").is_empty());
    assert_eq!(metric(&world, "bridge_quarantined_keys", "").await, 1.0);
}

/// [QUA-8] row 32: trip, probe, trip again by an older sibling; then the probe's acceptance. It belongs to an older
/// generation and erases nothing.
#[tokio::test]
async fn an_overtaken_probe_does_not_clear_the_newer_trip() {
    let config = "[watchdog]\nresponse_created_deadline = \"1s\"\n[quarantine]\nwindow = \"100ms\"\nmax_window = \"20s\"";
    let world = Setup::new().config(config).start().await;
    let began = Instant::now();
    let at = |ms| sleep_until(began + Duration::from_millis(ms));
    let first = ask_later(&world, turn("sim:silent")).await;
    at(600).await;
    let sibling = ask_later(&world, turn("sim:silent")).await;
    first.await.unwrap();
    sleep(Duration::from_millis(110)).await;
    // Accepted 800 ms later; the sibling trips about 500 ms from now.
    let probe = ask_later(&world, turn("sim:created_after(delay=800ms)")).await;
    world.saw("quarantine_probe", 1).await;
    sibling.await.unwrap();
    probe.await.unwrap().completed();
    let generations: Vec<_> = world
        .events("quarantine_opened")
        .iter()
        .map(|line| line["generation"].clone())
        .collect();
    assert_eq!(generations.len(), 2);
    assert!(
        world.events("quarantine_cleared").is_empty(),
        "the probe was of generation {}",
        generations[0]
    );
    assert_eq!(metric(&world, "bridge_quarantined_keys", "").await, 1.0);
    // The newer trip has a probe of its own, which clears.
    sleep(Duration::from_millis(450)).await;
    world.ask(&turn("a fresh probe")).await.completed();
    world.saw("quarantine_cleared", 1).await;
    assert_eq!(
        world.events("quarantine_cleared")[0]["generation"],
        generations[1]
    );
}

/// [INV-5] row 34: abrupt drops are neutral. Whatever ends a socket under a turn before any event, that turn alone fails,
/// retryably; the key's next turn takes a fresh socket at once, and so does everybody else's.
#[tokio::test]
async fn a_dropped_socket_is_neutral() {
    let world = Setup::new().start().await;
    let drops = [
        "fin",
        "reset",
        "close(code=1000)",
        "close(code=1001)",
        "close(code=1008)",
        "close(code=1011)",
        "close(code=1012)",
        "close(code=1013)",
        "cut(after=0)",
    ];
    for (number, drop) in drops.into_iter().enumerate() {
        let prompt = format!("sim:{drop}");
        for (ask, accepted) in [
            (turn(&prompt), drop.starts_with("cut")),
            (turn(&prompt).json(), false),
        ] {
            let answer = world.ask(&ask).await;
            if accepted {
                assert_eq!(answer.failure(), "bridge_upstream_closed", "{drop}");
            } else {
                assert_eq!(
                    (answer.status, answer.error().as_str()),
                    (502, "bridge_upstream_closed"),
                    "{drop}"
                );
            }
        }
        world.ask(&turn("next")).await.completed();
        let other = format!("other{number}");
        world
            .ask(&Ask::turn(format!("sim:conv={other} hello")).thread(&other))
            .await
            .completed();
        assert_eq!(world.creates(&other).websocket, 1, "{drop}");
    }
    assert_eq!(world.creates("a").http, 0);
    for name in ["quarantine_opened", "breaker_changed", "http_fallback"] {
        assert!(world.events(name).is_empty(), "{name}");
    }
    let failed = world
        .events("turn_finished")
        .into_iter()
        .filter(|line| line["outcome"] == "upstream_closed");
    let closes: Vec<_> = failed
        .map(|line| line["close"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        closes.len(),
        2 * drops.len(),
        "each says how the socket ended: {closes:?}"
    );
    assert_eq!(
        metric(&world, "bridge_socket_failures_total", "").await,
        closes.len() as f64
    );
}

/// [HTTP-1] [QUA-2] row 35, without anchors of the bridge's own: in quarantine a client's unstored anchor goes over HTTP as it is,
/// upstream's own error comes back once for each call, and the client's full resend is served.
#[tokio::test]
async fn an_unstored_anchor_in_quarantine() {
    let config = "[watchdog]\nresponse_created_deadline = \"200ms\"\n[quarantine]\nwindow = \"10s\"\nmax_window = \"10s\"";
    let world = Setup::new().config(config).start().await;
    let unstored = |prompt: &str| turn(prompt).with("store", false);
    let first = world.ask(&unstored("hello")).await.id();
    let answer = world.ask(&unstored("sim:silent(on=ws)").after(&first)).await;
    assert_eq!(answer.error(), "bridge_response_created_timeout");
    for calls in 1..3 {
        let answer = world.ask(&unstored("again").after(&first)).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (400, "previous_response_not_found")
        );
        assert_eq!(
            world.creates("a").http + world.creates("-").http,
            calls,
            "one create for each call"
        );
    }
    let full = [
        user("sim:conv=a hello"),
        json!({"type": "message", "role": "assistant", "content": "so"}),
        user("sim:conv=a again"),
    ];
    world
        .ask(&unstored("").with("input", full.to_vec()))
        .await
        .completed();
    assert_eq!(world.events("quarantine_http_fallback").len(), 3);
}

/// [INV-5] [QUA-2] A silent turn touches no other turn of its key that is under way, no other key, and no other tenant's
/// key of the same name.
#[tokio::test]
async fn a_silent_turn_costs_only_itself() {
    let config = "[watchdog]\nresponse_created_deadline = \"250ms\"\n[quarantine]\nwindow = \"10s\"\nmax_window = \"10s\"";
    let world = Setup::new().config(config).start().await;
    let (running, _) = under_way(&world, &turn("sim:pause(after=1, for=600ms)")).await;
    assert_eq!(world.ask(&turn("sim:silent(on=ws)")).await.status, 504);
    running.finish().await.completed();
    world.ask(&turn("by http")).await.completed();
    assert_eq!(world.sockets("a").last().unwrap(), &None);
    for ask in [turn("").thread("b"), turn("").bearer("sk-other")] {
        world
            .ask(&ask.with("input", "sim:conv=other hello"))
            .await
            .completed();
    }
    assert_eq!(world.creates("other").websocket, 2);
    eventually("the silent session is closed", || {
        world.events("session_retired").len() == 1
    })
    .await;
}
