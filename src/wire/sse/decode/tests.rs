use bytes::BytesMut;
use proptest::prelude::*;

use super::*;
use crate::wire::sse::encode;

const CAP: usize = 1 << 20;

fn drain(decoder: &mut Decoder, into: &mut Vec<(Option<String>, String)>) {
    while let Some(event) = decoder.next_event().unwrap() {
        into.push((event.event, String::from_utf8(event.data.to_vec()).unwrap()));
    }
}

fn whole(stream: &[u8]) -> Vec<(Option<String>, String)> {
    chunked(stream, stream.len().max(1))
}

fn chunked(stream: &[u8], size: usize) -> Vec<(Option<String>, String)> {
    let (mut decoder, mut events) = (Decoder::new(CAP), Vec::new());
    for chunk in stream.chunks(size) {
        decoder.feed(chunk);
        drain(&mut decoder, &mut events);
    }
    events
}

fn named(event: &str, data: &str) -> (Option<String>, String) {
    (Some(event.to_owned()), data.to_owned())
}

/// [WIRE-18] LF, CRLF and CR; BOM; comments; ids; several data lines; at every byte boundary.
#[test]
fn any_framing_cut_at_any_byte() {
    let lines = "\u{feff}: hello\nevent: a\ndata: {\"t\":\"你好 👩‍👩‍👧 é\"}\n\nid: 1\nretry: 5\ndata:x\ndata\ndata:  y\n\nevent\n\ndata: z\n\n";
    let expected = vec![
        named("a", "{\"t\":\"你好 👩‍👩‍👧 é\"}"),
        (None, "x\n\n y".to_owned()),
        (None, "z".to_owned()),
    ];
    for end in ["\n", "\r\n", "\r"] {
        let stream = lines.replace('\n', end);
        let stream = stream.as_bytes();
        assert_eq!(whole(stream), expected, "{end:?}");
        for size in 1..9 {
            assert_eq!(chunked(stream, size), expected, "{end:?} by {size}");
        }
        for cut in 0..stream.len() {
            let (mut decoder, mut events) = (Decoder::new(CAP), Vec::new());
            decoder.feed(&stream[..cut]);
            drain(&mut decoder, &mut events);
            decoder.feed(&stream[cut..]);
            drain(&mut decoder, &mut events);
            assert_eq!(events, expected, "{end:?} at {cut}");
        }
    }
}

/// [WIRE-18] An event is there as soon as its blank line is, also when that ends in a CR whose LF may follow.
#[test]
fn an_event_is_not_held_back() {
    for end in ["\n", "\r\n", "\r"] {
        let mut decoder = Decoder::new(CAP);
        decoder.feed(format!("data: 1{end}{end}").as_bytes());
        assert_eq!(decoder.next_event().unwrap().unwrap().data, "1");
        decoder.feed(format!("data: 2{end}{end}").as_bytes());
        assert_eq!(decoder.next_event().unwrap().unwrap().data, "2");
        assert_eq!(decoder.next_event(), Ok(None));
    }
}

/// [WIRE-18] A last block without its blank line is no event.
#[test]
fn an_unfinished_block_is_dropped() {
    assert_eq!(whole(b"data: 1\n\ndata: 2\n"), [(None, "1".to_owned())]);
    assert_eq!(whole(b"data: 1\n\nevent: x\ndata: 2"), [(None, "1".to_owned())]);
    assert_eq!(whole(b"event: x\n\n: c\n\ndata: 2\n\n"), [(None, "2".to_owned())]);
    assert_eq!(whole(b"\xef\xbb"), []);
}

/// [WIRE-18] Bad UTF-8 is repaired, good UTF-8 is not touched, a BOM inside the stream is text.
#[test]
fn bad_utf8_is_repaired() {
    assert_eq!(whole(b"data: a\xffb\n\n"), [(None, "a\u{fffd}b".to_owned())]);
    assert_eq!(
        whole("data: \u{feff}é\n\n".as_bytes()),
        [(None, "\u{feff}é".to_owned())]
    );
}

/// [WIRE-18] The marker of older APIs can be told.
#[test]
fn done_can_be_told() {
    let mut decoder = Decoder::new(CAP);
    decoder.feed(b"data: [DONE]\n\ndata: {\"a\":\"[DONE]\"}\n\n");
    assert!(decoder.next_event().unwrap().unwrap().is_done_marker());
    assert!(!decoder.next_event().unwrap().unwrap().is_done_marker());
}

