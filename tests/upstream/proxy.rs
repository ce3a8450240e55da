//! Proxies by hand: what each way of their failing is called, and that there is no way around them. Real ones are in
//! `tests/foreign/test_proxies.py`.

use bytes::Bytes;
use http_body_util::Full;
use responses_bridge::config::{self, Config};
use responses_bridge::upstream::{Account, DialFault, PostFault, Unreached};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::peer::*;

/// An account at `base` behind a proxy, as a file makes it.
fn behind(proxy: &str, base: &str) -> Account {
    let text = format!(
        "[state]\npath = \"/tmp\"\n[providers.up]\nbase_url = \"{base}\"\n\
         [[providers.up.accounts]]\nname = \"main\"\ncredential = \"client\"\nproxy = \"{proxy}\"\n"
    );
    let config = Config::parse(&text, "up.toml", &|_| None).unwrap();
    let provider = &config.providers[0];
    let account: &config::Account = &provider.accounts[0];
    let shown = format!("{account:?} {config:?}");
    assert!(
        !shown.contains("hunter2") && !shown.contains("someone"),
        "{shown}"
    );
    Account::new(provider, account, SOON).unwrap()
}

async fn proxy(scheme: &str) -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("{scheme}://someone:hunter2@{}", listener.local_addr().unwrap());
    (listener, url)
}

/// What a dial and a post say when the proxy answers each connection with `serve`, and what the proxy heard.
async fn failures(
    scheme: &str,
    base: &str,
    serve: impl AsyncFn(TcpStream) -> String,
) -> (DialFault, PostFault, [String; 2]) {
    let (listener, url) = proxy(scheme).await;
    let account = behind(&url, base);
    let peer = async || {
        let accepted = tokio::time::timeout(SOON, listener.accept()).await;
        serve(accepted.expect("the proxy is asked").unwrap().0).await
    };
    let (dialed, first) = tokio::join!(account.dial(none(), none()), peer());
    let (posted, second) = tokio::join!(
        account.post("/responses", none(), Full::new(Bytes::from_static(b"{}"))),
        peer()
    );
    let (dialed, posted) = (dialed.unwrap_err(), posted.unwrap_err());
    for said in [format!("{dialed:?} {dialed}"), format!("{posted:?} {posted}")] {
        assert!(!said.contains("hunter2"), "{said}");
    }
    (dialed, posted, [first, second])
}

/// An upstream that must not be reached: its base URL with https, and whether it was.
async fn untouched(listener: &TcpListener) {
    let touched = tokio::time::timeout(std::time::Duration::from_millis(50), listener.accept()).await;
    assert!(touched.is_err(), "the upstream was reached directly");
}

const UNREACHED: PostFault = PostFault::Unconnected(Unreached::Proxy);

