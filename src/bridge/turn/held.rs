//! What a turn keeps of the upstream's events: those before `response.created`, and a JSON client's finished items.

use bytes::Bytes;

use crate::wire::failure;
use crate::wire::head::{self, Head};

/// Events that come before `response.created` are kept up to this many bytes: telemetry and a few early events, not a
/// whole answer.
const CAP: usize = 256 * 1024;
/// One kept event counts for this much more than its bytes: what keeping it costs.
const OVERHEAD: usize = 64;

/// More came than is kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overflow;

/// An event on its way to the client.
pub(super) struct Event {
    pub name: Bytes,
    pub data: Bytes,
    pub part: Part,
}

/// What an event is of the response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A finished output item.
    Item,
    /// Other output.
    Output,
    /// No output: progress reports, telemetry, keepalives.
    Aside,
}

impl Part {
    /// The part that an event of this name and head is.
    pub fn of(name: &[u8], head: &Head) -> Self {
        match head {
            Head::ItemDone => Part::Item,
            Head::Data if !matches!(name, b"response.in_progress" | b"response.queued") => Part::Output,
            _ => Part::Aside,
        }
    }
}

/// The events before `response.created`, in order (SES-8).
#[derive(Default)]
pub(super) struct Held {
    events: Vec<Event>,
    bytes: usize,
}

impl Held {
    /// Keeps one more.
    pub fn push(&mut self, event: Event) -> Result<(), Overflow> {
        self.bytes += event.name.len() + event.data.len() + OVERHEAD;
        if self.bytes > CAP {
            return Err(Overflow);
        }
        self.events.push(event);
        Ok(())
    }

    /// Gives all of them out, save the late ones of the socket's last response (SES-18): those that are numbered after
    /// `first`, this response's first event, and yet came before it. Without `first` none is late.
    pub fn release(&mut self, first: Option<u64>) -> impl Iterator<Item = Event> + use<> {
        let late = move |event: &Event| {
            first
                .zip(head::sequence_number(&event.data))
                .is_some_and(|(first, number)| number > first)
        };
        self.bytes = 0;
        std::mem::take(&mut self.events)
            .into_iter()
            .filter(move |event| !late(event))
    }
}

/// The finished items for a JSON client, which fill an `output` that came empty (SES-12).
pub(super) struct Items {
    /// Output index and raw bytes.
    items: Vec<(u64, Bytes)>,
    bytes: usize,
    cap: usize,
}

impl Items {
    /// Keeps up to `cap` bytes.
    pub fn new(cap: usize) -> Self {
        Items {
            items: Vec::new(),
            bytes: 0,
            cap,
        }
    }

    /// Keeps the item of a `response.output_item.done`. More than may be kept is no fault yet: most upstreams put the
    /// whole output into the terminal, whatever its size.
    pub fn push(&mut self, data: &Bytes) {
        let Some((index, span)) = head::done_item(data) else {
            return;
        };
        // The slice keeps the whole frame alive, so the whole frame counts.
        self.bytes = self.bytes.saturating_add(data.len());
        if self.bytes > self.cap {
            self.items.clear();
        } else {
            self.items.push((index, data.slice(span)));
        }
    }

    /// The response object with the items, in the order of their index, for its output; as it is where there are none.
    pub fn fill(&mut self, object: Bytes) -> Result<Bytes, Overflow> {
        if self.bytes > self.cap {
            return Err(Overflow);
        }
        if self.items.is_empty() {
            return Ok(object);
        }
        self.items.sort_by_key(|(index, _)| *index);
        let items = self.items.iter().map(|(_, item)| item.as_ref());
        Ok(failure::filled(&object, items).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl super::super::Turn {
        /// Whether what is kept is within its caps (INV-7).
        pub(in crate::bridge) fn is_bounded(&self) -> bool {
            let held = self
                .held
                .events
                .iter()
                .map(|event| event.data.len() + OVERHEAD)
                .sum::<usize>();
            let items = self.items.items.iter().map(|(_, item)| item.len()).sum::<usize>();
            held <= CAP && items <= self.policy.items_cap
        }
    }

    fn event(length: usize) -> Event {
        let data = Bytes::from(vec![b'x'; length]);
        let (name, part) = (Bytes::from_static(b"n"), Part::Output);
        Event { name, data, part }
    }

    /// [SES-8] [INV-7] at the cap an event is kept, at cap + 1 it is not; names and a constant count along.
    #[test]
    fn held_cap_and_cap_plus_one() {
        let half = CAP / 2 - OVERHEAD - 1;
        let mut held = Held::default();
        assert_eq!(held.push(event(half)), Ok(()));
        assert_eq!(held.push(event(half)), Ok(()));
        assert_eq!(held.push(event(0)), Err(Overflow));
        assert_eq!(held.release(None).count(), 2);
        assert_eq!(held.push(event(half)), Ok(()), "all were given out");
        assert_eq!(held.push(event(half + 1)), Err(Overflow));
        let mut held = Held::default();
        assert_eq!(held.push(event(CAP - OVERHEAD - 1)), Ok(()));
        let mut held = Held::default();
        assert_eq!(held.push(event(CAP - OVERHEAD)), Err(Overflow));
    }

    /// [SES-12] [INV-7] items are kept up to their cap, by the size of the whole frame; beyond it an output that came empty
    /// cannot be filled.
    #[test]
    fn items_cap_and_cap_plus_one() {
        let frame = Bytes::from_static(br#"{"item":{"a":1}}"#);
        let empty = Bytes::from_static(br#"{"output":[]}"#);
        let mut items = Items::new(2 * frame.len());
        items.push(&frame);
        items.push(&frame);
        items.push(&Bytes::from_static(b"{}"));
        let filled = items.fill(empty.clone()).unwrap();
        assert_eq!(&filled[..], br#"{"output":[{"a":1},{"a":1}]}"#);
        items.push(&frame);
        assert_eq!(items.fill(empty), Err(Overflow));
        assert!(items.items.is_empty(), "nothing is kept for nothing");
    }
}
