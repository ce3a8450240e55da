//! Accounts whose secret lies in a file follow that file: a rotated credential is used from then on (UP-22), and one that
//! the upstream refuses is read again at once (UP-23).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use super::job::Job;
use super::registry::Command;
use super::{Named, Runtime, numbered};
use crate::bridge::credential::{Fence, Verdict};
use crate::bridge::ownership::AccountId;
use crate::bridge::session::Retired;
use crate::config::{self, Found, NoSecret};
use crate::event::Event;

/// Between two looks: what rotates credentials keeps the old one valid for longer.
const EVERY: Duration = Duration::from_secs(1);
/// What is written in place counts when it has stayed the same for so long, where its predecessor is refused anyway.
const SETTLED: Duration = Duration::from_millis(100);
/// A call waits for so long at most for its account's file: it may lie on a network that hangs.
const PATIENCE: Duration = Duration::from_secs(2);

/// The file that holds an account's secret.
#[derive(Debug)]
pub struct SecretFile {
    path: PathBuf,
    /// A std mutex: never held across an await.
    fence: Mutex<Fence>,
    /// Held by whoever reads, through the read.
    seen: tokio::sync::Mutex<Seen>,
}

/// What was seen in the file.
#[derive(Debug, Default)]
struct Seen {
    /// The file that the secret in force came from.
    file: Option<u64>,
    /// Another secret, in that same file: it may be half written.
    unsettled: Option<SecretString>,
    /// The fault that was told, and holds still.
    told: Option<NoSecret>,
}

impl SecretFile {
    /// The file at an absolute path.
    pub fn new(path: PathBuf) -> Self {
        SecretFile {
            path,
            fence: Mutex::default(),
            seen: tokio::sync::Mutex::default(),
        }
    }

    /// What is wrong with the file, as far as nobody reads it at this moment.
    pub(super) fn fault(&self) -> Option<&'static str> {
        self.seen.try_lock().ok()?.told.map(NoSecret::label)
    }
}

impl Seen {
    /// Takes a look. Gives the secret that is to be in force from now on, if it is another one.
    fn look(&mut self, named: &Named, found: Found) -> Option<SecretString> {
        let Found { secret, file } = found;
        if named.upstream.holds(&secret) {
            self.file = Some(file);
            self.unsettled = None;
            return None;
        }
        // A file that was put in the place of the old one is whole; one that is written in place may not be.
        let replaced = self.file.is_some_and(|known| known != file);
        let settled = self
            .unsettled
            .as_ref()
            .is_some_and(|seen| seen.expose_secret() == secret.expose_secret());
        if replaced || settled {
            self.file = Some(file);
            self.unsettled = None;
            return Some(secret);
        }
        self.file.get_or_insert(file);
        self.unsettled = Some(secret);
        None
    }
}

impl Runtime {
    /// Follows the files until `stop` resolves. A file that cannot be read, or holds no secret, changes nothing, and is told of
    /// once. To be run beside serving.
    pub async fn follow_secrets(self: Arc<Self>, stop: impl Future<Output = ()>) {
        if self.accounts.iter().all(|named| named.secret_file.is_none()) {
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
            for (account, named) in numbered(&self.accounts) {
                let Some(file) = &named.secret_file else { continue };
                // Whoever reads it now sees to it.
                let Ok(mut seen) = file.seen.try_lock() else {
                    continue;
                };
                self.look(account, named, file, &mut seen).await;
            }
        }
    }

    /// Looks into the file once.
    async fn look(&self, account: AccountId, named: &Named, file: &SecretFile, seen: &mut Seen) {
        match read(&file.path).await {
            Ok(found) => {
                seen.told = None;
                if let Some(secret) = seen.look(named, found) {
                    self.renew(account, named, &secret);
                }
            }
            Err(fault) => {
                seen.unsettled = None;
                if seen.told.replace(fault) != Some(fault) {
                    self.events.emit(&Event::CredentialRejected {
                        at: self.at(account),
                        reason: fault.label(),
                        ids: None,
                        status: None,
                    });
                }
            }
        }
    }

    /// Puts another secret in force, and retires the sockets that were opened with the old one: those at work when their
    /// turn is done.
    fn renew(&self, account: AccountId, named: &Named, secret: &SecretString) {
        if named.upstream.renew(secret).is_err() {
            // Cannot be: what a file gives fits into a header.
            return;
        }
        self.renewed(account);
        let lanes = self.registry().lanes_of(account);
        for lane in lanes {
            // A full lane has a command that ends the session anyway, and a closed one has ended. Where it is a lease, the
            // session looks again when it is idle.
            let _ = lane.try_send(Command::Retire(Retired::CredentialRotated));
        }
    }

    /// Whether a credential that the upstream refuses could be another one on a second look.
    pub(super) fn can_reread(&self, account: AccountId) -> bool {
        self.named(account).secret_file.is_some()
    }

    /// Why an idle socket that was opened with credential number `credential` of the account, and carried turns of `tenant`, is
    /// not kept, if it is not: it came to rest after all were told.
    pub(super) fn unwanted(
        &self,
        account: AccountId,
        credential: u64,
        tenant: Option<[u8; 16]>,
    ) -> Option<Retired> {
        if self.registry().is_draining() {
            return Some(Retired::Drained);
        }
        if tenant.is_some_and(|tenant| self.dismissed.has(&tenant)) {
            return Some(Retired::ClientRemoved);
        }
        self.is_rotated(account, credential)
            .then_some(Retired::CredentialRotated)
    }

    /// Whether sockets that were opened with credential number `credential` of the account have been outlived by it.
    fn is_rotated(&self, account: AccountId, credential: u64) -> bool {
        self.account(account).generation() != credential
    }

    /// The upstream has refused the job's credential: reads it again, once for all that are refused together. True where
    /// another one is in force now, so that the job may be sent once more. Bounded: 2 s.
    pub(super) async fn reread(&self, job: &Job) -> bool {
        let reread = self.reread_for(job.account, job.credential);
        tokio::time::timeout(PATIENCE, reread).await.unwrap_or(false)
    }

    async fn reread_for(&self, account: AccountId, sent: u64) -> bool {
        let named = self.named(account);
        let Some(file) = &named.secret_file else {
            return false;
        };
        let fence = || file.fence.lock().unwrap_or_else(PoisonError::into_inner);
        let refusal = fence().refused(sent);
        let mut seen = file.seen.lock().await;
        let verdict = fence().judge(refusal, named.upstream.generation());
        match verdict {
            Verdict::Again => true,
            Verdict::Stands => false,
            Verdict::Read => {
                self.look(account, named, file, &mut seen).await;
                if seen.unsettled.is_some() {
                    tokio::time::sleep(SETTLED).await;
                    self.look(account, named, file, &mut seen).await;
                }
                self.is_rotated(account, sent)
            }
        }
    }
}

/// Off the threads that serve: the file may lie on a network.
async fn read(path: &Path) -> Result<Found, NoSecret> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || config::secret_in(&path));
    read.await.unwrap_or(Err(NoSecret::Unreadable))
}
