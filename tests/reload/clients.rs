//! Clients and operators whose keys change while they are served.

use responses_bridge::config::Client;
use secrecy::SecretString;

use crate::client::{Ask, MOMENT, Reply};
use crate::shared::{change, changed, turn, under_way};
use crate::world::{Setup, World};

const CLIENTS: &str = r#"
[server]
admin_token = { env = "TOKEN" }
[[clients]]
name = "alice"
key = { env = "ALICE" }
[[clients]]
name = "bob"
key = { env = "BOB" }

[session]
max_per_key = 1
queue_wait = "60s"

[providers.openai]
base_url = "{openai}"
[[providers.openai.accounts]]
name = "main"
credential = { env = "ACCOUNT" }
"#;

async fn served() -> World {
    let setup = Setup::new().config(CLIENTS).secret("TOKEN", "token-one");
    let setup = setup.secret("ALICE", "key-alice").secret("BOB", "key-bob");
    setup.secret("ACCOUNT", "sk-account").start().await
}

fn secret(text: &str) -> SecretString {
    SecretString::from(text.to_owned())
}

fn client(name: &str) -> Client {
    Client {
        name: name.to_owned(),
        key: secret(&format!("key-{name}")),
    }
}

fn as_(who: &str, conversation: &str, words: &str) -> Ask {
    turn(conversation, words).bearer(&format!("key-{who}"))
}

/// [REL-16] A rotated key: the old one is refused at once, on an open connection too; with the new one the client has its
/// conversation and its responses.
#[tokio::test]
async fn a_rotated_key() {
    let world = served().await;
    let ask = as_("alice", "one", "");
    let first = world.open(&ask).await;
    let rotated = secret("key-fresh");
    changed(
        &world,
        |config| config.clients[0].key = rotated,
        &["clients.alice.key"],
    );
    let refused = first.again(&ask).await.finish().await;
    assert_eq!(
        (refused.status, refused.error()),
        (401, "bridge_unknown_client_key".into())
    );
    let second = world.ask(&as_("fresh", "one", "")).await;
    let third = as_("fresh", "one", "").after(&second.id());
    world.ask(&third).await.completed();
    let sockets = world.sockets("one");
    assert!(
        sockets[0].is_some() && sockets.iter().all(|socket| *socket == sockets[0]),
        "{sockets:?}"
    );
    world.ask(&as_("bob", "two", "")).await.completed();
    assert!(
        world
            .lines()
            .iter()
            .all(|line| !line.to_string().contains("key-")),
        "no key is told"
    );
}

/// [REL-16] A client that is added is served; one by another name is another client, whose responses the old one's are not.
#[tokio::test]
async fn added_and_renamed() {
    let world = served().await;
    assert_eq!(world.ask(&as_("carol", "one", "")).await.status, 401);
    changed(
        &world,
        |config| config.clients.push(client("carol")),
        &["clients.carol"],
    );
    world.ask(&as_("carol", "one", "")).await.completed();
    let hers = world.ask(&as_("alice", "two", "").with("store", true)).await.id();
    changed(
        &world,
        |config| config.clients[0].name = "alicia".into(),
        &["clients.alice", "clients.alicia"],
    );
    let refused = world.ask(&as_("alice", "two", "").after(&hers)).await;
    assert_eq!(refused.error(), "previous_response_not_found");
    world.ask(&as_("alice", "two", "")).await.completed();
}

/// [REL-16] The operators' token, origins and the largest body are live; a request whose body is on its way keeps its bounds.
#[tokio::test]
async fn the_edge() {
    let world = served().await;
    let metrics = |token: &str| Ask::bare("GET", "/metrics").bearer(token);
    assert_eq!(world.ask(&metrics("token-one")).await.status, 200);
    let page = as_("bob", "one", "").header("origin", "https://app.example.com");
    assert_eq!(world.ask(&page).await.status, 403);
    let long = as_("bob", "one", &"x".repeat(5000));
    world.ask(&long).await.completed();
    changed(
        &world,
        |config| {
            config.server.admin_token = Some(secret("token-two"));
            config.server.allow_origins.push("https://app.example.com".into());
            config.server.max_body = 4096;
        },
        &["server.admin_token", "server.max_body", "server.allow_origins"],
    );
    assert_eq!(world.ask(&metrics("token-one")).await.status, 401);
    assert_eq!(world.ask(&metrics("token-two")).await.status, 200);
    world.ask(&page).await.completed();
    assert_eq!(world.ask(&long).await.status, 413);
}

