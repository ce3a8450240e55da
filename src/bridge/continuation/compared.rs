//! A request compared with all conversations that its key's idle sessions remember (CONT-25, CONT-26).

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Instant;

use super::Rejected;
use super::digest::Digester;
use super::history::History;
use super::matching::{Apart, Extension, compare};
use super::outline::Outline;
use crate::bridge::ownership::SessionId;
use crate::wire::request::Create;

/// Fewer shared items than this may be a chance: a system prompt and a greeting.
const RETOLD: usize = 3;

/// What an idle session remembers of its conversation.
pub struct Remembered {
    pub session: SessionId,
    pub history: Arc<History>,
    pub last_used: Instant,
}

/// A session whose conversation a request extends, as it was found without the registry's lock.
pub struct Extends {
    pub session: SessionId,
    /// Held, so that its address stays its own: the session still remembers the very same.
    pub history: Arc<History>,
    pub extension: Extension,
}

/// The conversations of a key, compared with a request.
#[derive(Default)]
pub struct Compared {
    /// Those that it extends, the longest first.
    pub extends: Vec<Extends>,
    /// Those that it tells again, as a client's retry or a client that edits its history does: they lose nothing by it.
    pub retold: Vec<SessionId>,
    /// What the latest used of those remembers.
    pub retells: Option<Arc<History>>,
    /// Why it extends none, of the conversation that came nearest. `None` where there was none.
    pub rejected: Option<Rejected>,
}

impl Compared {
    /// Compares a request with each of them, the latest used first. `alike`: they are one key's only because they open
    /// alike, and none is told again.
    pub fn with(
        d: &Digester,
        create: &Create,
        outline: &Outline,
        mut remembered: Vec<Remembered>,
        alike: bool,
    ) -> Self {
        let mut compared = Compared::default();
        remembered.sort_by_key(|known| Reverse(known.last_used));
        for known in remembered {
            match compare(d, create, outline, &known.history) {
                Ok(extension) => compared.extends.push(Extends {
                    session: known.session,
                    history: known.history,
                    extension,
                }),
                Err(apart) => {
                    let why = apart.why;
                    if is_retold(apart, &known.history) && !alike {
                        compared.retold.push(known.session);
                        compared.retells.get_or_insert(known.history);
                    }
                    let nearer = compared
                        .rejected
                        .is_none_or(|other| nearness(why) > nearness(other));
                    compared.rejected = if nearer { Some(why) } else { compared.rejected };
                }
            }
        }
        compared
            .extends
            .sort_by_key(|found| Reverse(found.extension.skip()));
        compared
    }

    /// What was found of a session's conversation, where the request extends it.
    pub fn of(self, session: SessionId) -> Option<Extends> {
        self.extends.into_iter().find(|found| found.session == session)
    }
}

/// Whether the request is the same conversation told again, shorter or in another edition: what the session remembers of it
/// will not be gone on from. A side request that only opens alike is none.
fn is_retold(apart: Apart, history: &History) -> bool {
    match apart.why {
        Rejected::Shorter => true,
        Rejected::Edited => apart.shared >= RETOLD && apart.shared * 2 >= history.len(),
        _ => false,
    }
}

/// How near a conversation came to being continued: an edited one is nearer than a side request's.
fn nearness(why: Rejected) -> u8 {
    match why {
        Rejected::Nothing => 0,
        Rejected::Model => 1,
        Rejected::Tools => 2,
        Rejected::Instructions => 3,
        Rejected::Settings => 4,
        Rejected::Window => 5,
        Rejected::Shorter => 6,
        Rejected::Edited => 7,
        Rejected::Compaction => 8,
    }
}
