//! What requests cost the process, which is one of its own here: its memory under requests of ten megabytes, and its files
//! after many small ones.

use std::net::SocketAddr;
use std::time::Duration;

use responses_bridge::simulator::Simulator;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{Ask, MOMENT, Reply};
use crate::process::{Home, Process, config};
use crate::raw::Said;
use crate::{TOKEN, operator};

const MIB: usize = 1 << 20;
/// What is sent of each.
const HUGE: usize = 10 * MIB;
/// By how much memory may grow at its peak while sixteen of them are under way, in KiB: a tenth of what is sent.
const GROWTH: usize = 16 * 1024;

async fn start() -> (Simulator, Home, Process) {
    let upstream = Simulator::start(Default::default()).await.unwrap();
    let server = "[server]\nlisten = \"127.0.0.1:0\"\nadmin_token = { file = \"token\" }\n";
    let home = Home::new(&config(&upstream.base_url(), server));
    std::fs::write(home.path().join("token"), TOKEN).unwrap();
    let bridge = home.start_after("chmod 600 ../token").await;
    (upstream, home, bridge)
}

/// What it is, how it begins, what it is filled with, how it ends, and the statuses that it may come to.
type Huge<'a> = (&'a str, String, &'a [u8], String, &'a [u16]);

/// Sends the beginning, ten megabytes of `filling`, and the end, and hears what is said. A server that has said all it had to
/// say may stop to listen.
async fn huge(to: SocketAddr, (begin, filling, end): (&str, &[u8], &str)) -> Said {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let (mut answers, mut asks) = stream.split();
    let asking = async {
        asks.write_all(begin.as_bytes()).await?;
        for _ in 0..HUGE.div_ceil(filling.len()) {
            asks.write_all(filling).await?;
        }
        asks.write_all(end.as_bytes()).await
    };
    let mut whole = Vec::new();
    let reading = tokio::io::AsyncReadExt::read_to_end(&mut answers, &mut whole);
    let both = async { tokio::join!(asking, reading) };
    tokio::time::timeout(2 * MOMENT, both)
        .await
        .expect("an end in time")
        .1
        .ok();
    Said::of(whole)
}

/// A number of `/proc/PID/status`, in KiB.
fn memory(bridge: &Process, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", bridge.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// [ADM-8] [ADM-35] [EDGE-9] Ten megabytes of query, header or body are refused with a short answer, of operators and of others, and none
/// of it is held.
#[tokio::test(flavor = "multi_thread")]
async fn ten_megabytes() {
    let (_upstream, _home, bridge) = start().await;
    let to = bridge.address;
    let bearer = format!("authorization: Bearer {TOKEN}\r\n");
    let filling = vec![b'a'; 64 * 1024];
    let chunk = [b"10000\r\n", &filling[..], b"\r\n"].concat();
    let head = |first: &str, more: &str| format!("{first} HTTP/1.1\r\nhost: localhost\r\n{more}");
    let length = HUGE + 16;
    let sized = format!("{bearer}content-length: {length}\r\n\r\n{{\"draining\":\"");
    let chunked = format!("{bearer}transfer-encoding: chunked\r\n\r\n");
    let form = format!(
        "origin: http://localhost\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\ntoken="
    );
    let begin = |path: &str| format!("GET {path}");
    let rest = format!(" HTTP/1.1\r\nhost: localhost\r\n{bearer}\r\n");
    let key = "0123456789ab";
    let requests: Vec<Huge<'_>> = vec![
        (
            "a query",
            begin("/admin/sessions?account="),
            &filling,
            rest.clone(),
            &[431],
        ),
        (
            "a filter",
            begin("/admin/events?kind="),
            &filling,
            rest.clone(),
            &[431],
        ),
        (
            "a page's filter",
            begin("/admin/ui?kind="),
            &filling,
            rest.clone(),
            &[431],
        ),
        ("a path", begin("/admin/owners/"), &filling, rest, &[431]),
        (
            "a header",
            head("GET /admin/status", &format!("{bearer}x-operator: ")),
            &filling,
            "\r\n\r\n".into(),
            &[431],
        ),
        (
            "a token",
            head("GET /admin/status", "authorization: Bearer "),
            &filling,
            "\r\n\r\n".into(),
            &[431],
        ),
        (
            "a number",
            head("GET /admin/events", &format!("{bearer}last-event-id: ")),
            &filling,
            "\r\n\r\n".into(),
            &[431],
        ),
        (
            "a body",
            head("PUT /admin/drain", &sized),
            &filling,
            "\"}".into(),
            &[413],
        ),
        (
            "a body in chunks",
            head("PUT /admin/drain", &chunked),
            &chunk,
            "0\r\n\r\n".into(),
            &[413],
        ),
        (
            "a key's body",
            head(&format!("PUT /admin/quarantine/{key}"), &sized),
            &filling,
            "\"}".into(),
            &[413],
        ),
        (
            "a form",
            head("POST /admin/ui/login", &form),
            &filling,
            String::new(),
            &[413],
        ),
        (
            "a body of a stranger's",
            head("PUT /admin/drain", &format!("content-length: {length}\r\n\r\n")),
            &filling,
            String::new(),
            &[401],
        ),
        (
            "a body where none is read",
            head("DELETE /admin/quarantine", &sized),
            &filling,
            "\"}".into(),
            &[200, 404],
        ),
    ];
    let all = async || {
        for (what, begin, filling, end, wanted) in &requests {
            let said = huge(to, (begin, filling, end)).await;
            assert!(wanted.contains(&said.status), "{what}: {}", said.status);
            assert!(said.length() < 4096, "{what}: {} bytes", said.length());
        }
    };
    // Once, so that what is allocated for ever is.
    all().await;
    let before = memory(&bridge, "VmRSS");
    // Forgets the peak so far.
    std::fs::write(format!("/proc/{}/clear_refs", bridge.id()), "5").unwrap();
    for (what, begin, filling, end, wanted) in &requests {
        let sixteen = (0..16).map(|_| huge(to, (begin, filling, end)));
        for said in futures_util::future::join_all(sixteen).await {
            assert!(wanted.contains(&said.status), "{what}: {}", said.status);
        }
        let peak = memory(&bridge, "VmHWM");
        assert!(
            peak < before + GROWTH,
            "{what}: {before} KiB before, {peak} KiB at the peak"
        );
    }
    let status = operator("GET", "/admin/status").ask(to).await;
    assert_eq!(status.status, 200);
}

