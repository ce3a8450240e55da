use super::*;

/// [SES-20] every 429 and 5xx of the bridge's own carries Retry-After between 1 and 60 seconds, and no 4xx that a
/// retry cannot cure does.
#[test]
fn every_retryable_answer_says_when() {
    for kind in Kind::ALL {
        let status = kind.status().as_u16();
        match kind.retry_after() {
            Some(wait) => assert!((1..=60).contains(&wait.as_secs()), "{kind:?}"),
            None => assert!(status < 500 && status != 429, "{kind:?} has no Retry-After"),
        }
    }
}

/// [SES-21] no code of the bridge's own equals an upstream code, and no two kinds share one.
#[test]
fn codes_are_the_bridges_own_and_distinct() {
    let mut seen = std::collections::HashSet::new();
    for kind in Kind::ALL {
        let bridges_own = kind.code().starts_with("bridge_") || kind == Kind::UnknownAnchor;
        assert!(bridges_own, "{kind:?}");
        assert!(seen.insert(kind.code()), "{kind:?} repeats a code");
    }
}

/// [ROUTE-7] an owner that is unavailable is told with what a program can do about it, and waits of 1 to 60 s.
#[test]
fn an_unavailable_owner_is_told_to_programs() {
    for (wait, told) in [(0, 1), (1, 1), (1500, 2), (60_000, 60), (3_600_000, 60)] {
        let refusal = Refusal::owner_unavailable(Duration::from_millis(wait));
        let body: serde_json::Value = serde_json::from_slice(&refusal.body()).unwrap();
        let recovery = &body["error"]["recovery"];
        assert_eq!(recovery["reason"], "owner_unavailable");
        assert_eq!(recovery["retry_after_s"], told, "{wait}");
        assert_eq!(
            recovery["options"],
            serde_json::json!(["retry_later", "resend_in_full_without_account_bound_items"])
        );
        assert_eq!(refusal.headers()["retry-after"], told.to_string().as_str());
        assert_eq!(body["error"]["code"], "bridge_owner_unavailable");
    }
}

/// [EDGE-1] an answer has the API's error shape and names the field.
#[test]
fn an_answer_has_the_apis_shape() {
    let refusal = Refusal::because(Kind::InvalidBody, "model must be a string").about("model");
    let body: serde_json::Value = serde_json::from_slice(&refusal.body()).unwrap();
    assert_eq!(body["error"]["param"], "model");
    assert_eq!(body["error"]["type"], "invalid_request_error");
    assert_eq!(body["error"]["code"], "bridge_invalid_body");
    assert_eq!(body["error"]["message"], "model must be a string");
}
