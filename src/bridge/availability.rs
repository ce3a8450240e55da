//! Which accounts are unavailable for new and movable keys, why, and for how long (ROUTE-5). Only what an account itself is
//! the reason of counts; that a socket or a turn fails says nothing about the account's health.

use std::time::{Duration, Instant};

use super::ownership::AccountId;
use crate::wire::error::{ErrorClass, WireError};

/// How long an account that could not be reached is left alone: at first, and at most.
const UNREACHABLE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));
/// How long a rejected credential counts, unless it changes before.
const CREDENTIAL: Duration = Duration::from_secs(60);
/// A limit that does not say when it ends.
const LIMITED: Duration = Duration::from_secs(10);
/// Bounds of a limit that does.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(3600);

/// Why an account is unavailable. Closed: a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No connection could be made.
    Unreachable,
    /// Its credential was rejected.
    Credential,
    /// Too many requests or tokens in a short time.
    RateLimit,
    /// Its plan or budget is used up.
    Quota,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 4] = [
        Reason::Unreachable,
        Reason::Credential,
        Reason::RateLimit,
        Reason::Quota,
    ];

    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Reason::Unreachable => "unreachable",
            Reason::Credential => "credential",
            Reason::RateLimit => "rate_limit",
            Reason::Quota => "quota",
        }
    }

    /// Whether upstream itself says what is the matter, and when to come back: then a turn that must go there goes there.
    pub fn is_limit(self) -> bool {
        matches!(self, Reason::RateLimit | Reason::Quota)
    }
}

/// What makes an account unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: Reason,
    /// How long upstream says that it lasts.
    pub lasts: Option<Duration>,
}

impl From<Reason> for Cause {
    fn from(reason: Reason) -> Self {
        Cause { reason, lasts: None }
    }
}

impl Cause {
    /// What an upstream's error says about its account; nothing, mostly. `unix` is the present second.
    pub fn of(error: &WireError, unix: u64) -> Option<Cause> {
        let reason = match error.class() {
            ErrorClass::RateLimit => Reason::RateLimit,
            ErrorClass::Quota => Reason::Quota,
            ErrorClass::Authentication => Reason::Credential,
            _ => return None,
        };
        let lasts = error.wait(unix).filter(|_| reason.is_limit());
        Some(Cause { reason, lasts })
    }
}

/// An account that is unavailable now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable {
    pub reason: Reason,
    pub until: Instant,
}

/// What changed, to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Started {
        account: AccountId,
        reason: Reason,
        lasts: Duration,
    },
    Cleared {
        account: AccountId,
        reason: Reason,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    out: Option<Unavailable>,
    /// A limit that counts again when the credential, which is out of the question until then, is good.
    beneath: Option<Unavailable>,
    /// Failures to connect in a row.
    unreached: u32,
    /// What an operator is shown, whether or not the account is left out for it.
    found: Found,
}

/// What was found of an account itself by its latest turns; unlike what it is left out for, this holds until it is known
/// better, and of an account that no other stands in for, too (ROUTE-13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Its credential was rejected, and no turn has been accepted since.
    pub rejected: bool,
    /// Requests in a row for which no connection could be made.
    pub unconnected: u32,
}

impl Found {
    /// Failures to connect from which an account counts as not reached: one of them is soon made.
    pub const UNREACHED: u32 = 3;
}

/// Accounts by how they stand; each counts once, for the first that holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Left out for others.
    pub unavailable: usize,
    /// Tried, although the credential was rejected.
    pub rejected: usize,
    /// Tried, although they were not reached lately.
    pub unreached: usize,
}

impl Standing {
    /// Why and until when the account is out at this time.
    fn at(&self, now: Instant) -> Option<Unavailable> {
        let holds = |out: &Unavailable| out.until > now;
        let beneath = self.beneath.filter(holds);
        let Some(out) = self.out.filter(holds) else {
            return beneath;
        };
        let until = beneath.map_or(out.until, |limit| limit.until.max(out.until));
        Some(Unavailable { until, ..out })
    }

    /// What it is out for is over: the account is available, or its limit counts again.
    fn ended(&mut self, account: AccountId, over: Reason, now: Instant) -> Change {
        self.out = self.beneath.take().filter(|limit| limit.until > now);
        match self.out {
            Some(Unavailable { reason, until }) => Change::Started {
                account,
                reason,
                lasts: until.saturating_duration_since(now),
            },
            None => Change::Cleared {
                account,
                reason: over,
            },
        }
    }
}

