//! Clients that go away, at every phase, by FIN and by reset.

use std::time::Duration;

use crate::world::{Client, GOOD, Setup, World, bare, eventually, post};

#[derive(Clone, Copy, Debug)]
enum Leave {
    Fin,
    Reset,
}

const WAYS: [Leave; 2] = [Leave::Fin, Leave::Reset];

fn leave(client: Client, way: Leave) {
    match way {
        Leave::Fin => drop(client),
        Leave::Reset => client.reset(),
    }
}

/// What was going on is over within a second, and so is the connection.
async fn over(world: &World, what: &str) {
    let gone = async {
        world.quiet().await;
        eventually("the connection is gone", || world.room.available_permits() == 64).await;
    };
    tokio::time::timeout(Duration::from_secs(1), gone)
        .await
        .unwrap_or_else(|_| panic!("still there: {what}"));
    assert_eq!(world.budget.used(), 0, "{what}");
}

/// [EDGE-5] before a whole head, and in the middle of a body: nothing reaches the bridge.
#[tokio::test]
async fn a_client_leaves_while_it_asks() {
    let world = Setup::default().start();
    let request = post("/v1/responses", "", GOOD);
    for way in WAYS {
        for cut in [0, 1, 30, request.len() - 10, request.len() - 1] {
            let mut client = world.connect().await;
            client.send(&request[..cut]).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            leave(client, way);
            over(&world, &format!("{way:?} at {cut}")).await;
        }
    }
    assert!(world.bridge.seen().is_empty());
}

/// [EDGE-51] what a client left of a body is no bad request of its: the event says that it is cut.
#[tokio::test]
async fn a_client_that_leaves_in_its_body_is_told_as_such() {
    for way in WAYS {
        let world = Setup::default().start();
        let mut client = world.connect().await;
        client
            .send(bare("POST", "/v1/responses", "content-length: 1000\r\n") + "{\"mod")
            .await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        leave(client, way);
        over(&world, &format!("{way:?}")).await;
        let lines = world.lines.lock().unwrap().clone();
        assert!(lines.contains(r#""reason":"body_cut""#), "{way:?}: {lines}");
        assert!(!lines.contains("invalid_body"), "{way:?}: {lines}");
    }
}

/// [EDGE-5] before the first byte of the answer: the call is dropped.
#[tokio::test]
async fn a_client_leaves_before_the_first_byte() {
    let world = Setup::default().start();
    for way in WAYS {
        for request in [
            post("/v1/responses", "x-fake: hang\r\n", GOOD),
            bare("GET", "/v1/responses/resp_1", "x-fake: hang\r\n").into(),
            post("/v1/embeddings", "x-fake: hang\r\n", GOOD),
        ] {
            let mut client = world.connect().await;
            client.send(request).await;
            eventually("the call runs", || world.bridge.live() == 1).await;
            leave(client, way);
            over(&world, &format!("{way:?}")).await;
        }
    }
}

/// [EDGE-5] in the middle of a stream that is taken, and of one that is not: the reply is dropped.
#[tokio::test]
async fn a_client_leaves_in_mid_stream() {
    let world = Setup::default().start();
    for way in WAYS {
        for fake in ["drip", "flood"] {
            let mut client = world.connect().await;
            client
                .send(post("/v1/responses", &format!("x-fake: {fake}\r\n"), GOOD))
                .await;
            assert_eq!(client.head().await.status, 200);
            client.chunk().await;
            leave(client, way);
            over(&world, &format!("{way:?} {fake}")).await;
        }
    }
}

/// [EDGE-5] on a kept connection, between two requests and in its second one.
#[tokio::test]
async fn a_client_leaves_a_kept_connection() {
    let world = Setup::default().start();
    for way in WAYS {
        for second in [None, Some("hang"), Some("drip")] {
            let mut client = world.connect().await;
            client.send(post("/v1/responses", "", GOOD)).await;
            assert_eq!(client.answer().await.status, 200);
            if let Some(fake) = second {
                client
                    .send(post("/v1/responses", &format!("x-fake: {fake}\r\n"), GOOD))
                    .await;
                eventually("the call runs", || world.bridge.live() == 1).await;
            }
            leave(client, way);
            over(&world, &format!("{way:?} {second:?}")).await;
        }
    }
}

/// [EDGE-5] three hundred clients that leave before the first byte leave nothing behind.
#[tokio::test]
async fn many_leave_and_nothing_stays() {
    let world = Setup::default().start();
    for round in 0..300 {
        let mut client = world.connect().await;
        client.send(post("/v1/responses", "x-fake: hang\r\n", GOOD)).await;
        if round % 3 > 0 {
            eventually("the call runs", || world.bridge.live() > 0).await;
        }
        leave(client, WAYS[round % 2]);
    }
    over(&world, "300 clients").await;
    assert_eq!(world.tracker.len(), 1, "only the accept loop is left");
}
