//! The bridge as a process of its own, which can be killed, stopped and started again over the same state.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::client::MOMENT;
use crate::world::eventually;

/// What is written into `bridge.toml` for a simulator at this address.
pub fn config(base_url: &str, more: &str) -> String {
    format!(
        "{more}\n[providers.openai]\nbase_url = \"{base_url}\"\n[[providers.openai.accounts]]\nname = \"main\"\n\
         credential = {{ env = \"ACCOUNT\" }}\n"
    )
}

/// Two clients of one account, and a listener on a free port.
pub const CLIENTS: &str = "
[server]
listen = \"127.0.0.1:0\"
drain = \"1s\"
[[clients]]
name = \"alice\"
key = { env = \"ALICE\" }
[[clients]]
name = \"bob\"
key = { env = \"BOB\" }
";

/// A folder with a configuration and the state.
pub struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    pub fn new(config: &str) -> Home {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("bridge.toml"), config).unwrap();
        std::fs::create_dir(directory.path().join("elsewhere")).unwrap();
        Home { directory }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where the state is kept: as `XDG_STATE_HOME` says, since the configuration says nothing.
    pub fn state(&self) -> PathBuf {
        self.path().join("responses-bridge")
    }

    /// `serve` from another folder, with `before` run by the shell first.
    pub fn command(&self, before: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args([
                "-c",
                &format!("{before}\nexec \"$0\" serve --log-level debug --config ../bridge.toml"),
            ])
            .arg(env!("CARGO_BIN_EXE_responses-bridge"))
            .current_dir(self.path().join("elsewhere"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("XDG_STATE_HOME", self.path())
            .envs([
                ("ALICE", "key-alice"),
                ("BOB", "key-bob"),
                ("ACCOUNT", "sk-account"),
                ("A", "sk-a"),
                ("B", "sk-b"),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub async fn start(&self) -> Process {
        self.start_after("").await
    }

    pub async fn start_after(&self, before: &str) -> Process {
        let mut child = tokio::process::Command::from(self.command(before))
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let lines = Arc::<Mutex<Vec<Value>>>::default();
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = lines.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = stderr.next_line().await {
                log.lock()
                    .unwrap()
                    .push(serde_json::from_str(&line).unwrap_or(Value::String(line)));
            }
        });
        let first = tokio::time::timeout(MOMENT, stdout.next_line())
            .await
            .expect("it starts")
            .unwrap();
        let first = first.unwrap_or_else(|| panic!("it ended: {:?}", lines.lock().unwrap()));
        let address = first.strip_prefix("responses-bridge listens on http://").unwrap();
        Process {
            address: address.strip_suffix("/v1").unwrap().parse().unwrap(),
            child,
            lines,
        }
    }
}

/// A running bridge; killed when dropped.
pub struct Process {
    pub address: SocketAddr,
    child: tokio::process::Child,
    lines: Arc<Mutex<Vec<Value>>>,
}

impl Process {
    /// `STOP`, `CONT`, `TERM` …
    pub fn signal(&self, name: &str) {
        let id = self.child.id().expect("it runs").to_string();
        assert!(
            Command::new("kill")
                .args([&format!("-{name}"), &id])
                .status()
                .unwrap()
                .success()
        );
    }

    /// `kill -9`, and the wait until it is gone.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// The events of one name so far.
    pub fn events(&self, name: &str) -> Vec<Value> {
        let lines = self.lines.lock().unwrap();
        lines
            .iter()
            .filter(|line| line["event"] == name)
            .cloned()
            .collect()
    }

    /// Waits for so many events of one name: the log comes by a pipe.
    pub async fn saw(&self, name: &str, times: usize) -> Vec<Value> {
        eventually(&format!("{times} x {name}"), || self.events(name).len() >= times).await;
        self.events(name)
    }

    pub fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Processor time used so far, in clock ticks.
    pub fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

/// Runs to its end: exit code and stderr.
pub fn ended(mut command: Command) -> (Option<i32>, String) {
    let child: Child = command.spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}
