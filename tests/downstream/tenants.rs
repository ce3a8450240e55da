//! Whom a request belongs to.

use responses_bridge::config::Client;
use responses_bridge::runtime::call::Tenant;
use secrecy::SecretString;

use crate::world::{GOOD, Setup, World};

fn create(headers: &str) -> String {
    let length = GOOD.len();
    format!(
        "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{headers}\r\n{GOOD}"
    )
}

/// The tenant of a create with these headers.
async fn tenant(world: &World, headers: &str) -> Tenant {
    let answer = world.ask(create(headers)).await;
    assert_eq!(answer.status, 200, "{headers}");
    world.bridge.seen().pop().unwrap().caller.tenant
}

/// [EDGE-20] no credential: 401 on every API path, before the body is read; organisation and account are none.
#[tokio::test]
async fn no_credential_no_service() {
    let world = Setup::default().start();
    for headers in [
        "",
        "authorization: \r\n",
        "authorization: Bearer\r\n",
        "authorization: Bearer  \r\n",
        "api-key: \r\nx-api-key:\r\n",
        "chatgpt-account-id: a\r\nopenai-organization: o\r\nopenai-project: p\r\ncookie: c=1\r\n",
    ] {
        for (method, path) in [
            ("POST", "/v1/responses"),
            ("GET", "/v1/responses"),
            ("GET", "/v1/responses/resp_1"),
            ("POST", "/v1/embeddings"),
            ("GET", "/backend-api/wham/usage"),
        ] {
            // The body is announced and never comes: it must not be waited for.
            let head =
                format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n{headers}\r\n");
            let answer = world.ask(head).await;
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (401, "bridge_missing_credential"),
                "{path} {headers}"
            );
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
    }
    assert!(world.bridge.seen().is_empty());
}

/// [EDGE-21] with configured clients their key, in any of its headers, decides; anything else is 401.
#[tokio::test]
async fn a_client_key_decides() {
    let mut setup = Setup::default();
    let client = |name: &str, key: &str| Client {
        name: name.into(),
        key: SecretString::from(key),
    };
    setup.settings.clients = vec![client("laptop", "key-1"), client("desk", "key-22")];
    let world = setup.start();
    let laptop = tenant(&world, "authorization: Bearer key-1\r\n").await;
    assert_eq!(laptop.client.as_deref(), Some("laptop"));
    for headers in [
        "authorization: bearer   key-1 \r\n",
        "api-key: key-1\r\n",
        "x-api-key: key-1\r\n",
        "x-api-key: key-1\r\nchatgpt-account-id: other\r\nopenai-organization: o\r\n",
        "authorization: Bearer sk-elsewhere\r\nx-api-key: key-1\r\n",
    ] {
        assert!(tenant(&world, headers).await == laptop, "{headers}");
    }
    let desk = tenant(&world, "api-key: key-22\r\n").await;
    assert!(desk.client.as_deref() == Some("desk") && desk.hash != laptop.hash);
    let before = world.bridge.seen().len();
    for headers in [
        "authorization: Bearer key-2\r\n",
        "authorization: Bearer key-11\r\n",
        "authorization: Basic key-1\r\n",
        "api-key: laptop\r\n",
        "api-key: KEY-1\r\n",
        "api-key: key-1,key-22\r\n",
    ] {
        let answer = world.ask(create(headers)).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (401, "bridge_unknown_client_key"),
            "{headers}"
        );
    }
    assert_eq!(world.bridge.seen().len(), before);
}

/// [EDGE-22] without configured clients every different set of credentials is a tenant of its own, however the values
/// are swapped, joined, split or moved, and the same set always the same one.
#[tokio::test]
async fn credentials_never_collide() {
    let world = Setup::default().start();
    let sets = [
        "authorization: Bearer ab\r\n",
        "authorization: Bearer a\r\n",
        "authorization: ab\r\n",
        "api-key: ab\r\n",
        "x-api-key: ab\r\n",
        "authorization: Bearer a\r\nopenai-organization: b\r\n",
        "authorization: Bearer b\r\nopenai-organization: a\r\n",
        "authorization: Bearer a\r\nopenai-project: b\r\n",
        "authorization: Bearer a\r\nchatgpt-account-id: b\r\n",
        "authorization: Bearer a\r\nopenai-organization: bc\r\n",
        "authorization: Bearer a\r\nopenai-organization: b\r\nopenai-project: c\r\n",
        "authorization: Bearer a\r\nopenai-organization: c\r\nopenai-project: b\r\n",
        "api-key: a\r\nx-api-key: b\r\n",
        "api-key: b\r\nx-api-key: a\r\n",
        "api-key: a\r\napi-key: b\r\n",
        "api-key: b\r\napi-key: a\r\n",
        "api-key: ax-api-keyb\r\n",
    ];
    let mut hashes = std::collections::HashSet::new();
    for headers in sets {
        let first = tenant(&world, headers).await;
        assert!(first == tenant(&world, headers).await, "not stable: {headers}");
        assert_eq!(first.client, None);
        assert!(hashes.insert(first.hash), "collides: {headers}");
    }
    let plain = tenant(&world, "authorization: Bearer ab\r\n").await;
    let noisy =
        "authorization: Bearer ab\r\nsession-id: s\r\nx-forwarded-for: 1.2.3.4\r\nuser-agent: other\r\n";
    assert!(
        tenant(&world, noisy).await == plain,
        "what is no identity changes no tenant"
    );
}

/// [EDGE-23] nothing that is printed of a call shows a credential.
#[tokio::test]
async fn credentials_do_not_show() {
    let world = Setup::default().start();
    let secret = "authorization: Bearer hush1\r\napi-key: hush2\r\napi-key: hush3\r\nx-api-key: hush4\r\n\
                  cookie: hush5\r\nchatgpt-account-id: hush6\r\nproxy-authorization: hush7\r\n";
    world.ask(create(secret)).await;
    let caller = world.bridge.seen().pop().unwrap().caller;
    assert_eq!(
        caller.headers["authorization"], "Bearer hush1",
        "it is there for the upstream"
    );
    assert!(!format!("{caller:?}").contains("hush"), "{caller:?}");
}
