//! A fault of the bridge's own in one turn costs that turn and nothing else.

use std::collections::HashSet;
use std::sync::Mutex;

use futures_util::future::join_all;
use responses_bridge::runtime::Trap;
use responses_bridge::wire::head::Head;

use crate::client::Ask;
use crate::way::Way;

/// Panics at `response.created` of the model `early`, and at the terminal of the model `late`.
fn trap() -> Trap {
    let late = Mutex::new(HashSet::new());
    Box::new(move |head| match head {
        Head::Created(created) => match created.model.as_deref() {
            Some("early") => panic!("planted"),
            Some("late") => drop(late.lock().unwrap().insert(created.response_id.clone())),
            _ => {}
        },
        Head::Terminal(terminal) => {
            let planted = late.lock().unwrap().contains(&terminal.response_id);
            assert!(!planted, "planted");
        }
        _ => {}
    })
}

/// [INV-2] [INV-5] A panic planted in one turn ends it: before commit with an HTTP error, after it with `response.failed`. Other turns go on,
/// the key's next turn works, and every count returns to zero.
#[tokio::test(flavor = "multi_thread")]
async fn a_planted_panic() {
    for way in Way::BOTH {
        let world = way.setup().trap(trap()).start().await;
        let others = (0..4).map(async |number| {
            let ask = Ask::turn("sim:text(n=40, size=30, delay=20ms)").thread(&format!("other{number}"));
            world.ask(&ask).await.completed();
        });
        let one = async |key: &str, model: &str, stream: bool| {
            let ask = Ask::turn(format!("sim:conv={key} hello"))
                .thread(key)
                .with("model", model);
            world.ask(&ask.with("stream", stream)).await
        };
        let planted = async |number: usize| {
            let (model, stream) =
                [("early", true), ("late", true), ("early", false), ("late", false)][number];
            let key = format!("k{number}");
            for _ in 0..2 {
                let answer = one(&key, model, stream).await;
                if (model, stream) == ("late", true) {
                    assert_eq!(answer.failure(), "bridge_internal");
                } else {
                    assert_eq!((answer.status, answer.error().as_str()), (500, "bridge_internal"));
                }
            }
            one(&key, "gpt-5", stream).await.completed();
            assert_eq!(world.creates(&key).total(), 3, "nothing was sent again");
        };
        // A JSON answer over HTTP is one piece: no event tells which turn it is.
        let kinds = if way == Way::Socket { 4 } else { 2 };
        tokio::join!(join_all(others), join_all((0..kinds).map(planted)));
        world.quiet().await;
        let idle = if way == Way::Socket { 8 } else { 0 };
        world.gauge_is("bridge_sessions", "idle", idle).await;
        world
            .upstream_saw("the sockets of planted turns gone", |ledger| {
                ledger.sockets_open == u64::from(idle)
            })
            .await;
    }
}

/// [QUA-5] A probe that ends in a panic frees its place: the next turn probes.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_a_probe() {
    let world = Way::Socket
        .setup()
        .config("[watchdog]\nresponse_created_deadline = \"300ms\"\n[quarantine]\nwindow = \"50ms\"\nmax_window = \"50ms\"")
        .trap(trap())
        .start()
        .await;
    let turn = |words: &str| Ask::turn(format!("sim:conv=a {words}")).thread("a");
    assert_eq!(
        world.ask(&turn("sim:silent")).await.error(),
        "bridge_response_created_timeout"
    );
    tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    let probe = world.ask(&turn("hello").with("model", "early")).await;
    assert_eq!(probe.error(), "bridge_internal");
    world.ask(&turn("hello")).await.completed();
    assert_eq!(world.events("quarantine_probe").len(), 2);
    assert_eq!(world.events("quarantine_cleared").len(), 1);
    world.quiet().await;
}
