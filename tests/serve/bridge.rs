//! A bridge as a child process.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use responses_bridge::simulator::{Options, Script, Simulator};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

/// Nothing here takes longer on a busy machine, unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// `serve` with these arguments and variables, and nothing of the developer's own environment.
pub fn serve(arguments: &[&str], variables: &[(&str, &Path)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_responses-bridge"));
    command
        .arg("serve")
        .args(arguments)
        .env_clear()
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// How a `serve` ended that was not to start: its exit code and stderr.
pub async fn refused(mut command: Command) -> (Option<i32>, String) {
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.expect("it started").unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// A configuration before `upstream`, its state in `directory`; `server` and `rest` are TOML, for `[server]` and for what
/// follows.
pub fn configuration(directory: &Path, upstream: &str, server: &str, rest: &str) -> String {
    let state = directory.join("state");
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n{server}\n\
         [providers.openai]\nbase_url = \"{upstream}\"\n\
         [[providers.openai.accounts]]\nname = \"main\"\ncredential = \"client\"\n\
         [state]\npath = '{}'\n{rest}\n",
        state.display()
    );
    let path = directory.join("bridge.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A running bridge before a simulated upstream.
pub struct Bridge {
    pub simulator: Simulator,
    pub port: u16,
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    /// Every event so far.
    pub events: Vec<Value>,
    /// Kept open: what the bridge might still print must not meet a closed pipe.
    _stdout: Lines<BufReader<ChildStdout>>,
    _directory: TempDir,
}

impl Bridge {
    /// Starts both; see [`configuration`].
    pub async fn start(server: &str, rest: &str) -> Bridge {
        Bridge::start_scripted(server, rest, "").await
    }

    /// The same, with a script for the simulated upstream.
    pub async fn start_scripted(server: &str, rest: &str, script: &str) -> Bridge {
        let options = Options {
            script: Script::parse(script).unwrap(),
            ..Options::default()
        };
        let simulator = Simulator::start(options).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = configuration(directory.path(), &simulator.base_url(), server, rest);
        let mut child = serve(&["--config", &file], &[]).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let line = tokio::time::timeout(PATIENCE, stdout.next_line()).await;
        let Some(line) = line.expect("no start-up line").unwrap() else {
            let mut errors = String::new();
            stderr.read_to_string(&mut errors).await.unwrap();
            panic!("{errors}");
        };
        Bridge {
            simulator,
            port: port(&line),
            child,
            log: stderr.lines(),
            events: Vec::new(),
            _stdout: stdout,
            _directory: directory,
        }
    }

    /// Its configuration.
    #[allow(dead_code, reason = "each test crate uses a part of it")]
    pub fn file(&self) -> std::path::PathBuf {
        self._directory.path().join("bridge.toml")
    }

    /// Sends a signal: `TERM` or `INT`.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().expect("it has ended").to_string();
        let killed = std::process::Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(killed.unwrap().success());
    }

    /// Waits for an event of this name in the log.
    pub async fn event(&mut self, name: &str) -> Value {
        loop {
            let line = tokio::time::timeout(PATIENCE, self.log.next_line()).await;
            let Some(line) = line
                .unwrap_or_else(|_| panic!("no {name}: {:?}", self.events))
                .unwrap()
            else {
                panic!("the log ended before {name}: {:?}", self.events);
            };
            let event: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
            self.events.push(event.clone());
            if event["event"] == name {
                return event;
            }
        }
    }

    /// Waits for the process to end; what is left of its log is in `events` then.
    pub async fn end(&mut self) -> ExitStatus {
        let rest = async {
            while let Some(line) = self.log.next_line().await.unwrap() {
                self.events
                    .push(serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}")));
            }
        };
        tokio::time::timeout(PATIENCE, rest)
            .await
            .expect("it does not end");
        self.child.wait().await.unwrap()
    }
}

/// A port that was free just now, for what does not tell which port it took.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The port in the start-up line.
pub fn port(line: &str) -> u16 {
    let rest = line.strip_prefix("responses-bridge listens on http://127.0.0.1:");
    let port = rest.and_then(|rest| rest.strip_suffix("/v1"));
    port.unwrap_or_else(|| panic!("{line}")).parse().unwrap()
}
