//! One of two accounts fails, at each phase: what may goes on with the other one, what may not is told so, and nothing is
//! ever sent twice that may have been taken.

use std::time::Duration;

use responses_bridge::simulator::Script;
use serde_json::json;

use crate::client::Ask;
use crate::shared::{a_behaves, accounts, output, reasons, sealed, secrets, two, two_http, user, went_to};
use crate::world::{Setup, World, eventually};

async fn ways() -> [World; 2] {
    let http = secrets(Setup::new().config(&two_http()));
    [two().start().await, http.start().await]
}

fn told(world: &World) -> Vec<String> {
    world.sequence(&[
        "route_chosen",
        "credential_rejected",
        "cooldown_started",
        "turn_finished",
        "owner_unavailable",
    ])
}

/// [ROUTE-5] [ROUTE-6] [INV-1] a definite rejection for a reason of the account's, over both transports: the same call goes on
/// with the other account, its client sees nothing of it, and the account is left out from then on.
#[tokio::test]
async fn a_rejected_call_goes_on_elsewhere() {
    for (behave, reason) in [
        ("error(status=401)", "credential"),
        ("error(status=403)", "credential"),
        ("error(status=429, retry_after=30)", "rate_limit"),
        ("error(status=429, code=usage_limit_reached)", "quota"),
        ("error(status=429, code=insufficient_quota)", "quota"),
    ] {
        for world in ways().await {
            world.upstream.rescript(a_behaves(behave));
            for (stream, kind) in [(true, "thread"), (false, "keyless")] {
                let conversation = format!("{kind}-{reason}");
                let mut ask = Ask::turn(format!("sim:conv={conversation}")).with("stream", stream);
                if kind == "thread" {
                    ask = ask.thread("t");
                }
                world.ask(&ask).await.completed();
                let to = went_to(&world.upstream, &conversation);
                // The first call finds it out; the next one knows.
                assert_eq!(to, if stream { "ab" } else { "b" }, "{behave}");
            }
            assert_eq!(
                reasons(&world),
                ["a priority", "b failover", "b priority"],
                "{behave}"
            );
            let started = &world.events("cooldown_started")[0];
            assert_eq!(
                (started["account"].as_str(), started["reason"].as_str()),
                (Some("a"), Some(reason))
            );
            if reason == "rate_limit" {
                assert_eq!(started["for_ms"], 30_000);
            }
            let failover = &world.events("route_chosen")[1];
            assert_eq!(failover["excluded"][0]["reason"], "tried");
            let next = &world.events("route_chosen")[2];
            assert_eq!(
                (&next["excluded"][0]["account"], &next["excluded"][0]["reason"]),
                (&json!("a"), &json!(reason))
            );
            let rejected = usize::from(reason == "credential");
            assert_eq!(world.events("credential_rejected").len(), rejected);
            assert_eq!(world.metric("bridge_unavailable_accounts", "").await, Some(1.0));
            let trail = told(&world);
            let (first, _) = trail.split_at(4 + rejected);
            assert_eq!(
                (first[0].as_str(), first[1].as_str()),
                ("route_chosen", "turn_finished"),
                "{trail:?}"
            );
            assert_eq!(first.last().unwrap(), "route_chosen", "{trail:?}");
            // The thread stays where it went, although its first account may be well again.
            world.upstream.rescript(Script::default());
            let ask = Ask::turn("sim:conv=later").thread("t");
            world.ask(&ask).await.completed();
            assert_eq!(went_to(&world.upstream, "later"), "b");
        }
    }
}

/// [ROUTE-6] [INV-1] anything that is not a definite rejection by the account: sent once, to one account, never to the other;
/// and [ROUTE-5] row 34: it says nothing about the account's health.
#[tokio::test]
async fn what_is_ambiguous_or_not_the_accounts_goes_nowhere_else() {
    for (behave, status) in [
        ("error(status=500)", 500),
        ("error(status=502)", 502),
        ("error(status=503, code=server_is_overloaded)", 503),
        ("error(status=504)", 504),
        ("error(status=408)", 408),
        ("error(status=400, code=context_length_exceeded)", 400),
        ("error(status=400, code=invalid_prompt)", 400),
        ("error(status=429, code=slow_down)", 429),
        ("error(status=500, code=rate_limit_exceeded)", 500),
        ("close(code=1011)", 502),
        ("reset", 502),
        ("fin", 502),
    ] {
        for (number, world) in ways().await.into_iter().enumerate() {
            world.upstream.rescript(a_behaves(behave));
            let answer = world.ask(&Ask::turn("sim:conv=once").thread("t")).await;
            assert_eq!(answer.status, status, "{behave} {number}");
            assert_eq!(went_to(&world.upstream, "once"), "a", "{behave} {number}");
            world.upstream.rescript(Script::default());
            world
                .ask(&Ask::turn("sim:conv=next").thread("other"))
                .await
                .completed();
            assert_eq!(went_to(&world.upstream, "next"), "a", "{behave}: neutral");
            assert!(world.events("cooldown_started").is_empty(), "{behave}");
        }
    }
}