/// [UP-21] An HTTP proxy that refuses the credential, does not reach the upstream, answers nonsense, or goes away: `proxy`, and
/// nothing goes around it. It was asked for a tunnel, with the user and password of its address.
#[tokio::test]
async fn an_http_proxy_that_fails() {
    for answer in [
        "HTTP/1.1 407 Who are you\r\nproxy-authenticate: Basic\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 502 Not there\r\ncontent-length: 0\r\n\r\n",
        "nonsense\r\n\r\n",
        "",
    ] {
        let (upstream, base) = listen().await;
        let base = base.replace("http:", "https:");
        let serve = async |mut stream: TcpStream| {
            let head = read_head(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
            head
        };
        let (dialed, posted, heads) = failures("http", &base, serve).await;
        assert!(matches!(dialed, DialFault::Proxy), "{answer}: {dialed:?}");
        assert_eq!(posted, UNREACHED, "{answer}");
        for head in heads {
            let to = upstream.local_addr().unwrap();
            assert!(head.starts_with(&format!("CONNECT {to} HTTP/1.1\r\n")), "{head}");
            // someone:hunter2
            let sent = header(&head, "proxy-authorization");
            assert_eq!(sent, Some("Basic c29tZW9uZTpodW50ZXIy"));
        }
        untouched(&upstream).await;
    }
}

/// [UP-21] A plain http upstream is asked for by its whole address; a 407 is the proxy's own, and not the upstream's answer.
#[tokio::test]
async fn a_plain_upstream_through_an_http_proxy() {
    let (upstream, base) = listen().await;
    let serve = async |mut stream: TcpStream| {
        let head = read_head(&mut stream).await;
        let refusal = b"HTTP/1.1 407 Who are you\r\nproxy-authenticate: Basic\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(refusal).await.unwrap();
        head
    };
    let (dialed, posted, [get, post]) = failures("http", &base, serve).await;
    assert!(matches!(dialed, DialFault::Proxy), "{dialed:?}");
    assert_eq!(posted, UNREACHED);
    assert!(
        get.starts_with(&format!("GET {base}/responses HTTP/1.1\r\n")),
        "{get}"
    );
    assert!(
        post.starts_with(&format!("POST {base}/responses HTTP/1.1\r\n")),
        "{post}"
    );
    assert_eq!(
        header(&post, "proxy-authorization"),
        Some("Basic c29tZW9uZTpodW50ZXIy")
    );
    untouched(&upstream).await;
}

/// [UP-21] A SOCKS5 proxy that wants no such client, or goes away.
#[tokio::test]
async fn a_socks_proxy_that_fails() {
    for scheme in ["socks5", "socks5h"] {
        for answer in [&[5u8, 0xff][..], &[5, 2, 1, 1], &[]] {
            for tls in [false, true] {
                let (upstream, base) = listen().await;
                let base = if tls {
                    base.replace("http:", "https:")
                } else {
                    base
                };
                let serve = async |mut stream: TcpStream| {
                    let mut greeting = [0; 2];
                    stream.read_exact(&mut greeting).await.unwrap();
                    stream.write_all(answer).await.unwrap();
                    // What the client still says is taken, so that it reads the answer.
                    let mut rest = [0; 256];
                    let _ = stream.read(&mut rest).await;
                    String::new()
                };
                let (dialed, posted, _) = failures(scheme, &base, serve).await;
                assert!(
                    matches!(dialed, DialFault::Proxy),
                    "{scheme} {answer:?}: {dialed:?}"
                );
                assert_eq!(posted, UNREACHED, "{scheme} {answer:?}");
                untouched(&upstream).await;
            }
        }
    }
}

/// [UP-21] A proxy that is not there.
#[tokio::test]
async fn no_proxy_at_all() {
    for scheme in ["http", "https", "socks5", "socks5h"] {
        let (upstream, base) = listen().await;
        for base in [base.replace("http:", "https:"), base] {
            let (listener, url) = proxy(scheme).await;
            drop(listener);
            let account = behind(&url, &base);
            let dialed = account.dial(none(), none()).await;
            assert!(matches!(dialed, Err(DialFault::Proxy)), "{scheme}: {dialed:?}");
            let posted = account.post("/responses", none(), Full::new(Bytes::new())).await;
            assert_eq!(posted.unwrap_err(), UNREACHED, "{scheme}");
        }
        untouched(&upstream).await;
    }
}

/// [UP-21] Behind a tunnel that was made, a TLS failure is the upstream's, not the proxy's.
#[tokio::test]
async fn what_fails_behind_the_tunnel_is_not_the_proxys() {
    let (_upstream, base) = listen().await;
    let serve = async |mut stream: TcpStream| {
        let head = read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 Go\r\n\r\n").await.unwrap();
        // No TLS is spoken there.
        let mut hello = [0; 64];
        let _ = stream.read(&mut hello).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Plain\r\n\r\n").await;
        head
    };
    let (dialed, posted, _) = failures("http", &base.replace("http:", "https:"), serve).await;
    assert!(matches!(dialed, DialFault::Tls), "{dialed:?}");
    assert_eq!(posted, PostFault::Unconnected(Unreached::Tls));
}
