//! One trust for both transports.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use responses_bridge::config::Provider;
use responses_bridge::upstream::{
    Account, AccountFault, DialFault, Dialed, PostFault, SocketEvent, Unreached,
};
use responses_bridge::wire::ProviderKind;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

use crate::peer::*;

/// A server of 127.0.0.1 whose authority is written to `ca.pem` in `directory`.
fn server(directory: &Path) -> TlsAcceptor {
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(directory.join("ca.pem"), ca.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])
        .unwrap()
        .signed_by(&key, &ca)
        .unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.into())
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn accept(acceptor: &TlsAcceptor, listener: &TcpListener) -> std::io::Result<TlsStream<TcpStream>> {
    acceptor.accept(listener.accept().await?.0).await
}

/// [UP-19] `ca_file` is trusted by both transports; a socket over TLS carries a large create and its answer.
#[tokio::test]
async fn both_transports_trust_the_ca_file() {
    let directory = tempfile::tempdir().unwrap();
    let acceptor = server(directory.path());
    let (listener, base) = listen().await;
    let account = https_account(
        &base.replace("http:", "https:"),
        Some(directory.path().join("ca.pem")),
        SOON,
    );

    let peer = async {
        let mut stream = accept(&acceptor, &listener).await.unwrap();
        let head = read_head(&mut stream).await;
        stream.write_all(switching(&head, "").as_bytes()).await.unwrap();
        stream
    };
    let (dialed, mut peer) = tokio::join!(account.dial(none(), none()), peer);
    let Dialed { mut socket, .. } = dialed.unwrap();
    let create = long_text(4 << 20);
    socket.begin(Bytes::from(create.clone()));
    let (event, frames) = tokio::join!(next(&mut socket), receive_message(&mut peer));
    assert_eq!(event, SocketEvent::Flushed);
    assert!(joined(&frames) == create.as_bytes());
    peer.write_all(&text("done")).await.unwrap();
    peer.flush().await.unwrap();
    assert_eq!(next(&mut socket).await, SocketEvent::Text("done".into()));

    let peer = async {
        let mut stream = accept(&acceptor, &listener).await.unwrap();
        read_head(&mut stream).await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
        stream.flush().await.unwrap();
    };
    let (answer, ()) = tokio::join!(account.post("/responses", none(), Full::new(Bytes::new())), peer);
    assert_eq!(answer.unwrap().status(), 200);
}

/// [UP-19] An unknown authority is trusted by neither, and nothing of the request is sent.
#[tokio::test]
async fn an_unknown_authority_is_not_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let acceptor = server(directory.path());
    let other = tempfile::tempdir().unwrap();
    server(other.path());
    let (listener, base) = listen().await;
    let account = https_account(
        &base.replace("http:", "https:"),
        Some(other.path().join("ca.pem")),
        SOON,
    );

    let (dialed, peer) = tokio::join!(account.dial(none(), none()), accept(&acceptor, &listener));
    assert!(matches!(dialed, Err(DialFault::Tls)), "{dialed:?}");
    assert!(peer.is_err());
    let (answer, peer) = tokio::join!(
        account.post("/responses", none(), Full::new(Bytes::new())),
        accept(&acceptor, &listener)
    );
    assert_eq!(answer.unwrap_err(), PostFault::Unconnected(Unreached::Tls));
    assert!(peer.is_err());
}

/// [UP-19] A CA file that cannot be used is named, with what is wrong with it.
#[test]
fn a_useless_ca_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let made = |name: &str, content: Option<&str>| {
        let path = directory.path().join(name);
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let provider = Provider {
            ca_file: Some(path),
            ..provider("https://127.0.0.1:1/v1", ProviderKind::Openai)
        };
        Account::new(&provider, &of_the_client(), SOON).unwrap_err()
    };
    for (name, content) in [
        ("missing.pem", None),
        ("empty.pem", Some("")),
        (
            "broken.pem",
            Some("-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n"),
        ),
    ] {
        let fault = made(name, content);
        assert!(matches!(fault, AccountFault::CaFile { .. }), "{fault:?}");
        let said = fault.to_string();
        assert!(said.contains(name) && said.contains("PEM"), "{said}");
    }
}

const WITHOUT_CA: &str = "UPSTREAM_TEST_WITHOUT_CA";

/// [UP-19] Where no authority is installed, an https upstream without a `ca_file` says so and what to do; plain http and
/// a `ca_file` work. Tried in a child whose environment hides the system's authorities.
#[test]
fn a_system_without_authorities_is_said() {
    if std::env::var_os(WITHOUT_CA).is_some() {
        let made = |url: &str, ca_file| {
            let provider = Provider {
                ca_file,
                ..provider(url, ProviderKind::Openai)
            };
            Account::new(&provider, &of_the_client(), SOON)
        };
        let fault = made("https://127.0.0.1:1/v1", None).unwrap_err();
        assert!(matches!(fault, AccountFault::NoSystemCa), "{fault:?}");
        assert!(fault.to_string().contains("ca-certificates"));
        made("http://127.0.0.1:1/v1", None).unwrap();
        let directory = tempfile::tempdir().unwrap();
        server(directory.path());
        made("https://127.0.0.1:1/v1", Some(directory.path().join("ca.pem"))).unwrap();
        return;
    }
    let empty = tempfile::NamedTempFile::new().unwrap();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tls::a_system_without_authorities_is_said"])
        .env(WITHOUT_CA, "1")
        .env("SSL_CERT_FILE", empty.path())
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
