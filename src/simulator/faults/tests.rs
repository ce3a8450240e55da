use super::*;

fn error(shape: Shape) -> ErrorFrame {
    let error = ErrorFrame::invalid("rate_limit_exceeded", "slow down", Some("p")).with_status(429);
    let headers = vec![
        ("retry-after".into(), "3".into()),
        ("x-should-retry".into(), "true".into()),
    ];
    ErrorFrame {
        shape,
        headers,
        ..error
    }
}

/// [SIM-6] Every shape of an error frame looks as upstreams have been seen to write it.
#[test]
fn every_shape_looks_as_seen() {
    let frame = |shape| serde_json::from_str::<Value>(&error(shape).frame(5)).unwrap();
    let inner = json!({"type": "invalid_request_error", "code": "rate_limit_exceeded", "message": "slow down", "param": "p"});
    let headers = json!({"retry-after": 3, "x-should-retry": true});
    let nested = json!({"type": "error", "status": 429, "error": inner});
    let without = |key: &str| {
        let mut inner = inner.clone();
        inner.as_object_mut().unwrap().remove(key);
        inner
    };
    let with = |key: &str, value: Value| {
        let mut inner = inner.clone();
        inner[key] = value;
        inner
    };
    let cases = [
        (Shape::Nested, nested.clone()),
        (
            Shape::StatusCode,
            json!({"type": "error", "status_code": 429, "error": inner}),
        ),
        (Shape::NoStatus, json!({"type": "error", "error": inner})),
        (
            Shape::NoType,
            json!({"type": "error", "status": 429, "error": without("type")}),
        ),
        (
            Shape::NullCode,
            json!({"type": "error", "status": 429, "error": with("code", Value::Null)}),
        ),
        (
            Shape::Flat,
            json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": "p", "sequence_number": 5}),
        ),
        (
            Shape::ResponseError,
            json!({"type": "response.error", "status": 429, "error": inner}),
        ),
        (Shape::Typeless, json!({ "error": inner })),
        (Shape::Detail, json!({"detail": "slow down"})),
        (
            Shape::HeadersTop,
            json!({"type": "error", "status": 429, "error": inner, "headers": headers}),
        ),
        (
            Shape::HeadersInner,
            json!({"type": "error", "status": 429, "error": with("headers", headers.clone())}),
        ),
    ];
    assert_eq!(cases.len(), SHAPES.len());
    for (shape, expected) in cases {
        assert_eq!(frame(shape), expected, "{shape:?}");
    }
}
