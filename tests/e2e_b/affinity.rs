//! Which socket a turn takes: its thread's, its memory's, a sibling's; and what it waits for.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::Ask;
use crate::shared::{metric, metric_is, under_way, user};
use crate::world::Setup;

/// [KEY-2] row 31: parent and sub-agent share `session-id` and `prompt_cache_key` and run at once: `thread-id`, as a header
/// or in `client_metadata`, gives each a socket of its own, and neither waits for the other.
#[tokio::test]
async fn sub_agents_do_not_queue_behind_their_parent() {
    let world = Setup::new().config("[session]\nmax_per_key = 1").start().await;
    let shared = |conversation: &str| {
        Ask::turn(format!("sim:conv={conversation} sim:pause(after=1, for=ever)"))
            .header("session-id", "shared")
            .with("prompt_cache_key", "shared")
    };
    let (_parent, _) = under_way(&world, &shared("parent").thread("parent")).await;
    let in_body = shared("child").with("client_metadata", json!({"thread_id": "child"}));
    let (_child, _) = under_way(&world, &in_body).await;
    let (_other, _) = under_way(&world, &shared("other").thread("other")).await;
    for conversation in ["parent", "child", "other"] {
        assert_eq!(world.creates(conversation).websocket, 1, "{conversation}");
    }
    // Header and `client_metadata` name the same thread.
    let again = Ask::turn("sim:conv=again hello").thread("fourth");
    world.ask(&again).await.completed();
    let again = Ask::turn("sim:conv=again hello").with("client_metadata", json!({"thread_id": "fourth"}));
    world.ask(&again).await.completed();
    let sockets = world.sockets("again");
    assert!(sockets[0].is_some() && sockets[0] == sockets[1], "{sockets:?}");
}

/// [KEY-22] [KEY-24] row 31: two turns at once under one `session-id` alone take siblings on the same account, up to
/// `max_per_key`; one more waits for `queue_wait` and goes by direct HTTP.
#[tokio::test]
async fn siblings_for_those_who_have_no_thread() {
    let world = Setup::new()
        .config("[session]\nmax_per_key = 2\nqueue_wait = \"150ms\"")
        .start()
        .await;
    let ask = |n: u32| {
        Ask::turn(format!("sim:conv=c{n} sim:pause(after=1, for=ever, on=ws)")).header("session-id", "shared")
    };
    let (_one, _) = under_way(&world, &ask(1)).await;
    let (_two, _) = under_way(&world, &ask(2)).await;
    let began = Instant::now();
    let (_three, _) = under_way(&world, &ask(3)).await;
    assert!(began.elapsed() >= Duration::from_millis(150));
    let sockets: Vec<_> = [1, 2, 3].map(|n| world.sockets(&format!("c{n}"))[0]).into();
    assert!(sockets[0].is_some() && sockets[1].is_some() && sockets[0] != sockets[1]);
    assert_eq!(sockets[2], None);
    assert_eq!(world.events("http_fallback")[0]["reason"], "busy");
    assert_eq!(metric(&world, "bridge_queue_depth", "").await, 0.0);
}

/// [KEY-24] [EVT-3] A waiting turn is served as soon as a socket is free, each in its turn, however often others come between.
#[tokio::test]
async fn a_queue_moves_with_every_free_socket() {
    let world = Setup::new()
        .config("[session]\nmax_per_key = 1\nmax_queue = 50\nqueue_wait = \"10s\"")
        .start()
        .await;
    let address = world.address;
    let turns = (0..25).map(|n| {
        let ask = Ask::turn(format!("sim:conv=all turn {n} sim:text(n=2, delay=3ms)")).thread("one");
        tokio::spawn(async move { ask.ask(address).await.completed() })
    });
    for turn in turns.collect::<Vec<_>>() {
        turn.await.unwrap();
    }
    assert_eq!(
        (world.creates("all").websocket, world.creates("all").http),
        (25, 0)
    );
    assert_eq!(world.upstream.ledger().sockets_opened, 1);
    let waits = metric(&world, "bridge_queue_wait_seconds_count", "").await;
    assert!(
        (1.0..=24.0).contains(&waits),
        "one for each turn that waited, not for each time that it was woken: {waits}"
    );
}

