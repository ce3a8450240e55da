//! Upgrades that go wrong.

use std::time::Duration;

use responses_bridge::simulator::Simulator;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Error;

use crate::client::*;

async fn open(simulator: &Simulator) -> Result<Socket, Error> {
    Socket::try_open(simulator, "/v1/responses", &[]).await
}

fn status(result: Result<Socket, Error>) -> u16 {
    match result {
        Err(Error::Http(response)) => response.status().as_u16(),
        Err(other) => panic!("{other}"),
        Ok(_) => 101,
    }
}

/// [SIM-16] Refusals have their status, headers and body, and end when their number is reached.
#[tokio::test]
async fn refusals() {
    for code in [401, 403, 404, 405, 426, 429, 503] {
        let script = format!(
            "[[upgrade]]\ndo = \"refuse(status={code}, times=1)\"\nheaders = {{ x-why = \"script\" }}\nbody = \"no\""
        );
        let simulator = simulator(&script).await;
        match open(&simulator).await {
            Err(Error::Http(response)) => {
                assert_eq!(response.status().as_u16(), code);
                assert_eq!(response.headers()["x-why"], "script");
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("accepted"),
        }
        assert_eq!(status(open(&simulator).await), 101);
        let ledger = simulator.ledger();
        assert_eq!((ledger.handshakes_refused, ledger.sockets_opened), (1, 1));
    }
}

/// [SIM-16] Wrong answers are seen by the client as such, and counted as refused.
#[tokio::test]
async fn wrong_answers() {
    for effect in ["wrong_accept", "bare_101", "fin", "reset"] {
        let simulator = simulator(&format!("[[upgrade]]\ndo = \"{effect}\"")).await;
        assert!(open(&simulator).await.is_err(), "{effect}");
        assert!(
            simulator
                .until(LIMIT, |ledger| ledger.handshakes_refused == 1)
                .await,
            "{effect}"
        );
        assert_eq!(simulator.ledger().sockets_opened, 0, "{effect}");
    }
}

/// [SIM-16] A hanging upgrade has no answer; a slow one has a late one.
#[tokio::test]
async fn late_answers() {
    let hanging = simulator("[[upgrade]]\ndo = \"hang\"").await;
    assert!(timeout(Duration::from_millis(150), open(&hanging)).await.is_err());
    assert!(
        hanging
            .until(LIMIT, |ledger| ledger.handshakes_refused == 1)
            .await
    );
    let slow = simulator("[[upgrade]]\ndo = \"slow(delay=150ms)\"").await;
    let started = Instant::now();
    assert_eq!(status(open(&slow).await), 101);
    assert!(started.elapsed() >= Duration::from_millis(150));
}

/// [SIM-16] At the ceiling a further upgrade is refused, and a place that is given back can be taken.
#[tokio::test]
async fn the_ceiling() {
    let simulator = simulator("[limits]\nsockets = 2\nrefuse_with = 429").await;
    let (first, _second) = (open(&simulator).await.unwrap(), open(&simulator).await.unwrap());
    assert_eq!(status(open(&simulator).await), 429);
    drop(first);
    assert!(simulator.until(LIMIT, |ledger| ledger.sockets_open == 1).await);
    assert_eq!(status(open(&simulator).await), 101);
    assert_eq!(simulator.ledger().sockets_most, 2);
}

/// [SIM-16] A rule can be for some upgrades only: by header, or by number.
#[tokio::test]
async fn upgrade_rules_match() {
    let script = "[[upgrade]]\nmatch = { header = { thread-id = \"bad\" } }\ndo = \"refuse(status=403)\"\n\
                  [[upgrade]]\nmatch = { nth = 3 }\ndo = \"refuse(status=503)\"";
    let simulator = simulator(script).await;
    let with = async |thread: &str| {
        status(Socket::try_open(&simulator, "/v1/responses", &[("thread-id", thread)]).await)
    };
    assert_eq!(with("good").await, 101);
    assert_eq!(with("bad").await, 403);
    assert_eq!(with("good").await, 503);
    assert_eq!(with("good").await, 101);
    assert_eq!(status(Socket::try_open(&simulator, "/v1/other", &[]).await), 404);
}
