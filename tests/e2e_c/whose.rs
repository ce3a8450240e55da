//! Requests that name what one account has made go there and nowhere else.

use serde_json::json;

use crate::client::Ask;
use crate::shared::{in_turn, output, reasons, sealed, secrets, two, two_http, user, went_to};
use crate::world::{Setup, World};

async fn both_ways(more: &str) -> [World; 2] {
    let http = secrets(Setup::new().config(&two_http())).config("[routing]\nstrategy = \"round_robin\"");
    [in_turn(more).await, http.config(more).start().await]
}

/// [ROUTE-4] [KEY-10] row 9: chains of anchors stay with the account that made them, whatever the strategy would say, over
/// both transports; GET, DELETE, cancel and input_items go there as well.
#[tokio::test]
async fn what_names_a_response_goes_to_its_owner() {
    for world in both_ways("").await {
        for round in 0..3 {
            let conversation = format!("chain{round}");
            let mut last = world
                .ask(&Ask::turn(format!("sim:conv={conversation} hello")))
                .await
                .id();
            for n in 0..3 {
                let ask = Ask::turn(format!("sim:conv={conversation} turn {n}")).after(&last);
                last = world.ask(&ask).await.id();
            }
            let to = went_to(&world.upstream, &conversation);
            assert!(to == "aaaa" || to == "bbbb", "{to}");
            for (method, tail, wanted) in [
                ("GET", "", 200),
                ("GET", "/input_items", 200),
                ("DELETE", "", 200),
                ("GET", "", 404),
            ] {
                let ask = Ask::bare(method, format!("/v1/responses/{last}{tail}"));
                assert_eq!(world.ask(&ask).await.status, wanted, "{method} {tail}");
            }
        }
        let background = Ask::turn("sim:conv=background sim:text(n=3, delay=2s)")
            .json()
            .with("background", true);
        let id = world.ask(&background).await.json()["id"]
            .as_str()
            .unwrap()
            .to_owned();
        world.ask(&Ask::turn("sim:conv=between")).await.completed();
        let cancelled = world
            .ask(&Ask::bare("POST", format!("/v1/responses/{id}/cancel")))
            .await;
        assert_eq!(
            (cancelled.status, cancelled.json()["status"].as_str()),
            (200, Some("cancelled"))
        );
        // A forgotten response is unknown: with two accounts it is not looked for.
        let never = world.ask(&Ask::bare("GET", "/v1/responses/resp_never")).await;
        assert_eq!(
            (never.status, never.error().as_str()),
            (404, "bridge_unknown_response")
        );
    }
}

/// [KEY-43] [KEY-44] row 10: a full resend with encrypted reasoning goes to the account that made it, although the client
/// gives no sign of its conversation, for as many turns as it likes; streamed and not, over both transports.
#[tokio::test]
async fn encrypted_reasoning_goes_to_its_account() {
    for world in both_ways("").await {
        for stream in [true, false] {
            let conversation = format!("sealed-{stream}");
            let mut input = vec![user(&format!("sim:conv={conversation} hello"))];
            for n in 0..4 {
                input.extend(output(&world.ask(&sealed(&input).with("stream", stream)).await));
                input.push(user(&format!("sim:conv={conversation} turn {n}")));
                // The strategy goes on to the other account.
                world.ask(&Ask::turn("sim:conv=between")).await.completed();
                world.ask(&Ask::turn("sim:conv=between")).await.completed();
                world.ask(&Ask::turn("sim:conv=between")).await.completed();
            }
            let to = went_to(&world.upstream, &conversation);
            assert!(to == "aaaa" || to == "bbbb", "{to}");
        }
        assert!(reasons(&world).iter().any(|reason| reason.ends_with(" item")));
    }
}

/// [KEY-44] items of a stored response that are referred to by their ids go to its account.
#[tokio::test]
async fn references_go_to_their_account() {
    let world = in_turn("").await;
    let first = world.ask(&Ask::turn("sim:conv=refer hello sim:reasoning")).await;
    let references = output(&first)
        .iter()
        .map(|item| json!({"type": "item_reference", "id": item["id"]}))
        .chain([user("sim:conv=refer more")])
        .collect::<Vec<_>>();
    world.ask(&Ask::turn("sim:conv=between")).await.completed();
    world.ask(&Ask::turn("sim:conv=between")).await.completed();
    world
        .ask(&Ask::turn("").with("input", references))
        .await
        .completed();
    assert_eq!(went_to(&world.upstream, "refer"), "aa");
}

