//! The metrics: counts of events, and the distributions that operators tune by (EVT-3, EVT-4).
//!
//! One recorder for one bridge, no global: two bridges in one process do not share counts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::event::{Answered, At, Event, History, Labels, Past};

/// Buckets in seconds for what is waited for: from a millisecond to the longest deadline.
const WAITS: [f64; 16] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0,
];

/// Log lines of this process that nobody took from it in time, or at all (EVT-11).
pub static LOG_LOST: AtomicU64 = AtomicU64::new(0);
const METADATA: Metadata<'static> = Metadata::new("responses_bridge", Level::INFO, None);

/// A distribution, by transport.
struct ByTransport {
    websocket: Histogram,
    http: Histogram,
}

/// A set of labels by where their words lie, which is quicker to find than by what they say: they live for ever. Two copies of
/// a word would only be two ways to the same counter.
type Series = [(usize, usize); 8];

fn series(labels: &Labels) -> Series {
    [
        Some(labels.event),
        labels.reason,
        labels.shape,
        labels.transport,
        labels.provider,
        labels.account,
        labels.key_kind,
        labels.outcome,
    ]
    .map(|word| word.map_or((0, 0), |word| (word.as_ptr().addr(), word.len())))
}

/// The counters that an event with certain labels adds to.
struct Counted {
    event: Counter,
    /// Counts nothing for events that end no turn.
    turn: Counter,
}

/// All metrics of one bridge.
pub struct Telemetry {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    accept: ByTransport,
    first_output: ByTransport,
    gap: Histogram,
    queue_wait: Histogram,
    kept: Mutex<HashMap<Series, Counted>>,
    created: Created,
    silent: AtomicU64,
}

/// How many turns were accepted within each of [`Telemetry::BOUNDS`], and beyond the last; by WebSocket, and by HTTP. Beside
/// the histogram of the metrics, which can only be scraped.
#[derive(Default)]
struct Created([[AtomicU64; WAITS.len() + 1]; 2]);

impl Created {
    fn add(&self, transport: &str, seconds: f64) {
        let of = &self.0[usize::from(transport == "http")];
        let bucket = WAITS.iter().take_while(|bound| seconds > **bound).count();
        if let Some(count) = of.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What is read at the moment of a scrape.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    pub sessions_idle: usize,
    pub sessions_busy: usize,
    pub sessions_opening: usize,
    pub quarantined_keys: usize,
    pub waiting_turns: usize,
    pub running_turns: usize,
    pub sick_transports: usize,
    pub owners: usize,
    pub pins: usize,
    pub turn_states: usize,
    pub unavailable_accounts: usize,
    pub held_bytes: usize,
    pub history_bytes: usize,
    pub store_lag: Duration,
    pub store_queue: usize,
    pub store_lost: u64,
    pub store_degraded: bool,
    pub journal_lost: u64,
    /// As `/health/ready` says it.
    pub ready: bool,
}

impl Telemetry {
    /// Builds the recorder.
    ///
    /// # Errors
    /// Only if the constant buckets were empty.
    pub fn new() -> Result<Self, metrics_exporter_prometheus::BuildError> {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &WAITS)?
            .build_recorder();
        let by_transport = |name| ByTransport {
            websocket: histogram(
                &recorder,
                name,
                vec![Label::from_static_parts("transport", "websocket")],
            ),
            http: histogram(
                &recorder,
                name,
                vec![Label::from_static_parts("transport", "http")],
            ),
        };
        Ok(Telemetry {
            accept: by_transport("bridge_accept_seconds"),
            first_output: by_transport("bridge_first_output_seconds"),
            gap: histogram(&recorder, "bridge_event_gap_seconds", Vec::new()),
            queue_wait: histogram(&recorder, "bridge_queue_wait_seconds", Vec::new()),
            kept: Mutex::default(),
            created: Created::default(),
            silent: AtomicU64::new(0),
            handle: recorder.handle(),
            recorder,
        })
    }

    /// Counts an event, and what it carries.
    pub fn count(&self, event: &Event<'_>) {
        self.add(event.labels());
        match event {
            Event::TurnFinished {
                at,
                transport,
                upstream,
                phases,
                socket,
                ..
            } => {
                if let Some(answered) = upstream {
                    self.upstream_failed(at, answered);
                }
                if let Some(ms) = phases.created_ms {
                    self.created
                        .add(transport.label(), Duration::from_millis(ms).as_secs_f64());
                    self.accept
                        .of(transport.label())
                        .record(Duration::from_millis(ms));
                }
                if let Some(ms) = phases.first_output_ms {
                    self.first_output
                        .of(transport.label())
                        .record(Duration::from_millis(ms));
                }
                if let Some(Past::Whole(history)) = socket
                    && history.close.is_some()
                {
                    self.socket_failed(history);
                }
            }
            Event::Refused { reason, .. } => {
                let label = Label::from_static_parts("kind", reason.label());
                self.counter("bridge_refusals_total", vec![label]).increment(1);
            }
            Event::ResponseCreatedTimeout { shape, .. } => {
                self.silent.fetch_add(1, Ordering::Relaxed);
                let label = Label::from_static_parts("shape", shape.label());
                self.counter("bridge_watchdog_trips_total", vec![label])
                    .increment(1);
            }
            _ => {}
        }
    }

