use super::*;

const ID: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn headers(parents: &[&str], states: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for parent in parents {
        headers.append(TRACEPARENT, HeaderValue::from_str(parent).unwrap());
    }
    for state in states {
        headers.append(TRACESTATE, HeaderValue::from_str(state).unwrap());
    }
    headers
}

fn of(parents: &[&str]) -> Option<Trace> {
    Trace::of(&headers(parents, &[]), SpanId::new([7; 8]))
}

/// [COR-3] The trace is kept, the parent recorded, a new span named; flags that are not known are not passed on.
#[test]
fn a_trace_goes_on_with_a_span_of_ours() {
    let trace = of(&[&format!("00-{ID}-{PARENT}-03")]).unwrap();
    assert_eq!((trace.id(), trace.parent()), (ID, Some(PARENT)));
    assert!(trace.is_sampled());
    let out = trace.parent_of(trace.span());
    assert_eq!(out, format!("00-{ID}-0707070707070707-01"));
    let unrecorded = of(&[&format!("00-{ID}-{PARENT}-00")]).unwrap();
    assert!(!unrecorded.is_sampled());
    assert!(unrecorded.parent_of(unrecorded.span()).ends_with("-00"));
}

/// [COR-3] What is not well-formed is no trace, and no reason to refuse the call.
#[test]
fn what_is_no_trace_is_none() {
    let zero = "0".repeat(32);
    let upper = ID.to_uppercase();
    for bad in [
        String::new(),
        "x".into(),
        format!("00-{ID}-{PARENT}"),
        format!("00-{ID}-{PARENT}-01-more"),
        format!("ff-{ID}-{PARENT}-01"),
        format!("0-{ID}-{PARENT}-01"),
        format!("00-{zero}-{PARENT}-01"),
        format!("00-{ID}-0000000000000000-01"),
        format!("00-{upper}-{PARENT}-01"),
        format!("00-{ID}1-{PARENT}-01"),
        format!("00-{ID}-{PARENT}-1"),
        format!("00-{ID}-{PARENT}-zz"),
        format!("00-{ID}-{PARENT}-01'; DROP TABLE journal; --"),
    ] {
        assert_eq!(of(&[&bad]), None, "{bad}");
    }
    let good = format!("00-{ID}-{PARENT}-01");
    assert_eq!(of(&[&good, &good]), None, "twice");
    assert_eq!(of(&[]), None);
    assert!(
        of(&[&format!("01-{ID}-{PARENT}-01-later")]).is_some(),
        "a later version"
    );
}

/// [COR-3] `tracestate` is passed as it came, several headers as one; a monstrous one is left out and the trace kept.
#[test]
fn the_state_is_passed() {
    let parent = format!("00-{ID}-{PARENT}-01");
    let state = |states: &[&str]| {
        let trace = Trace::of(&headers(&[&parent], states), SpanId::new([1; 8])).unwrap();
        trace.state().map(|state| state.to_str().unwrap().to_owned())
    };
    assert_eq!(state(&[]), None);
    assert_eq!(state(&["a=1", "b=2,c=3"]).as_deref(), Some("a=1,b=2,c=3"));
    assert_eq!(state(&[&"a".repeat(513)]), None);
}

/// [COR-4] Spans below the call's have ids of their own, none of them zero.
#[test]
fn spans_are_told_apart() {
    for random in [[0; 8], [0xff; 8], [9; 8]] {
        let span = SpanId::new(random);
        let mut ids: Vec<_> = (1..40).map(|n| span.below(n).bytes()).collect();
        ids.push(span.bytes());
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 40);
        assert!(!ids.contains(&[0; 8]));
    }
}

/// [EXP-18] The trace id of a whole header is found, and nothing in what is none.
#[test]
fn the_id_in_a_whole_header() {
    assert_eq!(id_in(&format!(" 00-{ID}-{PARENT}-01\n")), Some(ID));
    for other in [ID, "req-1", ""] {
        assert_eq!(id_in(other), None);
    }
}
