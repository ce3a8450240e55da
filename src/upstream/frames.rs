//! Where the frames of an inbound WebSocket stream begin and end, seen from the bytes alone.
//!
//! tungstenite's buffers grow to the largest frame and never shrink. A socket that knows that nothing is half read can
//! drop them (UP-13); tungstenite does not say so, hence this count beside it.

/// Follows the stream of one direction. Unmasked frames only, which is what a server sends; a masked one makes
/// tungstenite end the socket.
#[derive(Debug, Default)]
pub(super) struct FrameEdges {
    head: [u8; 10],
    head_len: usize,
    payload_left: u64,
    mid_message: bool,
    largest: u64,
}

impl FrameEdges {
    /// Takes the next bytes of the stream.
    pub fn pass(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            if self.payload_left > 0 {
                let step = usize::try_from(self.payload_left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                self.payload_left -= step as u64;
                bytes = &bytes[step..];
                continue;
            }
            self.head[self.head_len] = first;
            self.head_len += 1;
            bytes = rest;
            if let Some(payload) = payload_len(&self.head[..self.head_len]) {
                self.head_len = 0;
                self.begin(self.head[0], payload);
            }
        }
    }

    fn begin(&mut self, first: u8, payload: u64) {
        let (last, opcode) = (first & 0x80 != 0, first & 0x0f);
        if opcode < 8 {
            self.mid_message = !last;
        }
        self.payload_left = payload;
        self.largest = self.largest.max(payload);
    }

    /// All bytes so far are whole messages.
    pub fn at_rest(&self) -> bool {
        self.head_len == 0 && self.payload_left == 0 && !self.mid_message
    }

    /// The largest payload that was announced since this was last asked, in bytes.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    pub fn forget_largest(&mut self) {
        self.largest = 0;
    }
}

/// The payload's length, once `head` is a whole frame head.
fn payload_len(head: &[u8]) -> Option<u64> {
    match *head {
        [_, second, ..] if second & 0x7f < 126 => Some(u64::from(second & 0x7f)),
        [_, second, a, b] if second & 0x7f == 126 => Some(u64::from(u16::from_be_bytes([a, b]))),
        [_, _, a, b, c, d, e, f, g, h] => Some(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
