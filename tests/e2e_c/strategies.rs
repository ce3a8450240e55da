//! Where new keys go.

use crate::client::Ask;
use crate::shared::{TWO, accounts, in_turn, reasons, secrets, went_to};
use crate::world::{Setup, World};

async fn with(strategy: &str, weights: &[(&str, u32)]) -> World {
    let names: Vec<_> = weights.iter().map(|(name, _)| *name).collect();
    let mut config = accounts(&names);
    for (name, weight) in weights {
        config = config.replace(
            &format!("name = \"{name}\"\n"),
            &format!("name = \"{name}\"\nweight = {weight}\n"),
        );
    }
    let setup = secrets(Setup::new().config(&config));
    setup
        .config(&format!("[routing]\nstrategy = \"{strategy}\""))
        .start()
        .await
}

/// How many of so many new keys went to each account.
async fn spread(world: &World, keys: usize) -> [usize; 3] {
    for n in 0..keys {
        world
            .ask(&Ask::turn(format!("sim:conv=spread {n}")).thread(&format!("t{n}")))
            .await
            .completed();
    }
    let to = went_to(&world.upstream, "spread");
    ["a", "b", "c"].map(|name| to.matches(name).count())
}

/// [ROUTE-2] [ROUTE-3] each strategy's spread over new keys, and that it is told.
#[tokio::test]
async fn each_strategy_spreads_as_it_says() {
    let even = [("a", 1), ("b", 1), ("c", 1)];
    assert_eq!(spread(&with("priority", &even).await, 9).await, [9, 0, 0]);
    assert_eq!(spread(&with("round_robin", &even).await, 9).await, [3, 3, 3]);
    assert_eq!(spread(&with("least_in_flight", &even).await, 9).await, [3, 3, 3]);
    let world = with("weighted", &[("a", 3), ("b", 1), ("c", 2)]).await;
    assert_eq!(spread(&world, 12).await, [6, 2, 4]);
    assert!(reasons(&world).iter().all(|reason| reason.ends_with(" weighted")));
    assert_eq!(world.events("route_chosen")[0].get("excluded"), None);
    let world = with("power_of_two", &even).await;
    let counts = spread(&world, 45).await;
    assert!(counts.iter().all(|count| *count >= 4), "{counts:?}");
}

/// [ROUTE-2] busy accounts get less: turns at work count, and no more when they are over.
#[tokio::test]
async fn turns_at_work_count() {
    for strategy in ["least_in_flight", "power_of_two"] {
        let world = with(strategy, &[("a", 1), ("b", 1)]).await;
        let mut running = Vec::new();
        let long = |n: u32| {
            Ask::turn(format!("sim:conv=long sim:pause(after=1, for=ever) {n}")).thread(&format!("l{n}"))
        };
        for n in 0..2 {
            let mut reply = world.open(&long(n)).await;
            reply.until("response.created").await;
            running.push(reply);
        }
        let to = went_to(&world.upstream, "long");
        assert!(to.contains('a') && to.contains('b'), "{strategy}: one each: {to}");
        let busy = if to.starts_with('a') { "a" } else { "b" };
        let idle = if busy == "a" { "b" } else { "a" };
        // The second one's client leaves: from now on its account has less to do.
        drop(running.pop());
        world.gauge_is("bridge_running_turns", "", 1).await;
        for n in 0..5 {
            world
                .ask(&Ask::turn(format!("sim:conv=new {n}")).thread(&format!("n{n}")))
                .await
                .completed();
        }
        assert_eq!(went_to(&world.upstream, "new"), idle.repeat(5), "{strategy}");
        drop(running);
    }
}

/// [ROUTE-1] only providers whose patterns match the model; where none does it is said so, and nothing is sent.
#[tokio::test]
async fn models_decide_who_may_serve() {
    let config = r#"
[providers.one]
base_url = "{openai}"
models = ["gpt-5*"]
[[providers.one.accounts]]
name = "a"
credential = { env = "A" }
[providers.two]
base_url = "{openai}"
models = ["o4-*", "gpt-5-mini"]
[[providers.two.accounts]]
name = "b"
credential = { env = "B" }
"#;
    let world = secrets(Setup::new().config(config)).start().await;
    for (model, account) in [("gpt-5", "a"), ("o4-mini", "b"), ("gpt-5-mini", "a")] {
        let conversation = format!("of-{model}");
        let ask = Ask::turn(format!("sim:conv={conversation}")).with("model", model);
        world.ask(&ask).await.completed();
        assert_eq!(went_to(&world.upstream, &conversation), account);
    }
    assert_eq!(reasons(&world), ["a only", "b only", "a priority"]);
    let answer = world
        .ask(&Ask::turn("sim:conv=none").with("model", "other"))
        .await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (404, "bridge_model_not_served")
    );
    assert_eq!(answer.json()["error"]["param"], "model");
    assert_eq!(world.creates("none").total(), 0);
    // A thread that changes its model for one that its account does not serve goes where that is served.
    let ask = |model: &str| Ask::turn("sim:conv=both").thread("t").with("model", model);
    for model in ["gpt-5", "o4-mini", "gpt-5-mini"] {
        world.ask(&ask(model)).await.completed();
    }
    assert_eq!(
        went_to(&world.upstream, "both"),
        "abb",
        "and stays there as long as it can"
    );
}

