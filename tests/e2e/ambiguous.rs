//! Whatever may have been sent is sent once (row 6, INV-1): the upstream counts the creates.

use std::time::Duration;

use futures_util::future::join_all;

use crate::client::Ask;
use crate::way::Way;
use crate::world::{Setup, World};

/// One call in a conversation of its own.
fn call(name: &str, words: &str, stream: bool) -> Ask {
    Ask::turn(format!("sim:conv={name} {words}"))
        .thread(name)
        .with("stream", stream)
}

/// Sockets and creates that such a call has cost.
fn sent(world: &World, name: &str) -> (u64, u64) {
    let creates = world.creates(name);
    (creates.websocket, creates.http)
}

/// [INV-1] [SES-30] Row 6: the upstream takes the create and the connection goes, in every way that a connection can go: the call
/// ends as a retryable error and was sent once, whether anything else came before or not.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_is_swallowed() {
    let ends = [
        "sim:close(code=1000)",
        "sim:close(code=1001)",
        "sim:close(code=1008)",
        "sim:close(code=1011, reason=overloaded)",
        "sim:close(code=1012)",
        "sim:close(code=1013)",
        "sim:close(code=4000)",
        "sim:close(delay=50ms)",
        "sim:fin",
        "sim:reset",
        "sim:cut",
        "sim:telemetry(for=30ms, every=10ms) sim:close",
        "sim:telemetry(for=30ms, every=10ms) sim:reset",
        "sim:keepalives(for=30ms, every=10ms) sim:fin",
    ];
    for way in Way::BOTH {
        let world = way.setup().start().await;
        let calls = ends.iter().enumerate().flat_map(|(number, end)| {
            [true, false].map(|stream| (format!("c{number}-{stream}"), *end, stream))
        });
        let calls: Vec<_> = calls.collect();
        let turn = async |(name, end, stream): &(String, &str, bool)| {
            let answer = world.ask(&call(name, end, *stream)).await;
            assert_eq!(answer.status, 502, "{way:?} {end} {stream}");
            let code = answer.error();
            let known = [
                "bridge_upstream_closed",
                "bridge_truncated",
                "bridge_upstream_protocol",
            ];
            assert!(known.contains(&code.as_str()), "{way:?} {end}: {code}");
            let once = match way {
                Way::Socket => (1, 0),
                Way::Direct => (0, 1),
            };
            assert_eq!(sent(&world, name), once, "{way:?} {end} {stream}");
        };
        // No more at once than handshakes may be in flight.
        for calls in calls.chunks(7) {
            join_all(calls.iter().map(turn)).await;
        }
        // Nobody was silent: the next turn of each goes by session again.
        let next = world.ask(&call("c0-true", "again", true)).await;
        next.completed();
        assert_eq!(world.sockets("c0-true")[1].is_some(), way == Way::Socket);
        assert!(world.events("quarantine_opened").is_empty());
        world.quiet().await;
    }
}

/// [INV-1] [INV-2] The same after `response.created`: the committed client gets its `response.failed`, and nothing is sent
/// again.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_cut() {
    let ends = [
        "sim:close(after=0)",
        "sim:close(after=1, code=1000)",
        "sim:close(after=2, code=1009)",
        "sim:fin(after=1)",
        "sim:reset(after=1, delay=20ms)",
        "sim:cut(after=1)",
        "sim:truncated(after=1)",
        "sim:close(after=99)",
    ];
    for way in Way::BOTH {
        let world = way.setup().start().await;
        for (number, end) in ends.iter().enumerate() {
            let name = format!("c{number}");
            let answer = world.ask(&call(&name, end, true)).await;
            let code = answer.failure();
            let known = [
                "bridge_upstream_closed",
                "bridge_truncated",
                "bridge_frame_too_large",
                "bridge_upstream_protocol",
            ];
            assert!(known.contains(&code.as_str()), "{way:?} {end}: {code}");
            let json = world.ask(&call(&name, end, false)).await;
            let all = world.creates(&name).total();
            assert_eq!(all, 2, "{way:?} {end}: one for each of the two calls");
            if way == Way::Socket {
                assert_eq!(json.error(), code, "{end}");
            }
        }
        world.quiet().await;
    }
}

