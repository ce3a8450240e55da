//! Spans out, as OTLP over HTTP in protobuf, by a thread of its own (COR-5).
//!
//! Where to is said by the standard variables, `OTEL_EXPORTER_OTLP_ENDPOINT` and its like, which the exporter reads itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::FutureExt;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};

use crate::runtime::{Attribute, Span, Spans};

/// The variables of which one must say where spans go.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];
/// Ends of calls and attempts that may wait; beyond it spans are lost, never turns held.
const WAITING: usize = 4096;
/// Spans of one request to the receiver at most.
const BATCH: usize = 512;
/// How long a batch waits for company.
const LINGER: Duration = Duration::from_secs(1);
/// How long one request to the receiver may take.
const PATIENCE: Duration = Duration::from_secs(5);

enum Item {
    Spans(Vec<Span>),
    /// Send what is left, and say when that is done.
    Close(SyncSender<()>),
}

/// The thread that exports.
pub struct Exporter {
    way_in: SyncSender<Item>,
    lost: Arc<AtomicU64>,
}

/// Starts exporting, where the environment says where to.
///
/// # Errors
/// The endpoint is no address, or no thread can be started.
pub fn start(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Option<Exporter>> {
    if !ENDPOINTS
        .iter()
        .any(|name| variable(name).is_some_and(|value| !value.is_empty()))
    {
        return Ok(None);
    }
    let (way_in, items) = sync_channel(WAITING);
    let (started, ready) = sync_channel(1);
    let lost = Arc::<AtomicU64>::default();
    let counted = lost.clone();
    std::thread::Builder::new()
        .name("span-exporter".to_owned())
        .spawn(move || {
            // Built here: the blocking client must not be made on a thread of the async runtime.
            let built = SpanExporter::builder()
                .with_http()
                .with_protocol(Protocol::HttpBinary)
                .with_timeout(PATIENCE)
                .build();
            match built {
                Ok(mut exporter) => {
                    exporter.set_resource(&resource());
                    let _ = started.send(Ok(()));
                    run(&exporter, &items, &counted);
                }
                Err(fault) => drop(started.send(Err(fault))),
            }
        })
        .context("cannot start the thread that exports spans")?;
    ready
        .recv()
        .context("the thread that exports spans ended at once")?
        .context("spans cannot be exported: look at OTEL_EXPORTER_OTLP_ENDPOINT")?;
    Ok(Some(Exporter { way_in, lost }))
}

impl Exporter {
    /// The way in for spans.
    pub fn spans(&self) -> Spans {
        let (way_in, lost) = (self.way_in.clone(), self.lost.clone());
        Box::new(move |spans| {
            let count = spans.len() as u64;
            if way_in.try_send(Item::Spans(spans)).is_err() {
                lost.fetch_add(count, Ordering::Relaxed);
            }
        })
    }

    /// Sends what is left, for `within` at most. Blocks.
    pub fn close(self, within: Duration) {
        let (done, told) = sync_channel(1);
        // A queue that is full at the end has a receiver that is gone: there is nobody to wait for.
        if self.way_in.try_send(Item::Close(done)).is_ok() {
            let _ = told.recv_timeout(within);
        }
    }
}

fn resource() -> Resource {
    let named = std::env::var("OTEL_SERVICE_NAME").is_ok();
    let builder = Resource::builder();
    let builder = if named {
        builder
    } else {
        builder.with_service_name("responses-bridge")
    };
    builder
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build()
}

fn run(exporter: &SpanExporter, items: &Receiver<Item>, lost: &AtomicU64) {
    let mut outage = false;
    let mut batch = Vec::new();
    let mut due: Option<Instant> = None;
    loop {
        let wait = due.map_or(Duration::from_secs(3600), |due| {
            due.saturating_duration_since(Instant::now())
        });
        let mut close = None;
        match items.recv_timeout(wait) {
            Ok(Item::Spans(spans)) => {
                due.get_or_insert_with(|| Instant::now() + LINGER);
                batch.extend(spans.iter().map(data));
            }
            Ok(Item::Close(done)) => close = Some(done),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let is_due = due.is_some_and(|due| due <= Instant::now());
        if !batch.is_empty() && (batch.len() >= BATCH || is_due || close.is_some()) {
            due = None;
            send(exporter, std::mem::take(&mut batch), lost, &mut outage);
        }
        if let Some(done) = close {
            let _ = done.send(());
            return;
        }
    }
}

/// Sends a batch, or loses it. Told once for each outage, and when it is over.
fn send(exporter: &SpanExporter, batch: Vec<SpanData>, lost: &AtomicU64, outage: &mut bool) {
    let count = batch.len() as u64;
    // The blocking client does its work in the first poll.
    let sent = exporter.export(batch).now_or_never();
    match sent {
        Some(Ok(())) => {
            let lost = lost.swap(0, Ordering::Relaxed);
            if std::mem::take(outage) || lost > 0 {
                tracing::warn!(lost, "spans are taken again");
            }
        }
        Some(Err(_)) | None => {
            let lost = lost.fetch_add(count, Ordering::Relaxed) + count;
            if !std::mem::replace(outage, true) {
                // Not in the fault's own words: they may hold the endpoint's credentials.
                tracing::warn!(
                    lost,
                    "spans are not taken by the receiver that OTEL_EXPORTER_OTLP_ENDPOINT names"
                );
            }
        }
    }
}

fn data(span: &Span) -> SpanData {
    let trace_id = TraceId::from_hex(span.trace.id()).unwrap_or(TraceId::INVALID);
    let state = span
        .trace
        .state()
        .and_then(|state| state.to_str().ok()?.parse().ok());
    let context = |id| {
        SpanContext::new(
            trace_id,
            id,
            TraceFlags::SAMPLED,
            false,
            state.clone().unwrap_or(TraceState::NONE),
        )
    };
    let is_request = span.name == "request";
    let kind = match span.name {
        "request" => SpanKind::Server,
        "transport" => SpanKind::Client,
        _ => SpanKind::Internal,
    };
    SpanData {
        span_context: context(SpanId::from_bytes(span.id.bytes())),
        parent_span_id: span.parent.map_or(SpanId::INVALID, SpanId::from_bytes),
        parent_span_is_remote: is_request && span.parent.is_some(),
        span_kind: kind,
        name: span.name.into(),
        start_time: span.began,
        end_time: span.ended,
        attributes: span.attributes.iter().map(attribute).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: span.failed.map_or(Status::Unset, Status::error),
        instrumentation_scope: InstrumentationScope::builder("responses-bridge")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

fn attribute((name, value): &(&'static str, Attribute)) -> KeyValue {
    match value {
        Attribute::Word(word) => KeyValue::new(*name, *word),
        Attribute::Text(text) => KeyValue::new(*name, text.to_string()),
        Attribute::Number(number) => KeyValue::new(*name, i64::try_from(*number).unwrap_or(i64::MAX)),
    }
}
