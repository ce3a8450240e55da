//! A simulated upstream: both transports of the Responses API on one port, healthy unless asked to misbehave.
//!
//! A turn's behaviour comes from markers in its prompt (`sim:close(code=1011, after=3)`) or from a script's rules;
//! the words are in [`WORDS`]. Everything that was seen is in the [`Ledger`]. It shares no code with the bridge, so
//! that both cannot be wrong in the same way. Requirements: `spec/simulator.md`.

mod answer;
mod behaviour;
mod book;
mod compose;
mod connection;
mod create;
mod events;
mod faults;
mod frame;
mod http;
mod inbound;
mod ledger;
mod object;
mod origin;
mod outbound;
mod paths;
mod perform;
mod reply;
mod score;
mod script;
mod state;
mod storage;
mod tools;
mod transcript;
mod turn;
mod upgrade;
mod vocabulary;
mod websocket;
mod words;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::DropGuard;

pub use behaviour::{Ending, Transport};
pub use ledger::{Conversation, Create, Ledger, Request, Socket, SocketEnd};
pub use origin::credential_hash;
pub use score::Conclusion;
pub use script::{Accounts, Kind, Limits, Script, ScriptError};
pub use vocabulary::WORDS;

use state::State;

/// What a simulator is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What to do without being asked in the prompt.
    pub script: Script,
}

impl Default for Options {
    /// A free port on loopback, and no script.
    fn default() -> Options {
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            script: Script::default(),
        }
    }
}

/// A running simulator. Dropping it ends all its connections; [`Simulator::stop`] also waits for that.
#[derive(Debug)]
pub struct Simulator {
    addr: SocketAddr,
    state: Arc<State>,
    _stop_on_drop: DropGuard,
}

impl Simulator {
    /// Starts to listen.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn start(options: Options) -> io::Result<Simulator> {
        let listener = TcpListener::bind(options.listen).await?;
        let addr = listener.local_addr()?;
        let state = Arc::new(State::new(options.script));
        state.tasks.spawn(accept(listener, state.clone()));
        Ok(Simulator {
            addr,
            _stop_on_drop: state.stopping.clone().drop_guard(),
            state,
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The base URL of the OpenAI API, as an SDK wants it: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// The base URL of the ChatGPT backend: `http://127.0.0.1:PORT/backend-api/codex`.
    pub fn chatgpt_base_url(&self) -> String {
        format!("http://{}/backend-api/codex", self.addr)
    }

    /// A copy of all that was seen so far.
    pub fn ledger(&self) -> Ledger {
        self.state.book.snapshot()
    }

    /// Looks at the ledger without copying it.
    pub fn look<T>(&self, look: impl FnOnce(&Ledger) -> T) -> T {
        self.state.book.look(look)
    }

    /// Waits until the ledger meets a condition; false when that took longer than `limit`.
    pub async fn until(&self, limit: Duration, mut condition: impl FnMut(&Ledger) -> bool) -> bool {
        let mut changes = self.state.book.changes();
        let met = async {
            while !self.state.book.look(&mut condition) {
                // The sender lives in the state, which `self` holds.
                _ = changes.changed().await;
            }
        };
        tokio::time::timeout(limit, met).await.is_ok()
    }

    /// Forgets what was seen and counted. Open sockets and stored responses stay.
    pub fn reset(&self) {
        self.state.reset();
    }

    /// Replaces the script for all turns and upgrades from now on.
    pub fn rescript(&self, script: Script) {
        self.state.rescript(script);
    }

    /// Ends every open socket in this way, at once, also in mid-turn.
    pub fn end_sockets(&self, ending: Ending) {
        // Without an open socket nobody listens, and nothing is to be ended.
        _ = self.state.endings.send(ending);
    }

    /// Stops listening, drops every connection, and waits until all are gone.
    pub async fn stop(self) {
        self.state.stopping.cancel();
        self.state.tasks.close();
        self.state.tasks.wait().await;
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = state.stopping.cancelled() => return,
        };
        let Ok((stream, _)) = accepted else {
            // The file table is full, most likely: without a pause this loop would spin.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let served = state.clone();
        state.tasks.spawn(async move {
            tokio::select! {
                () = connection::serve(stream, served.clone()) => {}
                () = served.stopping.cancelled() => {}
            }
        });
    }
}
