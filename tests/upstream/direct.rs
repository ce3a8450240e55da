//! Requests over HTTP, and what both transports have in common.

use std::io;
use std::process::Command;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use responses_bridge::upstream::{Account, Base, Broken, DialFault, PostFault, Unreached};
use responses_bridge::wire::ProviderKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
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
    let (_, post) = tokio::join!(account.post("/responses", of_post, Bytes::new()), head);
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
                Bytes::from_static(b"{}"),
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
                .post("/responses", none(), Bytes::from_static(b"{}"))
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
                .post("/responses", none(), Bytes::new())
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
        .args(["--exact", "direct::the_environments_proxy_is_ignored"])
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

/// [UP-7] Where no connection was made nothing was sent: another attempt is allowed.
#[tokio::test]
async fn an_unconnected_request_is_definite() {
    let (listener, base) = listen().await;
    drop(listener);
    let fault = account_at(&base)
        .post("/responses", none(), Bytes::new())
        .await
        .unwrap_err();
    assert_eq!(fault, PostFault::Unconnected(Unreached::Refused));

    let account = account_at(&format!("http://{}.invalid/v1", "x".repeat(64)));
    let fault = account
        .post("/responses", none(), Bytes::new())
        .await
        .unwrap_err();
    assert_eq!(fault, PostFault::Unconnected(Unreached::Unresolved));

    let (listener, base) = listen().await;
    let account = https_account(
        &base.replace("http:", "https:"),
        None,
        std::time::Duration::from_millis(200),
    );
    let fault = account
        .post("/responses", none(), Bytes::new())
        .await
        .unwrap_err();
    assert_eq!(fault, PostFault::Unconnected(Unreached::Timeout));
    drop(listener);
}

/// [UP-7] Once the request may have arrived, a failure is ambiguous, and the request is sent exactly once.
#[tokio::test]
async fn a_broken_request_is_ambiguous_and_sent_once() {
    for (answer, reset, expected) in [
        (&b""[..], false, Broken::Closed),
        (b"HTTP/1.1 200", false, Broken::Closed),
        (b"", true, Broken::Reset),
        (b"\0\0\0 not http at all\r\n\r\n", false, Broken::Protocol),
    ] {
        let (listener, base) = listen().await;
        let account = account_at(&base);
        let peer = async {
            let mut requests = 0;
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                requests += 1;
                assert_eq!(requests, 1, "sent again");
                read_head(&mut stream).await;
                stream.read_exact(&mut [0; 2]).await.unwrap();
                stream.write_all(answer).await.unwrap();
                if reset {
                    stream.set_zero_linger().unwrap();
                }
            }
        };
        let fault = tokio::select! {
            answer = account.post("/responses", none(), Bytes::from_static(b"{}")) => answer.unwrap_err(),
            () = peer => unreachable!("it serves for ever"),
        };
        assert_eq!(fault, PostFault::Ambiguous(expected));
    }
}

/// [UP-7] A kept connection that dies under the second request: ambiguous, for its bytes had left.
#[tokio::test]
async fn a_kept_connection_that_dies_is_ambiguous() {
    let (listener, base) = listen().await;
    let account = account_at(&base);
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        stream.write_all(OK).await.unwrap();
        read_head(&mut stream).await;
        drop(stream);
        listener.accept().await.unwrap();
        panic!("sent again");
    };
    let requests = async {
        let first = account.post("/responses", none(), Bytes::new()).await.unwrap();
        assert_eq!(first.into_body().collect().await.unwrap().to_bytes(), "ok");
        account
            .post("/responses", none(), Bytes::new())
            .await
            .unwrap_err()
    };
    let fault = tokio::select! {
        fault = requests => fault,
        () = peer => unreachable!(),
    };
    assert_eq!(fault, PostFault::Ambiguous(Broken::Closed));
}

/// [UP-7] A kept connection that was closed while idle costs nothing: the request takes a new one.
#[tokio::test]
async fn a_kept_connection_that_died_is_replaced() {
    let (listener, base) = listen().await;
    let account = account_at(&base);
    let peer = async {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            stream.write_all(OK).await.unwrap();
        }
    };
    let requests = async {
        for _ in 0..2 {
            let answer = account.post("/responses", none(), Bytes::new()).await.unwrap();
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::join!(peer, requests);
}

/// [UP-7] A body that ends before it is whole is a failure, not an end.
#[tokio::test]
async fn a_truncated_body_is_a_failure() {
    for head in ["content-length: 100", "transfer-encoding: chunked"] {
        let (listener, base) = listen().await;
        let account = account_at(&base);
        let peer = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            stream
                .write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n4\r\nhalf\r\n").as_bytes())
                .await
                .unwrap();
        };
        let (answer, ()) = tokio::join!(account.post("/responses", none(), Bytes::new()), peer);
        let mut body = answer.unwrap().into_body();
        assert!(
            body.chunk()
                .await
                .unwrap()
                .unwrap()
                .ends_with(if head.contains("chunked") {
                    b"half"
                } else {
                    b"\r\n"
                })
        );
        assert_eq!(body.chunk().await, Err(Broken::Closed), "{head}");
    }
}