/// [ROUTE-6] [INV-1] the account fails in mid-stream, or goes silent: the turn ends there.
#[tokio::test]
async fn what_was_sent_stays() {
    for (behave, code) in [
        ("close(code=1011, after=2)", "bridge_upstream_closed"),
        ("reset(after=1)", "bridge_upstream_closed"),
        ("error(status=429, after=1)", "rate_limit_exceeded"),
    ] {
        let world = two().start().await;
        world.upstream.rescript(a_behaves(behave));
        let answer = world.ask(&Ask::turn("sim:conv=once").thread("t")).await;
        assert_eq!(answer.failure(), code, "{behave}");
        assert_eq!(went_to(&world.upstream, "once"), "a");
    }
    let world = two()
        .config("[watchdog]\nresponse_created_deadline = \"200ms\"")
        .start()
        .await;
    world.upstream.rescript(a_behaves("silent"));
    let answer = world.ask(&Ask::turn("sim:conv=once").thread("t")).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (504, "bridge_response_created_timeout")
    );
    assert_eq!(went_to(&world.upstream, "once"), "a");
    assert!(world.events("cooldown_started").is_empty());
}

/// [ROUTE-6] a refused upgrade: direct HTTP to the same account, whose answer counts; if that rejects it as well the call goes
/// on with the other account.
#[tokio::test]
async fn refused_upgrades() {
    for status in [401, 429, 503] {
        for http in ["healthy", "error(status=401)"] {
            let upgrade = format!(
                "[[upgrade]]\nmatch = {{ header = {{ authorization = \"Bearer sk-a\" }} }}\ndo = \"refuse(status={status})\"\n\
                 [[rule]]\nmatch = {{ header = {{ authorization = \"Bearer sk-a\" }} }}\nbehave = \"{http}\""
            );
            let world = two().script(&upgrade).start().await;
            world.ask(&Ask::turn("sim:conv=c").thread("t")).await.completed();
            let to = went_to(&world.upstream, "c");
            assert_eq!(to, if http == "healthy" { "a" } else { "ab" }, "{status} {http}");
            let creates = world.creates("c");
            assert_eq!(creates.http, 1, "the upgrade's refusal alone moves nothing");
        }
    }
}

/// A provider `a` where nobody listens, and a provider `b`.
async fn deaf(transport: &str) -> World {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let config = format!(
        "[providers.a]\nbase_url = \"http://127.0.0.1:{port}/v1\"\ntransport = \"{transport}\"\n\
         [[providers.a.accounts]]\nname = \"a\"\ncredential = {{ env = \"A\" }}\n\
         [providers.b]\nbase_url = \"{{openai}}\"\n[[providers.b.accounts]]\nname = \"b\"\ncredential = {{ env = \"B\" }}\n"
    );
    secrets(Setup::new().config(&config)).start().await
}

/// [ROUTE-5] [ROUTE-6] an account that nobody answers for: the call goes on with the other one at once, and the next ones go
/// there from the beginning.
#[tokio::test]
async fn an_account_that_cannot_be_reached() {
    for transport in ["auto", "http", "websocket"] {
        let world = deaf(transport).await;
        for n in 0..2 {
            world
                .ask(&Ask::turn("sim:conv=c").thread(&format!("t{n}")))
                .await
                .completed();
        }
        assert_eq!(went_to(&world.upstream, "c"), "bb", "{transport}");
        assert_eq!(
            reasons(&world),
            ["a priority", "b failover", "b priority"],
            "{transport}"
        );
        let started = world.events("cooldown_started");
        assert_eq!(started.len(), 1);
        assert_eq!(
            (started[0]["reason"].as_str(), started[0]["for_ms"].as_u64()),
            (Some("unreachable"), Some(10_000))
        );
    }
}

