//! Warm sockets: a new conversation pays no handshake.

use std::time::Duration;

use crate::client::Ask;
use crate::world::{Setup, World, eventually};

const OWN: &str = r#"
[session]
prewarm = 2
[providers.openai]
base_url = "{openai}"
[[providers.openai.accounts]]
name = "main"
credential = { env = "OWN" }
[providers.chatgpt]
kind = "chatgpt"
base_url = "{chatgpt}"
[[providers.chatgpt.accounts]]
name = "main"
credential = { env = "OWN" }
"#;

async fn world(config: &str) -> World {
    Setup::new().secret("OWN", "sk-own").config(config).start().await
}

async fn opened(world: &World, number: usize) {
    eventually(&format!("{number} sessions"), || {
        world.events("session_opened").len() >= number
    })
    .await;
}

/// [SES-32] None before there is traffic; with it, two, which the next new conversations get, each for itself and for
/// good; and they are replaced.
#[tokio::test]
async fn a_new_conversation_pays_no_handshake() {
    let world = world(OWN).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(world.upstream.ledger().sockets_opened, 0);
    world
        .ask(&Ask::turn("sim:conv=a hello").thread("a"))
        .await
        .completed();
    opened(&world, 3).await;
    for name in ["b", "c"] {
        let before = world.upstream.ledger().sockets_opened;
        let mut dialled = before;
        for _ in 0..2 {
            world
                .ask(&Ask::turn(format!("sim:conv={name} hello")).thread(name))
                .await
                .completed();
            dialled = dialled.min(world.sockets(name)[0].unwrap());
        }
        assert!(dialled <= before, "the socket was there before the turn");
        let sockets = world.sockets(name);
        assert_eq!(sockets[0], sockets[1], "and is the conversation's from then on");
    }
    assert_ne!(world.sockets("b")[0], world.sockets("c")[0]);
    opened(&world, 5).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(
        world.upstream.ledger().sockets_opened,
        5,
        "two are ready, and no more"
    );
}

/// [SES-32] One that the upstream closes is replaced, and no turn is lost with it.
#[tokio::test]
async fn a_closed_one_is_replaced() {
    let world = world(OWN).await;
    world
        .ask(&Ask::turn("sim:conv=a hello").thread("a"))
        .await
        .completed();
    opened(&world, 3).await;
    world
        .upstream
        .end_sockets(responses_bridge::simulator::Ending::Reset);
    opened(&world, 5).await;
    world
        .ask(&Ask::turn("sim:conv=b hello").thread("b"))
        .await
        .completed();
    assert_eq!(world.creates("b").websocket, 1);
}

/// [SES-32] Neither a caller's own credential nor ChatGPT's handshake, which says for whom it is, can be had ahead.
#[tokio::test]
async fn who_gets_none() {
    let chatgpt = world(OWN).await;
    let ask = Ask::turn("sim:conv=a hello")
        .thread("a")
        .header("chatgpt-account-id", "x");
    chatgpt.ask(&ask).await.completed();
    let callers = OWN.replace(
        "credential = { env = \"OWN\" }\n[providers.chatgpt]",
        "credential = \"client\"\n[providers.chatgpt]",
    );
    let spare = "[providers.spare]\nbase_url = \"{openai}\"\naccounts = [{ name = \"main\", credential = { env = \"OWN\" } }]\n";
    let own = world(&format!("{callers}{spare}")).await;
    own.ask(&Ask::turn("sim:conv=a hello").thread("a"))
        .await
        .completed();
    tokio::time::sleep(Duration::from_millis(700)).await;
    for world in [chatgpt, own] {
        assert_eq!(world.upstream.ledger().sockets_opened, 1);
    }
}
