//! A client goes wrong: it does not read, or it leaves.

use crate::client::Ask;
use crate::responder::{events_end_with, explained, explains};
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
