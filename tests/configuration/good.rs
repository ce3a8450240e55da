//! Files without faults, and what they put in force.
use std::time::Duration;

use responses_bridge::config::{Config, Credential, CredentialSource, Transport};
use responses_bridge::wire::ProviderKind;
use secrecy::ExposeSecret;

use crate::{environment, fixtures, root};

fn good(name: &str) -> Config {
    let path = root().join("fixtures/config/good").join(name);
    Config::load(Some(&path), &environment).unwrap_or_else(|faults| panic!("{name}:\n{faults}"))
}

/// [CFG-2] Every good file is accepted.
#[test]
fn each_good_file_is_accepted() {
    for (name, _) in fixtures("good") {
        good(&name);
    }
}

/// [CFG-1] Nothing given: loopback, no keys, two upstreams, the callers' own credentials.
#[test]
fn without_a_file_the_bridge_serves_on_loopback() {
    for config in [
        Config::built_in(&environment).expect("it is right"),
        good("empty.toml"),
    ] {
        assert_eq!(config.server.listen.to_string(), "127.0.0.1:8787");
        assert!(config.server.admin_listen.is_none() && config.server.admin_token.is_none());
        assert!(config.clients.is_empty() && config.server.allow_origins.is_empty());
        let providers: Vec<_> = config
            .providers
            .iter()
            .map(|provider| (&*provider.name, provider.kind, provider.base_url.as_str()))
            .collect();
        assert_eq!(
            providers,
            [
                ("openai", ProviderKind::Openai, "https://api.openai.com/v1"),
                (
                    "chatgpt",
                    ProviderKind::Chatgpt,
                    "https://chatgpt.com/backend-api/codex"
                ),
            ]
        );
        for provider in &config.providers {
            assert_eq!(provider.transport, Transport::Auto);
            assert!(provider.fragment);
            let [account] = &*provider.accounts else {
                panic!("one account, not {:?}", provider.accounts)
            };
            assert!(account.name == "client" && matches!(account.credential, Credential::Client));
        }
    }
}

/// [CFG-2] The defaults are those that the design names.
#[test]
fn the_defaults_are_the_documented_ones() {
    let Config {
        server,
        session,
        watchdog,
        http,
        quarantine,
        state,
        ..
    } = good("empty.toml");
    let seconds = Duration::from_secs;
    assert_eq!(
        (server.max_body, server.body_budget, server.client_buffer),
        (128 << 20, 1 << 30, 4 << 20)
    );
    assert_eq!(
        (server.commit_after, server.heartbeat, server.drain),
        (seconds(15), seconds(10), seconds(600))
    );
    assert_eq!(
        (session.idle_ttl, session.max_age),
        (seconds(2700), seconds(2700))
    );
    assert_eq!(
        (session.max_sessions, session.max_per_key, session.max_queue),
        (4096, 4, 16)
    );
    assert_eq!(
        (session.queue_wait, watchdog.connect_deadline),
        (seconds(2), seconds(10))
    );
    assert_eq!(
        (watchdog.handshake_patience, watchdog.write_deadline),
        (seconds(2), seconds(30))
    );
    assert_eq!(
        (watchdog.response_created_deadline, watchdog.idle_deadline),
        (seconds(60), seconds(900))
    );
    assert_eq!(
        (watchdog.request_deadline, watchdog.slow_client),
        (seconds(7200), seconds(120))
    );
    assert_eq!(
        (watchdog.ping_interval, watchdog.reuse_check_after),
        (seconds(25), seconds(30))
    );
    assert_eq!(watchdog.pong_deadline, seconds(1));
    assert_eq!(
        (http.first_byte, http.first_event, http.between_events),
        (seconds(60), seconds(60), seconds(900))
    );
    assert_eq!(
        (quarantine.window, quarantine.max_window),
        (seconds(60), seconds(600))
    );
    assert_eq!((quarantine.max_keys, state.max_owners), (4096, 1_000_000));
}

