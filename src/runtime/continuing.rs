//! Continuation at the edge: what a request is compared with, which anchor it gets, and what is remembered of it (CONT-20
//! to CONT-29). What may be continued is decided in `bridge::continuation`.

use http::HeaderMap;

use super::Runtime;
use super::job::{Continued, Job};
use crate::bridge::continuation::{Compared, Draft, Outline, window};
use crate::bridge::key::KeyKind;
use crate::bridge::ownership::SessionId;
use crate::bridge::turn::Recording;
use crate::event::{Event, NotContinued};
use crate::wire::request::Create;

impl Runtime {
    /// What continuation compares of a request. `None`: it is left alone.
    pub(super) fn outline(&self, headers: &HeaderMap, create: &Create) -> Option<Outline> {
        let window = window(headers, create);
        Outline::of(&self.digester, create, window.as_deref())
    }

    /// Compares a call with what its key's idle sessions remember. Not under the registry's lock: what a client wrote anew is
    /// read anew.
    pub(super) fn compare(&self, job: &Job) -> Compared {
        let (Some(outline), Some(create), false) = (&job.outline, &job.create, job.in_full) else {
            return Compared::default();
        };
        // Conversations that only open alike are told apart by their sessions: each keeps its own.
        let alike = job.key.kind == KeyKind::Content;
        let remembered = self.registry().remembered(&job.key);
        Compared::with(&self.digester, create, outline, remembered, alike)
    }

    /// The plan is made: the call continues the conversation of the session that it got, or says why it does not.
    pub(super) fn continuing(
        &self,
        job: &mut Job,
        compared: Compared,
        got: Option<(SessionId, Option<Box<str>>)>,
    ) {
        job.continued = None;
        job.retells = None;
        if !job.policy.continuation {
            return;
        }
        job.retells = compared.retells.clone();
        let extends_one = !compared.extends.is_empty();
        let rejected = compared.rejected;
        if let Some((session, Some(anchor))) = got
            && let Some(found) = compared.of(session)
        {
            job.continued = Some(Continued {
                anchor,
                history: found.history,
                extension: found.extension,
            });
            return;
        }
        if extends_one {
            self.not_continued(job, NotContinued::Elsewhere);
        } else if let Some(rejected) = rejected {
            self.not_continued(job, NotContinued::Compared(rejected));
        }
    }

    /// Tells why a conversation that a session remembers is sent in full (CONT-25).
    pub(super) fn not_continued(&self, job: &Job, reason: NotContinued) {
        self.events.emit(&Event::ContinuationRejected {
            at: self.at(job.account),
            who: job.who(),
            reason,
        });
    }

    /// What a turn that is on its way said, for the memory of its socket.
    pub(super) fn recording(&self, job: &Job) -> Option<Box<Recording>> {
        let (outline, create) = (job.outline.as_ref()?, job.create.as_ref()?);
        let continued = job
            .continued
            .as_ref()
            .map(|continued| (&*continued.history, &continued.extension));
        let draft = match (continued, &job.retells) {
            (None, Some(known)) => Draft::retold(&self.digester, create, outline, known),
            (continued, _) => Draft::new(&self.digester, create, outline, continued),
        };
        Some(Box::new(Recording::new(self.digester.clone(), draft)))
    }
}
