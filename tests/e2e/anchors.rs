//! Requests that name a response (rows 9 and 11, INV-6).

use std::collections::BTreeSet;
use std::sync::Arc;

use responses_bridge::simulator::{Create, Ending, Simulator};
use serde_json::json;

use crate::client::Ask;
use crate::way::Way;
use crate::world::{Setup, World};

/// The last create of a conversation.
fn last(world: &World, conversation: &str) -> Create {
    world
        .upstream
        .look(|ledger| ledger.creates_of(conversation).last().unwrap().clone())
}

/// [INV-6] [SES-9] Row 11: the upstream does not know the client's anchor, in every form of saying so. The anchor was sent, once, and
/// the client reads upstream's own error.
#[tokio::test(flavor = "multi_thread")]
async fn an_anchor_that_upstream_does_not_know() {
    for way in Way::BOTH {
        let world = way.setup().start().await;
        for form in ["code", "message", "invalid", "stream_incomplete"] {
            for stream in [true, false] {
                let name = format!("{form}-{stream}");
                let known = world
                    .ask(&Ask::turn("sim:conv=known hello").thread(&name))
                    .await
                    .id();
                let ask = Ask::turn(format!("sim:conv={name} sim:not_found(form={form})")).thread(&name);
                let answer = world.ask(&ask.after(&known).with("stream", stream)).await;
                assert_eq!(answer.status, 400, "{way:?} {form}: {answer:?}");
                let code = match form {
                    "code" => "previous_response_not_found",
                    "invalid" => "invalid_previous_response_id",
                    "stream_incomplete" => "stream_incomplete",
                    _ => "",
                };
                assert_eq!(answer.error(), code);
                assert_eq!(
                    world.creates(&name).total(),
                    1,
                    "never repeated without its anchor"
                );
                assert_eq!(last(&world, &name).previous_response_id, Some(known));
            }
        }
        // One that nobody ever made, with the caller's own credential: upstream decides.
        let answer = world
            .ask(&Ask::turn("sim:conv=gone hello").after("resp_gone"))
            .await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (400, "previous_response_not_found")
        );
        assert_eq!(
            last(&world, "gone").previous_response_id.as_deref(),
            Some("resp_gone")
        );
        // After `response.created` it is the turn's failure.
        let known = world.ask(&Ask::turn("hello")).await.id();
        let late = Ask::turn("sim:conv=late sim:not_found(after=1)").after(&known);
        assert_eq!(world.ask(&late).await.failure(), "previous_response_not_found");
        assert_eq!(world.creates("late").total(), 1);
        world.quiet().await;
    }
}

/// [KEY-23] [INV-6] An unstored response lives in its socket's memory: the turn that names it takes that socket. With the socket
/// gone the anchor is still sent, and upstream's own error is the answer; the client's full history then starts afresh.
#[tokio::test(flavor = "multi_thread")]
async fn an_unstored_anchor() {
    let world = Setup::new().start().await;
    let turn = |words: &str| {
        Ask::turn(format!("sim:conv=a {words}"))
            .thread("a")
            .with("store", false)
    };
    let first = world.ask(&turn("one")).await.id();
    // Another turn of the conversation, with a memory of its own.
    world.ask(&turn("aside")).await.completed();
    let second = world.ask(&turn("two").after(&first)).await.id();
    let sockets = world.sockets("a");
    assert!(
        sockets[0] != sockets[1] && sockets[0] == sockets[2],
        "{sockets:?}"
    );
    let create = last(&world, "a");
    assert_eq!(
        (create.new_items, create.transcript.len()),
        (1, 3),
        "delta and memory"
    );
    world.upstream.end_sockets(Ending::Fin);
    world.saw("session_retired", 2).await;
    let gone = world.ask(&turn("three").after(&second)).await;
    assert_eq!(
        (gone.status, gone.error().as_str()),
        (400, "previous_response_not_found")
    );
    assert_eq!(last(&world, "a").previous_response_id.as_deref(), Some(&*second));
    assert_eq!(world.creates("a").total(), 4);
    let history = json!([{"type": "message", "role": "user", "content": "sim:conv=a all of it"}]);
    world.ask(&turn("").with("input", history)).await.completed();
    world.quiet().await;
}

