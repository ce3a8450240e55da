//! A slow way up: the watchdog judges progress while bytes move, and silence only from the flush.

use std::time::Duration;

use tokio::time::Instant;

use crate::client::Ask;
use crate::shared::both_transports;
use crate::world::Setup;

/// [SES-2] row 41: a create that takes several times the created deadline and the write deadline to leave is not silent.
#[tokio::test]
async fn a_slow_uplink_is_not_a_silent_session() {
    let config = "[watchdog]\nwrite_deadline = \"2s\"\nresponse_created_deadline = \"3s\"\n[http]\nfirst_byte = \"3s\"";
    let script = "[[upgrade]]\ndo = \"slow_read(rate=4MiB)\"";
    let world = Setup::new().config(config).script(script).start().await;
    let began = Instant::now();
    let ask = Ask::turn(format!("sim:conv=a {}", "x".repeat(14 << 20))).thread("a");
    world.ask(&ask).await.completed();
    assert!(
        began.elapsed() > Duration::from_millis(3200),
        "the upstream was not slow: {:?}",
        began.elapsed()
    );
    assert_eq!(world.creates("a").websocket, 1);
    assert!(world.events("response_created_timeout").is_empty());
}

/// [SES-2] An upstream that takes no byte at all: the write has a deadline, and it is no quarantine.
#[tokio::test]
async fn a_stalled_write_ends_in_time() {
    let config = "[watchdog]\nwrite_deadline = \"400ms\"\n[http]\nfirst_byte = \"10s\"";
    let script = "[[upgrade]]\ndo = \"slow_read(rate=1MiB, delay=1h)\"";
    let world = Setup::new().config(config).script(script).start().await;
    let ask = Ask::turn(format!("sim:conv=a {}", "x".repeat(14 << 20))).thread("a");
    let answer = world.ask(&ask).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (502, "bridge_write_stalled")
    );
    assert_eq!(world.events("slow_stream").len(), 1);
    assert!(world.events("quarantine_opened").is_empty());
}

/// [SES-3] [SES-5] The created deadline itself begins with the flush, on both transports, and one slow start poisons
/// nothing.
#[tokio::test]
async fn just_in_time_and_just_too_late() {
    let config = "[watchdog]\nresponse_created_deadline = \"600ms\"\n[http]\nfirst_byte = \"600ms\"\nfirst_event = \"600ms\"";
    for world in both_transports(config).await {
        let early = Ask::turn("sim:conv=early sim:created_after(delay=300ms)").thread("early");
        world.ask(&early).await.completed();
        world.ask(&early).await.completed();
        let late = world
            .ask(&Ask::turn("sim:conv=late sim:created_after(delay=1200ms)").thread("late"))
            .await;
        assert_eq!(late.status, 504);
        assert_eq!(world.creates("late").total(), 1);
        world
            .ask(&Ask::turn("sim:conv=other hello").thread("other"))
            .await
            .completed();
    }
}