/// [ROUTE-7] [INV-6] rows 10 and 44: an account with encrypted reasoning fails: what carries it stays, and is told what can be
/// done; a resend without it goes on with the other account; and it is back once its time is over.
#[tokio::test]
async fn bound_calls_do_not_move() {
    let world = two().start().await;
    let mut input = vec![user("sim:conv=bound hello")];
    input.extend(output(
        &world.ask(&sealed(&input).with("prompt_cache_key", "k")).await,
    ));
    input.push(user("sim:conv=bound more"));
    world.upstream.rescript(a_behaves("error(status=401)"));
    // Found out by the bound call itself, then known beforehand.
    for n in 0..2 {
        let answer = world.ask(&sealed(&input).with("prompt_cache_key", "k")).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (503, "bridge_owner_unavailable")
        );
        let recovery = &answer.json()["error"]["recovery"];
        assert_eq!(recovery["reason"], "owner_unavailable");
        assert!((1..=60).contains(&recovery["retry_after_s"].as_u64().unwrap()));
        assert_eq!(
            answer.headers["retry-after"],
            recovery["retry_after_s"].to_string()
        );
        assert_eq!(
            recovery["options"][1],
            "resend_in_full_without_account_bound_items"
        );
        assert_eq!(world.events("owner_unavailable").len(), n + 1);
    }
    assert_eq!(
        went_to(&world.upstream, "bound"),
        "aa",
        "the second one was not sent"
    );
    let plain: Vec<_> = input
        .iter()
        .filter(|item| item["type"] == "message")
        .cloned()
        .collect();
    world
        .ask(&sealed(&plain).with("prompt_cache_key", "k"))
        .await
        .completed();
    assert_eq!(went_to(&world.upstream, "bound"), "aab");
    assert_eq!(reasons(&world).last().unwrap(), "b moved");
}

/// [KEY-42] hard keys stay while a stored response of theirs lives there, and move where none does; an owner over its limit
/// is asked all the same, and its own answer is the client's.
#[tokio::test]
async fn hard_keys_and_soft_ones() {
    let world = two().start().await;
    let ask =
        |conversation: &str, store: bool| Ask::turn(format!("sim:conv={conversation}")).with("store", store);
    let all = [
        ("hard-stored", ask("hard-stored", true).thread("one"), "a"),
        ("hard-unstored", ask("hard-unstored", false).thread("two"), "ab"),
        (
            "soft-stored",
            ask("soft-stored", true).with("prompt_cache_key", "k1"),
            "ab",
        ),
        (
            "soft-unstored",
            ask("soft-unstored", false).with("prompt_cache_key", "k2"),
            "ab",
        ),
    ];
    for (_, ask, _) in &all {
        world.ask(ask).await.completed();
    }
    world
        .upstream
        .rescript(a_behaves("error(shape=headers_top, status=429, retry_after=20)"));
    for (name, ask, to) in &all {
        let answer = world.ask(ask).await;
        if *to == "a" {
            assert_eq!(
                (answer.status, answer.error().as_str()),
                (429, "rate_limit_exceeded"),
                "{name}"
            );
            assert_eq!(answer.headers["retry-after"], "20");
            assert_eq!(went_to(&world.upstream, name), "aa");
        } else {
            answer.completed();
            assert_eq!(went_to(&world.upstream, name), *to, "{name}");
        }
    }
}

/// [ROUTE-12] an account that is over its limit, and whose credential is rejected then: that is what it is out for, and it is told.
#[tokio::test]
async fn a_rejected_credential_is_what_an_operator_must_know() {
    for world in ways().await {
        let ask = Ask::turn("sim:conv=c").with("store", true).thread("one");
        world.ask(&ask).await.completed();
        for (behave, status) in [
            ("error(status=429, retry_after=20)", 429),
            ("error(status=401)", 503),
        ] {
            world.upstream.rescript(a_behaves(behave));
            assert_eq!(world.ask(&ask).await.status, status, "{behave}");
        }
        let started = world.events("cooldown_started");
        let told: Vec<_> = started.iter().map(|event| event["reason"].clone()).collect();
        assert_eq!(told, ["rate_limit", "credential"]);
        // One that is over its limit would be asked all the same.
        assert_eq!(world.ask(&ask).await.error(), "bridge_owner_unavailable");
        assert_eq!(went_to(&world.upstream, "c"), "aaa");
    }
}

/// [ROUTE-5] the account is back after its time, which is told; new keys go there again.
#[tokio::test]
async fn a_cooldown_ends() {
    let world = two().start().await;
    world
        .upstream
        .rescript(a_behaves("error(shape=headers_top, status=429, retry_after=1)"));
    world
        .ask(&Ask::turn("sim:conv=c one").thread("1"))
        .await
        .completed();
    world.upstream.rescript(Script::default());
    world.saw("cooldown_cleared", 1).await;
    assert_eq!(world.events("cooldown_cleared")[0]["reason"], "rate_limit");
    world
        .ask(&Ask::turn("sim:conv=c two").thread("2"))
        .await
        .completed();
    assert_eq!(went_to(&world.upstream, "c"), "aba");
}

