//! What the operator adds to every request, on both transports.

use std::collections::BTreeMap;

use responses_bridge::simulator::credential_hash;

use crate::client::Ask;
use crate::world::{Setup, World};

/// The headers of one turn by session, and of the same turn by direct HTTP.
async fn both(world: &World, ask: &Ask) -> [BTreeMap<String, String>; 2] {
    world.upstream.reset();
    world.ask(ask).await.completed();
    // A background turn never goes by session.
    world.ask(&ask.clone().with("background", true)).await;
    [0, 1].map(|index| {
        world.upstream.look(|ledger| {
            let create = &ledger.creates[index];
            assert_eq!(create.socket.is_some(), index == 0);
            create.headers.clone()
        })
    })
}

/// [UP-20] A provider's headers and an account's, which win; both win over the client's.
#[tokio::test(flavor = "multi_thread")]
async fn both_transports_carry_them() {
    let world = Setup::new()
        .config(
            r#"
            [providers.up]
            base_url = "{openai}"
            headers = { "x-team" = "agents", "openai-project" = "common" }
            [[providers.up.accounts]]
            name = "main"
            credential = { env = "KEY" }
            headers = { "OpenAI-Project" = "its-own", "x-gateway" = { env = "GATEWAY" } }
            "#,
        )
        .secret("KEY", "sk-own")
        .secret("GATEWAY", "gateway-secret")
        .start()
        .await;
    let ask = Ask::turn("hello")
        .thread("t")
        .header("openai-project", "the-clients")
        .header("x-team", "the-clients");
    for headers in both(&world, &ask).await {
        assert_eq!(headers["x-team"], "agents", "{headers:?}");
        assert_eq!(headers["openai-project"], "its-own");
        assert_eq!(headers["x-gateway"], "gateway-secret");
        assert_eq!(headers["authorization"], credential_hash("Bearer sk-own"));
    }
    // What is passed on to another path has them too.
    world.ask(&Ask::bare("GET", "/v1/models")).await;
    world.upstream.look(|ledger| {
        let request = ledger.requests.last().unwrap();
        assert_eq!(request.target, "/v1/models");
        assert_eq!(request.headers["x-gateway"], "gateway-secret");
        assert_eq!(request.headers["openai-project"], "its-own");
    });
    assert!(
        !world
            .lines()
            .iter()
            .any(|line| line.to_string().contains("gateway-secret"))
    );
}

/// [UP-20] A ChatGPT account with a credential of its own: its account id, its beta header and `stream: true`; of the
/// caller's login nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_chatgpt_account_of_the_operators() {
    let world = Setup::new()
        .config(
            r#"
            [providers.codex]
            kind = "chatgpt"
            base_url = "{chatgpt}"
            [[providers.codex.accounts]]
            name = "team"
            credential = { env = "KEY" }
            chatgpt_account_id = "acct-team"
            "#,
        )
        .secret("KEY", "login-token")
        .start()
        .await;
    let ask = Ask::turn("hello")
        .to("/backend-api/codex/responses")
        .thread("t")
        .header("chatgpt-account-id", "acct-of-the-caller")
        .json();
    let [session, direct] = both(&world, &ask).await;
    for headers in [&session, &direct] {
        assert_eq!(headers["chatgpt-account-id"], "acct-team", "{headers:?}");
        assert_eq!(headers["authorization"], credential_hash("Bearer login-token"));
    }
    assert_eq!(session["openai-beta"], "responses_websockets=2026-02-06");
    assert!(!direct.contains_key("openai-beta"));
    assert_eq!(direct["accept"], "text/event-stream");
}

/// [UP-20] [UP-1] Azure: its key is `api-key`, beside what the operator adds.
#[tokio::test(flavor = "multi_thread")]
async fn an_azure_account() {
    let world = Setup::new()
        .config(
            r#"
            [providers.azure]
            kind = "azure"
            base_url = "{openai}"
            [[providers.azure.accounts]]
            name = "main"
            credential = { env = "KEY" }
            headers = { "x-ms-team" = "agents" }
            "#,
        )
        .secret("KEY", "azure-key")
        .start()
        .await;
    for headers in both(&world, &Ask::turn("hello").thread("t")).await {
        assert_eq!(headers["api-key"], credential_hash("azure-key"));
        assert_eq!(headers["x-ms-team"], "agents");
        assert!(!headers.contains_key("authorization"));
    }
}