/// [KEY-24] A sibling that becomes free serves the turn that can use it, also when a turn that must wait for another
/// socket was waiting before it.
#[tokio::test]
async fn a_free_socket_wakes_the_turn_that_can_use_it() {
    let world = Setup::new()
        .config("[session]\nmax_per_key = 2\nqueue_wait = \"5s\"")
        .start()
        .await;
    let unstored = |prompt: &str| Ask::turn(prompt).thread("one").with("store", false);
    let first = world.ask(&unstored("sim:conv=a hello")).await.id();
    let (busy_a, _) = under_way(
        &world,
        &unstored("sim:conv=a sim:pause(after=1, for=ever)").after(&first),
    )
    .await;
    let (mut busy_b, _) = under_way(&world, &unstored("sim:conv=b sim:pause(after=1, for=400ms)")).await;
    // It can only go to the first socket, which stays busy.
    let bound = unstored("sim:conv=bound hello")
        .after(&first)
        .send(world.address)
        .await;
    metric_is(&world, "bridge_queue_depth", "", 1.0).await;
    let address = world.address;
    let free = tokio::spawn(async move { unstored("sim:conv=free hello").ask(address).await.completed() });
    metric_is(&world, "bridge_queue_depth", "", 2.0).await;
    busy_b.until("response.completed").await;
    let began = Instant::now();
    free.await.unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "it waited in vain: {:?}",
        began.elapsed()
    );
    assert_eq!(world.sockets("free"), world.sockets("b"));
    drop((busy_a, bound));
}

/// [KEY-21] [SES-27] row 39: a title request shares the conversation's key and runs at the same instant. The continuation
/// finds the socket that remembers its response, which is kept nowhere else, whatever came between.
#[tokio::test]
async fn a_title_request_does_not_erase_the_conversation() {
    let world = Setup::new().start().await;
    let ask = |prompt: &str| {
        let ask = Ask::turn(prompt).with("store", false);
        ask.header("x-session-affinity", "s")
            .header("x-session-id", "s")
            .header("session-id", "s")
    };
    let (mut main, first) = under_way(&world, &ask("sim:conv=main sim:pause(after=1, for=200ms)")).await;
    world.ask(&ask("sim:conv=title hello")).await.completed();
    main.until("response.completed").await;
    let mut anchor = first;
    for turn in 0..3 {
        // The title's socket became idle first: the least recently used one would be the wrong one.
        anchor = world
            .ask(&ask(&format!("sim:conv=main turn {turn}")).after(&anchor))
            .await
            .id();
        world
            .ask(&ask(&format!("sim:conv=title again {turn}")))
            .await
            .completed();
    }
    let (main, title) = (world.sockets("main"), world.sockets("title"));
    assert!(
        main.iter().all(|socket| socket.is_some() && *socket == main[0]),
        "{main:?}"
    );
    assert!(
        !title.contains(&main[0]),
        "the conversation's memory was overwritten: {title:?}"
    );
    // Upstream saw the whole conversation in each continuation.
    let items: Vec<_> = world.upstream.look(|ledger| {
        ledger
            .creates_of("main")
            .map(|create| create.transcript.len())
            .collect()
    });
    assert!(items.is_sorted() && items[3] > items[0], "{items:?}");
}

/// [KEY-21] row 39, for clients that resend everything: the input that extends a socket's last one goes to that socket,
/// not to the one that was used longer ago.
#[tokio::test]
async fn a_full_resend_finds_its_own_socket() {
    let world = Setup::new().start().await;
    let ask = |input: &[Value]| {
        Ask::turn("")
            .header("session-id", "s")
            .with("input", input.to_vec())
    };
    let mut main = vec![user("sim:conv=main first sim:pause(after=1, for=200ms)")];
    let mut title = vec![user("sim:conv=title first")];
    let (mut reply, _) = under_way(&world, &ask(&main)).await;
    world.ask(&ask(&title)).await.completed();
    reply.until("response.completed").await;
    let said = |name: &str| {
        let creates = world
            .upstream
            .look(|ledger| ledger.creates_of(name).cloned().collect::<Vec<_>>());
        let output = creates.last().unwrap().output.clone();
        output
            .into_iter()
            .map(|item| Value::clone(&item))
            .collect::<Vec<_>>()
    };
    for turn in 0..3 {
        for (input, name) in [(&mut main, "main"), (&mut title, "title")] {
            input.extend(said(name));
            input.push(user(&format!("sim:conv={name} turn {turn}")));
            world.ask(&ask(input)).await.completed();
        }
    }
    let (main, title) = (world.sockets("main"), world.sockets("title"));
    assert!(
        main.iter().all(|socket| *socket == main[0]) && main[0].is_some(),
        "{main:?}"
    );
    assert!(
        title.iter().all(|socket| *socket == title[0]) && title[0] != main[0],
        "{title:?}"
    );
}