/// [ROUTE-3] [ROUTE-5] both reject: each is asked once, and the client has the last one's answer; then the one that is back first is
/// asked, since no answer at all would be worse.
#[tokio::test]
async fn both_fail() {
    for world in ways().await {
        world.upstream.rescript(
            Script::parse("[[rule]]\nbehave = \"error(shape=headers_top, status=429, retry_after=9)\"")
                .unwrap(),
        );
        let answer = world.ask(&Ask::turn("sim:conv=c").thread("t")).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (429, "rate_limit_exceeded")
        );
        assert_eq!(went_to(&world.upstream, "c"), "ab");
        world.ask(&Ask::turn("sim:conv=d").thread("u")).await;
        assert_eq!(went_to(&world.upstream, "d").len(), 1);
        // What is left out is the other one, and never the one that is asked.
        let chosen = &world.events("route_chosen")[2];
        let excluded = chosen["excluded"].as_array().unwrap();
        assert_eq!(excluded.len(), 1, "{chosen}");
        assert_ne!(excluded[0]["account"], chosen["account"]);
    }
}

/// [ROUTE-5] a single account is never left out, and its upstream's answers are the client's.
#[tokio::test]
async fn a_single_account_is_never_left_out() {
    let world = secrets(Setup::new().config(&accounts(&["a"]))).start().await;
    world.upstream.rescript(a_behaves("error(status=401)"));
    for _ in 0..2 {
        assert_eq!(world.ask(&Ask::turn("sim:conv=c").thread("t")).await.status, 401);
    }
    assert_eq!(went_to(&world.upstream, "c"), "aa");
    assert!(world.events("cooldown_started").is_empty());
    assert_eq!(world.events("credential_rejected").len(), 2);
}

/// [ROUTE-5] what a caller's own credential is told says nothing of other callers: their calls go on as before.
#[tokio::test]
async fn a_callers_own_trouble_is_its_own() {
    let config = "[providers.a]\nbase_url = \"{openai}\"\n[[providers.a.accounts]]\nname = \"own\"\ncredential = \"client\"\n\
                  [providers.b]\nbase_url = \"{openai}\"\n[[providers.b.accounts]]\nname = \"b\"\ncredential = { env = \"B\" }\n";
    let world = secrets(Setup::new().config(config)).start().await;
    world.upstream.rescript(
        Script::parse("[[rule]]\nmatch = { header = { authorization = \"Bearer sk-bad\" } }\nbehave = \"error(status=401)\"").unwrap(),
    );
    let answer = world.ask(&Ask::turn("sim:conv=bad").bearer("sk-bad")).await;
    assert_eq!(answer.status, 401, "and nobody else's credential answers for it");
    assert_eq!(world.creates("bad").total(), 1);
    world.ask(&Ask::turn("sim:conv=good")).await.completed();
    assert_eq!(reasons(&world), ["own priority", "own priority"]);
    assert!(world.events("cooldown_started").is_empty());
}

/// [ROUTE-6] a client that left while its call was on its way elsewhere costs nothing.
#[tokio::test]
async fn a_client_that_leaves_in_between() {
    let world = two().start().await;
    world.upstream.rescript(
        Script::parse(
            "[[rule]]\nmatch = { header = { authorization = \"Bearer sk-a\" } }\nbehave = \"error(status=429)\"\n\
             [[rule]]\nbehave = \"silent\"",
        )
        .unwrap(),
    );
    let sent = Ask::turn("sim:conv=c").thread("t").send(world.address).await;
    eventually("both asked", || went_to(&world.upstream, "c") == "ab").await;
    drop(sent);
    world.quiet().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(went_to(&world.upstream, "c"), "ab");
}

/// [ROUTE-5] a limit that ends an accepted turn is the account's as well: that turn is over, the next keys go elsewhere.
#[tokio::test]
async fn a_limit_in_mid_stream() {
    for behave in [
        "error(status=429, after=1)",
        "terminal(shape=failed, code=usage_limit_reached)",
    ] {
        for world in ways().await {
            world.upstream.rescript(a_behaves(behave));
            drop(world.ask(&Ask::turn("sim:conv=once").thread("1")).await);
            assert_eq!(went_to(&world.upstream, "once"), "a");
            world
                .ask(&Ask::turn("sim:conv=next").thread("2"))
                .await
                .completed();
            assert_eq!(went_to(&world.upstream, "next"), "b", "{behave}");
        }
    }
}

