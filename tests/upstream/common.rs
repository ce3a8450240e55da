//! What both transports have in common: the credential, and a client without ideas of its own.

use std::process::Command;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::Full;
use responses_bridge::upstream::{Account, DialFault};
use responses_bridge::wire::ProviderKind;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::peer::*;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    pairs.iter().map(pair).collect()
}

/// The heads of one upgrade and one POST with the same client headers.
async fn both_heads(account: &Account, listener: &TcpListener, client: &HeaderMap) -> [String; 2] {
    let head = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_head(&mut stream).await;
        stream
            .write_all(b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
        head
    };
    let identity = headers(&[("openai-organization", "org"), ("user-agent", "codex")]);
    let (_, upgrade) = tokio::join!(account.dial(identity.clone(), account.credential(client)), head);
    let mut of_post = identity;
    of_post.extend(account.credential(client));
    let head = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_head(&mut stream).await;
        stream.write_all(OK).await.unwrap();
        head
    };
    let (_, post) = tokio::join!(account.post("/responses", of_post, Full::new(Bytes::new())), head);
    [upgrade, post]
}

/// [UP-1] Field report 25: whoever the credential is of, both transports carry the same one.
#[tokio::test]
async fn both_transports_carry_the_same_credential() {
    let (listener, base) = listen().await;
    let client = headers(&[
        ("authorization", "Bearer callers-own"),
        ("api-key", "azure-style"),
        ("x-api-key", "other-style"),
        ("chatgpt-account-id", "acct"),
        ("openai-project", "proj"),
        ("cookie", "never=sent"),
    ]);
    let names = [
        "authorization",
        "api-key",
        "x-api-key",
        "chatgpt-account-id",
        "openai-organization",
        "openai-project",
    ];
    let pick = |head: &str| names.map(|name| header(head, name).map(str::to_owned));
    let of = |values: [Option<&str>; 6]| values.map(|value| value.map(str::to_owned));

    let passing = account_at(&base);
    let own = Account::new(
        &provider(&base, ProviderKind::Openai),
        &with_secret("sk-own"),
        SOON,
    )
    .unwrap();
    let azure = Account::new(
        &provider(&base, ProviderKind::Azure),
        &with_secret("az-own"),
        SOON,
    )
    .unwrap();
    let callers = of([
        Some("Bearer callers-own"),
        Some("azure-style"),
        Some("other-style"),
        Some("acct"),
        Some("org"),
        Some("proj"),
    ]);
    // With a secret of its own, nothing of the caller's login goes along.
    let bearer = of([Some("Bearer sk-own"), None, None, None, None, None]);
    let api_key = of([None, Some("az-own"), None, None, None, None]);
    for (account, expected) in [(passing, callers), (own, bearer), (azure, api_key)] {
        for head in both_heads(&account, &listener, &client).await {
            assert_eq!(pick(&head), expected, "{head}");
            assert_eq!(header(&head, "cookie"), None);
            assert_eq!(header(&head, "user-agent"), Some("codex"));
        }
    }
}

/// [UP-1] A secret that was read anew is sent from then on.
#[tokio::test]
async fn a_renewed_secret_is_sent() {
    let (listener, base) = listen().await;
    let account = Account::new(&provider(&base, ProviderKind::Openai), &with_secret("old"), SOON).unwrap();
    account.renew(&"new".to_owned().into()).unwrap();
    for head in both_heads(&account, &listener, &none()).await {
        assert_eq!(header(&head, "authorization"), Some("Bearer new"));
    }
}

/// [UP-1] Secrets show in no Debug output.
#[test]
fn debug_shows_no_secret() {
    let provider = provider("http://127.0.0.1:1/v1", ProviderKind::Openai);
    let account = Account::new(&provider, &with_secret("sk-hidden"), SOON).unwrap();
    let passing = Account::new(&provider, &of_the_client(), SOON).unwrap();
    let client = headers(&[
        ("authorization", "Bearer sk-hidden"),
        ("chatgpt-account-id", "sk-hidden"),
    ]);
    let shown = format!(
        "{account:?} {:?} {:?}",
        account.credential(&none()),
        passing.credential(&client)
    );
    assert!(!shown.contains("sk-hidden"), "{shown}");
}

