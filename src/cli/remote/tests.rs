//! Which bridge is asked, and with which token.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::*;

fn args(url: Option<&str>) -> Args {
    Args {
        url: url.map(str::to_owned),
        config: None,
    }
}

fn with_token(name: &str) -> Option<String> {
    (name == TOKEN).then(|| " s3cret\n".to_owned())
}

fn message(unanswered: Unanswered) -> String {
    match unanswered {
        Unanswered::Unreachable(message) => message,
        Unanswered::Refused(message) => panic!("refused: {message}"),
    }
}

/// [ADM-30] the built-in address, or the one that is said; the token of the environment, without white space; and never one of
/// the command line.
#[test]
fn which_bridge() {
    let remote = Remote::of(&args(None), &with_token).unwrap();
    assert_eq!(
        (remote.url.as_str(), remote.token.expose_secret()),
        ("http://127.0.0.1:8787/", "s3cret")
    );
    let remote = Remote::of(&args(Some("https://bridge.example:444")), &with_token).unwrap();
    assert_eq!(remote.url.as_str(), "https://bridge.example:444/");
    for url in [
        "127.0.0.1:8787",
        "http://",
        "file:///etc/passwd",
        "http://a:b@127.0.0.1:1",
        "http://h/admin",
        "http://h?x",
    ] {
        let told = message(Remote::of(&args(Some(url)), &with_token).err().unwrap());
        assert!(told.starts_with("--url must be"), "{url}: {told}");
    }
    let told = message(Remote::of(&args(None), &|_| None).err().unwrap());
    assert!(
        told.starts_with("no admin token: set BRIDGE_ADMIN_TOKEN"),
        "{told}"
    );
}

/// [ADM-30] a configuration says where, and where the token lies; a listener on every address is reached on loopback.
#[test]
fn by_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "from-file\n").unwrap();
    let file = folder.path().join("b.toml");
    let of = |listen: &str, env: Environment<'_>| {
        std::fs::write(
            &file,
            format!("[server]\n{listen}\nadmin_token = {{ file = \"token\" }}\n"),
        )
        .unwrap();
        let args = Args {
            url: None,
            config: Some(file.clone()),
        };
        Remote::of(&args, env)
    };
    let remote = of("listen = \"0.0.0.0:9001\"", &|_| None).unwrap();
    assert_eq!(
        (remote.url.as_str(), remote.token.expose_secret()),
        ("http://127.0.0.1:9001/", "from-file")
    );
    let both = "listen = \"127.0.0.1:9001\"\nadmin_listen = \"[::]:9002\"";
    let remote = of(both, &with_token).unwrap();
    assert_eq!(
        (remote.url.as_str(), remote.token.expose_secret()),
        ("http://[::1]:9002/", "s3cret")
    );
    let told = message(of("listen = \"127.0.0.1:0\"", &|_| None).err().unwrap());
    assert!(told.contains("--url"), "{told}");
    // What else is wrong, and lacking, is no matter.
    let text =
        "listen = \"127.0.0.1:9003\"\ndrain = 3\n[[clients]]\nname = \"one\"\nkey = { env = \"NOT_SET\" }\n";
    std::fs::write(
        &file,
        format!("[server]\nadmin_token = {{ file = \"token\" }}\n{text}"),
    )
    .unwrap();
    let named = Args {
        url: None,
        config: Some(file.clone()),
    };
    let remote = Remote::of(&named, &|_| None).unwrap();
    assert_eq!(remote.url.as_str(), "http://127.0.0.1:9003/");
    assert_eq!(remote.token.expose_secret(), "from-file");
    std::fs::remove_file(folder.path().join("token")).unwrap();
    let told = message(Remote::of(&named, &|_| None).err().unwrap());
    assert!(told.contains("b.toml:2:24: server.admin_token.file"), "{told}");
    assert_eq!(
        Remote::of(&named, &with_token).unwrap().token.expose_secret(),
        "s3cret"
    );
}

/// One answer of a server that is asked once, and what it was asked.
fn answered(answer: &str) -> (Result<Value, Unanswered>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = answer.to_owned();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        let mut part = [0; 4096];
        while !asked.windows(4).any(|window| window == b"\r\n\r\n") {
            let read = stream.read(&mut part).unwrap();
            asked.extend_from_slice(&part[..read]);
        }
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(asked).unwrap()
    });
    // A proxy of the environment would be asked in its place.
    let env = |name: &str| match name {
        "USER" => Some("ada".to_owned()),
        name => with_token(name),
    };
    let remote = Remote::of(&args(Some(&url)), &env).unwrap();
    let outcome = remote.ask(Method::GET, "/drain", None);
    (outcome, serving.join().unwrap())
}

fn reply(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// [ADM-30] [ADM-33] what is asked, and what becomes of each answer.
#[test]
fn answers() {
    let (outcome, asked) = answered(&reply("200 OK", r#"{"data":{}}"#));
    assert_eq!(outcome.unwrap()["data"], serde_json::json!({}));
    assert!(asked.starts_with("GET /admin/drain HTTP/1.1\r\n"), "{asked}");
    assert!(
        asked.contains("authorization: Bearer s3cret\r\n") && asked.contains("x-operator: ada\r\n"),
        "{asked}"
    );
    let error = |code: &str| format!(r#"{{"error":{{"message":"words\u001b[2J","code":"{code}"}}}}"#);
    let told = |status: &str, body: &str| answered(&reply(status, body)).0.unwrap_err();
    assert!(
        message(told("401 Unauthorized", &error("bridge_not_admin")))
            .contains("does not take this admin token")
    );
    assert!(message(told("404 Not Found", &error("bridge_not_found"))).contains("has no admin API there"));
    assert!(
        message(told("429 Too Many Requests", &error("bridge_too_many_attempts"))).contains("too many wrong")
    );
    assert!(message(told("200 OK", "<html>")).contains("is no bridge"));
    assert!(message(told("404 Not Found", "nginx")).contains("is no bridge"));
    let refused = told("404 Not Found", &error("bridge_nothing_there"));
    assert_eq!(refused, Unanswered::Refused("words?[2J".into()));
}

/// [ADM-32] a redirect is not followed: the token stays where it was sent.
#[test]
fn no_redirects() {
    let moved =
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    assert!(message(answered(moved).0.unwrap_err()).contains("is no bridge (307)"));
}

/// [ADM-32] who takes the connection and says nothing is not waited for, and who goes on for ever is not listened to: for
/// events neither.
#[test]
fn no_waiting() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let remote = Remote::of(&args(Some(&url)), &with_token).unwrap();
    let streamed = |paused| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(paused)
            .build()
            .unwrap();
        message(runtime.block_on(remote.stream("/events")).err().unwrap())
    };
    let told = streamed(true);
    assert!(told.ends_with("did not answer within 10 s"), "{told}");
    // Each connection, the one that was given up among them.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\n\r\n");
            while stream.write_all(&[b'x'; 1 << 16]).is_ok() {}
        }
    });
    let told = streamed(false);
    assert!(told.ends_with("answers without end"), "{told}");
}

/// [ADM-33] nobody answers.
#[test]
fn nobody() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let remote = Remote::of(&args(Some(&format!("http://{free}"))), &with_token).unwrap();
    let told = message(remote.ask(Method::GET, "/status", None).unwrap_err());
    assert!(
        told.starts_with("no bridge answers at") && told.contains("--url"),
        "{told}"
    );
}
