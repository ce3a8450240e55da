//! Keeps warm sockets ready, so that a new conversation pays no handshake (SES-32).

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use http::HeaderMap;
use tokio::sync::oneshot;

use super::probe::Place;
use super::{Runtime, now, numbered, opening};
use crate::bridge::ownership::AccountId;
use crate::config::Transport;
use crate::wire::ProviderKind;

/// Between two looks: well below what a person needs to begin another conversation.
const EVERY: Duration = Duration::from_millis(200);
/// The same where none is wanted.
const SELDOM: Duration = Duration::from_secs(1);
/// An account that served no turn for so long gets no warm sockets any more.
const LATELY: Duration = Duration::from_secs(600);

impl Runtime {
    /// Keeps up to `session.prewarm` sockets ready for each account that may have them, until `stop` resolves. An account
    /// that is slow to dial holds up no other.
    pub async fn keep_warm(self: Arc<Self>, stop: impl Future<Output = ()>) {
        let able = numbered(&self.accounts).map(|(account, _)| account);
        let able = able.filter(|account| self.could_be_warm(*account));
        let warming = join_all(able.map(|account| self.keep_account_warm(account)));
        tokio::select! {
            _ = warming => {}
            () = stop => {}
        }
    }

    /// One dial at a time: turns that dial come first.
    async fn keep_account_warm(self: &Arc<Self>, account: AccountId) {
        loop {
            let wanted = self.wanted(account);
            // Nothing is wanted mostly, and that changes with the configuration only.
            tokio::time::sleep(if wanted == 0 { SELDOM } else { EVERY }).await;
            if wanted > 0 {
                self.warm(account, wanted).await;
            }
        }
    }

    /// With a credential of its own, since nobody else's is at hand; and not ChatGPT's, whose handshake says for whom it is.
    fn could_be_warm(&self, account: AccountId) -> bool {
        let upstream = self.account(account);
        upstream.has_own_credential() && upstream.kind() != ProviderKind::Chatgpt
    }

    fn wanted(&self, account: AccountId) -> usize {
        let policy = self.policy();
        match policy.of_account(account).transport {
            Transport::Http => 0,
            Transport::Auto | Transport::Websocket => policy.prewarm,
        }
    }

    async fn warm(self: &Arc<Self>, account: AccountId, wanted: usize) {
        let at = now();
        let place = {
            let mut registry = self.registry();
            if !registry.had_traffic(account, at, LATELY) {
                return;
            }
            registry.warm(at, account, wanted)
        };
        let Some(key) = place else { return };
        let place = Place::new(self.clone(), key, None);
        let upstream = self.account(account);
        let generation = upstream.generation();
        let credential = (upstream.credential(&HeaderMap::new()), generation);
        // Nobody waits for the session: it is idle as soon as it is open. What a failure means is learnt as from any other.
        let (done, _) = oneshot::channel();
        opening::dial(self.clone(), account, place, HeaderMap::new(), credential, done).await;
    }
}

/// When an account last served a turn.
#[derive(Clone, Copy, Default)]
pub struct Traffic(Option<Instant>);

impl Traffic {
    /// A turn begins.
    pub fn turn(&mut self, now: Instant) {
        self.0 = Some(now);
    }

    /// Whether a turn began within `lapse`.
    pub fn within(&self, now: Instant, lapse: Duration) -> bool {
        self.0
            .is_some_and(|last| now.saturating_duration_since(last) <= lapse)
    }
}
