//! What is told and kept of an upstream event beside its payload: its name, and its class in closed words.

use bytes::Bytes;

use crate::wire::head::Head;

/// The event's name as bytes: a slice of the frame where it stands in it, so that nothing is copied.
pub fn name(name: &str, data: &Bytes) -> Bytes {
    let (start, end) = (name.as_ptr() as usize, name.as_ptr() as usize + name.len());
    let (from, to) = (data.as_ptr() as usize, data.as_ptr() as usize + data.len());
    if start >= from && end <= to {
        data.slice(start - from..end - from)
    } else {
        Bytes::copy_from_slice(name.as_bytes())
    }
}

/// The class of an event, as a socket's history names it.
pub fn class(head: &Head) -> &'static str {
    match head {
        Head::Created(_) => "created",
        Head::Telemetry | Head::Metadata | Head::Keepalive => "telemetry",
        Head::Terminal(_) => "terminal",
        Head::Error(_) | Head::NotJson => "error",
        Head::ItemDone | Head::Data => "data",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [INV-8] a name that stands in the frame is not copied out of it; one that does not is.
    #[test]
    fn a_name_is_a_slice_of_its_frame() {
        let data = Bytes::from_static(br#"{"type":"response.created"}"#);
        let text = std::str::from_utf8(&data).unwrap();
        let within = name(&text[9..25], &data);
        assert_eq!(&within[..], b"response.created");
        assert_eq!(within.as_ptr(), data[9..].as_ptr());
        assert_eq!(&name("message", &data)[..], b"message");
    }
}
