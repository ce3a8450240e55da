//! The admin API over the real bridge, as an operator's program meets it.
// A test file: all of it may panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "clients of tests are tasks that end with their test"
)]

#[path = "../support/client.rs"]
mod client;
#[path = "../e2e_b/process.rs"]
#[allow(dead_code, reason = "this crate uses a part of it")]
mod process;
#[path = "../support/world.rs"]
mod world;

mod browser;
mod burden;
mod doors;
mod health;
mod methods;
mod raw;
mod seen;
mod streams;

use client::{Answer, Ask};
use serde_json::Value;
use world::{Setup, World};

pub const TOKEN: &str = "operators-own-token-0123456789abcdef";

/// A bridge with an admin token.
pub fn setup() -> Setup {
    Setup::new()
        .config("[server]\nadmin_token = { env = \"OPERATORS\" }")
        .secret("OPERATORS", TOKEN)
}

/// A request of an operator's.
pub fn operator(method: &'static str, path: &str) -> Ask {
    Ask::bare(method, path).bearer(TOKEN)
}

/// What a path shows.
pub async fn data(world: &World, path: &str) -> Value {
    let answer = world.ask(&operator("GET", path)).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()["data"].clone()
}

/// Status and code of a refusal.
pub fn refusal(answer: &Answer) -> (u16, String) {
    (
        answer.status,
        answer.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    )
}