/// [CFG-2] [CFG-10] [CFG-12] What a team's file says is in force, secrets resolved.
#[test]
fn a_teams_file_is_in_force() {
    let config = good("team-behind-a-proxy.toml");
    assert_eq!(config.server.listen.to_string(), "0.0.0.0:8787");
    assert_eq!(
        config
            .server
            .admin_listen
            .map(|address| address.to_string())
            .as_deref(),
        Some("[::1]:9787")
    );
    assert_eq!(
        config
            .server
            .admin_token
            .as_ref()
            .map(ExposeSecret::expose_secret),
        Some("secret-admin")
    );
    assert_eq!(
        config.server.allow_origins,
        ["https://app.example.com", "http://localhost:3000"]
    );
    let clients: Vec<_> = config
        .clients
        .iter()
        .map(|client| (&*client.name, client.key.expose_secret()))
        .collect();
    assert_eq!(
        clients,
        [("laptop", "secret-laptop-key"), ("desk", "secret-desk-key")]
    );
    let [openai] = &*config.providers else {
        panic!("one provider, not {:?}", config.providers)
    };
    let accounts: Vec<_> = openai
        .accounts
        .iter()
        .map(|account| match &account.credential {
            Credential::Client => panic!("{} has a secret of its own", account.name),
            Credential::Secret(secret) => (&*account.name, secret.expose_secret(), account.source.clone()),
        })
        .collect();
    let env = |name: &str| CredentialSource::Env(name.to_owned());
    assert_eq!(
        accounts,
        [
            ("main", "sk-secret-openai", env("OPENAI_API_KEY")),
            ("second", "sk-secret-other", env("OTHER_API_KEY")),
        ]
    );
}

/// [CFG-2] [CFG-14] Providers keep the file's order; each has what its table says.
#[test]
fn providers_keep_their_order_and_kind() {
    let config = good("four-kinds.toml");
    let providers: Vec<_> = config
        .providers
        .iter()
        .map(|provider| (&*provider.name, provider.kind, provider.base_url.as_str()))
        .collect();
    assert_eq!(
        providers,
        [
            ("zeta", ProviderKind::Generic, "http://127.0.0.1:9000/v1"),
            (
                "azure",
                ProviderKind::Azure,
                "https://example.openai.azure.com/openai/v1"
            ),
            (
                "codex",
                ProviderKind::Chatgpt,
                "https://chatgpt.com/backend-api/codex"
            ),
            ("openai", ProviderKind::Openai, "https://api.openai.com/v1"),
        ]
    );
    let transports: Vec<_> = config
        .providers
        .iter()
        .map(|provider| provider.transport)
        .collect();
    assert_eq!(
        transports,
        [
            Transport::Websocket,
            Transport::Http,
            Transport::Auto,
            Transport::Auto
        ]
    );
    assert!(!config.providers[0].fragment && config.providers[1].fragment);
    assert_eq!(config.providers[0].max_age, Some(Duration::from_secs(18 * 60)));
}

/// [CFG-5] Zero is accepted where it means something.
#[test]
fn zeros_with_a_meaning_are_kept() {
    let config = good("zeros-with-a-meaning.toml");
    assert!(config.server.commit_after.is_zero() && config.server.drain.is_zero());
    assert!(config.session.queue_wait.is_zero() && config.session.max_queue == 0);
    assert!(config.watchdog.reuse_check_after.is_zero() && config.quarantine.window.is_zero());
}

/// [CFG-19] [CFG-20] [CFG-2] Several accounts: an account's headers win over its provider's, and each has its own proxy,
/// whose password nobody is shown.
#[test]
fn accounts_differ_in_proxy_and_headers() {
    let config = good("several-accounts.toml");
    let openai = &config.providers[0];
    let [one, two] = &openai.accounts[..] else {
        panic!("{openai:?}")
    };
    let shown = |account: &responses_bridge::config::Account| {
        let mut headers: Vec<_> = account
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap_or_default()))
            .collect();
        headers.sort();
        headers
    };
    assert_eq!(shown(one), ["openai-project: common", "x-team: agents"]);
    assert_eq!(
        shown(two),
        [
            "openai-project: its-own",
            "x-gateway-key: secret-laptop-key",
            "x-team: agents"
        ]
    );
    let proxies = [one, two].map(|account| account.proxy.as_ref().map(ToString::to_string));
    assert_eq!(
        proxies,
        [
            Some("http://127.0.0.1:3128".to_owned()),
            Some("socks5h://proxy.example.com:1080".to_owned())
        ]
    );
    assert_eq!(
        (openai.max_frame, openai.one_model_per_connection, one.weight),
        (Some(4 << 20), true, 3)
    );
    assert_eq!(
        shown(&config.providers[1].accounts[0]),
        ["chatgpt-account-id: acct-1"]
    );
}
