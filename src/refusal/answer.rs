//! A row of the table as it is answered.

use std::borrow::Cow;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};

use super::Kind;
use crate::wire;

/// One answer of the bridge's own: a row of the table, and what this occurrence adds to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub kind: Kind,
    /// What the client reads; says what happened and what to do, never quotes the request.
    pub message: Cow<'static, str>,
    /// The field of the request that is at fault.
    pub param: Option<Cow<'static, str>>,
    /// A wait other than the table's.
    pub wait: Option<Duration>,
}

impl From<Kind> for Refusal {
    fn from(kind: Kind) -> Self {
        Refusal {
            kind,
            message: Cow::Borrowed(kind.row().message),
            param: None,
            wait: None,
        }
    }
}

impl Refusal {
    /// The owner is unavailable, for about `wait`: the client is told 1 to 60 s.
    pub fn owner_unavailable(wait: Duration) -> Self {
        let seconds = (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).clamp(1, 60);
        Refusal {
            wait: Some(Duration::from_secs(seconds)),
            ..Kind::OwnerUnavailable.into()
        }
    }

    /// The wait that the client is told, if it is told one.
    pub fn retry_after(&self) -> Option<Duration> {
        self.wait.or(self.kind.retry_after())
    }

    /// A refusal whose message says more than the table's.
    pub fn because(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Refusal {
            message: message.into(),
            ..kind.into()
        }
    }

    /// Names the field at fault.
    pub fn about(self, param: impl Into<Cow<'static, str>>) -> Self {
        Refusal {
            param: Some(param.into()),
            ..self
        }
    }

    /// The `error.type` of the API's shape.
    pub fn error_type(&self) -> &'static str {
        match self.kind.status().as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            400..=499 => "invalid_request_error",
            _ => "server_error",
        }
    }

    /// The JSON body in the API's error shape.
    pub fn body(&self) -> Vec<u8> {
        let mut body = wire::error::api_error(
            self.error_type(),
            self.kind.code(),
            &self.message,
            self.param.as_deref(),
        );
        // Before the braces that close the error and the body.
        if let (Some(recovery), Some(end)) = (self.recovery(), body.len().checked_sub(2)) {
            body.splice(end..end, recovery.into_bytes());
        }
        body
    }

    /// What a program can do about it, as one more member of the error object.
    fn recovery(&self) -> Option<String> {
        let wait = self
            .retry_after()
            .filter(|_| self.kind == Kind::OwnerUnavailable)?;
        let options = r#"["retry_later","resend_in_full_without_account_bound_items"]"#;
        let reason = self.kind.label();
        let seconds = wait.as_secs();
        Some(format!(
            r#","recovery":{{"reason":"{reason}","retry_after_s":{seconds},"options":{options}}}"#
        ))
    }

    /// The headers that belong to this answer: content type, Retry-After, and `Connection: close` where the
    /// connection cannot go on.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(wait) = self.retry_after() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs()));
        }
        if matches!(
            self.kind,
            Kind::UpgradeNotSupported | Kind::BodyTimeout | Kind::Draining
        ) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        headers
    }
}
