//! What a provider can take.

use crate::client::Ask;
use crate::world::Setup;

fn provider(rest: &str) -> Setup {
    Setup::new()
        .config(&format!(
            "[providers.up]\nbase_url = \"{{openai}}\"\n{rest}\n\
             [[providers.up.accounts]]\nname = \"main\"\ncredential = {{ env = \"KEY\" }}\n"
        ))
        .secret("KEY", "sk-own")
}

/// [UP-24] A create beyond the provider's longest frame goes by direct HTTP; those before and after it share a socket.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_has_a_longest_frame() {
    let world = provider("max_frame = \"64KiB\"").start().await;
    let ask = |text: String| Ask::turn(format!("hello sim:conv=talk {text}")).thread("t");
    let sizes = [10, 64 << 10, 63 << 10];
    for size in sizes {
        // One session per conversation, so that the last turn takes the first one's.
        let ask = ask("x".repeat(size)).with("store", true);
        world.ask(&ask).await.completed();
    }
    let sockets = world.sockets("talk");
    assert!(sockets[0].is_some() && sockets[2].is_some(), "{sockets:?}");
    assert_eq!(sockets[1], None);
    let fallbacks = world.events("http_fallback");
    assert_eq!(fallbacks.len(), 1);
    assert_eq!(fallbacks[0]["reason"], "too_big");
}

/// [UP-25] Each model of a conversation has sockets of its own, and finds them again; where there is no place, an idle one of
/// another model leaves.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_serves_one_model() {
    let models = ["m1", "m2", "m1", "m2", "m3", "m3"];
    let sockets = async |one_model: bool| {
        let world = provider(&format!("one_model_per_connection = {one_model}"))
            .config("[session]\nmax_per_key = 2\n")
            .start()
            .await;
        for model in models {
            let ask = Ask::turn("hello sim:conv=talk").thread("t").with("model", model);
            world.ask(&ask).await.completed();
        }
        let evicted = world.events("session_evicted").len();
        world.upstream.look(|ledger| {
            for socket in &ledger.sockets {
                let on_it = ledger
                    .creates
                    .iter()
                    .filter(|create| create.socket == Some(socket.number));
                let mut models: Vec<_> = on_it.map(|create| create.model.clone()).collect();
                models.dedup();
                assert!(!one_model || models.len() == 1, "{models:?}");
            }
        });
        (world.sockets("talk"), evicted)
    };
    let (bound, evicted) = sockets(true).await;
    assert!(bound.iter().all(Option::is_some), "{bound:?}");
    assert_eq!((bound[0], bound[1]), (bound[2], bound[3]));
    assert_eq!(bound[4], bound[5]);
    assert_ne!(bound[0], bound[1]);
    assert_eq!(evicted, 1);
    let (free, evicted) = sockets(false).await;
    assert!(free.iter().all(Option::is_some));
    assert_eq!(evicted, 0);
}
