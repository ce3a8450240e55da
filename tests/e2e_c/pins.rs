//! How long a key keeps its account, and what of that outlives the process.

use std::time::Duration;

use tokio::time::sleep;

use crate::client::Ask;
use crate::shared::{in_turn, reasons, restarted, two, went_to};

fn ask(thread: &str) -> Ask {
    Ask::turn(format!("sim:conv={thread}")).thread(thread)
}

/// [KEY-40] a key stays with its account, whatever the strategy would say, through a restart as well.
#[tokio::test]
async fn a_pin_survives_a_restart() {
    let mut world = in_turn("").await;
    for _ in 0..3 {
        for thread in ["one", "two", "three"] {
            world.ask(&ask(thread)).await.completed();
        }
        let setup = two().config("[routing]\nstrategy = \"round_robin\"");
        world = restarted(world, setup).await;
    }
    for thread in ["one", "two", "three"] {
        let to = went_to(&world.upstream, thread);
        assert!(to == "aaa" || to == "bbb", "{thread}: {to}");
    }
    assert_eq!(world.metric("bridge_pins", "").await, Some(3.0));
    world.ask(&ask("one")).await.completed();
    assert!(reasons(&world)[0].ends_with(" pin"));
}

/// [KEY-40] a pin ends after its ttl without a turn, and not before while there are turns.
#[tokio::test]
async fn a_pin_expires() {
    let world = in_turn("[affinity]\nttl = \"2s\"").await;
    for _ in 0..6 {
        world.ask(&ask("kept")).await.completed();
        sleep(Duration::from_millis(500)).await;
    }
    let to = went_to(&world.upstream, "kept");
    assert!(to == "aaaaaa" || to == "bbbbbb", "{to}");
    sleep(Duration::from_millis(2600)).await;
    world.ask(&ask("kept")).await.completed();
    assert!(
        reasons(&world).last().unwrap().ends_with("round_robin"),
        "forgotten"
    );
}

/// [KEY-40] [INV-7] at cap + 1 the least recently used key is forgotten, and may go anywhere.
#[tokio::test]
async fn pins_are_capped() {
    let world = in_turn("[affinity]\nmax_pins = 2").await;
    for thread in ["one", "two", "one", "three"] {
        world.ask(&ask(thread)).await.completed();
    }
    assert_eq!(world.metric("bridge_pins", "").await, Some(2.0));
    world.ask(&ask("one")).await.completed();
    assert!(reasons(&world).last().unwrap().ends_with(" pin"));
    world.ask(&ask("two")).await.completed();
    assert!(reasons(&world).last().unwrap().ends_with(" round_robin"));
}

/// [KEY-40] an account that is configured no more pins nothing.
#[tokio::test]
async fn an_account_that_is_gone() {
    let world = two().start().await;
    world.ask(&ask("one")).await.completed();
    assert_eq!(went_to(&world.upstream, "one"), "a");
    let setup = two().config(&crate::shared::accounts(&["b", "c"]));
    let world = restarted(world, setup).await;
    world.ask(&ask("one")).await.completed();
    assert_eq!(went_to(&world.upstream, "one"), "ab");
}
