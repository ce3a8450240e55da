//! One occurrence, one emit: the log line, the count, and the journal's entry (EVT-2).

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::live::Live;
use super::strangers::Strangers;
use super::{Event, Level};
use crate::bridge::key::Hasher;
use crate::journal::{Entry, Names};
use crate::telemetry::Telemetry;

/// Where finished lines go. A line ends with a newline and is never torn.
type Sink = Box<dyn Fn(&[u8]) + Send + Sync>;
/// Takes what the journal keeps. Never blocks.
type Keep = Box<dyn Fn(Entry) + Send + Sync>;

/// The way out of every event. Cloning shares it.
#[derive(Clone)]
pub struct Events(Arc<Outlets>);

struct Outlets {
    least: Level,
    sink: Sink,
    telemetry: Arc<Telemetry>,
    journal: Option<(Hasher, Keep)>,
    strangers: Strangers,
    live: Option<Live>,
}

impl Events {
    /// Lines of `least` and above go to `sink`; counts go to `telemetry`, whatever the level.
    pub fn new(
        least: Level,
        telemetry: Arc<Telemetry>,
        sink: impl Fn(&[u8]) + Send + Sync + 'static,
    ) -> Self {
        Events(Arc::new(Outlets {
            least,
            sink: Box::new(sink),
            telemetry,
            journal: None,
            strangers: Strangers::default(),
            live: None,
        }))
    }

    /// What is at `info` or above, whatever level is logged, goes to `keep` as well, the journal's way in, with its ids
    /// hashed.
    pub fn kept(self, hasher: Hasher, keep: impl Fn(Entry) + Send + Sync + 'static) -> Self {
        self.with(|outlets| outlets.journal = Some((hasher, Box::new(keep))))
    }

    /// What is at `info` or above, whatever level is logged, can be looked at while it happens.
    pub fn live(self) -> Self {
        self.with(|outlets| outlets.live = Some(Live::default()))
    }

    /// Before the first clone: later there is nothing to be changed.
    fn with(mut self, change: impl FnOnce(&mut Outlets)) -> Self {
        if let Some(outlets) = Arc::get_mut(&mut self.0) {
            change(outlets);
        }
        self
    }

    /// Emits one occurrence.
    pub fn emit(&self, event: &Event<'_>) {
        let out = &*self.0;
        out.telemetry.count(event);
        let level = event.level();
        let noted = level >= Level::Info;
        let (logged, live) = (level >= out.least, out.live.as_ref().filter(|_| noted));
        let journal = out.journal.as_ref().filter(|_| noted);
        if !logged && live.is_none() && journal.is_none() {
            return;
        }
        let now = SystemTime::now();
        let Some(mut body) = body(event) else { return };
        if logged || live.is_some() {
            let line = line(now, level, event, &body);
            if logged {
                (out.sink)(line.as_bytes());
            }
            if let Some(live) = live {
                live.publish(event, line.trim_end());
            }
        }
        if let Some((hasher, keep)) = journal {
            if event.is_of_a_stranger() {
                match out.strangers.grant(Instant::now()) {
                    None => return,
                    Some(0) => {}
                    Some(skipped) => body.insert_str(body.len() - 1, &format!(r#","not_kept":{skipped}"#)),
                }
            }
            keep(Entry {
                at_ms: millis(now),
                event: event.labels().event,
                at: event.at(),
                names: event.names(hasher),
                body: body.into(),
            });
        }
    }

    /// The names of ids as users know them; none where there is no journal that asks for them.
    pub fn names<'a>(&self, ids: impl Iterator<Item = &'a str>) -> Names {
        let mut names = Names::NONE;
        if let Some((hasher, _)) = &self.0.journal {
            ids.for_each(|id| names.add(hasher.name(id)));
        }
        names
    }

    /// Whether there is a journal.
    pub fn is_kept(&self) -> bool {
        self.0.journal.is_some()
    }

    /// The metrics that the counts go to.
    pub fn telemetry(&self) -> &Telemetry {
        &self.0.telemetry
    }

    /// The latest events, where somebody may look at them.
    pub fn seen(&self) -> Option<&Live> {
        self.0.live.as_ref()
    }
}

fn millis(now: SystemTime) -> u64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The event's own fields as one JSON object. Every event serialises: its fields are numbers, names and hashes.
fn body(event: &Event<'_>) -> Option<String> {
    let mut body = Vec::with_capacity(512);
    serde_json::to_writer(&mut body, event).ok()?;
    String::from_utf8(body).ok()
}

/// The line of an occurrence at `now`: time, level, the event's own fields and the call's ids, as one JSON object.
fn line(now: SystemTime, level: Level, event: &Event<'_>, body: &str) -> String {
    let mut line = String::with_capacity(body.len() + 192);
    // Writing to a String cannot fail.
    let _ = write!(
        line,
        r#"{{"ts":"{}","level":"{}","#,
        humantime::format_rfc3339_millis(now),
        level.label()
    );
    // Without the event's own braces: its members lie between those of the head and the ids.
    let members = body.strip_prefix('{').and_then(|body| body.strip_suffix('}'));
    line.push_str(members.unwrap_or_default());
    if let Some(ids) = event.ids() {
        // Both are of a safe alphabet: nothing in them has to be escaped.
        let _ = write!(line, r#","request_id":"{}""#, ids.request_id);
        if let Some(trace) = ids.trace_id {
            let _ = write!(line, r#","trace_id":"{trace}""#);
        }
        if let Some(parent) = ids.parent_id {
            let _ = write!(line, r#","parent_id":"{parent}""#);
        }
    }
    line.push_str("}\n");
    line
}
