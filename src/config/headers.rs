//! `headers`: what every request of a provider or an account carries by the operator's wish (UP-20).
use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret;

use super::credentials::secret;
use super::document::key_path;
use super::raw::Text;
use super::review::Review;
use crate::wire::headers::is_reserved;

/// The headers of one table. Every value counts as a secret: many are.
pub fn headers(review: &mut Review<'_>, path: &str, raw: &BTreeMap<String, Text>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, text) in raw {
        let key = key_path(path, name);
        let Some(value) = value(review, &key, text) else {
            continue;
        };
        let Ok(header) = HeaderName::try_from(name.as_str()) else {
            let hint = "a header's name has letters, digits and -, as in \"x-team\"";
            review.fault(&key, "is not the name of a header", hint);
            continue;
        };
        if header == "chatgpt-account-id" {
            let hint = "write it as chatgpt_account_id = \"…\" in the account";
            review.fault(&key, "has a key of its own", hint);
        } else if is_reserved(header.as_str()) {
            let problem = "the bridge sets this header itself, or it may not pass a proxy";
            let hint = "leave it out; what authenticates a request is the account's credential";
            review.fault(&key, problem, hint);
        } else if headers.insert(header, value).is_some() {
            let problem = "this header stands here twice: case makes no difference";
            review.fault(&key, problem, "keep one of the two");
        }
    }
    headers
}

/// The value of one header.
pub fn value(review: &mut Review<'_>, key: &str, text: &Text) -> Option<HeaderValue> {
    let value = match text {
        Text::Plain(text) => HeaderValue::from_str(text.trim()),
        Text::Source(source) => HeaderValue::from_str(secret(review, key, source)?.0.expose_secret()),
    };
    match value {
        Ok(mut value) if !value.is_empty() => {
            value.set_sensitive(true);
            Some(value)
        }
        Ok(_) => {
            review.fault(key, "is empty", "write the header's value, or leave it out");
            None
        }
        Err(_) => {
            let hint = "write one line of visible ASCII";
            review.fault(key, "cannot stand in a header", hint);
            None
        }
    }
}