/// The standing of all accounts.
#[derive(Debug)]
pub struct Availability {
    accounts: Vec<Standing>,
}

impl Availability {
    /// All of so many accounts are available.
    pub fn new(accounts: usize) -> Self {
        Availability {
            accounts: vec![Standing::default(); accounts],
        }
    }

    /// The account has failed. One that is out already is out until the latest of what it was told, for the reason that lasts
    /// longest; but a rejected credential stands before a limit, which waiting cures.
    pub fn failed(&mut self, account: AccountId, cause: Cause, now: Instant) -> Option<Change> {
        let standing = self.accounts.get_mut(usize::from(account.0))?;
        let out = standing.out.filter(|out| out.until > now);
        let lasts = match cause.reason {
            Reason::Unreachable => {
                // Turns that were on their way together are one failure.
                if out.is_some() {
                    return None;
                }
                let doubled = UNREACHABLE.0 * (1 << standing.unreached.min(8));
                standing.unreached += 1;
                doubled.min(UNREACHABLE.1)
            }
            Reason::Credential => CREDENTIAL,
            Reason::RateLimit | Reason::Quota => cause.lasts.unwrap_or(LIMITED).clamp(LEAST, MOST),
        };
        let (reason, until) = (cause.reason, now + lasts);
        let fresh = Unavailable { reason, until };
        match out {
            Some(known) if known.reason == reason => {
                standing.out = Some(later(known, fresh));
                return None;
            }
            // A limit does not make a bad credential good.
            Some(known) if known.reason == Reason::Credential => {
                standing.beneath = Some(standing.beneath.map_or(fresh, |limit| later(limit, fresh)));
                return None;
            }
            Some(known) if reason == Reason::Credential => {
                standing.beneath = Some(known).filter(|known| known.reason.is_limit());
            }
            // A short limit does not end a long one.
            Some(known) if known.until >= until => return None,
            Some(_) | None => {}
        }
        standing.out = Some(fresh);
        Some(Change::Started {
            account,
            reason,
            lasts,
        })
    }

    /// Something was found of the account, for an operator to see. It is not left out for that: see [`Self::failed`].
    pub fn found(&mut self, account: AccountId, reason: Reason) {
        let Some(standing) = self.accounts.get_mut(usize::from(account.0)) else {
            return;
        };
        let found = &mut standing.found;
        match reason {
            Reason::Unreachable => found.unconnected = found.unconnected.saturating_add(1),
            Reason::Credential => {
                *found = Found {
                    rejected: true,
                    unconnected: 0,
                }
            }
            Reason::RateLimit | Reason::Quota => found.unconnected = 0,
        }
    }

    /// The account has answered a request, whatever it said.
    pub fn reached(&mut self, account: AccountId) {
        if let Some(standing) = self.accounts.get_mut(usize::from(account.0)) {
            standing.found.unconnected = 0;
        }
    }

    /// What was found of an account.
    pub fn findings(&self, account: AccountId) -> Found {
        let standing = self.accounts.get(usize::from(account.0));
        standing.map_or_else(Found::default, |standing| standing.found)
    }

    /// The account has accepted a turn, or answered at all: it can be reached, and its credential is good.
    pub fn answered(&mut self, account: AccountId, now: Instant) -> Option<Change> {
        let standing = self.accounts.get_mut(usize::from(account.0))?;
        standing.unreached = 0;
        standing.found = Found::default();
        let out = standing.out.filter(|out| !out.reason.is_limit())?;
        Some(standing.ended(account, out.reason, now))
    }

    /// The account has another credential now.
    pub fn renewed(&mut self, account: AccountId, now: Instant) -> Option<Change> {
        let standing = self.accounts.get_mut(usize::from(account.0))?;
        standing.found.rejected = false;
        let out = standing.out.filter(|out| out.reason == Reason::Credential)?;
        Some(standing.ended(account, out.reason, now))
    }

    /// Why and until when an account is unavailable.
    pub fn of(&self, account: AccountId, now: Instant) -> Option<Unavailable> {
        self.accounts.get(usize::from(account.0))?.at(now)
    }

