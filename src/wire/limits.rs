//! Rate limits that come as an event on a socket, said again as the headers that they are over HTTP [WIRE-24].

use http::{HeaderMap, HeaderName, HeaderValue};

use super::json;

/// A window of `rate_limits`, and the headers of its numbers in the order of [`NUMBERS`].
const WINDOWS: [(&str, [HeaderName; 3]); 2] = [
    (
        "primary",
        [
            HeaderName::from_static("x-codex-primary-used-percent"),
            HeaderName::from_static("x-codex-primary-window-minutes"),
            HeaderName::from_static("x-codex-primary-reset-at"),
        ],
    ),
    (
        "secondary",
        [
            HeaderName::from_static("x-codex-secondary-used-percent"),
            HeaderName::from_static("x-codex-secondary-window-minutes"),
            HeaderName::from_static("x-codex-secondary-reset-at"),
        ],
    ),
];

const NUMBERS: [&str; 3] = ["used_percent", "window_minutes", "reset_at"];

/// The headers that say what a `codex.rate_limits` says. What is no number in it is left out; an event of another form
/// has none.
pub fn headers(event: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let text = std::str::from_utf8(event).ok();
    let limits = text.and_then(|text| json::fields(text, ["rate_limits"]));
    let Some([Some(limits)]) = limits else {
        return headers;
    };
    for (window, names) in WINDOWS {
        let Some([Some(window)]) = json::fields(limits.get(), [window]) else {
            continue;
        };
        let numbers = json::fields(window.get(), NUMBERS).unwrap_or_default();
        for (name, number) in names.into_iter().zip(numbers) {
            let number = number.map(|number| number.get());
            let number = number.filter(|number| number.starts_with(|c: char| c.is_ascii_digit()));
            if let Some(value) = number.and_then(|number| HeaderValue::from_str(number).ok()) {
                headers.insert(name, value);
            }
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [WIRE-24] The numbers of both windows, as they came; nothing of any other form.
    #[test]
    fn numbers_become_headers() {
        let event = br#"{"type":"codex.rate_limits","rate_limits":{"primary":{"used_percent":12.5,"window_minutes":300,
            "reset_at":1893456000},"secondary":{"used_percent":"3","window_minutes":null}}}"#;
        let mut said: Vec<_> = headers(event)
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        said.sort();
        assert_eq!(
            said,
            [
                "x-codex-primary-reset-at: 1893456000",
                "x-codex-primary-used-percent: 12.5",
                "x-codex-primary-window-minutes: 300",
            ]
        );
        for other in [
            &b"{}"[..],
            b"\xff",
            b"{\"rate_limits\":null}",
            b"{\"rate_limits\":{\"primary\":7}}",
        ] {
            assert!(headers(other).is_empty());
        }
    }
}
