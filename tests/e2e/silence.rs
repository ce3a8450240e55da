//! Sessions that go silent (rows 1 to 5).

use crate::client::Ask;
use crate::world::Setup;

/// A created deadline that healthy turns keep on a busy machine, too.
const SHORT: &str = "[watchdog]\nresponse_created_deadline = \"400ms\"";

/// [INV-3] Row 1: nothing at all comes.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_comes() {
    let world = Setup::new().config(SHORT).start().await;
    let answer = world
        .ask(&Ask::turn("sim:conv=a sim:silent(on=ws)").thread("a"))
        .await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (504, "bridge_response_created_timeout")
    );
    let next = world.ask(&Ask::turn("sim:conv=a again").thread("a")).await;
    next.completed();
    let creates = world.creates("a");
    assert_eq!((creates.websocket, creates.http), (1, 1));
    world.quiet().await;
}
