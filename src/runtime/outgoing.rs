//! What of a call goes upstream, in the form of either transport.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::Runtime;
use super::job::Job;
use crate::bridge::key::KeyKind;
use crate::wire::ProviderKind;
use crate::wire::headers;

/// Beyond the longest frame by so much, one is not even built: an upper bound of its length is known before.
const FAR_BEYOND: usize = 64 * 1024;

impl Runtime {
    /// How long the frame with the whole request would be: exactly, where it may be longer than one is sent.
    pub(super) fn frame_length(&self, job: &Job) -> usize {
        let Some(create) = &job.create else { return 0 };
        let kind = self.account(job.account).kind();
        let metadata = headers::per_turn_metadata(kind, &job.caller.headers);
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
        let metadata = headers::per_turn_metadata(kind, &job.caller.headers);
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
