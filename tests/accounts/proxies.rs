//! An account's proxy that is not there. Proxies that are, real ones, are tried in `tests/foreign/test_proxies.py`.

use std::net::TcpListener;

use crate::client::Ask;
use crate::world::Setup;

/// A port at which nobody listens.
fn dead_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// [UP-21] With the proxy down nothing reaches the upstream, on either transport: the client is told why, without user and
/// password.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_around_a_dead_proxy() {
    for scheme in ["http", "https", "socks5", "socks5h"] {
        let forwards = scheme.starts_with("http");
        for transport in ["auto", "http", "websocket"] {
            if forwards && transport == "websocket" {
                // A fault of the configuration.
                continue;
            }
            let port = dead_port();
            let world = Setup::new()
                .config(&format!(
                    "[providers.up]\nbase_url = \"{{openai}}\"\ntransport = \"{transport}\"\n\
                     [[providers.up.accounts]]\nname = \"main\"\ncredential = {{ env = \"KEY\" }}\n\
                     proxy = \"{scheme}://someone:hunter2@127.0.0.1:{port}\"\n"
                ))
                .secret("KEY", "sk-own")
                .start()
                .await;
            let case = format!("{scheme}, {transport}");
            let ask = Ask::turn("hello").thread("t");
            for ask in [ask.clone(), ask.json()] {
                let answer = world.ask(&ask).await;
                let (status, code) = match transport {
                    "websocket" => (503, "bridge_no_socket"),
                    _ => (502, "bridge_proxy_failed"),
                };
                assert_eq!(answer.status, status, "{case}: {}", answer.text());
                assert!(answer.text().contains(code), "{case}: {}", answer.text());
                assert!(!answer.text().contains("hunter2"));
                assert!(answer.headers.contains_key("retry-after"), "{case}");
            }
            let passed = world.ask(&Ask::bare("GET", "/v1/models")).await;
            assert!(passed.text().contains("bridge_proxy_failed"), "{case}");
            world.upstream.look(|ledger| {
                assert_eq!(
                    (
                        ledger.http_requests,
                        ledger.sockets_opened,
                        ledger.handshakes_refused
                    ),
                    (0, 0, 0),
                    "{case}"
                );
            });
            if transport == "auto" && !forwards {
                assert_eq!(world.events("http_fallback")[0]["upgrade"], "proxy", "{case}");
            }
            for line in world.lines() {
                let line = line.to_string();
                assert!(!line.contains("hunter2") && !line.contains("someone"), "{line}");
            }
            world.quiet().await;
        }
    }
}
