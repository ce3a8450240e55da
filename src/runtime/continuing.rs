//! Continuation at the edge: what a request is compared with, which anchor it gets, and what is remembered of it (CONT-20
//! to CONT-29). What may be continued is decided in `bridge::continuation`.

use std::cmp::Reverse;

use http::HeaderMap;

use super::Runtime;
use super::job::{Continued, Job};
use super::registry::Extends;
use crate::bridge::continuation::{self, Draft, Outline, Rejected};
use crate::bridge::key::KeyKind;
use crate::bridge::ownership::SessionId;
use crate::bridge::turn::Recording;
use crate::event::{Event, NotContinued};
use crate::wire::request::Create;

/// Changes when Codex has compacted a conversation.
const WINDOW: &str = "x-codex-window-id";

/// The conversations of a key, compared with a request.
#[derive(Default)]
pub struct Compared {
    /// Those that it extends, the longest first.
    pub extends: Vec<Extends>,
    /// Those that it tells again without adding to them, as a client's retry does: they lose nothing by it.
    pub retold: Vec<SessionId>,
    /// Why it extends none, of the conversation that came nearest. `None` where there was none.
    pub rejected: Option<Rejected>,
}

impl Runtime {
    /// What continuation compares of a request. `None`: it is left alone.
    pub(super) fn outline(&self, headers: &HeaderMap, create: &Create) -> Option<Outline> {
        let window = headers.get(WINDOW).map(|value| value.as_bytes().to_vec());
        let window = window.or_else(|| {
            // Written out as text in the body, or not at all: worth a look before the metadata is read.
            memchr::memmem::find(create.body(), WINDOW.as_bytes())?;
            let said = create
                .client_metadata()
                .into_iter()
                .find(|(name, _)| name == WINDOW)?;
            Some(said.1.into_bytes())
        });
        Outline::of(&self.digester, create, window.as_deref())
    }

    /// Compares a call with what its key's idle sessions remember. Not under the registry's lock: what a client wrote anew is
    /// read anew.
    pub(super) fn compare(&self, job: &Job) -> Compared {
        let (Some(outline), Some(create), false) = (&job.outline, &job.create, job.in_full) else {
            return Compared::default();
        };
        let mut compared = Compared::default();
        let mut remembered = self.registry().remembered(&job.key);
        remembered.sort_by_key(|known| Reverse(known.last_used));
        for known in remembered {
            match continuation::extends(&self.digester, create, outline, &known.history) {
                Ok(extension) => compared.extends.push(Extends {
                    session: known.session,
                    history: known.history,
                    extension,
                }),
                Err(why) => {
                    // Conversations that only open alike are told apart by their sessions: each keeps its own.
                    if why == Rejected::Shorter && job.key.kind != KeyKind::Content {
                        compared.retold.push(known.session);
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

    /// The plan is made: the call continues the conversation of the session that it got, or says why it does not.
    pub(super) fn continuing(
        &self,
        job: &mut Job,
        compared: Compared,
        got: Option<(SessionId, Option<Box<str>>)>,
    ) {
        job.continued = None;
        let Compared {
            extends, rejected, ..
        } = compared;
        let could = !extends.is_empty();
        if let Some((session, Some(anchor))) = got
            && self.policy.continuation
            && let Some(found) = extends.into_iter().find(|found| found.session == session)
        {
            job.continued = Some(Continued {
                anchor,
                history: found.history,
                extension: found.extension,
            });
            return;
        }
        if !self.policy.continuation {
            return;
        }
        let reason = match (could, rejected) {
            (true, _) => NotContinued::Elsewhere,
            (false, Some(rejected)) => NotContinued::Compared(rejected),
            (false, None) => return,
        };
        self.not_continued(job, reason);
    }

    pub(super) fn not_continued(&self, job: &Job, reason: NotContinued) {
        self.events.emit(&Event::ContinuationRejected {
            at: self.at(job.account),
            who: job.who(),
            reason,
        });
    }

    /// What a turn that is on its way said, for the memory of its socket.
    pub(super) fn recording(&self, job: &mut Job) -> Option<Box<Recording>> {
        let outline = job.outline.take()?;
        let create = job.create.as_ref()?;
        let continued = job
            .continued
            .as_ref()
            .map(|continued| (&*continued.history, &continued.extension));
        let draft = Draft::new(&self.digester, create, &outline, continued);
        // A call that comes back is compared anew.
        job.outline = Some(outline);
        Some(Box::new(Recording::new(self.digester.clone(), draft)))
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
