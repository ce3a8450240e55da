//! What of a call goes upstream, in the form of either transport.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::call::Caller;
use super::job::Job;
use super::{Runtime, spans};
use crate::bridge::key::KeyKind;
use crate::wire::ProviderKind;
use crate::wire::headers;
use crate::wire::trace::{self, TRACEPARENT, TRACESTATE};

/// Beyond the longest frame by so much, one is not even built: an upper bound of its length is known before.
const FAR_BEYOND: usize = 64 * 1024;

impl Runtime {
    /// How long the frame with the whole request would be: exactly, where it may be longer than one is sent.
    pub(super) fn frame_length(&self, job: &Job) -> usize {
        let Some(create) = &job.create else { return 0 };
        let kind = self.account(job.account).kind();
        let trace = traced(job);
        let metadata = metadata(kind, &job.caller.headers, &trace);
        let bound = create.frame_len_bound(&metadata);
        let most = job.policy.of_account(job.account).max_frame;
        if bound > most && bound <= most + FAR_BEYOND {
            create.frame(&metadata).len()
        } else {
            bound
        }
    }

    /// Makes the frame of the next attempt: of the whole request, or of what is new in the conversation that it continues.
    /// False without a create.
    pub(super) fn frame(&self, job: &mut Job) -> bool {
        let Some(create) = &job.create else { return false };
        let kind = self.account(job.account).kind();
        let trace = traced(job);
        let metadata = metadata(kind, &job.caller.headers, &trace);
        let frame = match &job.continued {
            Some(continued) => create.delta_frame(continued.extension.skip(), &continued.anchor, &metadata),
            None => create.frame(&metadata),
        };
        job.length = frame.len();
        // The body is kept beside it, until the turn is accepted.
        job.held.set(create.body().len() + frame.len());
        job.payload = frame;
        true
    }

    /// Makes the body for direct HTTP. Gives its headers, and whether events are asked for; `None` without a create.
    pub(super) fn direct_request(&self, job: &mut Job) -> Option<(HeaderMap, bool)> {
        job.continued = None;
        let create = job.create.as_ref()?;
        let account = self.account(job.account);
        let mut headers = self.identity(job);
        let client = &job.caller.headers;
        headers.extend(headers::per_turn(account.kind(), client));
        headers.extend(headers::per_turn_from_metadata(
            account.kind(),
            &create.client_metadata(),
            client,
        ));
        headers.extend(account.credential(client));
        if let Some((parent, state)) = traced(job) {
            headers.extend(HeaderValue::from_str(&parent).map(|parent| (TRACEPARENT, parent)));
            headers.extend(state.map(|state| (TRACESTATE, state)));
        }
        let always = account.kind() == ProviderKind::Chatgpt;
        let stream = create.stream || always;
        headers.insert(
            http::header::ACCEPT,
            HeaderValue::from_static(if stream {
                "text/event-stream"
            } else {
                "application/json"
            }),
        );
        let body = create.http_body(always.then_some(true));
        // Where nothing had to change it is the very same bytes, which are held once.
        let same = body.as_ptr() == create.body().as_ptr();
        job.held
            .set(create.body().len() + if same { 0 } else { body.len() });
        job.length = body.len();
        job.payload = body;
        Some((headers, stream))
    }

    /// The upstream's own identity headers. The ChatGPT backend's prompt cache routes on them: where a client sends none,
    /// they are derived from the key.
    pub(super) fn identity(&self, job: &Job) -> HeaderMap {
        let kind = self.account(job.account).kind();
        let mut identity = headers::identity(kind, &job.caller.headers);
        if kind == ProviderKind::Chatgpt && job.key.kind != KeyKind::Keyless {
            let derived = uuid::Builder::from_custom_bytes(job.key.hash.0)
                .into_uuid()
                .to_string();
            if let Ok(value) = HeaderValue::from_str(&derived) {
                for name in ["session-id", "thread-id"] {
                    identity
                        .entry(HeaderName::from_static(name))
                        .or_insert_with(|| value.clone());
                }
            }
        }
        identity
    }
}

/// The trace as the upstream is told it: the parent there is the span of this attempt's transport (COR-3).
fn traced(job: &Job) -> Option<(String, Option<HeaderValue>)> {
    let trace = job.caller.trace.as_ref()?;
    let span = trace.span().below(spans::transport_of(job.attempt));
    Some((trace.parent_of(span), trace.state().cloned()))
}

/// The trace of a request that is passed on, whose only span is its own.
pub(super) fn pass_trace(caller: &Caller, headers: &mut HeaderMap) {
    let Some(trace) = &caller.trace else { return };
    if let Ok(parent) = trace.parent_of(trace.span()).try_into() {
        headers.insert(TRACEPARENT, parent);
    }
}

/// What a frame's `client_metadata` says of one turn. A trace travels there as Codex spells it, to upstreams that know Codex.
fn metadata<'a>(
    kind: ProviderKind,
    client: &'a HeaderMap,
    trace: &'a Option<(String, Option<HeaderValue>)>,
) -> Vec<(&'static str, &'a str)> {
    let mut metadata = headers::per_turn_metadata(kind, client);
    let known = matches!(kind, ProviderKind::Openai | ProviderKind::Chatgpt);
    if let Some((parent, state)) = trace.as_ref().filter(|_| known) {
        let state = state.as_ref().and_then(|state| state.to_str().ok());
        let said = [Some(parent.as_str()), state];
        let named = trace::METADATA.into_iter().zip(said);
        metadata.extend(named.filter_map(|(name, value)| Some((name, value?))));
    }
    metadata
}
