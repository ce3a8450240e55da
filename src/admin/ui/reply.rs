//! Answers of the page, and what a browser must be told with each (PAGE-2).

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION, REFERRER_POLICY,
    RETRY_AFTER, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, Response, StatusCode};

use super::shell;
use crate::refusal::Kind;
use crate::runtime::call::{Reply, ReplyBody};

pub(super) const HTML: &str = "text/html; charset=utf-8";

/// Nothing but our own script, style, stream and forms; framed by nobody.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// On every answer. With `no-referrer` browsers would send `Origin: null` with our own forms, which is what a foreign page
/// can make them send as well; `same-origin` tells other sites as little.
const ALWAYS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "same-origin"),
    (CACHE_CONTROL, "no-store"),
    (X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// An answer, and why it is a refusal, where it is one.
pub struct Answer {
    pub reply: Reply,
    pub refused: Option<Kind>,
}

impl Answer {
    /// A text of ours.
    pub(super) fn ok(content_type: &'static str, text: impl Into<Bytes>) -> Answer {
        Answer::new(StatusCode::OK, content_type, text)
    }

    fn new(status: StatusCode, content_type: &'static str, text: impl Into<Bytes>) -> Answer {
        Answer::with(status, content_type, ReplyBody::Whole(Some(text.into())))
    }

    /// A body of ours.
    pub(super) fn with(status: StatusCode, content_type: &'static str, body: ReplyBody) -> Answer {
        let mut reply = Response::new(body);
        *reply.status_mut() = status;
        let headers = reply.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        for (name, value) in ALWAYS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        Answer { reply, refused: None }
    }

    /// Go there.
    pub(super) fn see(place: &str) -> Answer {
        let mut answer = Answer::new(StatusCode::SEE_OTHER, HTML, Bytes::new());
        // Our own addresses are of plain ASCII.
        if let Ok(place) = HeaderValue::from_str(place) {
            answer.reply.headers_mut().insert(LOCATION, place);
        }
        answer
    }

    /// A page that says why not.
    pub(super) fn refuse(kind: Kind, page: String) -> Answer {
        let mut answer = Answer::new(kind.status(), HTML, page);
        answer.refused = Some(kind);
        answer
    }

    /// A page with these words.
    pub(super) fn no(kind: Kind, title: &str, words: &str) -> Answer {
        Answer::refuse(kind, shell::note(title, words))
    }

    /// Only these methods.
    pub(super) fn only(methods: &'static str) -> Answer {
        let words = "This address takes another method: use the buttons of the page.";
        let answer = Answer::no(Kind::MethodNotAllowed, "Not like this", words);
        answer.and(ALLOW, HeaderValue::from_static(methods))
    }

    pub(super) fn and(mut self, name: HeaderName, value: HeaderValue) -> Answer {
        self.reply.headers_mut().insert(name, value);
        self
    }

    pub(super) fn later(self, seconds: u64) -> Answer {
        self.and(RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// With a cookie. One that cannot be written is none, which no cookie of ours is.
    pub(super) fn cookie(self, cookie: &str) -> Answer {
        match HeaderValue::from_str(cookie) {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.and(SET_COOKIE, value)
            }
            Err(_) => self,
        }
    }
}