/// [ROUTE-7] [ROUTE-5] a look-up finds out that its account cannot be reached; from then on it is told so.
#[tokio::test]
async fn a_look_up_of_an_account_that_is_gone() {
    let other = responses_bridge::simulator::Simulator::start(Default::default())
        .await
        .unwrap();
    let config = format!(
        "[providers.a]\nbase_url = \"{}\"\n[[providers.a.accounts]]\nname = \"a\"\ncredential = {{ env = \"A\" }}\n\
         [providers.b]\nbase_url = \"{{openai}}\"\n[[providers.b.accounts]]\nname = \"b\"\ncredential = {{ env = \"B\" }}\n",
        other.base_url()
    );
    let world = secrets(Setup::new().config(&config)).start().await;
    let id = world.ask(&Ask::turn("hello")).await.id();
    other.stop().await;
    let ask = Ask::bare("GET", format!("/v1/responses/{id}"));
    assert_eq!(world.ask(&ask).await.error(), "bridge_connect_failed");
    assert_eq!(world.ask(&ask).await.error(), "bridge_owner_unavailable");
    let anchored = Ask::turn("sim:conv=more").after(&id);
    assert_eq!(world.ask(&anchored).await.error(), "bridge_owner_unavailable");
    world.ask(&Ask::turn("sim:conv=new")).await.completed();
    assert_eq!(
        (
            world.creates("more").total(),
            went_to(&world.upstream, "new").as_str()
        ),
        (0, "b")
    );
}

/// [ROUTE-6] [KEY-29] the other account's own transport is used, fresh socket or not: a call that comes from elsewhere says nothing
/// about it, and a provider for WebSocket only serves it as well.
#[tokio::test]
async fn elsewhere_is_by_session_too() {
    for transport in ["auto", "websocket"] {
        let config = crate::shared::TWO.replace(
            "base_url = \"{openai}\"",
            &format!("base_url = \"{{openai}}\"\ntransport = \"{transport}\""),
        );
        let world = secrets(Setup::new().config(&config)).start().await;
        world.upstream.rescript(a_behaves("error(status=429)"));
        world.ask(&Ask::turn("sim:conv=c").thread("t")).await.completed();
        assert_eq!(went_to(&world.upstream, "c"), "ab", "{transport}");
        assert_eq!(world.creates("c").http, 0, "{transport}");
        assert!(world.events("http_fallback").is_empty(), "{transport}");
    }
}

/// [ROUTE-6] [ROUTE-5] [ROUTE-7] accounts for WebSocket only, of which one refuses the upgrade: the call goes on with the other, and
/// what is bound to the first is told so.
#[tokio::test]
async fn refused_upgrades_without_direct_http() {
    let config = crate::shared::TWO.replace(
        "base_url = \"{openai}\"",
        "base_url = \"{openai}\"\ntransport = \"websocket\"",
    );
    for (status, reason) in [(401, "credential"), (403, "credential"), (429, "rate_limit")] {
        let world = secrets(Setup::new().config(&config)).start().await;
        let mut input = vec![user("sim:conv=bound hello")];
        input.extend(output(&world.ask(&sealed(&input)).await));
        world
            .upstream
            .end_sockets(responses_bridge::simulator::Ending::Reset);
        world.saw("session_retired", 1).await;
        let refuse = format!(
            "[[upgrade]]\nmatch = {{ header = {{ authorization = \"Bearer sk-a\" }} }}\ndo = \"refuse(status={status})\""
        );
        world.upstream.rescript(Script::parse(&refuse).unwrap());
        for thread in ["t1", "t2"] {
            let ask = Ask::turn("sim:conv=free").thread(thread);
            world.ask(&ask).await.completed();
        }
        assert_eq!(went_to(&world.upstream, "free"), "bb", "{status}");
        let started = &world.events("cooldown_started")[0];
        assert_eq!(
            (started["account"].as_str(), started["reason"].as_str()),
            (Some("a"), Some(reason))
        );
        if reason == "credential" {
            input.push(user("sim:conv=bound more"));
            let answer = world.ask(&sealed(&input)).await;
            assert_eq!(answer.error(), "bridge_owner_unavailable", "{status}");
            assert_eq!(went_to(&world.upstream, "bound"), "a");
        }
    }
}
