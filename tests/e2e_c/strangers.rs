//! Other tenants, and tenants that come back as others.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Ask;
use crate::shared::{output, sealed, secrets, two, user};
use crate::world::{Setup, World};

/// Two clients of two accounts.
async fn clients() -> World {
    let clients = "[[clients]]\nname = \"alice\"\nkey = { env = \"ALICE\" }\n[[clients]]\nname = \"bob\"\nkey = { env = \"BOB\" }\n";
    let setup = two()
        .config(clients)
        .secret("ALICE", "key-alice")
        .secret("BOB", "key-bob");
    setup.start().await
}

/// The lines of one answer, without what names it.
fn shape(lines: &[Value]) -> Vec<Value> {
    let mut lines = lines.to_vec();
    for line in &mut lines {
        for field in ["ts", "request_id", "response", "key"] {
            line.as_object_mut().unwrap().remove(field);
        }
    }
    lines
}

/// [ROUTE-9] [KEY-11] [INV-6] another tenant's id and one that never existed: the same answer by byte, the same events but for
/// hashes, and the same time.
#[tokio::test]
async fn anothers_id_is_like_one_that_never_was() {
    let world = clients().await;
    let id = world
        .ask(&Ask::turn("sim:conv=a hello").bearer("key-alice"))
        .await
        .id();
    let never: String = id.chars().rev().collect();
    let by_bob = |id: &str| {
        [
            Ask::turn("sim:conv=thief").bearer("key-bob").after(id),
            Ask::bare("GET", format!("/v1/responses/{id}")).bearer("key-bob"),
            Ask::bare("DELETE", format!("/v1/responses/{id}")).bearer("key-bob"),
            Ask::bare("POST", format!("/v1/responses/{id}/cancel")).bearer("key-bob"),
            Ask::bare("GET", format!("/v1/responses/{id}/input_items")).bearer("key-bob"),
        ]
    };
    for (hers, nobodys) in by_bob(&id).iter().zip(&by_bob(&never)) {
        let mut seen = Vec::new();
        let mut times = [Vec::new(), Vec::new()];
        for ask in [hers, nobodys] {
            let before = world.lines().len();
            let answer = world.ask(ask).await;
            seen.push((
                answer.status,
                answer.text().to_owned(),
                shape(&world.lines()[before..]),
            ));
        }
        assert_eq!(seen[0], seen[1]);
        for _ in 0..60 {
            for (which, ask) in [hers, nobodys].into_iter().enumerate() {
                let began = Instant::now();
                world.ask(ask).await;
                times[which].push(began.elapsed());
            }
        }
        let median = |times: &mut Vec<Duration>| {
            times.sort();
            times[times.len() / 2].as_secs_f64()
        };
        let [hers, nobodys] = &mut times;
        let (hers, nobodys) = (median(hers), median(nobodys));
        // What a look-up upstream would cost is far more than this.
        assert!((hers - nobodys).abs() < 0.5 * nobodys + 0.001, "{hers} {nobodys}");
    }
    assert_eq!(world.creates("thief").total(), 0);
    assert_eq!(world.upstream.ledger().http_requests, 0);
}

/// [ROUTE-9] the same of encrypted content: another tenant's is as unknown as any.
#[tokio::test]
async fn anothers_encrypted_content_is_unknown() {
    let world = clients().await;
    let mut input = vec![user("sim:conv=a hello")];
    input.extend(output(&world.ask(&sealed(&input).bearer("key-alice")).await));
    let stolen = world.ask(&sealed(&input).bearer("key-bob")).await;
    assert_eq!(
        (stolen.status, stolen.error().as_str()),
        (400, "previous_response_not_found")
    );
    world.ask(&sealed(&input).bearer("key-alice")).await.completed();
    assert_eq!(world.creates("a").total(), 2);
}

/// [ROUTE-9] row 42: a caller's token is rotated in mid-conversation. It is a new tenant, whose old ids are forwarded with the
/// new credential, never refused; the sessions of the old one are not used.
#[tokio::test]
async fn a_rotated_token_costs_warmth_only() {
    let own = "[providers.own]\nbase_url = \"{openai}\"\n[[providers.own.accounts]]\nname = \"own\"\ncredential = \"client\"\n";
    let mixed = format!(
        "{own}[providers.z]\nbase_url = \"{{openai}}\"\n[[providers.z.accounts]]\nname = \"b\"\ncredential = {{ env = \"B\" }}\n"
    );
    for config in ["", own, &mixed] {
        let setup = Setup::new().script("accounts = \"one\"");
        let setup = if config.is_empty() {
            setup
        } else {
            secrets(setup.config(config))
        };
        let world = setup.config("[routing]\nstrategy = \"priority\"").start().await;
        let mut input = vec![user("sim:conv=c hello")];
        let ask = |token: &str| {
            sealed(&input.clone())
                .bearer(token)
                .header("session-id", "same")
                .with("store", true)
        };
        let first = world.ask(&ask("sk-old")).await;
        input.extend(output(&first));
        input.push(user("sim:conv=c more"));
        let id = first.id();
        // The anchor, a full resend, and the paths.
        let anchored = Ask::turn("sim:conv=c anchored")
            .bearer("sk-new")
            .header("session-id", "same")
            .after(&id);
        world.ask(&anchored).await.completed();
        world
            .ask(&sealed(&input).bearer("sk-new").header("session-id", "same"))
            .await
            .completed();
        let found = world
            .ask(&Ask::bare("GET", format!("/v1/responses/{id}")).bearer("sk-new"))
            .await;
        assert_eq!(found.status, 200, "{config}");
        let sockets = world.sockets("c");
        assert!(sockets.iter().all(Option::is_some));
        assert!(!sockets[1..].contains(&sockets[0]), "{sockets:?}");
        let old = responses_bridge::simulator::credential_hash("Bearer sk-old");
        let olds = world.upstream.look(|ledger| {
            let creates = ledger.creates_of("c");
            creates
                .filter(|create| create.headers["authorization"] == old)
                .count()
        });
        assert_eq!(olds, 1, "{config}");
    }
}
