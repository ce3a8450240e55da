//! By which ids a request is known: the client's own, where they are safe, or ones made here (COR-1, COR-3).

use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use uuid::Uuid;

use crate::event::Ids;
use crate::journal::Names;
use crate::wire::trace::{SpanId, Trace};

/// What a client may call its request by, and what every answer says it was called by.
pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id of a client's that is taken, in bytes.
const LONGEST: usize = 128;

/// The ids of one request.
#[derive(Debug)]
pub(super) struct CallIds {
    pub(super) request_id: Arc<str>,
    pub(super) trace: Option<Arc<Trace>>,
    /// At which door it was asked, as `refused` tells it.
    pub(super) door: &'static str,
    /// What else it can be looked up by, as its headers alone say: also where it is refused before its body is read.
    pub(super) names: Names,
}

impl CallIds {
    /// The ids that these headers name, or new ones. `traced`: a request without a trace begins one.
    pub(super) fn of(headers: &HeaderMap, traced: bool, door: &'static str) -> CallIds {
        let named = request_id(headers).map(Arc::from);
        let trace = if headers.contains_key(crate::wire::trace::TRACEPARENT) {
            Trace::of(headers, SpanId::new(random()))
        } else {
            None
        };
        let begun = || traced.then(|| Trace::begun(random(), SpanId::new(random())));
        CallIds {
            request_id: named.unwrap_or_else(made),
            trace: trace.or_else(begun).map(Arc::new),
            door,
            names: Names::NONE,
        }
    }

    /// As events name them, before the call's body is read.
    pub(super) fn bare(&self) -> Ids<'_> {
        let trace = self.trace.as_deref();
        Ids {
            request_id: &self.request_id,
            trace_id: trace.map(Trace::id),
            parent_id: trace.and_then(Trace::parent),
            names: &self.names,
        }
    }
}

/// The client's own id: one value of 1 to 128 bytes of a safe alphabet. It goes into lines and headers as it is.
fn request_id(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(X_REQUEST_ID).iter();
    let (value, None) = (values.next()?, values.next()) else {
        return None;
    };
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/+=@".contains(&byte);
    let text = value.to_str().ok()?;
    ((1..=LONGEST).contains(&text.len()) && text.bytes().all(safe)).then_some(text)
}

fn made() -> Arc<str> {
    Uuid::now_v7()
        .hyphenated()
        .encode_lower(&mut Uuid::encode_buffer())
        .into()
}

/// Random bytes. Without any from the system, zeros: an id that others have too is better than no answer.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let _ = getrandom::fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn id(values: &[&str]) -> Arc<str> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(X_REQUEST_ID, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        CallIds::of(&headers, false, crate::event::AT_CLIENTS).request_id
    }

    /// [COR-1] A safe id of the client's is the request's; of any other, and of two, a new one is made.
    #[test]
    fn a_safe_id_is_taken() {
        for safe in [
            "req-1",
            "0193c8e2-7b1d-7aaa-8f00-1234567890ab",
            "a.b_c:d/e+f=g@h",
            &"x".repeat(128),
        ] {
            assert_eq!(&*id(&[safe]), safe);
        }
        for unsafe_one in ["", "a b", "a\"b", "a<b>", "a\tb", "ä", "a'--", &"x".repeat(129)] {
            let made = id(&[unsafe_one]);
            assert_eq!(
                Uuid::parse_str(&made).map(|id| id.get_version_num()),
                Ok(7),
                "{unsafe_one:?}"
            );
        }
        assert_eq!(id(&["one", "two"]).len(), 36);
        assert_ne!(id(&[]), id(&[]));
    }

    /// [COR-4] A request without a trace begins one only where spans are exported.
    #[test]
    fn a_trace_begins_here_only_where_it_is_recorded() {
        assert_eq!(
            CallIds::of(&HeaderMap::new(), false, crate::event::AT_CLIENTS).trace,
            None
        );
        let begun = CallIds::of(&HeaderMap::new(), true, crate::event::AT_CLIENTS)
            .trace
            .unwrap();
        assert_eq!((begun.id().len(), begun.parent()), (32, None));
        assert!(begun.is_sampled());
    }
}
