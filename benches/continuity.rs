//! What continuation saves and costs: `cargo bench --bench continuity [-- ROUNDS]`.
//!
//! An agent that resends everything, 40 turns, 400 KB at the end, through two bridges in processes of their own, one with
//! and one without `continuation.enabled`, before the simulated upstream. They take turns, round by round; medians.
// A bench may panic: it has nobody to answer to.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use responses_bridge::simulator::{Options, Simulator};
use serde_json::{Value, json};
use tempfile::TempDir;

const TURNS: usize = 40;
/// What a tool returns each turn, so that the last body has 400 KB.
const TOOL_OUTPUT: usize = 9_000;

const CODE: &str = "    let name = line.split('\\t').next().unwrap_or(\"\"); // \"first\" column\n    if name.is_empty() {\n        return Err(Error::new(format!(\"no name in {path:?}: größer\")));\n    }\n";

fn main() {
    // Cargo passes `--bench`.
    let rounds = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok());
    let rounds: usize = rounds.unwrap_or(9);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let upstream = runtime.block_on(Simulator::start(Options::default())).unwrap();
    let bridges = [true, false].map(|continued| Bridge::start(&upstream.base_url(), continued));
    let mut runs = [Vec::new(), Vec::new()];
    // The first round warms caches and is not counted.
    for round in 0..=rounds {
        for (bridge, runs) in bridges.iter().zip(&mut runs) {
            upstream.reset();
            let run = bridge.converse(&upstream, round);
            if round > 0 {
                runs.push(run);
            }
        }
    }
    let [with, without] = runs.map(|runs| Run {
        bytes: median(runs.iter().map(|run| run.bytes)),
        last_body: median(runs.iter().map(|run| run.last_body)),
        first_event: median(runs.iter().map(|run| run.first_event)),
        cpu: median(runs.iter().map(|run| run.cpu)),
        anchored: median(runs.iter().map(|run| run.anchored)),
    });
    let kb = |bytes: u64| bytes as f64 / 1e3;
    let percent = |one: f64, other: f64| 100.0 * one / other;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "{TURNS} turns, last body {:.0} KB, {rounds} rounds; load {}",
        kb(with.last_body),
        load.trim()
    );
    println!("{:<34} {:>10} {:>10} {:>8}", "median", "with", "without", "ratio");
    println!(
        "{:<34} {:>10} {:>10}",
        "turns continued", with.anchored, without.anchored
    );
    let row = |what: &str, with: f64, without: f64| {
        println!(
            "{what:<34} {with:>10.2} {without:>10.2} {:>6.1} %",
            percent(with, without)
        );
    };
    row("sent upstream, KB", kb(with.bytes), kb(without.bytes));
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    row(
        "first event of the last turn, ms",
        ms(with.first_event),
        ms(without.first_event),
    );
    row("the bridge's CPU per turn, ms", ms(with.cpu), ms(without.cpu));
}

fn median<T: Ord + Copy>(values: impl Iterator<Item = T>) -> T {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values[values.len() / 2]
}

/// What one conversation cost.
struct Run {
    /// Sent upstream, in all.
    bytes: u64,
    last_body: u64,
    first_event: Duration,
    /// Per turn.
    cpu: Duration,
    anchored: usize,
}

/// A bridge in a process of its own.
struct Bridge {
    child: Child,
    address: String,
    _stdout: BufReader<ChildStdout>,
    _directory: TempDir,
}

impl Bridge {
    fn start(upstream: &str, continued: bool) -> Bridge {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        let config = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n[continuation]\nenabled = {continued}\n\
             [providers.openai]\nbase_url = \"{upstream}\"\n\
             [[providers.openai.accounts]]\nname = \"main\"\ncredential = \"client\"\n\
             [state]\npath = '{}'\n",
            state.display()
        );
        let file = directory.path().join("bridge.toml");
        std::fs::write(&file, config).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_responses-bridge"))
            .args(["serve", "--config"])
            .arg(&file)
            .env("TOKIO_WORKER_THREADS", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let (_, rest) = line.split_once("127.0.0.1:").expect("a start-up line");
        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Bridge {
            child,
            address: format!("127.0.0.1:{port}"),
            _stdout: stdout,
            _directory: directory,
        }
    }

