//! The ids of a call, from the client's headers to the upstream and into the log.

use std::sync::{Arc, Mutex};

use responses_bridge::runtime::{Attribute, Span};

use crate::client::Ask;
use crate::shared::HTTP_ONLY;
use crate::world::{Setup, World, eventually};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn traced(ask: Ask) -> Ask {
    ask.header("traceparent", &format!("00-{TRACE}-{PARENT}-01"))
        .header("tracestate", "vendor=1,other=2")
        .header("x-request-id", "my-request")
}

/// The trace that the last create said it belongs to.
fn said(world: &World) -> Option<String> {
    let last =
        |ledger: &responses_bridge::simulator::Ledger| ledger.creates.last().unwrap().traceparent.clone();
    world.upstream.look(last)
}

/// [COR-1] [COR-3] [COR-6] The client's ids are in the answer and at the end of the line; its trace goes upstream with another parent, on
/// a socket as over HTTP; what is not traced carries nothing.
#[tokio::test]
async fn a_trace_goes_on_by_either_transport() {
    for config in ["", HTTP_ONLY] {
        let world = Setup::new().config(config).start().await;
        let answer = world.ask(&traced(Ask::turn("sim:conv=t").thread("t"))).await;
        answer.completed();
        assert_eq!(answer.headers["x-request-id"], "my-request");
        let parent = said(&world).unwrap();
        let [version, trace, span, flags] = parent.split('-').collect::<Vec<_>>()[..] else {
            panic!("{parent}")
        };
        assert_eq!((version, trace, flags), ("00", TRACE, "01"));
        assert!(span.len() == 16 && span != PARENT, "{span}");
        world.saw("turn_finished", 1).await;
        let line = &world.events("turn_finished")[0];
        assert_eq!(
            (&line["request_id"], &line["trace_id"], &line["parent_id"]),
            (&"my-request".into(), &TRACE.into(), &PARENT.into())
        );
        for field in ["provider", "account", "transport", "route", "plan"] {
            assert!(line[field].is_string(), "{field}: {line}");
        }
        for field in [
            "total_ms",
            "sent_ms",
            "upstream_ms",
            "created_ms",
            "first_output_ms",
            "attempt",
        ] {
            assert!(line[field].is_u64(), "{field}: {line}");
        }
        if config == HTTP_ONLY {
            let headers = world.upstream.look(|ledger| ledger.creates[0].headers.clone());
            assert_eq!(headers["tracestate"], "vendor=1,other=2");
        }
        world.ask(&Ask::turn("sim:conv=t").thread("t")).await.completed();
        assert_eq!(said(&world), None);
        world.saw("turn_finished", 2).await;
        assert!(world.events("turn_finished")[1].get("trace_id").is_none());
    }
}

/// [COR-4] A call is five spans, each below the one before; a second attempt has four of its own; a call without a trace begins one.
#[tokio::test]
async fn a_call_is_five_spans() {
    let seen = Arc::<Mutex<Vec<Span>>>::default();
    let sink = seen.clone();
    let world = Setup::new()
        .spans(Box::new(move |spans| sink.lock().unwrap().extend(spans)))
        .start()
        .await;
    world
        .ask(&traced(Ask::turn("sim:conv=s").thread("s")))
        .await
        .completed();
    let ended = |n| {
        let requests = seen
            .lock()
            .unwrap()
            .iter()
            .filter(|span| span.name == "request")
            .count();
        requests >= n
    };
    eventually("a request span", || ended(1)).await;
    let spans = std::mem::take(&mut *seen.lock().unwrap());
    let of = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let mut above = of("request");
    assert_eq!(above.parent, Some(0xb7ad_6b71_6920_3331_u64.to_be_bytes()));
    assert!(
        above
            .attributes
            .contains(&("bridge.request_id", Attribute::Text("my-request".into())))
    );
    for name in ["plan", "queue", "turn", "transport"] {
        let span = of(name);
        assert_eq!(span.parent, Some(above.id.bytes()), "{name}");
        assert_eq!(span.trace.id(), TRACE);
        assert!(span.began <= span.ended && span.failed.is_none(), "{span:?}");
        above = span;
    }
    // The upstream's parent is the transport.
    let parent = said(&world).unwrap();
    assert!(
        parent.contains(&format!("{:016x}", u64::from_be_bytes(above.id.bytes()))),
        "{parent}"
    );

    let refused = Ask::turn("sim:error(status=429)").thread("r");
    assert_eq!(world.ask(&refused).await.status, 429);
    eventually("the refused one's span", || ended(1)).await;
    let spans = seen.lock().unwrap().clone();
    let request = spans.iter().find(|span| span.name == "request").unwrap();
    assert_eq!((request.parent, request.failed), (None, Some("rejected")));
    assert!(!request.trace.id().contains(TRACE));
}
