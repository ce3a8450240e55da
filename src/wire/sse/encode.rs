//! Writing server-sent events in the one form that every client reads: LF, one `data:` line, no BOM, `id:` or `retry:`.

use bytes::{BufMut, BytesMut};
use memchr::memchr2;

/// The longest an event grows beyond its name and data, in bytes.
const OVERHEAD: usize = b"event: \ndata: \n\n".len();

/// Appends one event [WIRE-17]. `data` is JSON: a line break in it can only be white space between tokens, and is left
/// out. A line break in `event` would forge a field, and is left out too.
pub fn event(out: &mut BytesMut, event: impl AsRef<[u8]>, data: &[u8]) {
    let event = event.as_ref();
    out.reserve(event.len() + data.len() + OVERHEAD);
    if !event.is_empty() {
        out.put_slice(b"event: ");
        one_line(out, event);
        out.put_u8(b'\n');
    }
    out.put_slice(b"data: ");
    one_line(out, data);
    out.put_slice(b"\n\n");
}

/// Appends a comment: a heartbeat that no client takes for data.
pub fn comment(out: &mut BytesMut) {
    out.put_slice(b": \n\n");
}

fn one_line(out: &mut BytesMut, mut text: &[u8]) {
    while let Some(end) = memchr2(b'\n', b'\r', text) {
        out.put_slice(&text[..end]);
        text = &text[end + 1..];
    }
    out.put_slice(text);
}

#[cfg(test)]
mod tests;
