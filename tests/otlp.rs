//! Spans as a collector gets them: the real binary, and a receiver that decodes the real protobuf. `--features otlp`.
#![cfg(feature = "otlp")]
// A test that cannot go on ends there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use responses_bridge::simulator::{Options, Simulator};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};

const PATIENCE: Duration = Duration::from_secs(30);
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const MARKER: &str = "planted-prompt-marker";

/// What came, with the service's name.
type Seen = Arc<Mutex<Vec<(String, Span)>>>;

/// A collector on a free port.
async fn receiver() -> (SocketAddr, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Seen::default());
    let kept = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(receive(stream, kept.clone()));
        }
    });
    (address, seen)
}

async fn receive(stream: TcpStream, seen: Seen) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut first = String::new();
        if stream.read_line(&mut first).await.unwrap_or(0) == 0 {
            return;
        }
        assert!(first.starts_with("POST /v1/traces HTTP/1.1"), "{first}");
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            let lower = line.to_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if let Some(value) = lower.strip_prefix("content-type:") {
                assert_eq!(value.trim(), "application/x-protobuf");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        assert!(
            !body
                .windows(MARKER.len())
                .any(|window| window == MARKER.as_bytes())
        );
        let request = ExportTraceServiceRequest::decode(&body[..]).unwrap();
        for resource in request.resource_spans {
            let attributes = resource.resource.unwrap().attributes;
            let name = attributes
                .iter()
                .find(|attribute| attribute.key == "service.name")
                .unwrap();
            let Some(Value::StringValue(name)) = name.value.clone().unwrap().value else {
                panic!("no service name")
            };
            let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            seen.lock()
                .unwrap()
                .extend(spans.map(|span| (name.clone(), span)));
        }
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        stream.get_mut().write_all(answer.as_bytes()).await.unwrap();
    }
}

struct Bridge {
    child: Child,
    port: u16,
    _simulator: Simulator,
    _stdout: Lines<BufReader<ChildStdout>>,
    _directory: tempfile::TempDir,
}

async fn bridge(endpoint: &str) -> Bridge {
    let simulator = Simulator::start(Options::default()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[providers.openai]\nbase_url = \"{}\"\n\
         [[providers.openai.accounts]]\nname = \"main\"\ncredential = \"client\"\n[state]\npath = '{}'\n",
        simulator.base_url(),
        directory.path().join("state").display()
    );
    let file = directory.path().join("bridge.toml");
    std::fs::write(&file, text).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_responses-bridge"))
        .args(["serve", "--config", file.to_str().unwrap()])
        .env_clear()
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(PATIENCE, stdout.next_line()).await;
    let line = line.expect("no start-up line").unwrap().expect("it ended");
    let port = line.rsplit(':').next().unwrap().split('/').next().unwrap();
    Bridge {
        child,
        port: port.parse().unwrap(),
        _simulator: simulator,
        _stdout: stdout,
        _directory: directory,
    }
}

impl Bridge {
    /// One turn; gives the status.
    async fn turn(&self, headers: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let body = format!(r#"{{"model":"gpt-5","input":"{MARKER}","stream":false}}"#);
        let ask = format!(
            "POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer sk-test\r\nconnection: close\r\n\
             {headers}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(ask.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer[9..12].to_owned()
    }

    async fn end(mut self) {
        let id = self.child.id().unwrap().to_string();
        let kill = std::process::Command::new("kill").args(["-TERM", &id]).status();
        assert!(kill.unwrap().success());
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        assert!(ended.expect("it does not end").unwrap().success());
    }
}

/// [COR-4] [COR-5] A collector gets the spans of a traced call below the caller's, those of an untraced one in a trace of its own, and
/// the last ones before the process ends; no prompt is in them.
#[tokio::test]
async fn a_collector_gets_the_spans() {
    let (address, seen) = receiver().await;
    let bridge = bridge(&format!("http://{address}")).await;
    let parent = format!("traceparent: 00-{TRACE}-b7ad6b7169203331-01\r\ntracestate: vendor=1\r\n");
    assert_eq!(bridge.turn(&parent).await, "200");
    assert_eq!(bridge.turn("").await, "200");
    let unsampled = format!(
        "traceparent: 00-{}-b7ad6b7169203331-00\r\n",
        TRACE.replace('0', "1")
    );
    assert_eq!(bridge.turn(&unsampled).await, "200");
    bridge.end().await;
    let seen = seen.lock().unwrap();
    let mut traces: HashMap<String, Vec<&Span>> = HashMap::new();
    for (service, span) in seen.iter() {
        assert_eq!(service, "responses-bridge");
        let trace: String = span.trace_id.iter().map(|byte| format!("{byte:02x}")).collect();
        traces.entry(trace).or_default().push(span);
    }
    assert_eq!(traces.len(), 2, "{:?}", traces.keys());
    for (trace, spans) in &traces {
        let of = |name: &str| *spans.iter().find(|span| span.name == name).unwrap();
        let mut above = of("request");
        match trace == TRACE {
            true => assert_eq!(above.parent_span_id, 0xb7ad_6b71_6920_3331_u64.to_be_bytes()),
            false => assert!(above.parent_span_id.is_empty()),
        }
        for name in ["plan", "queue", "turn", "transport"] {
            let span = of(name);
            assert_eq!(span.parent_span_id, above.span_id, "{name}");
            assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
            above = span;
        }
        assert_eq!(above.trace_state, if trace == TRACE { "vendor=1" } else { "" });
        assert_eq!(spans.len(), 5);
    }
}

/// [COR-5] A receiver that is not there costs spans, never a turn, nor the end of the process.
#[tokio::test]
async fn without_a_receiver_turns_go_on() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let bridge = bridge(&format!("http://{address}")).await;
    for _ in 0..20 {
        assert_eq!(bridge.turn("").await, "200");
    }
    bridge.end().await;
}