/// How many files the process has open.
fn files(bridge: &Process) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", bridge.id()))
        .unwrap()
        .count()
}

async fn stream(to: SocketAddr) -> Reply {
    let until = tokio::time::Instant::now() + MOMENT;
    loop {
        let reply = operator("GET", "/admin/events").open(to).await;
        if reply.status == 200 {
            return reply;
        }
        // A place that was left a moment ago may still be taken.
        assert!(tokio::time::Instant::now() < until, "{reply:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What operators ask, in turn: every list, what looks into the journal, what changes something, and what is refused.
async fn asked(to: SocketAddr, number: usize) {
    let asks: [(Ask, u16); 12] = [
        (operator("GET", "/admin/status"), 200),
        (operator("GET", "/admin/health"), 200),
        (operator("GET", "/admin/sessions"), 200),
        (operator("GET", "/admin/turns"), 200),
        (operator("GET", "/admin/config"), 200),
        (operator("GET", "/admin/owners/resp_nobody"), 404),
        (operator("GET", "/admin/openapi.json"), 200),
        (operator("DELETE", "/admin/breakers/openai/main"), 200),
        (operator("PUT", "/admin/drain").with("draining", false), 200),
        (operator("GET", "/admin/nowhere"), 404),
        (operator("GET", "/metrics"), 200),
        (operator("GET", "/admin/status").without("authorization"), 401),
    ];
    let (ask, status) = &asks[number % asks.len()];
    assert_eq!(ask.ask(to).await.status, *status, "{ask:?}");
}

/// [ADM-35] After 500 requests and 50 streams, opened and left in three ways, the process has as many files open as before.
#[tokio::test(flavor = "multi_thread")]
async fn no_file_is_left_open() {
    let (_upstream, _home, bridge) = start().await;
    let to = bridge.address;
    for number in 0..24 {
        asked(to, number).await;
    }
    drop(stream(to).await);
    // Until what was needed once, and what is being closed, is done with.
    let mut before = files(&bridge);
    let mut same = 0;
    while same < 10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = files(&bridge);
        same = if now == before { same + 1 } else { 0 };
        before = now;
    }
    for number in 0..250 {
        asked(to, number).await;
    }
    let mut kept = operator("GET", "/admin/status").open(to).await;
    for _ in 1..250 {
        kept = kept.again(&operator("GET", "/admin/sessions")).await;
    }
    kept.finish().await;
    for number in 0..50 {
        let mut stream = stream(to).await;
        match number % 3 {
            0 => stream.reset(),
            1 => drop(stream),
            _ => {
                stream.until("operator_action").await;
                drop(stream);
            }
        }
    }
    // Many at once.
    let mut open = Vec::new();
    for _ in 0..32 {
        open.push(stream(to).await);
    }
    assert!(files(&bridge) >= before + 32);
    drop(open);
    let until = tokio::time::Instant::now() + MOMENT;
    while files(&bridge) > before {
        assert!(
            tokio::time::Instant::now() < until,
            "{before} before, {} after",
            files(&bridge)
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
