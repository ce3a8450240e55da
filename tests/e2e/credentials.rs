//! One credential for both transports (row 25).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use responses_bridge::simulator::credential_hash;

use crate::client::{Ask, MOMENT};
use crate::world::{Setup, World};

type Headers = BTreeMap<String, String>;

/// What belongs to the transport, and no one else.
const OF_THE_TRANSPORT: [&str; 12] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "sec-websocket-extensions",
    "sec-websocket-key",
    "sec-websocket-protocol",
    "sec-websocket-version",
    "transfer-encoding",
    "upgrade",
];

/// The headers of one turn by session, and of the same turn by direct HTTP.
async fn both(world: &World, ask: &Ask) -> [Headers; 2] {
    let create = |index: usize| {
        world.upstream.look(|ledger| {
            let mut headers = ledger.creates[index].headers.clone();
            headers.retain(|name, _| !OF_THE_TRANSPORT.contains(&name.as_str()));
            (ledger.creates[index].socket.is_some(), headers)
        })
    };
    world.upstream.reset();
    world.ask(ask).await.completed();
    // A background turn never goes by session.
    world.ask(&ask.clone().with("background", true)).await;
    let (session, direct) = (create(0), create(1));
    assert!(session.0 && !direct.0);
    [session.1, direct.1]
}

/// [HTTP-1] Row 25: both transports carry the same credential and the same identity headers: the client's own where it is passed
/// through.
#[tokio::test(flavor = "multi_thread")]
async fn the_clients_own() {
    let world = Setup::new().start().await;
    let client = Ask::turn("hello")
        .bearer("sk-own")
        .header("openai-organization", "org-1")
        .header("openai-project", "proj-1")
        .header("session-id", "s-1")
        .header("thread-id", "t-1")
        .header("x-client-request-id", "r-1")
        .header("originator", "codex_cli_rs")
        .header("user-agent", "codex/0.171")
        .header("x-forwarded-for", "10.0.0.1")
        .header("cookie", "a=b")
        .header("x-session-affinity", "affine");
    let [session, direct] = both(&world, &client).await;
    assert_eq!(session, direct);
    assert_eq!(session["authorization"], credential_hash("Bearer sk-own"));
    for (name, value) in [
        ("openai-organization", "org-1"),
        ("session-id", "s-1"),
        ("thread-id", "t-1"),
        ("originator", "codex_cli_rs"),
        ("user-agent", "codex/0.171"),
    ] {
        assert_eq!(session.get(name).map(String::as_str), Some(value), "{session:?}");
    }
    for name in ["x-forwarded-for", "cookie", "x-session-affinity"] {
        assert!(!session.contains_key(name), "{name}");
    }
    let login = client
        .to("/backend-api/codex/responses")
        .header("chatgpt-account-id", "acct-1");
    let [session, direct] = both(&world, &login).await;
    assert_eq!(session["chatgpt-account-id"], "acct-1");
    assert_eq!(session["authorization"], credential_hash("Bearer sk-own"));
    for name in [
        "authorization",
        "chatgpt-account-id",
        "session-id",
        "thread-id",
        "originator",
        "user-agent",
    ] {
        assert_eq!(session.get(name), direct.get(name), "{name}");
    }
    let key = Ask::turn("hello").header("api-key", "azure-like");
    let [session, direct] = both(&world, &key).await;
    assert_eq!(session.get("api-key"), direct.get("api-key"));
    assert_eq!(session["authorization"], direct["authorization"]);
}

/// [HTTP-1] [UP-1] Row 25: the account's own, from the environment or a file, by either transport; the caller's key stays here. A file is
/// read again when it changes, by both.
#[tokio::test(flavor = "multi_thread")]
async fn the_accounts_own() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "sk-file-1\n").unwrap();
    let accounts = [
        (
            "openai",
            "{ env = \"KEY\" }".to_owned(),
            "authorization",
            "Bearer sk-env",
        ),
        (
            "generic",
            "{ env = \"KEY\" }".to_owned(),
            "authorization",
            "Bearer sk-env",
        ),
        ("azure", "{ env = \"KEY\" }".to_owned(), "api-key", "sk-env"),
        (
            "openai",
            format!("{{ file = {:?} }}", file.path()),
            "authorization",
            "Bearer sk-file-1",
        ),
    ];
    for (kind, credential, header, expected) in accounts {
        let world = Setup::new()
            .config(&format!(
                "[[clients]]\nname = \"one\"\nkey = {{ env = \"ONE\" }}\n\
                 [providers.it]\nkind = \"{kind}\"\nbase_url = \"{{openai}}\"\n\
                 [[providers.it.accounts]]\nname = \"main\"\ncredential = {credential}\n"
            ))
            .secret("ONE", "client-key-one-0123456789")
            .secret("KEY", "sk-env")
            .start()
            .await;
        let ask = Ask::turn("hello").bearer("client-key-one-0123456789").thread("a");
        let [session, direct] = both(&world, &ask).await;
        assert_eq!(session[header], credential_hash(expected), "{kind}");
        assert_eq!(session, direct, "{kind}");
        let own = credential_hash("Bearer client-key-one-0123456789");
        assert!(
            session.values().all(|value| *value != own),
            "{kind}: the caller's key went upstream"
        );
        if credential.contains("file") {
            std::fs::write(file.path(), "sk-file-2-longer\n").unwrap();
            let renewed = credential_hash("Bearer sk-file-2-longer");
            let until = Instant::now() + MOMENT;
            let [session, direct] = loop {
                let ask = ask.clone().thread(&format!("{:?}", Instant::now()));
                let both = both(&world, &ask).await;
                if both.iter().all(|headers| headers[header] == renewed) {
                    break both;
                }
                assert!(Instant::now() < until, "the changed file is never read");
                tokio::time::sleep(Duration::from_millis(100)).await;
            };
            assert_eq!(session, direct);
            // A file that is empty for a moment changes nothing.
            std::fs::write(file.path(), "").unwrap();
            tokio::time::sleep(Duration::from_millis(1200)).await;
            let [session, _] = both(&world, &ask.thread("c")).await;
            assert_eq!(session[header], renewed);
        }
    }
}