    /// CPU time of all of its threads so far.
    fn cpu(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let nanos = tasks.filter_map(|task| {
            let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    fn converse(&self, upstream: &Simulator, round: usize) -> Run {
        let mut agent = Agent::new(&self.address, round);
        let before = self.cpu();
        for turn in 0..TURNS {
            agent.turn(turn);
        }
        let cpu = self.cpu() - before;
        let sent = upstream.look(|ledger| {
            let bytes = ledger.creates.iter().map(|create| create.bytes as u64).sum();
            let anchored = ledger
                .creates
                .iter()
                .filter(|create| create.previous_response_id.is_some());
            (bytes, anchored.count(), ledger.creates.len())
        });
        assert_eq!(sent.2, TURNS, "a create was lost");
        Run {
            bytes: sent.0,
            last_body: agent.last_body,
            first_event: agent.first_event,
            cpu: cpu / TURNS as u32,
            anchored: sent.1,
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An agent on one connection. It keeps its items as they were first written.
struct Agent {
    connection: BufReader<TcpStream>,
    thread: String,
    items: Vec<String>,
    last_body: u64,
    first_event: Duration,
}

impl Agent {
    fn new(address: &str, round: usize) -> Agent {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let prompt = json!({"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": format!("sim:tools(rounds={TURNS}) mend the parser:\n{CODE}")}]});
        Agent {
            connection: BufReader::new(stream),
            thread: format!("{address}-{round}"),
            items: vec![prompt.to_string()],
            last_body: 0,
            first_event: Duration::ZERO,
        }
    }

    fn turn(&mut self, turn: usize) {
        let tools = json!([{"type": "function", "name": "shell", "parameters": {"type": "object",
            "properties": {"command": {"type": "array", "items": {"type": "string"}}}, "required": ["command"]}}]);
        let body = format!(
            r#"{{"model":"gpt-5","instructions":{},"input":[{}],"tools":{tools},"tool_choice":"auto","parallel_tool_calls":false,"reasoning":{{"effort":"high","summary":"auto"}},"store":false,"stream":true,"include":["reasoning.encrypted_content"],"prompt_cache_key":"{}"}}"#,
            json!(CODE.repeat(20)),
            self.items.join(","),
            self.thread,
        );
        self.last_body = body.len() as u64;
        let mut request = format!(
            "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer sk-one\r\nthread-id: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.thread,
            body.len()
        );
        let _ = write!(request, "{body}");
        let began = Instant::now();
        self.connection.get_mut().write_all(request.as_bytes()).unwrap();
        let events = self.answer(began);
        let completed: Value = serde_json::from_str(events.last().unwrap()).unwrap();
        assert_eq!(completed["type"], "response.completed", "{completed}");
        for item in completed["response"]["output"].as_array().unwrap() {
            let mut item = item.clone();
            // As SDKs send it back.
            item.as_object_mut()
                .unwrap()
                .retain(|key, value| key != "status" && !value.is_null());
            self.items.push(item.to_string());
            if let Some(call) = item.get("call_id") {
                let mut text = String::new();
                while text.len() < TOOL_OUTPUT {
                    let _ = write!(text, "src/turn{turn}.rs:{}:\n{CODE}", text.len());
                }
                let output = json!({"type": "function_call_output", "call_id": call, "output": text});
                self.items.push(output.to_string());
            }
        }
    }

    /// Reads an answer. Returns the data of its events.
    fn answer(&mut self, began: Instant) -> Vec<String> {
        let mut line = String::new();
        self.connection.read_line(&mut line).unwrap();
        assert!(line.contains(" 200 "), "{line}");
        while line != "\r\n" {
            line.clear();
            self.connection.read_line(&mut line).unwrap();
        }
        let mut text = Vec::new();
        loop {
            line.clear();
            self.connection.read_line(&mut line).unwrap();
            let length = usize::from_str_radix(line.trim_end(), 16).unwrap();
            let start = text.len();
            text.resize(start + length + 2, 0);
            self.connection.read_exact(&mut text[start..]).unwrap();
            text.truncate(start + length);
            if start == 0 {
                self.first_event = began.elapsed();
            }
            if length == 0 {
                break;
            }
        }
        let text = String::from_utf8(text).unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(str::to_owned).collect()
    }
}
