//! A call as spans of its trace: request > plan > queue > turn > transport, put together when a part of it has ended (COR-4).
//!
//! The plan lasts until the first byte goes upstream, the queue for as long as the call waited for a session; the turn and
//! its transport from that byte to the end. Each attempt has its own four, all below the one request.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use super::Runtime;
use super::call::Caller;
use super::job::{Job, Way};
use crate::bridge::turn::TurnEnd;
use crate::wire::trace::{SpanId, Trace};

/// Spans of one attempt.
const OF_AN_ATTEMPT: u32 = 4;

/// A finished span.
#[derive(Clone, Debug)]
pub struct Span {
    /// `request`, `plan`, `queue`, `turn`, `transport`.
    pub name: &'static str,
    pub trace: Arc<Trace>,
    pub id: SpanId,
    /// The span that it is below; none where it is the first of its trace.
    pub parent: Option<[u8; 8]>,
    pub began: SystemTime,
    pub ended: SystemTime,
    /// Closed words, configured names, numbers, and the request's id; never text of a prompt or an answer.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// What went wrong, in a closed word.
    pub failed: Option<&'static str>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    Word(&'static str),
    Text(Box<str>),
    Number(u64),
}

/// Takes finished spans. Never blocks.
pub type Spans = Box<dyn Fn(Vec<Span>) + Send + Sync>;

/// The place of an attempt's transport among the spans below the request.
pub(super) fn transport_of(attempt: u32) -> u32 {
    attempt.max(1).saturating_mul(OF_AN_ATTEMPT)
}

/// Readings of both clocks at one moment, so that monotonic times can be told as wall times.
struct Clocks(Instant, SystemTime);

impl Clocks {
    fn wall(&self, at: Instant) -> SystemTime {
        self.1 - self.0.saturating_duration_since(at)
    }
}

impl Runtime {
    /// The call's trace, where its spans are wanted.
    fn recorded<'a>(&self, caller: &'a Caller) -> Option<(&Spans, &'a Arc<Trace>)> {
        let trace = caller.trace.as_ref().filter(|trace| trace.is_sampled())?;
        Some((self.spans.as_ref()?, trace))
    }

    /// An attempt has ended.
    pub(super) fn attempt_spans(&self, now: Instant, job: &Job, way: &Way<'_>, end: &TurnEnd) {
        let Some((spans, trace)) = self.recorded(&job.caller) else {
            return;
        };
        let clocks = Clocks(now, SystemTime::now());
        let arrived = job.caller.arrived;
        let sent = end.times.sent.unwrap_or(now);
        let waited_since = job
            .queued
            .and_then(|waited| sent.checked_sub(waited))
            .unwrap_or(sent);
        let at = self.at(job.account);
        let word = |name, word| (name, Attribute::Word(word));
        let plan = vec![
            word("bridge.plan", job.plan),
            word("bridge.route", job.course.why()),
        ];
        let turn = vec![
            word("bridge.outcome", end.outcome.label()),
            ("bridge.attempt", Attribute::Number(job.attempt.into())),
        ];
        let mut transport = vec![
            word("bridge.transport", way.transport.label()),
            word("bridge.provider", at.provider),
            word("bridge.account", at.account),
        ];
        transport.extend(
            way.session
                .map(|session| ("bridge.session", Attribute::Number(session.0))),
        );
        let chain = [
            ("plan", arrived, sent, plan),
            ("queue", waited_since, sent, Vec::new()),
            ("turn", sent, now, turn),
            ("transport", sent, now, transport),
        ];
        let mut parent = trace.span();
        let mut place = transport_of(job.attempt) - OF_AN_ATTEMPT;
        let failed = job.failed;
        let chained = chain.map(|(name, began, ended, attributes)| {
            place += 1;
            let id = trace.span().below(place);
            let above = std::mem::replace(&mut parent, id);
            Span {
                name,
                trace: trace.clone(),
                id,
                parent: Some(above.bytes()),
                began: clocks.wall(began),
                ended: clocks.wall(ended),
                attributes,
                failed: failed.filter(|_| ended == now),
            }
        });
        spans(chained.into());
    }

    /// A call has ended, after so many attempts; `failed` says what it ended as, where that is no answer.
    pub(super) fn request_span(&self, caller: &Caller, attempts: u32, failed: Option<&'static str>) {
        let Some((spans, trace)) = self.recorded(caller) else {
            return;
        };
        let clocks = Clocks(super::now(), SystemTime::now());
        let text = |name, text: &str| (name, Attribute::Text(text.into()));
        let mut attributes = vec![text("bridge.request_id", &caller.request_id)];
        let client = caller.tenant.client.as_deref();
        attributes.extend(client.map(|client| text("bridge.client", client)));
        attributes.push(("bridge.attempts", Attribute::Number(attempts.into())));
        let parent = trace
            .parent()
            .and_then(|parent| u64::from_str_radix(parent, 16).ok());
        spans(vec![Span {
            name: "request",
            trace: trace.clone(),
            id: trace.span(),
            parent: parent.map(u64::to_be_bytes),
            began: clocks.wall(caller.arrived),
            ended: clocks.1,
            attributes,
            failed,
        }]);
    }
}
