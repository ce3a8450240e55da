//! What every event and every request pays, piece by piece: `cargo bench --bench hot_path`.
// A bench may panic: it has nobody to answer to.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use responses_bridge::bridge::turn::{Input, Policy, Turn};
use responses_bridge::bridge::watchdog::{Limits, Transport};
use responses_bridge::wire::request::read_create;
use responses_bridge::wire::sse::decode::Decoder;
use responses_bridge::wire::{head, sse};

const DELTA: &str = r#"{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"a few words of an answer","logprobs":[]}"#;
const ITEM: &str = r#"{"type":"response.output_item.done","sequence_number":8,"output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"a few words"}]}}"#;
const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-5","output":[],"store":false}}"#;

fn main() {
    divan::main();
}

/// A create body of about `bytes` bytes, of the kind that agents resend: escaped code in many items.
fn body(bytes: usize) -> Bytes {
    let item = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"fn main() {\n    println!(\"hello\");\n}"}]}"#;
    let items = vec![item; bytes / item.len()].join(",");
    format!(r#"{{"model":"gpt-5","stream":true,"store":false,"input":[{items}]}}"#).into()
}

#[divan::bench(args = [DELTA, ITEM])]
fn head_of(frame: &str) {
    black_box(head::read(black_box(frame.as_bytes())));
}

#[divan::bench(args = [4 << 10, 256 << 10])]
fn create_read(bencher: Bencher<'_, '_>, bytes: usize) {
    let body = body(bytes);
    bencher
        .counter(BytesCount::new(body.len()))
        .bench(|| read_create(black_box(body.clone())).unwrap());
}

#[divan::bench(args = [4 << 10, 256 << 10])]
fn create_framed(bencher: Bencher<'_, '_>, bytes: usize) {
    let create = read_create(body(bytes)).unwrap();
    bencher
        .counter(BytesCount::new(bytes))
        .bench(|| black_box(&create).frame(&[]));
}

#[divan::bench]
fn event_encoded(bencher: Bencher<'_, '_>) {
    let mut out = BytesMut::with_capacity(1 << 20);
    bencher.bench_local(|| {
        out.clear();
        sse::encode::event(
            &mut out,
            "response.output_text.delta",
            black_box(DELTA.as_bytes()),
        );
    });
}

#[divan::bench]
fn hundred_events_decoded() {
    let event = format!("event: response.output_text.delta\ndata: {DELTA}\n\n");
    let mut decoder = Decoder::new(1 << 20);
    for _ in 0..100 {
        decoder.feed(black_box(event.as_bytes()));
        black_box(decoder.next_event().unwrap());
    }
}

/// The turn machine alone: accepted, then a hundred deltas forwarded.
#[divan::bench]
fn turn_of_a_hundred_deltas() {
    let second = Duration::from_secs(1);
    let limits = Limits {
        write: second,
        created: second,
        idle: second,
        request: second,
        first_byte: second,
        first_event: second,
        between_events: second,
    };
    let policy = Policy {
        limits,
        transport: Transport::WebSocket,
        stream: true,
        whole: false,
        commit_after: second,
        heartbeat: second,
        slow_client: second,
        items_cap: 1 << 20,
    };
    let now = Instant::now();
    let mut turn = Turn::new(policy, now, None);
    turn.handle(now, Input::Flushed);
    for frame in std::iter::once(CREATED).chain(std::iter::repeat_n(DELTA, 100)) {
        let data = Bytes::from_static(frame.as_bytes());
        let name = Bytes::from_static(b"response.output_text.delta");
        let head = head::read(&data).head;
        turn.handle(now, Input::Event { name, data, head });
        while let Some(output) = turn.poll() {
            black_box(output);
        }
    }
}
