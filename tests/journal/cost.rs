//! What the journal and the log cost a bridge whose turns are short.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Clients at one time, each with a conversation of its own.
const CLIENTS: usize = 8;
/// Turns of one client in one round.
const TURNS: usize = 250;
const ROUNDS: usize = 15;

/// A process that ends with the test.
struct Running {
    child: Child,
    address: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(arguments: &[&str]) -> Running {
    let own = env!("CARGO_BIN_EXE_responses-bridge").to_owned();
    let mut child = Command::new(std::env::var("BRIDGE").unwrap_or(own))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(File::create("/dev/null").unwrap())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let (_, rest) = line.split_once("http://").unwrap();
    let address = rest.split(['/', '\n', ' ']).next().unwrap().to_owned();
    Running { child, address }
}

fn bridge(home: &Path, upstream: &str, level: &str, max: usize) -> Running {
    let file = home.join(format!("{level}.toml"));
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[state]\npath = \"{level}\"\n[journal]\nmax = {max}\n\
         [providers.openai]\nbase_url = \"http://{upstream}/v1\"\n\
         [[providers.openai.accounts]]\nname = \"main\"\ncredential = \"client\"\n"
    );
    std::fs::write(&file, text).unwrap();
    start(&["serve", "--config", file.to_str().unwrap(), "--log-level", level])
}

/// Nanoseconds of CPU of all threads of a process.
fn cpu(running: &Running) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", running.child.id())).unwrap();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
    stats
        .map(|stat| stat.split(' ').next().unwrap().parse::<u64>().unwrap())
        .sum()
}

fn turns(address: &str, client: usize) {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    let body = r#"{"model":"gpt-5","stream":true,"store":false,"input":"Hello"}"#;
    let request = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer k\r\nsession-id: s-{client}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut answer = Vec::new();
    let mut chunk = [0; 64 << 10];
    for _ in 0..TURNS {
        socket.write_all(request.as_bytes()).unwrap();
        answer.clear();
        while !answer.ends_with(b"0\r\n\r\n") {
            let count = socket.read(&mut chunk).unwrap();
            assert!(count > 0, "{}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&chunk[..count]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"));
    }
}

/// Microseconds of the bridge's CPU for each turn of a round.
fn round(running: &Running) -> f64 {
    let before = cpu(running);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || turns(&running.address, client));
        }
    });
    // What is written a moment later is a part of the cost.
    std::thread::sleep(std::time::Duration::from_millis(400));
    (cpu(running) - before) as f64 / 1e3 / (CLIENTS * TURNS) as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// [JRN-14] A measure: paired, interleaved rounds of a bridge with the log at `warn` and no journal, and of one with the log at
/// `info` and the journal. `cargo test --release --test journal -- --ignored --nocapture cost`, or with `BRIDGE` naming a release
/// build, without `--release`.
#[test]
#[ignore = "a measure, for a quiet machine"]
fn cost_of_journal_and_log() {
    let home = tempfile::tempdir().unwrap();
    let upstream = start(&["simulate", "--quiet"]);
    let without = bridge(home.path(), &upstream.address, "warn", 0);
    let with = bridge(home.path(), &upstream.address, "info", 1_000_000);
    (round(&without), round(&with));
    let (mut pairs, mut before, mut after) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..ROUNDS {
        let (a, b) = if number % 2 == 0 {
            let a = round(&without);
            (a, round(&with))
        } else {
            let b = round(&with);
            (round(&without), b)
        };
        println!(
            "round {number:2}: {a:7.1} µs without, {b:7.1} µs with, {:+5.1} %",
            (b / a - 1.0) * 100.0
        );
        pairs.push((b / a - 1.0) * 100.0);
        before.push(a);
        after.push(b);
    }
    let more = median(pairs);
    println!(
        "median of {ROUNDS} pairs of {} turns: {:.1} µs CPU a turn without, {:.1} µs with, {more:+.1} %",
        CLIENTS * TURNS,
        median(before),
        median(after)
    );
    assert!(more <= 15.0, "{more:.1} %");
}