    /// Adds one to the counters of a set of labels. Registering one costs an allocation for each label, so they are kept: as
    /// many as there are series, which closed enums and configured names bound (INV-9).
    fn add(&self, labels: Labels) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = kept
            .entry(series(&labels))
            .or_insert_with(|| self.register(labels));
        counted.event.increment(1);
        counted.turn.increment(1);
    }

    fn register(&self, labels: Labels) -> Counted {
        let label = |(name, value)| Label::from_static_parts(name, value);
        let of_turn = labels
            .pairs()
            .filter(|(name, _)| *name != "event" && *name != "key_kind");
        let turn = match labels.outcome {
            Some(_) => self.counter("bridge_turns_total", of_turn.map(label).collect()),
            None => Counter::noop(),
        };
        Counted {
            event: self.counter("bridge_events_total", labels.pairs().map(label).collect()),
            turn,
        }
    }

    /// A turn that the upstream rejected or failed, by the class of its error.
    fn upstream_failed(&self, at: &At, answered: &Answered) {
        let labels = vec![
            Label::from_static_parts("provider", at.provider),
            Label::from_static_parts("account", at.account),
            Label::from_static_parts("class", answered.error),
        ];
        self.counter("bridge_upstream_errors_total", labels).increment(1);
    }

    /// A socket that the upstream closed under a turn, by its closed enums. Two counters, so that their product does not
    /// become the number of series.
    fn socket_failed(&self, history: &History) {
        let close = Label::from_static_parts("close", history.close.unwrap_or("none"));
        let by_event = vec![
            close.clone(),
            Label::from_static_parts("socket", history.socket),
            Label::from_static_parts("last_event", history.last_event),
        ];
        self.counter("bridge_socket_failures_total", by_event)
            .increment(1);
        let by_age = vec![
            close,
            Label::from_static_parts("age", history.age),
            Label::from_static_parts("idle", history.idle),
        ];
        self.counter("bridge_socket_failures_by_age_total", by_age)
            .increment(1);
    }

    /// Upper bounds of the buckets in seconds, inclusive.
    pub const BOUNDS: [f64; 16] = WAITS;

    /// Turns by the time from their flushed create to `response.created`: one count for each of [`Self::BOUNDS`] and one
    /// beyond them, by WebSocket and by HTTP, since the process began.
    pub fn created(&self) -> [[u64; 17]; 2] {
        self.created
            .0
            .each_ref()
            .map(|of| of.each_ref().map(|count| count.load(Ordering::Relaxed)))
    }

    /// Turns whose `response.created` did not come within the deadline, since the process began.
    pub fn silent(&self) -> u64 {
        self.silent.load(Ordering::Relaxed)
    }

    /// Time between two wake-ups with events of one turn.
    pub fn gap(&self, gap: Duration) {
        self.gap.record(gap);
    }

    /// How long a turn waited for a session.
    pub fn queued(&self, wait: Duration) {
        self.queue_wait.record(wait);
    }

    /// The text of `/metrics`.
    pub fn render(&self, now: Snapshot) -> String {
        let state = |value| vec![Label::from_static_parts("state", value)];
        self.gauge("bridge_sessions", state("idle"))
            .set(now.sessions_idle as f64);
        self.gauge("bridge_sessions", state("busy"))
            .set(now.sessions_busy as f64);
        self.gauge("bridge_sessions", state("opening"))
            .set(now.sessions_opening as f64);
        self.gauge("bridge_ready", Vec::new())
            .set(f64::from(u8::from(now.ready)));
        self.gauge("bridge_quarantined_keys", Vec::new())
            .set(now.quarantined_keys as f64);
        self.gauge("bridge_queue_depth", Vec::new())
            .set(now.waiting_turns as f64);
        self.gauge("bridge_running_turns", Vec::new())
            .set(now.running_turns as f64);
        self.gauge("bridge_sick_transports", Vec::new())
            .set(now.sick_transports as f64);
        self.gauge("bridge_owners", Vec::new()).set(now.owners as f64);
        self.gauge("bridge_pins", Vec::new()).set(now.pins as f64);
        self.gauge("bridge_turn_states", Vec::new())
            .set(now.turn_states as f64);
        self.gauge("bridge_unavailable_accounts", Vec::new())
            .set(now.unavailable_accounts as f64);
        self.gauge("bridge_held_bytes", Vec::new())
            .set(now.held_bytes as f64);
        self.gauge("bridge_history_bytes", Vec::new())
            .set(now.history_bytes as f64);
        self.gauge("bridge_store_lag_seconds", Vec::new())
            .set(now.store_lag.as_secs_f64());
        self.gauge("bridge_store_queue", Vec::new())
            .set(now.store_queue as f64);
        self.gauge("bridge_store_degraded", Vec::new())
            .set(f64::from(u8::from(now.store_degraded)));
        self.counter("bridge_store_lost_total", Vec::new())
            .absolute(now.store_lost);
        self.counter("bridge_journal_lost_total", Vec::new())
            .absolute(now.journal_lost);
        self.counter("bridge_log_lost_total", Vec::new())
            .absolute(LOG_LOST.load(Ordering::Relaxed));
        self.handle.render()
    }

    /// Moves recorded samples into their buckets: without it they pile up for ever. To be called every few seconds.
    pub fn upkeep(&self) {
        self.handle.run_upkeep();
    }

    fn counter(&self, name: &'static str, labels: Vec<Label>) -> Counter {
        self.recorder
            .register_counter(&Key::from_parts(name, labels), &METADATA)
    }

    fn gauge(&self, name: &'static str, labels: Vec<Label>) -> Gauge {
        self.recorder
            .register_gauge(&Key::from_parts(name, labels), &METADATA)
    }
}

fn histogram(recorder: &PrometheusRecorder, name: &'static str, labels: Vec<Label>) -> Histogram {
    recorder.register_histogram(&Key::from_parts(name, labels), &METADATA)
}

impl ByTransport {
    fn of(&self, transport: &str) -> &Histogram {
        if transport == "http" {
            &self.http
        } else {
            &self.websocket
        }
    }
}
