//! How far a drill is: one line on a terminal, and nothing anywhere else.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use tokio::time::Instant;

use crate::cli::terminal;
use crate::counted::counted;
use crate::rehearse::clock;

/// No eye follows faster.
const EVERY: Duration = Duration::from_millis(150);
/// Short of the width of an ordinary terminal, so that no line breaks.
const COLUMNS: usize = 79;

/// The line.
pub struct Progress {
    shown: bool,
    latest: Option<Instant>,
}

impl Progress {
    /// On standard error, if that is a terminal that can write a line anew.
    pub fn on_stderr() -> Progress {
        Progress {
            shown: io::stderr().is_terminal() && !terminal::is_dumb(),
            latest: None,
        }
    }

    /// What goes on now, at which time in earnest.
    pub fn show(&mut self, real: Duration, phase: &str, answered: usize, failed: usize) {
        let due = self.latest.is_none_or(|latest| latest.elapsed() >= EVERY);
        if !self.shown || !due {
            return;
        }
        self.latest = Some(Instant::now());
        let line = format!(
            "{:>8}  {phase}: {} answered, {failed} failed",
            clock(real),
            counted(answered as u64, "call")
        );
        let line: String = line.chars().take(COLUMNS).collect();
        put(&format!("\r{line:<COLUMNS$}"));
    }

    /// The line goes, so that the report begins where it stood.
    pub fn clear(self) {
        if self.shown && self.latest.is_some() {
            put(&format!("\r{:COLUMNS$}\r", ""));
        }
    }
}

fn put(text: &str) {
    // Nobody misses a line of progress.
    let _ = io::stderr().write_all(text.as_bytes());
    let _ = io::stderr().flush();
}