/// [KEY-23] [KEY-24] A turn that names an unstored response waits for its own socket, and is told to come again when that takes too
/// long: never a sibling, never direct HTTP, never a 400.
#[tokio::test(flavor = "multi_thread")]
async fn an_unstored_anchor_whose_socket_is_busy() {
    let world = Setup::new()
        .config("[session]\nqueue_wait = \"200ms\"")
        .start()
        .await;
    let turn = |words: &str| {
        Ask::turn(format!("sim:conv=a {words}"))
            .thread("a")
            .with("store", false)
    };
    let first = world.ask(&turn("one")).await.id();
    // A sibling that is idle, and knows nothing of it.
    world.ask(&turn("aside")).await.completed();
    let long = turn("sim:pause(after=1, for=900ms)").after(&first);
    let mut busy = world.open(&long).await;
    busy.until("response.output_text.delta").await;
    let answer = world.ask(&turn("two").after(&first)).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (503, "bridge_session_busy")
    );
    assert_eq!(world.creates("a").total(), 3);
    busy.finish().await.completed();
    world.quiet().await;
}

/// [QUA-2] [INV-6] An anchored turn of a quarantined key goes by direct HTTP with its anchor: a stored one is served, an unstored one is
/// answered by upstream itself.
#[tokio::test(flavor = "multi_thread")]
async fn anchors_in_quarantine() {
    let world = Setup::new()
        .config("[watchdog]\nresponse_created_deadline = \"400ms\"")
        .start()
        .await;
    for store in [true, false] {
        let key = format!("k-{store}");
        let turn = |words: &str| {
            Ask::turn(format!("sim:conv={key} {words}"))
                .thread(&key)
                .with("store", store)
        };
        let first = world.ask(&turn("one")).await.id();
        let silent = world.ask(&turn("sim:silent(on=ws)")).await;
        assert_eq!(silent.error(), "bridge_response_created_timeout");
        let answer = world.ask(&turn("two").after(&first)).await;
        let create = last(&world, &key);
        assert_eq!(
            (create.socket, create.previous_response_id.as_ref()),
            (None, Some(&first))
        );
        if store {
            answer.completed();
            assert_eq!(create.transcript.len(), 3);
        } else {
            assert_eq!(
                (answer.status, answer.error().as_str()),
                (400, "previous_response_not_found")
            );
        }
    }
    world.quiet().await;
}

/// [KEY-10] [KEY-11] [INV-6] [HTTP-9] [HTTP-20] Row 9: a response goes back to the account that made it, over whatever path its name comes, and
/// after a restart too.
#[tokio::test(flavor = "multi_thread")]
async fn a_response_goes_to_its_owner() {
    for way in Way::BOTH {
        // On both paths an upstream that keeps responses.
        let world = way.setup().script("kind = \"openai\"").start().await;
        let login = "/backend-api/codex/responses";
        let made = world.ask(&Ask::turn("sim:conv=a one").to(login)).await.id();
        let other = world.ask(&Ask::turn("sim:conv=b one")).await.id();
        let check = async |world: &World| {
            world
                .ask(&Ask::turn("sim:conv=a two").after(&made))
                .await
                .completed();
            assert_eq!(last(world, "a").path, "/backend-api/codex/responses", "{way:?}");
            world
                .ask(&Ask::turn("sim:conv=b two").to(login).after(&other))
                .await
                .completed();
            assert_eq!(last(world, "b").path, "/v1/responses", "{way:?}");
            let found = world
                .ask(&Ask::bare("GET", format!("/v1/responses/{made}")))
                .await;
            assert_eq!((found.status, &found.json()["id"]), (200, &json!(made)));
            let asked = world
                .upstream
                .look(|ledger| ledger.requests.last().unwrap().target.clone());
            assert_eq!(asked, format!("/backend-api/codex/responses/{made}"));
        };
        check(&world).await;
        let World {
            upstream, app, state, ..
        } = world;
        app.drain().await;
        let world = way.setup().state(&state).before(upstream).await;
        check(&world).await;
        world.quiet().await;
    }
}

/// A bridge that lends one account to two clients.
async fn shared(upstream: Simulator, state: &Arc<tempfile::TempDir>) -> World {
    Setup::new()
        .config(
            "[[clients]]\nname = \"one\"\nkey = { env = \"ONE\" }\n[[clients]]\nname = \"two\"\nkey = { env = \"TWO\" }\n\
             [providers.openai]\nbase_url = \"{openai}\"\n\
             [[providers.openai.accounts]]\nname = \"main\"\ncredential = { env = \"KEY\" }\n",
        )
        .secret("ONE", "client-key-one-0123456789")
        .secret("TWO", "client-key-two-0123456789")
        .secret("KEY", "sk-account")
        .state(state)
        .before(upstream)
        .await
}

