//! What is remembered of turns and incidents, for those who look later: entries that cannot be reversed, and can be found
//! by the ids that users know (JRN-1, JRN-2).

use std::sync::Arc;

use crate::bridge::key::Hash16;
use crate::event::At;

/// What an entry can be found by: hashes of ids as the users know them (request, trace, response, session), and the
/// affinity key. At most [`Names::MOST`]; further ones are not taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names {
    names: [u64; Names::MOST],
    count: u8,
}

impl Names {
    /// A request id, a trace id, four session ids, two response ids, a key, and room for one more.
    pub const MOST: usize = 10;
    /// None at all.
    pub const NONE: Names = Names {
        names: [0; Names::MOST],
        count: 0,
    };

    /// Adds one, unless it is there already.
    pub fn add(&mut self, name: u64) {
        if self.as_slice().contains(&name) {
            return;
        }
        if let Some(free) = self.names.get_mut(usize::from(self.count)) {
            *free = name;
            self.count += 1;
        }
    }

    /// Those that were added, in their order.
    pub fn as_slice(&self) -> &[u64] {
        self.names.get(..usize::from(self.count)).unwrap_or_default()
    }
}

/// The name of an affinity key: as much of it as is printed, so that it can be looked up by the printed form.
pub fn of_key(key: Hash16) -> u64 {
    let [a, b, c, d, e, f, ..] = key.0;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// The name of all that happens to an account or to the process, and not to one call or key alone: with it, those who look
/// into an incident find in one look what was around it. No hash of an id is likely to be it.
pub const SURROUNDINGS: u64 = u64::from_be_bytes(*b"around..");

/// The name of all starts of the bridge, which are few: with it they are found among any number of other rows.
pub const STARTS: u64 = u64::from_be_bytes(*b"starts..");

/// One event as the journal keeps it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Unix milliseconds.
    pub at_ms: u64,
    /// The event's name.
    pub event: &'static str,
    /// The account it happened at.
    pub at: Option<At>,
    pub names: Names,
    /// The event as a JSON object, without request and trace id.
    pub body: Arc<str>,
}
