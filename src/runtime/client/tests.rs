use http_body_util::BodyExt;

use super::*;
use crate::runtime::budget::Budget;

fn created(number: u64) -> Bytes {
    format!(r#"{{"type":"response.created","sequence_number":{number},"response":{{"id":"r1"}}}}"#).into()
}

/// A streamed reply that has begun, and the budget it counts in.
async fn begun() -> (Feed, Reply, Budget) {
    let budget = Budget::new(1 << 20);
    let (mut feed, mut waiting) = pair("gpt-5", 1 << 10, budget.nothing());
    feed.commit(HeaderMap::new());
    feed.accepted(Some("r1"));
    feed.event(b"response.created", created(0));
    feed.flush(Instant::now());
    let reply = waiting.reply().await.unwrap();
    (feed, reply, budget)
}

/// [SES-16] [INV-7] a torn client gets nothing more, neither what was handed over nor what was only encoded; nothing is held for it.
#[tokio::test]
async fn a_torn_client_is_handed_nothing() {
    let (mut feed, reply, budget) = begun().await;
    feed.event(b"response.output_text.delta", Bytes::from(vec![b'x'; 4096]));
    feed.tear();
    feed.end(Instant::now());
    assert_eq!(budget.used(), 0);
    assert!(reply.into_body().frame().await.unwrap().is_err());
}

/// [SES-10] [WIRE-10] a failure goes on with the count of the last event that had a number, whatever unnumbered one came after it.
#[tokio::test]
async fn a_failure_goes_on_counting() {
    let (mut feed, reply, _) = begun().await;
    feed.event(
        b"response.output_text.delta",
        r#"{"type":"response.output_text.delta","sequence_number":7,"delta":"a \"sequence_number\": 9"}"#
            .into(),
    );
    feed.event(
        b"codex.rate_limits",
        r#"{"type":"codex.rate_limits","rate_limits":{}}"#.into(),
    );
    feed.keepalive();
    feed.fail("bridge_idle_timeout", "silent");
    feed.end(Instant::now());
    let text = reply.into_body().collect().await.unwrap().to_bytes();
    let text = std::str::from_utf8(&text).unwrap();
    assert!(
        text.contains(r#"{"type":"keepalive","sequence_number":7}"#),
        "{text}"
    );
    assert!(
        text.contains(r#"{"type":"response.failed","sequence_number":8,"#),
        "{text}"
    );
    assert_eq!(
        text.matches("response.created").count(),
        2,
        "its name and its type: {text}"
    );
}
