//! Whatever clients send, the number of time series stays what it is. `BRIDGE_CARDINALITY=100000` is the whole of it; without a
//! number it is 2,000 requests.
// A test file: all of it may panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "tasks of a test end with its runtime")]

#[path = "support/client.rs"]
mod client;

use std::collections::BTreeSet;
use std::net::SocketAddr;

use responses_bridge::app::{App, Outlets};
use responses_bridge::config::Config;
use responses_bridge::event::Level;
use responses_bridge::simulator::{Options, Simulator};

use client::{Ask, Reply};

/// Clients at a time, each on one connection.
const CLIENTS: usize = 4;

/// The `n`th request: its ids, its model, its path and its session are its own.
fn request(n: usize) -> Ask {
    let ask = match n % 5 {
        0 => Ask::turn(format!("hello {n}")).with("model", format!("model-{n}")),
        1 => Ask::turn("hello").with("previous_response_id", format!("resp_{n}")),
        2 => Ask::bare("GET", format!("/v1/responses/resp_{n}")),
        3 => Ask::bare("GET", format!("/v1/models/model-{n}")),
        _ => Ask::bare("GET", format!("/nowhere/{n}")),
    };
    ask.bearer(&format!("sk-test-{}", n % 50))
        .header("x-request-id", &format!("request-{n}"))
        .header("traceparent", &format!("00-{:032x}-{:016x}-01", n + 1, n + 1))
        .header("session-id", &format!("session-{n}"))
        .header("user-agent", &format!("agent/{n}"))
}

async fn play(to: SocketAddr, numbers: impl Iterator<Item = usize>) {
    let mut open: Option<Reply> = None;
    for n in numbers {
        let ask = request(n);
        let reply = match open.take() {
            Some(before) => before.again(&ask).await,
            None => ask.open(to).await,
        };
        assert!(reply.status < 500, "{n}: {reply:?}");
        open = Some(reply);
    }
    if let Some(last) = open {
        last.finish().await;
    }
}

/// Name and labels of every series.
async fn series(to: SocketAddr) -> BTreeSet<String> {
    let answer = Ask::bare("GET", "/metrics").ask(to).await;
    let lines = answer.text().lines().filter(|line| !line.starts_with('#'));
    let named = lines.filter_map(|line| line.rsplit_once(' '));
    named.map(|(name, _)| name.to_owned()).collect()
}

/// [COR-2] A hundred thousand requests with ids, models and paths of their own leave the number of time series unchanged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_add_no_series() {
    let total = std::env::var("BRIDGE_CARDINALITY").map_or(2_000, |total| total.parse().unwrap());
    let upstream = Simulator::start(Options::default()).await.unwrap();
    let state = tempfile::tempdir().unwrap();
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[providers.openai]\nbase_url = \"{}\"\ntransport = \"http\"\n\
         [[providers.openai.accounts]]\nname = \"main\"\ncredential = \"client\"\n[state]\npath = '{}'\n",
        upstream.base_url(),
        state.path().display()
    );
    let config = Config::parse(&text, "cardinality.toml", &|_| None).unwrap();
    let outlets = Outlets {
        level: Level::Debug,
        lines: Box::new(|_| {}),
        state_fault: Box::new(|fault| panic!("{fault}")),
        file_limit: 4096,
        trap: None,
        spans: None,
    };
    let app = App::start(config, outlets).await.unwrap();
    let to = app.address();
    play(to, 0..100).await;
    let before = series(to).await;
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        clients.spawn(play(to, (100 + client..total).step_by(CLIENTS)));
    }
    while let Some(played) = clients.join_next().await {
        played.unwrap();
    }
    let after = series(to).await;
    let new: Vec<_> = after.difference(&before).collect();
    assert!(new.is_empty(), "{} requests brought {new:?}", total);
    assert!(before.len() > 50, "{}", before.len());
    for id in ["request-", "model-", "resp_", "session-", "nowhere", "agent/"] {
        assert!(!after.iter().any(|name| name.contains(id)), "{id} in a series");
    }
}