/// [KEY-23] A turn that names an unstored response waits for that response's own socket, never a sibling, although one is
/// idle; when the wait is over it is told to come again, since not-found would be terminal for an agent.
#[tokio::test]
async fn an_unstored_response_is_waited_for() {
    let world = Setup::new()
        .config("[session]\nqueue_wait = \"1s\"")
        .start()
        .await;
    let unstored = |prompt: &str| Ask::turn(prompt).thread("one").with("store", false);
    let first = world.ask(&unstored("sim:conv=a hello")).await.id();
    let long =
        unstored("sim:conv=a sim:error(status=500, after=2) sim:pause(after=1, for=300ms)").after(&first);
    let (busy, _) = under_way(&world, &long).await;
    world.ask(&unstored("sim:conv=sibling hello")).await.completed();
    let waiting = unstored("sim:conv=a waited")
        .after(&first)
        .send(world.address)
        .await;
    metric_is(&world, "bridge_queue_depth", "", 1.0).await;
    drop(busy.finish().await);
    let mut waiting = waiting;
    waiting.read_head().await;
    drop(waiting.finish().await);
    let sockets = world.sockets("a");
    assert!(
        sockets.len() == 3 && sockets.iter().all(|socket| *socket == sockets[0]),
        "{sockets:?}"
    );

    let first = world.ask(&unstored("sim:conv=b hello")).await.id();
    let (_busy, _) = under_way(
        &world,
        &unstored("sim:conv=b sim:pause(after=1, for=ever)").after(&first),
    )
    .await;
    let answer = world.ask(&unstored("sim:conv=b never").after(&first)).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (503, "bridge_session_busy")
    );
    assert_eq!(world.creates("b").total(), 2, "a refusal sends nothing");
}

/// [KEY-23] [INV-6] The socket that remembered an unstored response is gone: the turn goes its way with its anchor, and
/// upstream's own not-found reaches the client, once.
#[tokio::test]
async fn an_unstored_response_whose_socket_is_gone() {
    let world = Setup::new().start().await;
    let unstored = |prompt: &str| Ask::turn(prompt).thread("one").with("store", false);
    let first = world
        .ask(&unstored("sim:conv=a sim:afterwards(do=close)"))
        .await
        .id();
    world.saw("session_retired", 1).await;
    let answer = world.ask(&unstored("sim:conv=a next").after(&first)).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (400, "previous_response_not_found")
    );
    let anchors = world.upstream.look(|ledger| {
        ledger
            .creates
            .iter()
            .filter_map(|create| create.previous_response_id.clone())
            .collect::<Vec<_>>()
    });
    assert_eq!(anchors, [first]);
}

/// [KEY-10] A stored response outlives its socket, and whatever else its key does.
#[tokio::test]
async fn a_stored_response_needs_no_socket() {
    let world = Setup::new().start().await;
    let first = world
        .ask(&Ask::turn("sim:conv=a sim:afterwards(do=close)").thread("one"))
        .await
        .id();
    world.saw("session_retired", 1).await;
    let second = world
        .ask(&Ask::turn("sim:conv=a next").thread("one").after(&first))
        .await;
    second.completed();
    assert_eq!(world.events("owner_routed").len(), 1);
    assert_eq!(world.creates("a").websocket, 2);
}

/// [KEY-25] Keyless turns share a pool of their own: at once they take siblings, and beyond `max_per_key` they do not
/// queue. Turns with a key never lease from it.
#[tokio::test]
async fn keyless_turns_have_a_pool() {
    let world = Setup::new()
        .config("[session]\nmax_per_key = 2\nqueue_wait = \"10s\"")
        .start()
        .await;
    let ask =
        |n: u32| Ask::turn(format!("sim:conv=c{n} sim:pause(after=1, for=ever, on=ws)")).with("store", true);
    let (one, _) = under_way(&world, &ask(1)).await;
    let (_two, _) = under_way(&world, &ask(2)).await;
    let began = Instant::now();
    let (_three, _) = under_way(&world, &ask(3)).await;
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "a keyless turn has nothing to wait for"
    );
    assert_eq!(world.sockets("c3"), [None]);
    drop(one);
    world
        .upstream_saw("a free place", |ledger| ledger.sockets_open == 1)
        .await;
    let ask = Ask::turn("sim:conv=c4 hello").with("store", true);
    world.ask(&ask).await.completed();
    world
        .ask(&Ask::turn("sim:conv=keyed hello").thread("t"))
        .await
        .completed();
    let (keyless, keyed) = (world.sockets("c4"), world.sockets("keyed"));
    assert!(keyless[0].is_some() && keyed[0].is_some() && keyless != keyed);
}

/// [KEY-23] Clients without any sign of a conversation but the response that they go on from, which is kept nowhere: several
/// such conversations at once each stay on their own socket of the pool.
#[tokio::test]
async fn keyless_conversations_by_their_responses() {
    let world = Setup::new().start().await;
    let ask = |name: &str, n: u32| Ask::turn(format!("sim:conv={name} turn {n}")).with("store", false);
    let names = ["a", "b", "c"];
    let mut last = Vec::new();
    for name in names {
        last.push(world.ask(&ask(name, 0)).await.id());
    }
    for n in 1..5 {
        for (name, anchor) in names.iter().zip(&mut last) {
            *anchor = world.ask(&ask(name, n).after(anchor)).await.id();
        }
    }
    for name in names {
        let sockets = world.sockets(name);
        assert!(
            sockets.iter().all(|socket| *socket == sockets[0]) && sockets.len() == 5,
            "{name}: {sockets:?}"
        );
    }
}