/// [INV-1] [HTTP-5] Direct HTTP: every error status is the client's at once. Nothing is retried here, redirects are not followed,
/// and what a retry may cure says when.
#[tokio::test(flavor = "multi_thread")]
async fn statuses_are_not_retried() {
    let world = Way::Direct.setup().start().await;
    for status in [
        400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529,
    ] {
        for page in [false, true] {
            let name = format!("s{status}-{page}");
            let words = format!("sim:error(status={status}, page={page})");
            let answer = world.ask(&call(&name, &words, !page)).await;
            assert_eq!(answer.status, status, "{answer:?}");
            answer.error();
            assert_eq!(sent(&world, &name), (0, 1), "{status}");
        }
    }
    for status in [301, 302, 303, 307, 308] {
        let name = format!("r{status}");
        let answer = world
            .ask(&call(&name, &format!("sim:redirect(status={status})"), true))
            .await;
        assert_eq!(answer.status, 502, "{answer:?}");
        answer.error();
        assert_eq!(sent(&world, &name), (0, 1));
    }
    let elsewhere = |ledger: &responses_bridge::simulator::Ledger| {
        let requests = ledger.requests.iter();
        requests
            .filter(|request| request.target.contains("elsewhere"))
            .count()
    };
    assert_eq!(world.upstream.look(elsewhere), 0);
}

/// [INV-1] [SES-26] A definite rejection for a reason of the connection: the call is sent once more, by direct HTTP, and no
/// more than that, whatever comes there.
#[tokio::test(flavor = "multi_thread")]
async fn the_connection_is_at_its_limit() {
    let rejections = [
        "sim:age_limit(on=ws)",
        "sim:error(on=ws, status=400, code=websocket_connection_limit_reached)",
        "sim:error(on=ws, status=400, code=websocket_stream_limit_reached)",
        "sim:telemetry_error(on=ws, status=400, code=websocket_connection_limit_reached)",
    ];
    let world = Setup::new().start().await;
    for (number, words) in rejections.iter().enumerate() {
        for stream in [true, false] {
            let name = format!("c{number}-{stream}");
            world.ask(&call(&name, words, stream)).await.completed();
            assert_eq!(sent(&world, &name), (1, 1), "{words}");
            // The socket is not used again.
            world.ask(&call(&name, "again", stream)).await.completed();
            let sockets = world.sockets(&name);
            assert!(
                sockets[2].is_some() && sockets[2] != sockets[0],
                "{words}: {sockets:?}"
            );
        }
    }
    let both = "sim:age_limit(on=ws) sim:error(on=http, status=503, code=websocket_connection_limit_reached)";
    let answer = world.ask(&call("both", both, true)).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.error(), "websocket_connection_limit_reached");
    assert_eq!(sent(&world, "both"), (1, 1));
    // After acceptance it is the turn's failure, and nothing is sent again.
    let late = "sim:error(after=1, status=400, code=websocket_connection_limit_reached)";
    let answer = world.ask(&call("late", late, true)).await;
    assert_eq!(answer.failure(), "websocket_connection_limit_reached");
    assert_eq!(sent(&world, "late"), (1, 0));
    world.quiet().await;
}

/// [INV-1] Other rejections are the client's answer at once: the bridge does not try them again, by no transport.
#[tokio::test(flavor = "multi_thread")]
async fn rejections_are_not_retried() {
    let world = Setup::new().start().await;
    for status in [400, 401, 403, 404, 408, 429, 500, 502, 503, 504] {
        let name = format!("s{status}");
        let answer = world
            .ask(&call(&name, &format!("sim:error(status={status})"), true))
            .await;
        assert_eq!(answer.status, status);
        answer.error();
        assert_eq!(sent(&world, &name), (1, 0), "{status}");
    }
}

/// [INV-1] [SES-22] Row 14: the upstream closes an idle socket just when the next turn is given to it. Either nothing was sent, and
/// the turn takes another socket unseen by the client; or it was sent, and is not sent again.
#[tokio::test(flavor = "multi_thread")]
async fn a_close_meets_a_send() {
    let world = Setup::new().start().await;
    let conversation = async |number: u64| {
        let name = format!("c{number}");
        let way = ["close", "fin", "reset"][usize::try_from(number % 3).unwrap()];
        let first = format!("sim:afterwards(do={way}, delay={}ms)", 1 + number % 8);
        world.ask(&call(&name, &first, true)).await.completed();
        tokio::time::sleep(Duration::from_micros(500 * (number % 17))).await;
        let answer = world.ask(&call(&name, "again", true)).await;
        match answer.status {
            200 => drop(answer.completed()),
            _ => assert_eq!(answer.error(), "bridge_upstream_closed"),
        }
        assert!(world.creates(&name).total() <= 2, "sent again");
    };
    join_all((0..60).map(conversation)).await;
    world.quiet().await;
}
