//! The upstream refuses a credential that has just been replaced.

use std::collections::BTreeSet;

use crate::client::Ask;
use crate::keyfile::{KeyFile, credentials, shown};
use crate::world::{Setup, eventually};

/// The old key is refused by frame and over HTTP.
const OLD_IS_REFUSED: &str = "
[[rule]]
match = { header = { authorization = \"Bearer sk-old\" } }
behave = \"error(status=401, code=invalid_api_key, type=invalid_request_error)\"
";

/// And already at the upgrade.
const OLD_CANNOT_UPGRADE: &str = "
[[upgrade]]
match = { header = { authorization = \"Bearer sk-old\" } }
do = \"refuse(status=401)\"
";

/// [UP-23] By frame, over HTTP, after a refused upgrade: the credential is read again, and the same call succeeds with the new
/// one. The refusal never reaches the client.
#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_credential_is_read_in_the_same_call() {
    let upgrade = format!("{OLD_CANNOT_UPGRADE}{OLD_IS_REFUSED}");
    for (transport, script) in [
        ("auto", OLD_IS_REFUSED),
        ("http", OLD_IS_REFUSED),
        ("auto", &upgrade),
        ("websocket", &upgrade),
    ] {
        let file = KeyFile::new("sk-old");
        let world = file
            .setup(&format!("transport = \"{transport}\""))
            .script(script)
            .start()
            .await;
        file.write("sk-new");
        let ask = Ask::turn("hello sim:conv=talk").thread("t");
        world.ask(&ask).await.completed();
        world.ask(&ask.clone().json()).await.completed();
        // Where the file was followed faster than the call was made, nothing was refused.
        let sent = credentials(&world, "talk");
        let expected = ["sk-old", "sk-new", "sk-new"].map(shown);
        assert!(
            expected.ends_with(&sent) && sent.len() >= 2,
            "{transport}: {sent:?}"
        );
        assert_eq!(world.events("credential_rejected").len(), 0);
        world.quiet().await;
    }
}

/// [UP-23] Eight conversations, as many as may shake hands at a time, are refused together: all succeed, and none was sent more than twice.
#[tokio::test(flavor = "multi_thread")]
async fn refused_together_they_succeed_together() {
    let file = KeyFile::new("sk-old");
    let world = file
        .setup("transport = \"websocket\"")
        .script(OLD_IS_REFUSED)
        .start()
        .await;
    file.write("sk-new");
    let asks: Vec<_> = (0..8)
        .map(|number| Ask::turn(format!("hello sim:conv=c{number}")).thread(&format!("t{number}")))
        .collect();
    let mut answers = tokio::task::JoinSet::new();
    for ask in asks {
        let address = world.address;
        answers.spawn(async move { ask.ask(address).await });
    }
    while let Some(answer) = answers.join_next().await {
        answer.unwrap().completed();
    }
    for number in 0..8 {
        let sent = credentials(&world, &format!("c{number}"));
        assert!(
            ["sk-old", "sk-new"].map(shown).ends_with(&sent),
            "{number}: {sent:?}"
        );
    }
    assert_eq!(world.events("credential_rejected").len(), 0);
    // A refused credential says nothing of the transport.
    assert!(world.events("breaker_changed").is_empty());
    // Sockets that were opened with the old credential are all gone.
    eventually("old sockets go", || {
        let opened = world.events("session_opened").len();
        let ended = world.events("session_retired");
        let alive: BTreeSet<_> = ended.iter().map(|event| event["session"].to_string()).collect();
        opened - alive.len() <= 8
    })
    .await;
    world.quiet().await;
}

/// [UP-23] Nothing newer in the file, or nothing to read again: the refusal is the client's, after one send, and is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_without_another_credential_stands() {
    for transport in ["auto", "http"] {
        let file = KeyFile::new("sk-old");
        let rest = format!("transport = \"{transport}\"");
        let of_a_file = file.setup(&rest);
        let of_the_environment = Setup::new()
            .config(&format!(
                "[providers.up]\nbase_url = \"{{openai}}\"\n{rest}\n\
                 [[providers.up.accounts]]\nname = \"main\"\ncredential = {{ env = \"KEY\" }}\n"
            ))
            .secret("KEY", "sk-old");
        let callers_own = Setup::new().config(&format!(
            "[providers.up]\nbase_url = \"{{openai}}\"\n{rest}\n\
             [[providers.up.accounts]]\nname = \"main\"\ncredential = \"client\"\n"
        ));
        for (setup, told) in [(of_a_file, 1), (of_the_environment, 1), (callers_own, 0)] {
            let world = setup.script(OLD_IS_REFUSED).start().await;
            let ask = Ask::turn("hello sim:conv=talk").bearer("sk-old").thread("t");
            let answer = world.ask(&ask).await;
            assert_eq!(answer.status, 401);
            assert!(answer.text().contains("invalid_api_key"), "{}", answer.text());
            assert_eq!(credentials(&world, "talk"), [shown("sk-old")]);
            let rejected = world.events("credential_rejected");
            assert_eq!(rejected.len(), told, "{rejected:?}");
            assert!(rejected.iter().all(|event| event["reason"] == "rejected"));
            world.quiet().await;
        }
    }
}

/// [UP-23] [INV-1] The new credential is refused as well: that is the client's answer, and there is no third send.
#[tokio::test(flavor = "multi_thread")]
async fn no_third_send() {
    for transport in ["auto", "http"] {
        let file = KeyFile::new("sk-old");
        let both = format!("{OLD_IS_REFUSED}{}", OLD_IS_REFUSED.replace("sk-old", "sk-new"));
        let world = file
            .setup(&format!("transport = \"{transport}\""))
            .script(&both)
            .start()
            .await;
        file.write("sk-new");
        let answer = world.ask(&Ask::turn("hello sim:conv=talk").thread("t")).await;
        assert_eq!(answer.status, 401);
        let sent = credentials(&world, "talk");
        assert!(
            ["sk-old", "sk-new"].map(shown).ends_with(&sent),
            "{transport}: {sent:?}"
        );
        world.quiet().await;
    }
}