/// [UP-2] Answers come uncompressed, and the client adds nothing about itself.
#[tokio::test]
async fn requests_are_plain() {
    let (listener, base) = listen().await;
    let account = account_at(&base);
    let peer = async {
        let mut heads = Vec::new();
        for answer in [&b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n"[..], OK] {
            let (mut stream, _) = listener.accept().await.unwrap();
            heads.push(read_head(&mut stream).await);
            stream.write_all(answer).await.unwrap();
        }
        heads
    };
    let requests = async {
        let _refused = account.dial(headers(&[("accept-encoding", "br")]), none()).await;
        account
            .post(
                "/responses",
                headers(&[("accept-encoding", "zstd")]),
                Full::new(Bytes::from_static(b"{}")),
            )
            .await
            .unwrap();
    };
    let (heads, ()) = tokio::join!(peer, requests);
    for head in &heads {
        assert_eq!(header(head, "accept-encoding"), Some("identity"), "{head}");
        assert_eq!(header(head, "user-agent"), None, "{head}");
    }
    assert!(heads[1].starts_with("POST /v1/responses HTTP/1.1\r\n"));
    assert_eq!(header(&heads[1], "content-type"), Some("application/json"));
    assert_eq!(header(&heads[1], "content-length"), Some("2"));
}

/// [UP-2] A redirect is an answer, not an order: the credential goes nowhere else.
#[tokio::test]
async fn redirects_are_not_followed() {
    let (elsewhere, other) = listen().await;
    let (listener, base) = listen().await;
    let account = account_at(&base);
    let peer = async {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            let redirect =
                format!("HTTP/1.1 307 Go\r\nlocation: {other}/responses\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(redirect.as_bytes()).await.unwrap();
        }
    };
    let requests = async {
        let dialed = account.dial(none(), none()).await;
        (
            dialed,
            account
                .post("/responses", none(), Full::new(Bytes::from_static(b"{}")))
                .await,
        )
    };
    tokio::select! {
        ((), (dialed, answer)) = async { tokio::join!(peer, requests) } => {
            assert!(matches!(dialed, Err(DialFault::Status(refused)) if refused.status == 307));
            assert_eq!(answer.unwrap().status(), 307);
        }
        _ = elsewhere.accept() => panic!("the redirect was followed"),
    }
}

const IN_A_CHILD: &str = "UPSTREAM_TEST_BASE";

/// [UP-2] A proxy that the environment names is not used. The environment is set for a child, which runs this same test.
#[tokio::test]
async fn the_environments_proxy_is_ignored() {
    if let Ok(base) = std::env::var(IN_A_CHILD) {
        let account = account_at(&base);
        let refused = account.dial(none(), none()).await;
        assert!(matches!(refused, Err(DialFault::Status(_))), "{refused:?}");
        assert_eq!(
            account
                .post("/responses", none(), Full::new(Bytes::new()))
                .await
                .unwrap()
                .status(),
            401
        );
        return;
    }
    let (proxy, proxy_base) = listen().await;
    let proxy_url = proxy_base.strip_suffix("/v1").unwrap().to_owned();
    let (listener, base) = listen().await;
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "common::the_environments_proxy_is_ignored"])
        .env(IN_A_CHILD, &base);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        child.env(name, &proxy_url);
    }
    child.env_remove("NO_PROXY").env_remove("no_proxy");
    let child = tokio::task::spawn_blocking(move || child.output().unwrap());
    let peer = async {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            stream
                .write_all(b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n")
                .await
                .unwrap();
        }
    };
    tokio::select! {
        output = child => {
            let output = output.unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{said}");
        }
        () = peer => unreachable!("it serves for ever"),
        _ = proxy.accept() => panic!("the proxy was asked"),
    }
}