/// What arrived at the peer for one forwarded request.
async fn forwarded(
    base_path: &str,
    base: Base,
    method: Method,
    path: &str,
    body: &'static str,
) -> (String, String) {
    let (listener, url) = listen().await;
    let account = account_at(&url.replace("/v1", base_path));
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_head(&mut stream).await;
        let mut rest = vec![0; header(&head, "content-length").map_or(0, |len| len.parse().unwrap())];
        stream.read_exact(&mut rest).await.unwrap();
        if header(&head, "transfer-encoding") == Some("chunked") {
            while !rest.ends_with(b"0\r\n\r\n") {
                rest.push(stream.read_u8().await.unwrap());
            }
        }
        stream.write_all(OK).await.unwrap();
        (head, String::from_utf8(rest).unwrap())
    };
    let (answer, seen) = tokio::join!(
        account.forward(base, method, path, none(), Full::from(body)),
        peer
    );
    assert_eq!(answer.unwrap().status(), 200);
    seen
}

/// [UP-18] Any method and path below the base goes on as it came; a request without a body has none.
#[tokio::test]
async fn requests_are_passed_on() {
    let (head, body) = forwarded(
        "/v1",
        Base::Api,
        Method::GET,
        "/responses/resp_1?stream=true&starting_after=4",
        "",
    )
    .await;
    assert!(
        head.starts_with("GET /v1/responses/resp_1?stream=true&starting_after=4 HTTP/1.1\r\n"),
        "{head}"
    );
    assert_eq!(
        (
            header(&head, "transfer-encoding"),
            header(&head, "content-length"),
            body.as_str()
        ),
        (None, None, "")
    );

    let (head, body) = forwarded("/v1", Base::Api, Method::POST, "/embeddings", "{\"input\":\"x\"}").await;
    assert!(head.starts_with("POST /v1/embeddings HTTP/1.1\r\n"), "{head}");
    assert_eq!(header(&head, "content-length"), Some("13"));
    assert_eq!(body, "{\"input\":\"x\"}");

    let (head, _) = forwarded("/backend-api/codex", Base::Api, Method::GET, "/models", "").await;
    assert!(
        head.starts_with("GET /backend-api/codex/models HTTP/1.1\r\n"),
        "{head}"
    );
    let (head, _) = forwarded(
        "/backend-api/codex",
        Base::ChatgptBackend,
        Method::GET,
        "/wham/usage",
        "",
    )
    .await;
    assert!(
        head.starts_with("GET /backend-api/wham/usage HTTP/1.1\r\n"),
        "{head}"
    );
    let (head, _) = forwarded("/", Base::Api, Method::GET, "/models", "").await;
    assert!(head.starts_with("GET /models HTTP/1.1\r\n"), "{head}");
}

/// [UP-18] Dot segments do not climb out of the base URL; nothing is sent.
#[tokio::test]
async fn paths_stay_below_the_base() {
    let (listener, base) = listen().await;
    let account = account_at(&base);
    for path in [
        "/../admin",
        "/responses/../../admin",
        "/%2e%2E/admin",
        "\\..\\..\\admin",
        "/..",
    ] {
        let answer = account.forward(Base::Api, Method::GET, path, none(), Empty::new());
        tokio::select! {
            answer = answer => assert_eq!(answer.unwrap_err(), PostFault::Unaddressable, "{path}"),
            _ = listener.accept() => panic!("{path} was sent"),
        }
    }
}

/// [UP-18] A request body that breaks on its way is a failure of the request, never a shorter body.
#[tokio::test]
async fn a_body_that_breaks_is_not_shortened() {
    let (listener, base) = listen().await;
    let account = account_at(&base);
    let pieces = [
        Ok(http_body::Frame::data(Bytes::from_static(b"first"))),
        Err(io::Error::from(io::ErrorKind::ConnectionReset)),
    ];
    let body = StreamBody::new(futures_util::stream::iter(pieces));
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        String::from_utf8(all).unwrap()
    };
    let (answer, seen) = tokio::join!(
        account.forward(Base::Api, Method::POST, "/files", none(), body),
        peer
    );
    assert!(matches!(answer, Err(PostFault::Ambiguous(_))), "{answer:?}");
    assert!(!seen.ends_with("0\r\n\r\n"), "{seen}");
}
