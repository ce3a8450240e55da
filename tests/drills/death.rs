//! The bridge is killed while it works: what it worked on leaves no row.

use responses_bridge::simulator::Simulator;

use crate::client::Ask;
use crate::process::{CLIENTS, Home, config};
use crate::responder::{explained, explains, masked, until};

/// [EXP-12] [STATE-20] Drill 12: `kill -9` in the middle of a turn. The user has the request id of the call that broke off, of
/// which there is no row, and the conversation's, of which there are earlier ones. Both are told when the bridge was cut.
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_in_the_middle_of_a_turn() {
    let upstream = Simulator::start(Default::default()).await.unwrap();
    let home = Home::new(&config(&upstream.base_url(), CLIENTS));
    let bridge = home.start().await;
    let ask = |prompt: &str| Ask::turn(prompt).bearer("key-alice").thread("the-thread");
    ask("hello").ask(bridge.address).await.completed();
    let sentence = "nothing went wrong: the call was served by openai/main over WebSocket in D, response.created after D, \
                    first output after D";
    explains(&home.state(), "the-thread", sentence).await;
    let held = ask("sim:silent").header("x-request-id", "the-call");
    let reply = held.send(bridge.address).await;
    bridge.saw("turn_sent", 2).await;
    bridge.kill().await;
    drop(reply);

    let state = home.state();
    let args = ["explain", "the-call", "--state", state.to_str().unwrap()];
    let printed = until(&args, |printed| printed.code == 1).await;
    assert_eq!(printed.code, 1, "{}{}", printed.text, printed.errors);
    assert!(
        !printed.text.contains("drain"),
        "nobody can know yet: {}",
        printed.text
    );
    let bridge = home.start().await;
    let printed = until(&args, |printed| printed.text.contains("drain")).await;
    assert_eq!(printed.code, 1, "{}{}", printed.text, printed.errors);
    let (_, told) = printed.last_line().split_once("; ").unwrap();
    assert!(
        told.starts_with("the bridge ended without a finished drain between 20")
            && told.ends_with("Z: a call that ran then left no row"),
        "{told}"
    );
    let sentence = sentence.replace("wrong:", "wrong with the call itself:")
        + "; the bridge ended without a finished drain between T and T: a later call of the conversation that ran then left no row";
    let printed = explains(&home.state(), "the-thread", &masked(&sentence)).await;
    assert!(
        printed.text.contains("start") && printed.text.contains("without a finished drain"),
        "{}",
        printed.text
    );
    assert_eq!(explained(&home.state(), "the-thread")["cause"], "bridge_cut");
    // With the next call, which may be the retry, it goes on, and what was lost is told all the same.
    ask("again").ask(bridge.address).await.completed();
    let sentence = "nothing went wrong with the calls themselves: both calls were served; the last one was served by \
                    openai/main over WebSocket in D, response.created after D, first output after D; the bridge ended \
                    without a finished drain between T and T: a call of the conversation that ran then left no row";
    explains(&home.state(), "the-thread", &masked(sentence)).await;
}
