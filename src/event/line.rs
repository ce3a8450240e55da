//! One occurrence, one emit: the log line and the count (EVT-2).

use std::io::Write;
use std::sync::Arc;
use std::time::SystemTime;

use super::{Event, Level};
use crate::telemetry::Telemetry;

/// Where finished lines go. A line ends with a newline and is never torn.
type Sink = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// The way out of every event. Cloning shares it.
#[derive(Clone)]
pub struct Events {
    least: Level,
    sink: Sink,
    telemetry: Arc<Telemetry>,
}

impl Events {
    /// Lines of `least` and above go to `sink`; counts go to `telemetry`, whatever the level.
    pub fn new(
        least: Level,
        telemetry: Arc<Telemetry>,
        sink: impl Fn(&[u8]) + Send + Sync + 'static,
    ) -> Self {
        Events {
            least,
            sink: Arc::new(sink),
            telemetry,
        }
    }

    /// Emits one occurrence.
    pub fn emit(&self, event: &Event<'_>) {
        self.telemetry.count(event);
        if event.level() >= self.least {
            (self.sink)(&line(SystemTime::now(), event));
        }
    }

    /// The metrics that the counts go to.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }
}

/// The line of an occurrence at `now`: time, level and the event's own fields, as one JSON object.
fn line(now: SystemTime, event: &Event<'_>) -> Vec<u8> {
    let level = match event.level() {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
    };
    let mut line = Vec::with_capacity(512);
    // Writing to a Vec cannot fail, and every event serialises: its fields are numbers, names and hashes.
    let _ = write!(
        line,
        r#"{{"ts":"{}","level":"{level}","#,
        humantime::format_rfc3339_millis(now)
    );
    let head = line.len();
    if serde_json::to_writer(&mut line, event).is_ok() {
        // The event's own opening brace: its members follow those of the head.
        line.remove(head);
    }
    line.push(b'\n');
    line
}