/// [KEY-11] [INV-6] [HTTP-20] Two clients of one account: neither continues, reads, cancels or deletes the other's responses, and the
/// upstream is not even asked. The same affinity texts lead to different sessions.
#[tokio::test(flavor = "multi_thread")]
async fn another_clients_response() {
    let upstream = Simulator::start(responses_bridge::simulator::Options::default())
        .await
        .unwrap();
    let state = Arc::new(tempfile::tempdir().unwrap());
    let world = shared(upstream, &state).await;
    let (one, two) = ("client-key-one-0123456789", "client-key-two-0123456789");
    let turn = |bearer: &str| Ask::turn("sim:conv=a hello").thread("same").bearer(bearer);
    let made = world.ask(&turn(one)).await.id();
    world.ask(&turn(two)).await.completed();
    let sockets: BTreeSet<_> = world.sockets("a").into_iter().collect();
    assert_eq!(sockets.len(), 2, "one session each");
    let before = world
        .upstream
        .look(|ledger| (ledger.creates_total, ledger.http_requests));
    for stream in [true, false] {
        let answer = world.ask(&turn(two).after(&made).with("stream", stream)).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (400, "previous_response_not_found")
        );
    }
    for (method, tail) in [
        ("GET", ""),
        ("GET", "?stream=true"),
        ("GET", "/input_items"),
        ("DELETE", ""),
        ("POST", "/cancel"),
    ] {
        let ask = Ask::bare(method, format!("/v1/responses/{made}{tail}")).bearer(two);
        let answer = world.ask(&ask).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (404, "bridge_unknown_response"),
            "{method} {tail}"
        );
    }
    let after = world
        .upstream
        .look(|ledger| (ledger.creates_total, ledger.http_requests));
    assert_eq!(before, after, "nothing was asked upstream");
    // Its own client has it, before and after a restart, until it is deleted.
    world.ask(&turn(one).after(&made)).await.completed();
    let World { upstream, app, .. } = world;
    app.drain().await;
    let world = shared(upstream, &state).await;
    let items = Ask::bare("GET", format!("/v1/responses/{made}/input_items")).bearer(one);
    assert_eq!(
        world.ask(&items).await.json()["data"].as_array().unwrap().len(),
        1
    );
    let delete = Ask::bare("DELETE", format!("/v1/responses/{made}")).bearer(one);
    assert_eq!(world.ask(&delete).await.json()["deleted"], true);
    assert_eq!(world.ask(&delete).await.status, 404);
    assert_eq!(world.ask(&turn(one).after(&made)).await.status, 400);
    world.quiet().await;
}

/// [HTTP-20] A stream is resumed, and a background response fetched and cancelled, at the account that made it.
#[tokio::test(flavor = "multi_thread")]
async fn background_responses() {
    let world = Setup::new().start().await;
    let background = Ask::turn("sim:conv=a hello").with("background", true);
    for stream in [true, false] {
        let answer = world.ask(&background.clone().with("stream", stream)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let id = if stream {
            answer.events()[0].data["response"]["id"]
                .as_str()
                .unwrap()
                .to_owned()
        } else {
            answer.json()["id"].as_str().unwrap().to_owned()
        };
        assert_eq!(
            last(&world, "a").socket,
            None,
            "background is no turn for a session"
        );
        let found = world.ask(&Ask::bare("GET", format!("/v1/responses/{id}"))).await;
        assert_eq!(found.json()["id"], id.as_str());
        let cancelled = world
            .ask(&Ask::bare("POST", format!("/v1/responses/{id}/cancel")))
            .await;
        assert_eq!(cancelled.status, 200, "{cancelled:?}");
    }
    let id = world.ask(&Ask::turn("hello")).await.id();
    let resumed = world
        .ask(&Ask::bare(
            "GET",
            format!("/v1/responses/{id}?stream=true&starting_after=2"),
        ))
        .await;
    assert!(resumed.text().contains("response.completed"), "{resumed:?}");
    assert!(!resumed.text().contains("response.created"), "{resumed:?}");
    world.quiet().await;
}