/// [KEY-40] row 31: sub-agents that share `session-id` and run at once: those with threads of their own are spread, each
/// staying with its account; those without are siblings on one account.
#[tokio::test]
async fn sub_agents_and_their_accounts() {
    let world = in_turn("").await;
    let agent = |name: &str| {
        Ask::turn(format!("sim:conv={name} sim:pause(after=1, for=80ms)"))
            .header("session-id", "shared")
            .with("prompt_cache_key", "shared")
    };
    for _ in 0..3 {
        let (parent, child) = (agent("parent").thread("p"), agent("child").thread("c"));
        let (parent, child) = tokio::join!(world.ask(&parent), world.ask(&child));
        drop((parent.completed(), child.completed()));
    }
    let (parent, child) = (
        went_to(&world.upstream, "parent"),
        went_to(&world.upstream, "child"),
    );
    assert!(
        (parent == "aaa" && child == "bbb") || (parent == "bbb" && child == "aaa"),
        "{parent} {child}"
    );
    let siblings = agent("siblings");
    let (one, two, three) = tokio::join!(world.ask(&siblings), world.ask(&siblings), world.ask(&siblings));
    drop((one.completed(), two.completed(), three.completed()));
    let siblings = went_to(&world.upstream, "siblings");
    assert!(
        siblings == "aaa" || siblings == "bbb",
        "first turns at once go together: {siblings}"
    );
}

/// [KEY-25] keyless requests are pinned to nothing: each goes where the strategy says.
#[tokio::test]
async fn keyless_requests_are_not_pinned() {
    let world = in_turn("").await;
    for n in 0..4 {
        world
            .ask(&Ask::turn(format!("sim:conv=keyless {n}")).with("store", true))
            .await
            .completed();
    }
    assert_eq!(went_to(&world.upstream, "keyless"), "abab");
    assert_eq!(world.metric("bridge_pins", "").await, Some(0.0));
}

/// [ROUTE-10] [INV-6] a turn-state goes to the account that gave it and to no other; one that nobody here gave goes nowhere.
#[tokio::test]
async fn a_turn_state_stays_with_its_account() {
    let config = TWO.replace("[providers.openai]\n", "[providers.openai]\nkind = \"chatgpt\"\n");
    let config = config.replace("{openai}", "{chatgpt}");
    let setup = secrets(Setup::new().config(&config)).config("[routing]\nstrategy = \"round_robin\"");
    let world = setup.start().await;
    let ask = |conversation: &str, state: Option<&str>| {
        let ask = Ask::turn(format!("sim:conv={conversation}"))
            .thread(conversation)
            .header("chatgpt-account-id", "caller");
        match state {
            Some(state) => ask.header("x-codex-turn-state", state),
            None => ask,
        }
    };
    let first = world.ask(&ask("first", None)).await;
    let given = first.headers["x-codex-turn-state"].clone();
    assert_eq!(went_to(&world.upstream, "first"), "a");
    world.ask(&ask("first", Some(&given))).await.completed();
    world.ask(&ask("second", Some(&given))).await.completed();
    assert_eq!(went_to(&world.upstream, "second"), "b");
    world.ask(&ask("first", Some("made up"))).await.completed();
    // The same said in the body.
    let in_body = |conversation: &str, state: &str| {
        ask(conversation, None).with(
            "client_metadata",
            serde_json::json!({"x-codex-turn-state": state, "other": "kept"}),
        )
    };
    world.ask(&in_body("first", &given)).await.completed();
    world.ask(&in_body("second", &given)).await.completed();
    world.ask(&in_body("first", "made up")).await.completed();
    let carried = |conversation: &str| {
        world.upstream.look(|ledger| {
            let creates = ledger.creates_of(conversation);
            creates
                .map(|create| {
                    create
                        .client_metadata
                        .iter()
                        .any(|name| name == "x-codex-turn-state")
                })
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(carried("first"), [false, true, false, true, false]);
    assert_eq!(carried("second"), [false, false]);
    let kept = |create: &responses_bridge::simulator::Create| {
        create.client_metadata.iter().any(|name| name == "other")
    };
    assert_eq!(
        world
            .upstream
            .look(|ledger| ledger.creates.iter().filter(|create| kept(create)).count()),
        3
    );
}

/// [ROUTE-3] [KEY-40] a single account is no choice, and its keys are pinned all the same.
#[tokio::test]
async fn a_single_account() {
    let world = secrets(Setup::new().config(&accounts(&["a"]))).start().await;
    world.ask(&Ask::turn("sim:conv=c").thread("t")).await.completed();
    assert_eq!(reasons(&world), ["a only"]);
    // So that a second account tomorrow does not break today's conversations.
    assert_eq!(world.metric("bridge_pins", "").await, Some(1.0));
}