/// [REL-20] A token that is replaced, or taken away, opens nothing any more: its event stream ends, and without one there is no
/// admin API at all. A new one waits for a restart.
#[tokio::test]
async fn a_token_that_is_taken_away() {
    let world = served().await;
    let admin = |path: &'static str, token: &str| Ask::bare("GET", path).bearer(token);
    let told = world.open(&admin("/admin/events", "token-one")).await;
    assert_eq!(told.status, 200);
    let other = secret("token-two");
    changed(
        &world,
        |config| config.server.admin_token = Some(other),
        &["server.admin_token"],
    );
    ends(told).await;
    assert_eq!(world.ask(&admin("/admin/status", "token-one")).await.status, 401);

    let told = world.open(&admin("/admin/events", "token-two")).await;
    let same = change(&world, |config| config.server.drain *= 2);
    assert_eq!(same.changed, ["server.drain"]);
    world.ask(&as_("bob", "one", "")).await.completed();
    changed(
        &world,
        |config| config.server.admin_token = None,
        &["server.admin_token"],
    );
    let told = ends(told).await;
    assert!(
        told.contains("event: turn_finished"),
        "another change ends nothing: {told}"
    );
    assert!(!told.contains("server.admin_token"), "{told}");
    for path in ["/admin/status", "/admin/ui", "/admin/ui/login"] {
        assert_eq!(world.ask(&admin(path, "token-two")).await.status, 404, "{path}");
    }
    assert_eq!(
        world.ask(&Ask::bare("GET", "/metrics")).await.status,
        200,
        "as without a token"
    );

    let again = secret("token-two");
    let reloaded = change(&world, |config| config.server.admin_token = Some(again));
    assert_eq!(reloaded.needs_restart, ["server.admin_token"]);
    assert_eq!(world.ask(&admin("/admin/status", "token-two")).await.status, 404);
}

/// All of a stream that ends.
async fn ends(stream: Reply) -> String {
    let rest = tokio::time::timeout(MOMENT, stream.finish());
    rest.await.expect("it ends").text().to_owned()
}

/// [REL-17] A removed client: its running turn finishes, what waits is refused unsent, nothing new is let in, its sessions are
/// closed when they are idle, and others notice nothing. Configured again, it has all that was its own.
#[tokio::test]
async fn a_removed_client() {
    let world = served().await;
    let made = world
        .ask(&as_("alice", "idle", "").with("store", true))
        .await
        .id();
    world.ask(&as_("bob", "bob", "")).await.completed();
    let running = under_way(&world, &as_("alice", "busy", "sim:pause(after=1, for=1500ms)")).await;
    let waiting = Ask::turn("sim:conv=waits hello")
        .thread("busy")
        .bearer("key-alice");
    let address = world.address;
    let waiting = tokio::spawn(async move { waiting.ask(address).await });
    eventually_waits(&world).await;
    changed(
        &world,
        |config| drop(config.clients.remove(0)),
        &["clients.alice"],
    );

    let refused = waiting.await.unwrap();
    assert_eq!(
        (refused.status, refused.error()),
        (401, "bridge_unknown_client_key".into())
    );
    assert_eq!(world.creates("waits").total(), 0, "nothing was sent");
    assert_eq!(
        world.events("refused").last().unwrap()["reason"],
        "unknown_client_key"
    );
    world.saw("session_retired", 1).await;
    assert_eq!(world.ask(&as_("alice", "busy", "")).await.status, 401);
    running.finish().await.completed();
    world.saw("session_retired", 2).await;
    for retired in world.events("session_retired") {
        assert_eq!(retired["reason"], "client_removed");
    }
    world
        .upstream_saw("bob's socket", |ledger| ledger.sockets_open == 1)
        .await;
    world.ask(&as_("bob", "bob", "")).await.completed();
    let sockets = world.sockets("bob");
    assert!(sockets[0].is_some() && sockets[0] == sockets[1], "{sockets:?}");

    changed(
        &world,
        |config| config.clients.push(client("alice")),
        &["clients.alice"],
    );
    world
        .ask(&as_("alice", "idle", "").after(&made))
        .await
        .completed();
    world.ask(&as_("alice", "busy", "")).await.completed();
    assert_eq!(world.events("session_retired").len(), 2, "it is kept again");
}

/// [REL-17] The last client: without keys the callers are told apart by their own credentials.
#[tokio::test]
async fn no_client_is_left() {
    let world = served().await;
    changed(
        &world,
        |config| config.clients.clear(),
        &["clients.alice", "clients.bob"],
    );
    world
        .ask(&turn("one", "").bearer("sk-anything"))
        .await
        .completed();
}

async fn eventually_waits(world: &World) {
    let metrics = Ask::bare("GET", "/metrics").bearer("token-one");
    let until = tokio::time::Instant::now() + crate::client::MOMENT;
    while !world.ask(&metrics).await.text().contains("bridge_queue_depth 1") {
        assert!(tokio::time::Instant::now() < until, "it does not wait");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
