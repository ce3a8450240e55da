//! The bridge ends, in an orderly way or not, between any two turns: whose a thing is survives.

use responses_bridge::simulator::Simulator;
use serde_json::Value;

use crate::client::Ask;
use crate::process::Home;
use crate::shared::{TWO, in_turn, output, restarted, sealed, two, user, went_to};

/// Two accounts that are taken in turn.
fn config(base_url: &str) -> String {
    let accounts = TWO.replace("{openai}", base_url);
    format!(
        "[server]\nlisten = \"127.0.0.1:0\"\ndrain = \"1s\"\n[routing]\nstrategy = \"round_robin\"\n{accounts}"
    )
}

/// A conversation that is resent in full each time, and gives no sign of itself.
struct Resent {
    name: &'static str,
    input: Vec<Value>,
}

impl Resent {
    fn new(name: &'static str) -> Resent {
        let input = vec![user(&format!("sim:conv={name} hello"))];
        Resent { name, input }
    }

    async fn turn(&mut self, address: std::net::SocketAddr, stream: bool) {
        let answer = sealed(&self.input).with("stream", stream).ask(address).await;
        self.input.extend(output(&answer));
        self.input.push(user(&format!("sim:conv={} more", self.name)));
    }
}

/// [KEY-44] [KEY-43] [STATE-1] rows 9 and 44: an orderly restart between any two turns of two conversations, one that resends
/// encrypted reasoning, one that names stored responses.
#[tokio::test]
async fn restarts_between_turns() {
    let mut world = in_turn("").await;
    let mut resent = Resent::new("resent");
    let mut anchor: Option<String> = None;
    for round in 0..4 {
        resent.turn(world.address, round % 2 == 0).await;
        let ask = Ask::turn("sim:conv=anchored hello");
        let ask = anchor.iter().fold(ask, |ask, anchor| ask.after(anchor));
        anchor = Some(world.ask(&ask).await.id());
        world = restarted(world, two().config("[routing]\nstrategy = \"round_robin\"")).await;
        // So that the strategy would go elsewhere.
        for _ in 0..=round % 2 {
            world.ask(&Ask::turn("sim:conv=between")).await.completed();
        }
    }
    for conversation in ["resent", "anchored"] {
        let to = went_to(&world.upstream, conversation);
        assert!(to == "aaaa" || to == "bbbb", "{conversation}: {to}");
    }
}

/// [KEY-41] [INV-11] [STATE-13] rows 33 and 44: the process is killed in the moment in which its client has the terminal of a
/// turn, and once in the middle of one: the next one sends what carries encrypted reasoning, names a response, or has the same
/// thread to the account that it was with, and nothing of the dead process holds it up.
#[tokio::test]
async fn kills_between_turns() {
    let upstream = Simulator::start(Default::default()).await.unwrap();
    let home = Home::new(&config(&upstream.base_url()));
    let mut resent = Resent::new("resent");
    let mut anchor: Option<String> = None;
    for round in 0..6 {
        let bridge = home.start().await;
        for _ in 0..round % 2 {
            Ask::turn("sim:conv=between")
                .ask(bridge.address)
                .await
                .completed();
        }
        match round % 3 {
            0 => resent.turn(bridge.address, round == 0).await,
            1 => {
                let ask = Ask::turn("sim:conv=anchored hello");
                let ask = anchor.iter().fold(ask, |ask, anchor| ask.after(anchor));
                anchor = Some(ask.ask(bridge.address).await.id());
            }
            _ => {
                let ask = Ask::turn("sim:conv=thread hello").thread("t");
                ask.ask(bridge.address).await.completed();
                let busy = Ask::turn("sim:conv=thread sim:pause(after=1, for=ever)").thread("t");
                let mut reply = busy.open(bridge.address).await;
                reply.until("response.created").await;
            }
        }
        bridge.kill().await;
    }
    let bridge = home.start().await;
    resent.turn(bridge.address, true).await;
    let last = Ask::turn("sim:conv=anchored last").after(&anchor.unwrap());
    last.ask(bridge.address).await.completed();
    Ask::turn("sim:conv=thread last")
        .thread("t")
        .ask(bridge.address)
        .await
        .completed();
    for (conversation, turns) in [("resent", 3), ("anchored", 3), ("thread", 5)] {
        let to = went_to(&upstream, conversation);
        assert!(
            to == "a".repeat(turns) || to == "b".repeat(turns),
            "{conversation}: {to}"
        );
    }
    bridge.kill().await;
}
