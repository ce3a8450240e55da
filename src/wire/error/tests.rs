use http::HeaderMap;

use super::*;

fn envelope(text: &str) -> WireError {
    WireError::from_envelope(text)
}

fn coded(code: &str) -> WireError {
    WireError {
        code: Some(code.to_owned()),
        ..WireError::default()
    }
}

/// [WIRE-6] All the ways to say that an anchor is not known.
#[test]
fn unknown_anchors_in_every_wording() {
    for text in [
        r#"{"error":{"code":"previous_response_not_found"}}"#,
        r#"{"error":{"code":"invalid_previous_response_id"}}"#,
        r#"{"error":{"type":"previous_response_not_found","message":"x"}}"#,
        r#"{"error":{"code":"stream_incomplete","param":"previous_response_id"}}"#,
        r#"{"error":{"message":"Previous response with id 'resp_1' not found."}}"#,
        r#"{"status":404,"error":{"type":"invalid_request_error","message":"Previous response with id 'r' not found."}}"#,
        r#"{"error":{"code":"invalid_request_error","message":"previous_response_id 'r' does not exist"}}"#,
        r#"{"detail":"Previous response not found"}"#,
    ] {
        let error = envelope(text);
        assert_eq!(error.class(), ErrorClass::NotFoundAnchor, "{text}");
        assert!(matches!(error.http_status(), 400 | 404), "{text}");
    }
    assert_ne!(
        envelope(r#"{"error":{"code":"stream_incomplete"}}"#).class(),
        ErrorClass::NotFoundAnchor
    );
    assert_ne!(
        envelope(r#"{"error":{"message":"model not found"}}"#).class(),
        ErrorClass::NotFoundAnchor
    );
}

/// [WIRE-6] [WIRE-7] Every code with meaning, without a status of its own.
#[test]
fn codes_have_a_class_and_a_status() {
    for (code, class, status) in [
        ("previous_response_not_found", ErrorClass::NotFoundAnchor, 400),
        (
            "websocket_connection_limit_reached",
            ErrorClass::ConnectionLimit,
            503,
        ),
        ("websocket_stream_limit_reached", ErrorClass::StreamLimit, 503),
        ("invalid_stream_id", ErrorClass::Invalid, 400),
        ("rate_limit_exceeded", ErrorClass::RateLimit, 429),
        ("usage_limit_reached", ErrorClass::Quota, 429),
        ("insufficient_quota", ErrorClass::Quota, 429),
        ("server_is_overloaded", ErrorClass::Overload, 503),
        ("slow_down", ErrorClass::Overload, 429),
        ("context_length_exceeded", ErrorClass::ContextLength, 400),
        ("invalid_prompt", ErrorClass::Policy, 400),
        ("invalid_api_key", ErrorClass::Authentication, 401),
        ("server_error", ErrorClass::Server, 500),
        ("never_heard_of", ErrorClass::Unknown, 502),
    ] {
        let error = coded(code);
        assert_eq!((error.class(), error.http_status()), (class, status), "{code}");
        let as_type = WireError {
            kind: Some(code.to_owned()),
            ..WireError::default()
        };
        assert_eq!(as_type.class(), class, "{code} as a type");
    }
}

/// [WIRE-6] Without a telling code the status decides; a vague type does not outvote it.
#[test]
fn the_status_decides_where_no_code_does() {
    for (status, class) in [
        (400, ErrorClass::Invalid),
        (401, ErrorClass::Authentication),
        (403, ErrorClass::Authentication),
        (404, ErrorClass::Invalid),
        (408, ErrorClass::Server),
        (429, ErrorClass::RateLimit),
        (500, ErrorClass::Server),
        (503, ErrorClass::Overload),
    ] {
        let kind = Some("invalid_request_error".to_owned());
        let error = WireError {
            status: Some(status),
            kind,
            ..WireError::default()
        };
        assert_eq!((error.class(), error.http_status()), (class, status));
    }
}

/// [WIRE-7] Upstream's status stands, unless it would make a client give up on what a retry cures.
#[test]
fn a_retryable_error_is_never_400() {
    let with = |status, code: &str| {
        WireError {
            status: Some(status),
            ..coded(code)
        }
        .http_status()
    };
    assert_eq!(with(400, "websocket_connection_limit_reached"), 503);
    assert_eq!(with(429, "websocket_stream_limit_reached"), 503);
    assert_eq!(with(400, "rate_limit_exceeded"), 429);
    assert_eq!(with(400, "server_is_overloaded"), 503);
    assert_eq!(with(500, "rate_limit_exceeded"), 500);
    assert_eq!(with(404, "previous_response_not_found"), 404);
    assert_eq!(with(413, "never_heard_of"), 413);
    assert_eq!(with(200, "never_heard_of"), 502);
    assert_eq!(with(101, "rate_limit_exceeded"), 429);
}

/// [WIRE-8] Upstream's object goes through byte for byte.
#[test]
fn upstreams_object_is_passed_on() {
    let text = r#"{"type":"error","status":400,"error":{ "code":"x", "n":1.00, "extra":{"a":[]} }}"#;
    assert_eq!(
        envelope(text).body(),
        br#"{"error":{ "code":"x", "n":1.00, "extra":{"a":[]} }}"#
    );
}

/// [WIRE-8] Without one, an object is built.
#[test]
fn an_object_is_built_where_there_was_none() {
    let body = |text: &str| String::from_utf8(envelope(text).body()).unwrap();
    assert_eq!(
        body(r#"{"type":"error","code":"slow_down","message":"\"m\"","param":"p"}"#),
        r#"{"error":{"message":"\"m\"","type":"rate_limit_error","param":"p","code":"slow_down"}}"#
    );
    assert_eq!(
        body(r#"{"detail":"no","status":401}"#),
        r#"{"error":{"message":"no","type":"authentication_error","param":null,"code":null}}"#
    );
    assert_eq!(
        body("{}"),
        r#"{"error":{"message":"the upstream reported an error (unknown)","type":"server_error","param":null,"code":null}}"#
    );
    let own = api_error("invalid_request_error", "invalid_json", "bad", Some("input"));
    assert_eq!(
        own,
        br#"{"error":{"message":"bad","type":"invalid_request_error","param":"input","code":"invalid_json"}}"#
    );
}

/// [WIRE-8] An HTTP answer, whatever its body.
#[test]
fn http_answers_become_errors() {
    let mut answer = HeaderMap::new();
    answer.insert("retry-after", "9".parse().unwrap());
    answer.insert("set-cookie", "secret".parse().unwrap());
    answer.insert("x-ratelimit-remaining-requests", "0".parse().unwrap());
    let body = br#"{"error":{"message":"m","type":"usage_limit_reached","resets_at":1790000000}}"#;
    let error = WireError::from_http(429, &answer, body);
    assert_eq!((error.class(), error.http_status()), (ErrorClass::Quota, 429));
    assert_eq!(error.resets_at, Some(1_790_000_000));
    assert_eq!(error.body(), body);
    let headers = error.client_headers();
    assert_eq!(headers.get("retry-after").unwrap(), "9");
    assert_eq!(headers.len(), 2);
    assert!(error.headers.iter().all(|(name, _)| name != "set-cookie"));

    for page in [
        &b"<html>Bad gateway</html>"[..],
        b"",
        b"\xff",
        br#"["x"]"#,
        br#""x""#,
    ] {
        let error = WireError::from_http(502, &HeaderMap::new(), page);
        assert_eq!((error.class(), error.http_status()), (ErrorClass::Server, 502));
        assert!(
            error
                .body()
                .starts_with(br#"{"error":{"message":"the upstream reported an error (server)""#)
        );
    }
    assert_eq!(
        WireError::from_http(404, &HeaderMap::new(), br#"{"detail":"Not Found"}"#)
            .message
            .unwrap(),
        "Not Found"
    );
}

/// [WIRE-8] A frame's own headers reach the client through the same filter.
#[test]
fn frame_headers_are_filtered() {
    let error = envelope(
        r#"{"type":"error","headers":{"Retry-After":3,"set-cookie":"s","x-codex-primary-used-percent":100,
            "bad name":"x","x-request-id":"a\nb"},"error":{"code":"rate_limit_exceeded"}}"#,
    );
    let headers = error.client_headers();
    assert_eq!(headers.get("retry-after").unwrap(), "3");
    assert_eq!(headers.get("x-codex-primary-used-percent").unwrap(), "100");
    assert_eq!(headers.len(), 2);
}

/// [WIRE-9] Nothing that may quote a prompt or a credential is printed.
#[test]
fn debug_holds_no_content() {
    let error = envelope(
        r#"{"type":"error","headers":{"x-a":"SECRET"},
            "error":{"code":"SECRET","type":"SECRET","message":"SECRET","param":"SECRET"}}"#,
    );
    assert!(!format!("{error:?}").contains("SECRET"));
}
