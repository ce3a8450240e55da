//! What a turn adds to the memory of its socket: what it said, and the items that came out of it (CONT-21).

use std::fmt;

use crate::bridge::continuation::{Digester, Draft, History};
use crate::wire::head;

/// The conversation in the making. Where it is not certain what the model remembers, nothing is: a later turn is then sent
/// in full.
pub struct Recording {
    digester: Digester,
    draft: Draft,
    /// Items that were finished.
    items: usize,
    /// Items that were begun, where the upstream tells.
    begun: usize,
    /// Every item came in its place.
    certain: bool,
}

impl Recording {
    /// A recording that begins with what the turn sent.
    pub fn new(digester: Digester, draft: Draft) -> Self {
        Recording {
            digester,
            draft,
            items: 0,
            begun: 0,
            certain: true,
        }
    }

    /// A `response.output_item.added`.
    pub(super) fn begun(&mut self) {
        self.begun += 1;
    }

    /// A `response.output_item.done`. Items must come in the order of their index, none left out.
    pub(super) fn done(&mut self, frame: &[u8]) {
        let next = head::done_item(frame)
            .filter(|(index, _)| usize::try_from(*index) == Ok(self.items))
            .and_then(|(_, span)| frame.get(span));
        match next {
            Some(item) => self.draft.output(&self.digester, item),
            None => self.certain = false,
        }
        self.items += 1;
    }

    /// The response completed, with so many items in its `output`: none where it came empty, as some upstreams send it.
    pub(super) fn finish(self, listed: usize) -> Option<History> {
        let whole = listed == 0 || listed == self.items;
        let certain = self.certain && whole && self.begun <= self.items;
        if certain { self.draft.finish() } else { None }
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}