/// [KEY-44] [ROUTE-9] ids of files, containers, conversations, prompts and vector stores: nobody's at first, which with two
/// accounts is refused with how to allow it; once an account has accepted a turn with them they are its own.
#[tokio::test]
async fn ids_belong_to_who_took_them() {
    let kinds = [
        (
            "input",
            json!([{"role": "user", "content": [{"type": "input_text", "text": "sim:conv=NAME"}, {"type": "input_file", "file_id": "file_1"}]}]),
        ),
        (
            "tools",
            json!([{"type": "code_interpreter", "container": "cntr_1"}]),
        ),
        (
            "tools",
            json!([{"type": "file_search", "vector_store_ids": ["vs_1"]}]),
        ),
        ("prompt", json!({"id": "pmpt_1"})),
        ("conversation", json!("conv_1")),
    ];
    let closed = in_turn("").await;
    let open = in_turn("[ownership]\nunknown = \"forward\"").await;
    for (number, (field, value)) in kinds.into_iter().enumerate() {
        let conversation = format!("id{number}");
        let value: serde_json::Value =
            serde_json::from_str(&value.to_string().replace("NAME", &conversation)).unwrap();
        let ask = Ask::turn(format!("sim:conv={conversation}")).with(field, value);
        let answer = closed.ask(&ask).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (400, "previous_response_not_found"),
            "{field}"
        );
        assert!(
            answer.json()["error"]["message"]
                .as_str()
                .unwrap()
                .contains("ownership.unknown")
        );
        assert_eq!(closed.creates(&conversation).total(), 0);
        for _ in 0..3 {
            open.ask(&ask).await.completed();
        }
        let to = went_to(&open.upstream, &conversation);
        assert!(to == "aaa" || to == "bbb", "{field}: {to}");
    }
}

/// [ROUTE-8] what belongs to two accounts goes to neither.
#[tokio::test]
async fn things_of_two_accounts() {
    let world = in_turn("").await;
    let mut input = Vec::new();
    for conversation in ["one", "two"] {
        input.extend(output(
            &world
                .ask(&sealed(&[user(&format!("sim:conv={conversation}"))]))
                .await,
        ));
    }
    let before = world.upstream.ledger().creates_total;
    let answer = world.ask(&sealed(&input)).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (400, "bridge_owner_conflict")
    );
    let of_b = world.ask(&Ask::turn("sim:conv=three")).await;
    drop(of_b.completed());
    let of_b = world.ask(&Ask::turn("sim:conv=four")).await.id();
    let answer = world.ask(&sealed(&input[..1]).after(&of_b)).await;
    assert_eq!(answer.error(), "bridge_owner_conflict");
    assert_eq!(world.events("owner_conflict").len(), 2);
    assert_eq!(
        world.upstream.ledger().creates_total,
        before + 2,
        "the two in between"
    );
}

/// [ROUTE-9] a response that nobody is known to have made: refused as upstream would, with how to allow it; forwarded where
/// the operator says so, and then upstream's own answer is the client's.
#[tokio::test]
async fn an_unknown_response() {
    let ask = Ask::turn("sim:conv=unknown").after("resp_unknown");
    let world = two().start().await;
    let answer = world.ask(&ask).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (400, "previous_response_not_found")
    );
    let error = answer.json()["error"].clone();
    assert_eq!(error["param"], "previous_response_id");
    assert!(error["message"].as_str().unwrap().contains("ownership.unknown"));
    assert_eq!(world.creates("unknown").total(), 0);
    let world = two().config("[ownership]\nunknown = \"forward\"").start().await;
    let answer = world.ask(&ask).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (400, "previous_response_not_found")
    );
    assert_eq!(world.creates("unknown").total(), 1);
    let found = world.ask(&Ask::bare("GET", "/v1/responses/resp_unknown")).await;
    assert_eq!(found.status, 404);
}

/// [ROUTE-11] a compaction goes to the account that its conversation is with, and is not guessed for one that is not known.
#[tokio::test]
async fn a_compaction_follows_its_conversation() {
    let world = in_turn("").await;
    let compact = |thread: &str| Ask::turn("sim:conv=x").to("/v1/responses/compact").thread(thread);
    for thread in ["one", "two"] {
        world
            .ask(&Ask::turn("sim:conv=x").thread(thread))
            .await
            .completed();
    }
    for (thread, account) in [("one", "a"), ("two", "b")] {
        assert_eq!(world.ask(&compact(thread)).await.status, 200);
        let last = world
            .upstream
            .look(|ledger| ledger.requests.last().unwrap().headers["authorization"].clone());
        assert_eq!(
            last,
            responses_bridge::simulator::credential_hash(&format!("Bearer sk-{account}"))
        );
    }
    assert_eq!(world.ask(&compact("three")).await.error(), "bridge_no_account");
}
