//! Accounts whose secret lies in a file follow that file: a rotated credential is used from then on (UP-1).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use super::Runtime;
use crate::config;

/// Between two looks: what rotates credentials keeps the old one valid for longer.
const EVERY: Duration = Duration::from_secs(1);

impl Runtime {
    /// Follows the files until `stop` resolves. A file that cannot be read, or holds no secret, changes nothing. To be run
    /// beside serving.
    pub async fn follow_secrets(self: Arc<Self>, stop: impl Future<Output = ()>) {
        let mut files: Vec<_> = super::numbered(&self.accounts)
            .filter_map(|(account, named)| {
                Some((
                    account,
                    named,
                    named.secret_file.as_deref()?,
                    None::<SecretString>,
                ))
            })
            .collect();
        if files.is_empty() {
            return;
        }
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return,
                _ = tick.tick() => {}
            }
            for (account, named, path, known) in &mut files {
                let Some(now) = read(path).await else { continue };
                let same = known
                    .as_ref()
                    .is_some_and(|known| known.expose_secret() == now.expose_secret());
                if !same {
                    // What `secret_in` gives fits into a header.
                    let _ = named.upstream.renew(&now);
                    if known.is_some() {
                        self.renewed(*account);
                    }
                    *known = Some(now);
                }
            }
        }
    }
}

/// Off the threads that serve: the file may lie on a network.
async fn read(path: &Path) -> Option<SecretString> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || config::secret_in(&path));
    read.await.ok().flatten()
}
