//! What several rooms use: two accounts at one simulated upstream.

use responses_bridge::simulator::{Script, Simulator, credential_hash};
use serde_json::{Value, json};

use crate::client::{Answer, Ask};
use crate::world::{Setup, World};

/// Accounts `a` and `b` of one provider.
pub const TWO: &str = r#"
[providers.openai]
base_url = "{openai}"
[[providers.openai.accounts]]
name = "a"
credential = { env = "A" }
[[providers.openai.accounts]]
name = "b"
credential = { env = "B" }
"#;

/// The same by direct HTTP alone.
pub fn two_http() -> String {
    TWO.replace(
        "[providers.openai]\n",
        "[providers.openai]\ntransport = \"http\"\n",
    )
}

/// Accounts of these names, each with a credential of its own.
pub fn accounts(names: &[&str]) -> String {
    let account = |name: &&str| {
        let secret = name.to_uppercase();
        format!("[[providers.openai.accounts]]\nname = \"{name}\"\ncredential = {{ env = \"{secret}\" }}\n")
    };
    let accounts: String = names.iter().map(account).collect();
    format!("[providers.openai]\nbase_url = \"{{openai}}\"\n{accounts}")
}

pub fn secrets(setup: Setup) -> Setup {
    ["A", "B", "C"].into_iter().fold(setup, |setup, name| {
        setup.secret(name, &format!("sk-{}", name.to_lowercase()))
    })
}

/// A setup with two accounts.
pub fn two() -> Setup {
    secrets(Setup::new().config(TWO))
}

/// A bridge before two accounts that takes them in turn.
pub async fn in_turn(more: &str) -> World {
    two()
        .config("[routing]\nstrategy = \"round_robin\"")
        .config(more)
        .start()
        .await
}

/// The accounts that a conversation's creates went to.
pub fn went_to(upstream: &Simulator, conversation: &str) -> String {
    let name = |hash: &String| {
        let known = ["a", "b", "c"]
            .into_iter()
            .find(|name| credential_hash(&format!("Bearer sk-{name}")) == *hash);
        known.unwrap_or("?")
    };
    upstream.look(|ledger| {
        ledger
            .creates_of(conversation)
            .map(|create| create.headers.get("authorization").map_or("-", name))
            .collect()
    })
}

/// The script in which account `a` behaves like this.
pub fn a_behaves(behave: &str) -> Script {
    Script::parse(&format!(
        "[[rule]]\nmatch = {{ header = {{ authorization = \"Bearer sk-a\" }} }}\nbehave = \"{behave}\""
    ))
    .unwrap()
}

/// A create that keeps nothing upstream, and asks for encrypted reasoning.
pub fn sealed(input: &[Value]) -> Ask {
    Ask::turn("")
        .with("input", input.to_vec())
        .with("store", false)
        .with("include", json!(["reasoning.encrypted_content"]))
}

/// A user's message.
pub fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

/// The output items of a completed answer.
pub fn output(answer: &Answer) -> Vec<Value> {
    let output = answer.completed()["output"].as_array().unwrap().clone();
    assert!(!output.is_empty());
    output
}

/// Ends the bridge in an orderly way and starts another one over its state, before the same upstream.
pub async fn restarted(world: World, setup: Setup) -> World {
    let World {
        upstream, app, state, ..
    } = world;
    app.drain().await;
    setup.state(&state).before(upstream).await
}

/// The reasons of all choices so far, in their order.
pub fn reasons(world: &World) -> Vec<String> {
    let chosen = world.events("route_chosen");
    chosen
        .iter()
        .map(|event| {
            format!(
                "{} {}",
                event["account"].as_str().unwrap(),
                event["reason"].as_str().unwrap()
            )
        })
        .collect()
}
