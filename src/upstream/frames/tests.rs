use super::*;

/// A server's frame, built by hand.
fn frame(first: u8, payload: usize) -> Vec<u8> {
    let mut frame = vec![first];
    match payload {
        0..126 => frame.push(payload as u8),
        126..65536 => {
            frame.push(126);
            frame.extend((payload as u16).to_be_bytes());
        }
        _ => {
            frame.push(127);
            frame.extend((payload as u64).to_be_bytes());
        }
    }
    frame.resize(frame.len() + payload, b'x');
    frame
}

/// [UP-13] At rest exactly at the ends of messages, however the stream is cut and whatever length form is used.
#[test]
fn rest_is_where_a_message_ends() {
    // A text of each length form, a ping, and one text in three fragments with a ping between them.
    let stream = [
        frame(0x81, 5),
        frame(0x81, 300),
        frame(0x89, 4),
        frame(0x81, 70_000),
        frame(0x01, 10),
        frame(0x00, 0),
        frame(0x89, 0),
        frame(0x80, 7),
        frame(0x88, 2),
    ];
    // The fragments and the ping among them are not ends; all else is.
    let mid = [4, 5, 6];
    let mut ends = Vec::new();
    let mut bytes = Vec::new();
    for (index, frame) in stream.iter().enumerate() {
        bytes.extend_from_slice(frame);
        if !mid.contains(&index) {
            ends.push(bytes.len());
        }
    }
    for cut in [1, 2, 3, 7, 4096, bytes.len()] {
        let mut edges = FrameEdges::default();
        let mut seen = 0;
        for piece in bytes.chunks(cut) {
            edges.pass(piece);
            seen += piece.len();
            assert_eq!(
                edges.at_rest(),
                ends.contains(&seen),
                "after {seen} bytes in pieces of {cut}"
            );
        }
        assert_eq!(edges.largest(), 70_000);
    }
}
