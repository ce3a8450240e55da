//! What an idle session costs. Resident memory is of a whole process, so each measure runs in a child of its own.

use std::process::Command;

use bytes::Bytes;
use responses_bridge::upstream::{Dialed, Socket, SocketEvent};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::peer::*;

const IN_A_CHILD: &str = "UPSTREAM_TEST_MEMORY";

/// Resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Runs the test of that name again, alone in a process; its output, or none where this is that process.
fn in_a_child(name: &str) -> Option<String> {
    if std::env::var_os(IN_A_CHILD).is_some() {
        return None;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--include-ignored", "--nocapture"])
        .env(IN_A_CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{err}"
    );
    Some(said)
}

async fn open(count: usize) -> Vec<(Socket, TcpStream)> {
    let (listener, base) = listen().await;
    let account = account_at(&base);
    let mut open = Vec::with_capacity(count);
    for _ in 0..count {
        let dial = account.dial(none(), none());
        let (dialed, mut peer) = tokio::join!(dial, accept_socket(&listener));
        let Dialed { mut socket, .. } = dialed.unwrap();
        // One event each way, as a session that has been used once.
        peer.write_all(&text("hello")).await.unwrap();
        assert_eq!(next(&mut socket).await, SocketEvent::Text("hello".into()));
        assert_eq!(socket.try_event(), None);
        open.push((socket, peer));
    }
    open
}

/// [UP-13] After a large event and a large create each, idle sockets keep nothing of either.
#[tokio::test]
async fn idle_sockets_give_their_buffers_back() {
    if in_a_child("memory::idle_sockets_give_their_buffers_back").is_some() {
        return;
    }
    const SOCKETS: usize = 64;
    let mut open = open(SOCKETS).await;
    let large = long_text(1 << 20);
    let turn = async |(socket, peer): &mut (Socket, TcpStream)| {
        socket.begin(Bytes::from(large.clone()));
        let (event, _create) = tokio::join!(next(socket), receive_message(peer));
        assert_eq!(event, SocketEvent::Flushed);
        let (event, sent) = tokio::join!(next(socket), async { peer.write_all(&text(&large)).await });
        sent.unwrap();
        assert_eq!(event, SocketEvent::Text(large.as_str().into()));
        assert_eq!(socket.try_event(), None);
    };
    // The first shows what a turn needs while it runs, and what the allocator keeps of that.
    turn(&mut open[0]).await;
    let before = resident();
    for pair in &mut open[1..] {
        turn(pair).await;
    }
    let grown = resident().saturating_sub(before);
    assert!(
        grown < 8 << 10,
        "{grown} KiB for {SOCKETS} sockets that each had 1 MiB each way"
    );
}

/// Prints what an idle socket costs: `cargo test --release --test upstream -- --ignored --nocapture memory`.
#[tokio::test]
#[ignore = "a measure, not a test"]
async fn measure_idle_sockets() {
    if let Some(said) = in_a_child("memory::measure_idle_sockets") {
        println!("{said}");
        return;
    }
    const SOCKETS: usize = 1000;
    let warm = open(50).await;
    let before = resident();
    let mut idle = open(SOCKETS).await;
    let after = resident();
    println!(
        "idle, both ends: {:.1} KiB each",
        (after - before) as f64 / SOCKETS as f64
    );
    let body = long_text(256 << 10);
    for (socket, peer) in &mut idle {
        socket.begin(Bytes::from(body.clone()));
        let (event, _create) = tokio::join!(next(socket), receive_message(peer));
        assert_eq!(event, SocketEvent::Flushed);
        assert_eq!(socket.try_event(), None);
    }
    println!(
        "after one 256 KiB create each: {:.1} KiB each",
        (resident() - before) as f64 / SOCKETS as f64
    );
    println!("Socket itself: {} bytes", size_of::<Socket>());
    drop(warm);
}
