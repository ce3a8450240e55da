//! A client goes wrong: it does not read, or it leaves.

use serde_json::Value;

use crate::accounts::TWO;
use crate::client::Ask;
use crate::responder::{Printed, events_end_with, explained, explains, until};
use crate::sessions::SHORT;
use crate::world::Setup;

/// [EXP-4] Drill 6: the client stops reading.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client() {
    let world = Setup::new()
        .config("[server]\nclient_buffer = \"256KiB\"\n[watchdog]\nslow_client = \"300ms\"")
        .start()
        .await;
    let mut reply = Ask::turn("sim:burst(n=400, size=64KiB)")
        .thread("slow")
        .narrow()
        .send(world.address)
        .await;
    reply.read_head().await;
    world.saw("slow_client", 1).await;
    let sentence = "the client did not take the response's bytes in time; the bridge tore the stream and closed the upstream \
                    connection; no later call of the conversation is in the journal";
    explains(world.state.path(), "slow", sentence).await;
    assert_eq!(explained(world.state.path(), "slow")["cause"], "slow_client");
    events_end_with(
        world.state.path(),
        &["--id", "slow"],
        &["turn_finished", "slow_client"],
    )
    .await;
}

/// [EXP-4] Drill 7: the client leaves, before anything came and in the middle of the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves() {
    let world = Setup::new().start().await;
    let reply = Ask::turn("sim:silent").thread("early").send(world.address).await;
    world.saw("turn_sent", 1).await;
    reply.reset();
    let sentence = "the client left after D, after the request was sent and before response.created; its turn was cancelled \
                    by closing the upstream connection; no later call of the conversation is in the journal";
    explains(world.state.path(), "early", sentence).await;

    let mut reply = world
        .open(&Ask::turn("sim:pause(after=1, for=ever)").thread("later"))
        .await;
    let created = reply.until("response.created").await;
    reply.reset();
    let id = created.data["response"]["id"].as_str().unwrap();
    let sentence = "the client left after D, in the middle of the response; its turn was cancelled by closing the upstream \
                    connection; no later call of the conversation is in the journal";
    explains(world.state.path(), id, sentence).await;
    assert_eq!(explained(world.state.path(), id)["cause"], "client_left");
    events_end_with(
        world.state.path(),
        &["--id", id],
        &["turn_finished", "client_gone"],
    )
    .await;
}

/// [EXP-9] Drill 11: a client names every call of its by the same request id. Two of them run at the same time, one is moved to
/// another account, one is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reuses_its_request_id() {
    let setup = Setup::new().config(&format!("{TWO}{SHORT}"));
    let world = setup.secret("A", "sk-a").secret("B", "sk-b").start().await;
    let named = |prompt: &str, thread: &str| {
        let ask = Ask::turn(prompt).thread(thread);
        ask.header("x-request-id", "always-the-same")
    };
    let moved = named("sim:error(status=429, times=1)", "second");
    world.ask(&moved).await.completed();
    let slow = named("sim:created_after(delay=200ms)", "third");
    let silent = named("sim:silent(on=ws)", "fourth");
    let (slow, silent) = tokio::join!(world.ask(&slow), world.ask(&silent));
    slow.completed();
    assert_eq!(silent.error(), "bridge_response_created_timeout");
    let refused = named("hello", "fifth").with("input", 7);
    assert_eq!(world.ask(&refused).await.status, 400);
    let state = world.state.path().to_str().unwrap();
    let args = ["explain", "always-the-same", "--json", "--state", state];
    let printed = until(&args, |printed| story(printed)["calls"] == 4).await;
    let story = story(&printed);
    assert_eq!(story["calls"], 4, "{story:#}");
    let of = |what: &str| {
        let lines = story["timeline"].as_array().unwrap().iter();
        let of = lines.filter(|line| line["what"] == what);
        of.map(|line| line["call"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of("asked").len(), 3, "{story:#}");
    let ended = of("ended");
    assert_eq!(ended[..2], [1, 1], "the moved one is one call: {story:#}");
    assert_ne!(ended[2], ended[3], "{story:#}");
    assert_eq!((of("watchdog").len(), of("refused")), (1, vec![4]));
    // By its own conversation each is the only one.
    assert_eq!(explained(world.state.path(), "second")["calls"], 1);
}

fn story(printed: &Printed) -> Value {
    serde_json::from_str(&printed.text).unwrap_or_default()
}