    /// One of the times that are over, to be told; call it until there is none.
    pub fn expired(&mut self, now: Instant) -> Option<Change> {
        for (number, standing) in (0..).zip(&mut self.accounts) {
            if let Some(out) = standing.out.filter(|out| out.until <= now) {
                return Some(standing.ended(AccountId(number), out.reason, now));
            }
        }
        None
    }

    /// Accounts that are unavailable, for the gauge.
    pub fn unavailable(&self, now: Instant) -> usize {
        self.accounts
            .iter()
            .filter(|standing| standing.at(now).is_some())
            .count()
    }

    /// How the accounts stand, in numbers.
    pub fn tally(&self, now: Instant) -> Tally {
        let mut tally = Tally::default();
        for standing in &self.accounts {
            if standing.at(now).is_some() {
                tally.unavailable += 1;
            } else if standing.found.rejected {
                tally.rejected += 1;
            } else if standing.found.unconnected >= Found::UNREACHED {
                tally.unreached += 1;
            }
        }
        tally
    }
}

fn later(one: Unavailable, other: Unavailable) -> Unavailable {
    if one.until >= other.until { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::head::{self, Head};

    const S: Duration = Duration::from_secs(1);
    const A: AccountId = AccountId(1);

    fn error(frame: &str) -> WireError {
        match head::read(frame.as_bytes()).head {
            Head::Error(error) => *error,
            other => panic!("{other:?}"),
        }
    }

    fn started(change: Option<Change>) -> Option<Duration> {
        match change {
            Some(Change::Started {
                account: A, lasts, ..
            }) => Some(lasts),
            None => None,
            other => panic!("{other:?}"),
        }
    }

    /// [ROUTE-5] an account that cannot be reached is left alone for 10 s, then longer and longer, up to 60 s; an answer
    /// ends that, and it begins anew.
    #[test]
    fn unreachable() {
        let mut all = Availability::new(2);
        let mut now = Instant::now();
        for lasts in [10, 20, 40, 60, 60] {
            assert_eq!(
                started(all.failed(A, Reason::Unreachable.into(), now)),
                Some(lasts * S)
            );
            assert_eq!(
                started(all.failed(A, Reason::Unreachable.into(), now + S)),
                None,
                "one failure"
            );
            let until = now + lasts * S;
            assert_eq!(
                all.of(A, until - S).map(|out| out.reason),
                Some(Reason::Unreachable)
            );
            assert_eq!(all.of(AccountId(0), now), None);
            assert_eq!(all.of(A, until), None);
            now = until;
        }
        assert!(all.answered(A, now).is_some());
        assert_eq!(all.answered(A, now), None);
        assert_eq!(
            started(all.failed(A, Reason::Unreachable.into(), now)),
            Some(10 * S)
        );
    }

    /// [ROUTE-5] a limit lasts as long as upstream says, within a second and an hour; an answer of another turn does not
    /// end it, nor does another credential.
    #[test]
    fn limits() {
        let now = Instant::now();
        for (frame, reason, lasts) in [
            (
                r#"{"type":"error","status":429,"error":{"code":"rate_limit_exceeded"}}"#,
                Reason::RateLimit,
                10,
            ),
            (
                r#"{"type":"error","status":429,"headers":{"retry-after":"30"},"error":{"code":"rate_limit_exceeded"}}"#,
                Reason::RateLimit,
                30,
            ),
            (
                r#"{"type":"error","error":{"code":"rate_limit_exceeded","headers":{"Retry-After-Ms":1500}}}"#,
                Reason::RateLimit,
                1,
            ),
            (
                r#"{"type":"error","headers":{"retry-after":0},"error":{"code":"rate_limit_exceeded"}}"#,
                Reason::RateLimit,
                1,
            ),
            (
                r#"{"type":"error","headers":{"retry-after":-5},"error":{"code":"rate_limit_exceeded"}}"#,
                Reason::RateLimit,
                10,
            ),
            (
                r#"{"type":"error","headers":{"retry-after":1e300},"error":{"code":"rate_limit_exceeded"}}"#,
                Reason::RateLimit,
                10,
            ),
            (
                r#"{"type":"error","error":{"type":"usage_limit_reached","resets_at":1100}}"#,
                Reason::Quota,
                100,
            ),
            (
                r#"{"type":"error","error":{"code":"usage_limit_reached","resets_at":99999999}}"#,
                Reason::Quota,
                3600,
            ),
            (
                r#"{"type":"error","error":{"code":"insufficient_quota","resets_at":5}}"#,
                Reason::Quota,
                1,
            ),
        ] {
            let cause = Cause::of(&error(frame), 1000).unwrap();
            assert_eq!(cause.reason, reason, "{frame}");
            let mut all = Availability::new(2);
            let told = started(all.failed(A, cause, now)).unwrap();
            assert_eq!(told.as_secs(), lasts, "{frame}");
            assert_eq!((all.answered(A, now), all.renewed(A, now)), (None, None));
            assert_eq!(all.unavailable(now), 1);
            assert!(matches!(
                all.expired(now + told),
                Some(Change::Cleared { account: A, .. })
            ));
            assert_eq!((all.expired(now + told), all.unavailable(now)), (None, 0));
        }
    }

    /// [ROUTE-5] a rejected credential counts for a minute, or until there is another one.
    #[test]
    fn credentials() {
        let now = Instant::now();
        let mut all = Availability::new(2);
        let rejected = error(
            r#"{"type":"error","status":401,"headers":{"retry-after":"1"},"error":{"code":"token_expired"}}"#,
        );
        let cause = Cause::of(&rejected, 1000).unwrap();
        assert_eq!(started(all.failed(A, cause, now)), Some(60 * S));
        assert!(all.renewed(A, now).is_some());
        assert_eq!(all.of(A, now), None);
        all.failed(A, cause, now);
        assert!(all.answered(A, now).is_some());
    }

    /// [ROUTE-5] errors that say nothing about the account never count.
    #[test]
    fn what_says_nothing() {
        for frame in [
            r#"{"type":"error","status":500,"error":{"code":"server_error"}}"#,
            r#"{"type":"error","status":503,"error":{"code":"server_is_overloaded"}}"#,
            r#"{"type":"error","status":429,"error":{"code":"slow_down"}}"#,
            r#"{"type":"error","status":400,"error":{"code":"context_length_exceeded"}}"#,
            r#"{"type":"error","status":400,"error":{"code":"invalid_prompt"}}"#,
            r#"{"type":"error","status":400,"error":{"code":"previous_response_not_found"}}"#,
            r#"{"type":"error","status":404,"error":{"code":"model_not_found"}}"#,
            r#"{"type":"error","error":{"message":"anything"}}"#,
        ] {
            assert_eq!(Cause::of(&error(frame), 1000), None, "{frame}");
        }
    }

    /// [ROUTE-5] what an account is told later does not end what it was told before: the longest counts, and is told once.
    #[test]
    fn a_short_limit_does_not_end_a_long_one() {
        let now = Instant::now();
        let mut availability = Availability::new(1);
        let limit = |reason, seconds| Cause {
            reason,
            lasts: Some(Duration::from_secs(seconds)),
        };
        let account = AccountId(0);
        assert!(
            availability
                .failed(account, limit(Reason::Quota, 3600), now)
                .is_some()
        );
        assert_eq!(
            availability.failed(account, limit(Reason::RateLimit, 5), now),
            None
        );
        assert_eq!(
            availability.failed(account, Reason::Unreachable.into(), now),
            None
        );
        let out = availability.of(account, now).unwrap();
        assert_eq!(out.reason, Reason::Quota);
        assert_eq!(out.until, now + Duration::from_secs(3600));
    }

    /// [ROUTE-12] a rejected credential replaces a limit as the reason, and is told; the limit counts again when the credential is
    /// good, or has counted for long enough, as long as it lasts.
    #[test]
    fn a_rejected_credential_stands_before_a_limit() {
        let now = Instant::now();
        let quota = Cause {
            reason: Reason::Quota,
            lasts: Some(600 * S),
        };
        type End = fn(&mut Availability, Instant) -> Option<Change>;
        let ends: [(End, u32); 3] = [
            (|all, now| all.answered(A, now), 20),
            (|all, now| all.renewed(A, now), 20),
            (|all, now| all.expired(now), 60),
        ];
        for (end, seconds) in ends {
            for limit_first in [true, false] {
                let mut all = Availability::new(2);
                if limit_first {
                    assert_eq!(started(all.failed(A, quota, now)), Some(600 * S));
                }
                assert_eq!(
                    started(all.failed(A, Reason::Credential.into(), now)),
                    Some(60 * S)
                );
                assert_eq!(all.failed(A, Reason::Credential.into(), now), None);
                if !limit_first {
                    assert_eq!(all.failed(A, quota, now), None);
                }
                let out = all.of(A, now).unwrap();
                assert_eq!((out.reason, out.until), (Reason::Credential, now + 600 * S));
                let then = now + seconds * S;
                let limited = Change::Started {
                    account: A,
                    reason: Reason::Quota,
                    lasts: 600 * S - seconds * S,
                };
                assert_eq!(end(&mut all, then), Some(limited));
                assert_eq!(all.of(A, then).map(|out| out.reason), Some(Reason::Quota));
                assert_eq!((all.expired(then), all.unavailable(then)), (None, 1));
                assert!(matches!(
                    all.expired(now + 600 * S),
                    Some(Change::Cleared {
                        reason: Reason::Quota,
                        ..
                    })
                ));
            }
        }
    }

    /// [ROUTE-12] a limit that has ended meanwhile does not come back; nor does an account that was out of reach before it answered 401.
    #[test]
    fn nothing_is_beneath_that_is_over() {
        let now = Instant::now();
        for before in [Reason::RateLimit, Reason::Unreachable] {
            let mut all = Availability::new(2);
            all.failed(A, before.into(), now);
            assert!(started(all.failed(A, Reason::Credential.into(), now + S)).is_some());
            assert!(matches!(
                all.renewed(A, now + 11 * S),
                Some(Change::Cleared {
                    reason: Reason::Credential,
                    ..
                })
            ));
            assert_eq!(all.of(A, now + 11 * S), None);
        }
    }

    /// [ROUTE-12] of two limits the one that lasts longer is the reason.
    #[test]
    fn the_longer_limit_is_the_reason() {
        let now = Instant::now();
        let mut all = Availability::new(2);
        all.failed(A, Reason::RateLimit.into(), now);
        let quota = Cause {
            reason: Reason::Quota,
            lasts: Some(600 * S),
        };
        assert_eq!(started(all.failed(A, quota, now)), Some(600 * S));
        assert_eq!(all.of(A, now).map(|out| out.reason), Some(Reason::Quota));
    }

    /// [ROUTE-13] What was found of an account stays until it is known better: a rejected credential until a turn is accepted
    /// or it changes, failures to connect until it answers.
    #[test]
    fn findings_stay() {
        let now = Instant::now();
        let mut all = Availability::new(2);
        let found = |rejected, unconnected| Found {
            rejected,
            unconnected,
        };
        all.found(A, Reason::Credential);
        assert_eq!(all.of(A, now), None, "it is not left out for that");
        assert_eq!(all.findings(A), found(true, 0));
        assert_eq!(all.findings(AccountId(0)), Found::default());
        for n in 1..=3 {
            all.found(A, Reason::Unreachable);
            assert_eq!(all.findings(A), found(true, n));
        }
        all.found(A, Reason::RateLimit);
        assert_eq!(
            all.findings(A),
            found(true, 0),
            "a limit is told by who can be reached"
        );
        all.found(A, Reason::Unreachable);
        all.reached(A);
        assert_eq!(all.findings(A), found(true, 0));
        all.found(A, Reason::Unreachable);
        all.renewed(A, now);
        assert_eq!(all.findings(A), found(false, 1));
        all.found(A, Reason::Credential);
        all.answered(A, now);
        assert_eq!(all.findings(A), Found::default());
    }

    /// [ROUTE-13] [HLT-6] Each account counts once.
    #[test]
    fn a_tally() {
        let now = Instant::now();
        let mut all = Availability::new(4);
        assert_eq!(all.tally(now), Tally::default());
        for account in [AccountId(0), A] {
            all.found(account, Reason::Credential);
        }
        all.failed(A, Reason::Credential.into(), now);
        for _ in 0..3 {
            assert_eq!(all.tally(now).unreached, 0);
            all.found(AccountId(2), Reason::Unreachable);
        }
        let tally = |unavailable, rejected, unreached| Tally {
            unavailable,
            rejected,
            unreached,
        };
        assert_eq!(all.tally(now), tally(1, 1, 1));
        assert_eq!(all.tally(now + 60 * S), tally(0, 2, 1), "its time is over");
    }
}
