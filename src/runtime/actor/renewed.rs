//! Another policy is in force while the socket is open (REL-11, REL-12).

use std::time::Instant;

use super::Actor;
use crate::bridge::session::Input;

impl Actor {
    /// Keeps the session by the policy in force, if that is another one than before.
    pub(super) fn renew(&mut self, now: Instant) {
        let policy = self.runtime.policy();
        if policy.number == self.kept.policy {
            return;
        }
        self.kept.policy = policy.number;
        let of_session = policy.session(self.account, self.kept.jitter);
        drop(policy);
        self.session.set_policy(now, of_session);
        let too_old_at = self.session.too_old_at();
        self.runtime.registry().too_old_at(self.id, too_old_at);
    }

    /// Told, while idle most likely, that the policy is another one. With a turn on it, it looks again after that.
    pub(super) fn look(&mut self, now: Instant) {
        if self.job.is_some() {
            return;
        }
        self.renew(now);
        let unwanted = self.runtime.unwanted(self.account, self.credential, self.tenant);
        if let Some(reason) = unwanted {
            self.handle_at(now, Input::Retire(reason));
        }
    }
}
