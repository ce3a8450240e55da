use super::*;

fn masked(opcode: u8, fin: bool, payload: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let mut frame = vec![
        opcode | if fin { 0x80 } else { 0 },
        0x80 | u8::try_from(payload.len()).unwrap(),
    ];
    frame.extend_from_slice(&mask);
    frame.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
    frame
}

fn all(limit: usize, bytes: &[u8], piece: usize) -> Vec<Result<Inbound, Breach>> {
    let mut assembler = Assembler::new(limit);
    let mut buffer = BytesMut::new();
    let mut found = Vec::new();
    for piece in bytes.chunks(piece) {
        buffer.extend_from_slice(piece);
        while let Some(inbound) = assembler.next(&mut buffer).transpose() {
            let breach = inbound.is_err();
            found.push(inbound);
            if breach {
                return found;
            }
        }
    }
    found
}

/// [SIM-2] Messages in fragments, with control frames between them, are put together at every chunking.
#[test]
fn fragments_are_counted_and_put_together() {
    let mut bytes = masked(1, false, b"{\"a\"");
    bytes.extend(masked(9, true, b"p"));
    bytes.extend(masked(0, true, b":1}"));
    bytes.extend(masked(8, true, &[3, 233, b'x']));
    for piece in 1..=bytes.len() {
        let found = all(100, &bytes, piece);
        let message = Inbound::Message {
            text: Bytes::from_static(b"{\"a\":1}"),
            fragments: 2,
        };
        let ping = Inbound::Ping(Bytes::from_static(b"p"));
        assert_eq!(
            found,
            [Ok(ping), Ok(message), Ok(Inbound::Close(Some(1001)))],
            "pieces of {piece}"
        );
    }
}

/// [SIM-11] A message above the limit is a breach as soon as its header is known; one at the limit is none.
#[test]
fn the_limit_counts_all_fragments() {
    let mut bytes = masked(1, false, b"12345");
    bytes.extend(masked(0, true, b"67890"));
    assert!(all(10, &bytes, 100)[0].is_ok());
    assert_eq!(all(9, &bytes, 100), [Err(Breach::TooBig)]);
    assert_eq!(
        all(4, &bytes[..6], 100),
        [Err(Breach::TooBig)],
        "before the payload has come"
    );
}

/// [SIM-2] Frames that are not masked, compressed ones and stray continuations are breaches.
#[test]
fn the_protocol_is_kept() {
    assert_eq!(all(10, &[0x81, 1, b'x'], 100), [Err(Breach::Protocol)]);
    let mut compressed = masked(1, true, b"x");
    compressed[0] |= 0x40;
    assert_eq!(all(10, &compressed, 100), [Err(Breach::Protocol)]);
    assert_eq!(all(10, &masked(0, true, b"x"), 100), [Err(Breach::Protocol)]);
}

/// [SIM-9] A fragmented text is cut by bytes, with pings between the frames, and can be put together again.
#[test]
fn texts_are_fragmented() {
    let mut out = BytesMut::new();
    text(&mut out, "東京", Some(Fragments { size: 4, pings: true }));
    let expected: &[&[u8]] = &[
        &[0x01, 4],
        &"東京".as_bytes()[..4],
        &[0x89, 3],
        b"sim",
        &[0x80, 2],
        &"東京".as_bytes()[4..],
    ];
    assert_eq!(&out[..], expected.concat());
}
