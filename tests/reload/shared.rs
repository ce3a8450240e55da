//! What several rooms use.

use responses_bridge::app::Reloaded;
use responses_bridge::config::Config;

use crate::client::{Ask, Reply};
use crate::world::World;

/// The simulator as an upstream that has no WebSocket.
pub const HTTP_ONLY: &str = r#"
[providers.openai]
base_url = "{openai}"
transport = "http"
[[providers.openai.accounts]]
name = "main"
credential = "client"
"#;

/// A turn of a conversation; `words` tell the simulator what to do.
pub fn turn(conversation: &str, words: &str) -> Ask {
    Ask::turn(format!("sim:conv={conversation} {words}")).thread(conversation)
}

/// A turn that has been accepted, and goes on until it is read to its end or dropped.
pub async fn under_way(world: &World, ask: &Ask) -> Reply {
    let mut reply = world.open(ask).await;
    reply.until("response.created").await;
    reply
}

/// Puts the configuration in force with something changed.
pub fn change(world: &World, change: impl FnOnce(&mut Config)) -> Reloaded {
    let reloader = world.app.reloader();
    let mut config = reloader.in_force();
    change(&mut config);
    reloader.reload(&config).unwrap()
}

/// The same, and all that differs is in force.
pub fn changed(world: &World, with: impl FnOnce(&mut Config), keys: &[&str]) {
    let reloaded = change(world, with);
    assert_eq!(reloaded.changed, keys);
    assert_eq!(reloaded.needs_restart, Vec::<String>::new());
}