/// [WIRE-9] An event's data is output text: it is not printed.
#[test]
fn debug_holds_no_data() {
    let mut decoder = Decoder::new(CAP);
    decoder.feed(b"event: SECRET\ndata: SECRET\n\n");
    assert!(!format!("{:?}", decoder.next_event()).contains("SECRET"));
}

/// [WIRE-19] A line of the cap is read, one byte more is a fault, whether its end has come or not.
#[test]
fn a_line_has_a_cap() {
    let line = |length: usize| format!("data:{}", "x".repeat(length - 5));
    for size in [1, 7, 1000] {
        let (mut decoder, mut found) = (Decoder::new(100), None);
        for chunk in format!("{}\n\n", line(100)).as_bytes().chunks(size) {
            decoder.feed(chunk);
            found = found.or(decoder.next_event().unwrap());
        }
        assert_eq!(found.map(|event| event.data.len()), Some(95));
    }
    for stream in [line(101), format!("{}\n\n", line(101))] {
        let mut decoder = Decoder::new(100);
        decoder.feed(stream.as_bytes());
        assert_eq!(decoder.next_event(), Err(SseFault::TooLong { limit: 100 }));
        assert_eq!(decoder.next_event(), Err(SseFault::TooLong { limit: 100 }));
    }
}

/// [WIRE-19] Many short lines cannot pass the cap together.
#[test]
fn the_data_of_one_event_has_the_same_cap() {
    let mut decoder = Decoder::new(10);
    decoder.feed(b"data:12345\ndata:6789\n\n");
    assert_eq!(decoder.next_event().unwrap().unwrap().data, "12345\n6789");
    decoder.feed(b"data:12345\ndata:67890\n\n");
    assert_eq!(decoder.next_event(), Err(SseFault::TooLong { limit: 10 }));
    decoder.feed(b"data:1\n\n");
    assert_eq!(decoder.next_event(), Err(SseFault::TooLong { limit: 10 }));
}

/// [WIRE-18] A line of 16 MiB in small reads, without looking at any byte twice.
#[test]
fn a_line_of_sixteen_mebibytes() {
    let data = "你好".repeat((16 << 20) / 6);
    let stream = format!("event: response.output_text.delta\r\ndata: {data}\r\n\r\n");
    let (mut decoder, mut events) = (Decoder::new(32 << 20), Vec::new());
    for chunk in stream.as_bytes().chunks(8191) {
        decoder.feed(chunk);
        drain(&mut decoder, &mut events);
    }
    assert!(events == [named("response.output_text.delta", &data)]);
}

fn piece() -> impl Strategy<Value = String> {
    proptest::sample::select(vec![
        "data:",
        "data: ",
        "event: ",
        ":",
        "id: 1",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "你",
        "👩‍👧",
        "{\"a\":1}",
        " ",
        "\u{feff}",
        "x",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    /// [WIRE-18] Any stream in any cuts gives the events of the whole.
    #[test]
    fn chunking_changes_nothing(
        pieces in proptest::collection::vec(piece(), 0..40),
        cuts in proptest::collection::vec(1_usize..20, 1..40),
    ) {
        let stream = pieces.concat();
        let (mut decoder, mut events) = (Decoder::new(CAP), Vec::new());
        let (mut rest, mut cuts) = (stream.as_bytes(), cuts.into_iter().cycle());
        while !rest.is_empty() {
            let (chunk, more) = rest.split_at(cuts.next().unwrap().min(rest.len()));
            decoder.feed(chunk);
            drain(&mut decoder, &mut events);
            rest = more;
        }
        prop_assert_eq!(events, whole(stream.as_bytes()));
    }

    /// [WIRE-17] [WIRE-18] What is written is read back.
    #[test]
    fn encoder_and_decoder_agree(name in "[a-z._]{1,20}", text in any::<String>(), size in 1_usize..50) {
        let data = serde_json::to_string(&text).unwrap();
        let mut out = BytesMut::new();
        encode::comment(&mut out);
        encode::event(&mut out, &name, data.as_bytes());
        prop_assert_eq!(chunked(&out, size), vec![named(&name, &data)]);
    }

    /// [WIRE-18] No bytes make the decoder panic, and it gives only valid UTF-8.
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), size in 1_usize..20) {
        chunked(&bytes, size);
    }
}
