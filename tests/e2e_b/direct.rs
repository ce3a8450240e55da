//! Direct HTTP: the forms of its streams, answers of another kind than asked for, and paths that are passed through.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::client::{Ask, End};
use crate::shared::HTTP_ONLY;
use crate::world::{Setup, World};

/// [HTTP-2] Whatever line ends, comments, ids, byte order marks and chunks the upstream's stream has, the client gets the
/// same events, each payload as it came.
#[tokio::test]
async fn odd_streams() {
    let world = Setup::new().config(HTTP_ONLY).start().await;
    let plain = world.ask(&Ask::turn("sim:conv=plain sim:text(n=4)")).await;
    let names = |answer: &crate::client::Answer| {
        answer
            .events()
            .into_iter()
            .map(|event| event.name)
            .collect::<Vec<_>>()
    };
    for form in [
        "eol=lf, chunk=1",
        "eol=crlf, chunk=3",
        "eol=cr, chunk=7",
        "eol=crlf, bom=true, comments=true, ids=true",
        "eol=cr, bom=true, comments=true, ids=true, chunk=5",
    ] {
        let answer = world
            .ask(&Ask::turn(format!(
                "sim:conv=plain sim:text(n=4) sim:sse({form})"
            )))
            .await;
        answer.completed();
        assert_eq!(names(&answer), names(&plain), "{form}");
        assert!(
            !answer.text().contains("\nid:") && !answer.text().contains('\r'),
            "{form}"
        );
    }
}

/// An upstream that answers every request with this, and the bridge before it.
async fn answering(content_type: &str, body: &str) -> World {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut request = vec![0; 64 * 1024];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    Setup::new()
        .config(&HTTP_ONLY.replace("{openai}", &url))
        .start()
        .await
}

/// [HTTP-7] Asked for events, upstream answers with one object: an ended response is the terminal, an error is the client's
/// error, and anything else is nonsense. Never a clean end without a terminal.
#[tokio::test]
async fn json_where_events_were_asked_for() {
    let response = |status: &str| {
        json!({"id": "resp_1", "object": "response", "status": status, "output": []}).to_string()
    };
    let world = answering("application/json", &response("completed")).await;
    assert_eq!(world.ask(&Ask::turn("hello")).await.completed()["id"], "resp_1");
    let error =
        json!({"error": {"message": "no", "type": "invalid_request_error", "code": "nope", "param": null}})
            .to_string();
    let world = answering("application/json; charset=utf-8", &error).await;
    let answer = world.ask(&Ask::turn("hello")).await;
    assert!(answer.status >= 400, "{answer:?}");
    assert_eq!(answer.error(), "nope");
    for nonsense in [
        response("in_progress"),
        "{}".into(),
        "[]".into(),
        "null".into(),
        "".into(),
        "{\"id\":".into(),
    ] {
        let world = answering("application/json", &nonsense).await;
        let answer = world.ask(&Ask::turn("hello")).await;
        assert_eq!((answer.status, answer.end), (502, End::Clean), "{nonsense}");
        answer.error();
    }
    for page in [
        "<html>busy</html>",
        "data: not json\n\n",
        "data: {\"type\":\"response.created\"\n\n",
        "\n\n\n",
        ": only a comment\n\n",
    ] {
        let world = answering("text/html", page).await;
        let answer = world.ask(&Ask::turn("hello")).await;
        assert_eq!((answer.status, answer.end), (502, End::Clean), "{page}");
        answer.error();
    }
}

/// [HTTP-21] Every other path goes to the one account that can serve it, with its credential, and comes back as it is; where
/// several could, or none can, it is a 404 in the API's form.
#[tokio::test]
async fn other_paths() {
    let world = Setup::new().start().await;
    for (method, path, upstream) in [
        ("POST", "/v1/embeddings", "/v1/embeddings"),
        (
            "POST",
            "/v1/chat/completions?beta=true",
            "/v1/chat/completions?beta=true",
        ),
        ("GET", "/openai/v1/files/file-1", "/v1/files/file-1"),
        ("DELETE", "/v1/files/file%20one", "/v1/files/file%20one"),
        ("GET", "/backend-api/codex/models", "/backend-api/codex/models"),
        (
            "GET",
            "/backend-api/wham/usage?a=b",
            "/backend-api/wham/usage?a=b",
        ),
    ] {
        let ask = if method == "POST" {
            Ask::turn("hello").to(path)
        } else {
            Ask::bare(method, path)
        };
        let answer = world.ask(&ask).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let request = world
            .upstream
            .look(|ledger| ledger.requests.last().cloned().unwrap());
        assert_eq!(
            (request.method.as_str(), request.target.as_str()),
            (method, upstream)
        );
        assert_eq!(
            request.headers["authorization"],
            responses_bridge::simulator::credential_hash("Bearer sk-one")
        );
    }
    let two = "[providers.openai]\nbase_url = \"{openai}\"\n[[providers.openai.accounts]]\nname = \"one\"\ncredential = { env = \"ONE\" }\n\
               [[providers.openai.accounts]]\nname = \"two\"\ncredential = { env = \"TWO\" }\n";
    let world = Setup::new()
        .config(two)
        .secret("ONE", "sk-1")
        .secret("TWO", "sk-2")
        .start()
        .await;
    for path in [
        "/v1/embeddings",
        "/backend-api/wham/usage",
        "/v2/embeddings",
        "/embeddings",
    ] {
        let answer = world.ask(&Ask::bare("GET", path)).await;
        assert_eq!(answer.status, 404, "{path}");
        answer.error();
    }
    assert_eq!(world.upstream.ledger().http_requests, 0);
}
