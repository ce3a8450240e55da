//! The latest events, and those that come: what a page or a stream shows while the bridge runs (EVT-8).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::broadcast;

use super::Event;

/// Events that are kept to be looked back at.
const KEPT: usize = 512;
/// Events that a slow reader may lag behind before it misses some, which it is told.
const BEHIND: usize = 1024;

/// One event, as its log line shows it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Counts up from 1 in each process, without gaps.
    pub number: u64,
    pub event: &'static str,
    /// `provider/account`, where it happened at one.
    pub account: Option<Arc<str>>,
    /// The log line, without its end.
    pub line: Arc<str>,
}

/// A bounded look at what happens. At `info` and above.
pub struct Live {
    /// A std mutex, held for a push or a copy: never across an await.
    kept: Mutex<Kept>,
    out: broadcast::Sender<Seen>,
}

#[derive(Default)]
struct Kept {
    latest: VecDeque<Seen>,
    number: u64,
}

impl Default for Live {
    fn default() -> Self {
        Live {
            kept: Mutex::default(),
            out: broadcast::channel(BEHIND).0,
        }
    }
}

impl Live {
    /// `line` is the event's log line, without its end.
    pub(super) fn publish(&self, event: &Event<'_>, line: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.number += 1;
        let seen = Seen {
            number: kept.number,
            event: event.labels().event,
            account: event.at().map(|at| at.to_string().into()),
            line: line.into(),
        };
        if kept.latest.len() == KEPT {
            kept.latest.pop_front();
        }
        kept.latest.push_back(seen.clone());
        // Under the lock, so that what comes and what was do not overlap. Nobody may be listening.
        let _ = self.out.send(seen);
    }

    /// The latest events, oldest first, and all that come after them: none is in both, none is left out.
    pub fn follow(&self) -> (Vec<Seen>, broadcast::Receiver<Seen>) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        (kept.latest.iter().cloned().collect(), self.out.subscribe())
    }
}
