//! Which rows are one call's. An id of the client's choosing may stand for more than one (EXP-9): where a call ends and another
//! one begins is read from the rows.
//!
//! Every attempt's end tells its number and how long ago the call arrived, so that attempts of one call agree about that
//! moment, and rise in number. A refusal ends its call. What else happened to a call lies before an end that fits it, or right
//! behind one.

use super::call::Call;
use super::fact::{Fact, word};
use super::words;
use crate::journal::Names;
use crate::refusal::Kind;
use crate::wire::error::ErrorClass;

/// Attempts of one call agree so well about when it arrived, on a machine that is busy.
const AGREE_MS: u64 = 100;
/// Two moments that are nearer to each other cannot be told apart.
const ALIKE_MS: u64 = 10;
/// A call that an account rejected may wait so long for another one's session before it is refused.
const REFUSED_MS: u64 = 60_000;
/// What an attempt's end brings with it is told at once.
const AT_ONCE_MS: u64 = 1_000;
/// So late it may be seen that the clock was set.
const SEEN_MS: u64 = 3_000;
/// With fewer names than these a row has all of its call's that were known by then: beside them there is room for the request's,
/// the key's and the one of surroundings.
const ALL_NAMES: usize = Names::MOST - 3;

/// The calls of one request id, and how many rows may be of another one of them than they stand with.
#[derive(Debug, Default)]
pub struct Split<'a> {
    pub calls: Vec<Call<'a>>,
    pub doubtful: usize,
}

/// Tells the calls of one request id apart. `facts` in the journal's order; `steps`: those that tell that the clock was set.
pub fn split<'a>(facts: &[&'a Fact], steps: &[&Fact]) -> Split<'a> {
    let mut split = Split::default();
    let facts = || facts.iter().copied();
    for finish in facts().filter(|fact| fact.is("turn_finished")) {
        split.finish(finish, steps);
    }
    for refusal in facts().filter(|fact| fact.is("refused")) {
        split.refusal(refusal);
    }
    let known = split.calls.len();
    for fact in facts().filter(|fact| !is_end(fact)) {
        split.rest(fact, known, steps);
    }
    for call in &mut split.calls {
        call.facts.sort_by_key(|fact| fact.seq);
        call.found = call.facts.iter().any(|fact| fact.found);
    }
    split
}

impl<'a> Split<'a> {
    fn begin(&mut self, fact: &'a Fact) {
        self.calls.push(Call {
            facts: vec![fact],
            found: false,
        });
    }

    fn add(&mut self, index: usize, fact: &'a Fact) {
        if let Some(call) = self.calls.get_mut(index) {
            call.facts.push(fact);
        }
    }

    /// An attempt's end: of the call whose attempt before it agrees about the arrival, or of another one.
    fn finish(&mut self, finish: &'a Fact, steps: &[&Fact]) {
        let calls = self.calls.iter().enumerate();
        let mut fitting: Vec<(u64, usize)> = calls
            .filter_map(|(index, call)| Some((index, call.finish()?)))
            .filter(|(_, before)| may_go_on(before) && follows(before, finish))
            .filter_map(|(index, before)| {
                let apart = match is_stepped(before, finish, steps) {
                    true => 0,
                    false => arrival(before).abs_diff(arrival(finish)),
                };
                (apart <= AGREE_MS).then_some((apart, index))
            })
            .collect();
        fitting.sort_unstable();
        let Some((nearest, index)) = fitting.first().copied() else {
            return self.begin(finish);
        };
        let alike = |(apart, _): &&(u64, usize)| apart.abs_diff(nearest) <= ALIKE_MS;
        self.doubtful += usize::from(fitting.iter().filter(alike).count() > 1);
        self.add(index, finish);
    }

    /// A refusal: instead of another attempt of a call that an account had rejected, or of a call that had none.
    fn refusal(&mut self, refusal: &'a Fact) {
        let within = words::kind(word(&refusal.body.reason)).is_some_and(is_within_a_call);
        let rejected = self.calls.iter().enumerate().filter(|(_, call)| {
            let last = call.finish().filter(|last| {
                last.seq < refusal.seq
                    && moves_on(last)
                    && grew(last, refusal)
                    && refusal.at_ms.saturating_sub(last.at_ms) <= REFUSED_MS
            });
            within && last.is_some() && call.refusal().is_none()
        });
        let latest = rejected.max_by_key(|(_, call)| call.last_seq());
        match latest.map(|(index, _)| index) {
            Some(index) => {
                // Where the id stands for one call, there is no other that it could be of.
                self.doubtful += usize::from(self.calls.len() > 1);
                self.add(index, refusal);
            }
            None => self.begin(refusal),
        }
    }

    /// What else happened to one of the `known` calls, or to one without an end, which is the one behind them.
    fn rest(&mut self, fact: &'a Fact, known: usize, steps: &[&Fact]) {
        let (mut coming, mut at_once, mut behind) = (Vec::new(), None, None);
        for (index, call) in self.calls.iter().take(known).enumerate() {
            let ends = || call.facts.iter().copied().filter(|end| is_end(end));
            let next = ends().find(|end| end.seq > fact.seq);
            let next = next.filter(|end| leads_to(fact, end, steps));
            // Of calls that it fits alike, one that has none yet.
            let again = call.with(&fact.event).is_some();
            coming.extend(next.map(|end| (again, end.seq, index, end)));
            let last = ends().rfind(|end| end.seq < fact.seq && grew(end, fact));
            let here = last.filter(|end| end.account == fact.account && is_at_once(end, fact));
            at_once = at_once.max(here.map(|end| (end.seq, index)));
            behind = behind.max(last.filter(|end| moves_on(end)).map(|end| (end.seq, index)));
        }
        // What is told together with an end is of the nearest one.
        let is_certain = verdict(&fact.event).is_some() || is_of_a_refusal(fact);
        coming.sort_unstable_by_key(|(again, seq, ..)| (*again && !is_certain, *seq));
        let next = coming.first().map(|(_, seq, index, _)| (*seq, *index));
        let over = coming.first().map_or(0, |(.., end)| end.at_ms);
        let overlap = coming
            .iter()
            .skip(1)
            .any(|(.., end)| arrival(end).saturating_add(1) < over);
        let at_once = at_once.filter(|_| is_behind(fact) && !(is_certain && next.is_some()));
        self.doubtful += usize::from(overlap && !is_certain && at_once.is_none());
        match at_once.or(next).or(behind) {
            Some((_, index)) => self.add(index, fact),
            None if self.calls.len() > known => self.add(known, fact),
            None => self.begin(fact),
        }
    }
}

/// When the call arrived of which this is the end, or an attempt's end.
fn arrival(end: &Fact) -> u64 {
    end.at_ms.saturating_sub(end.body.total_ms)
}

fn is_end(fact: &Fact) -> bool {
    fact.is("turn_finished") || fact.is("refused")
}

/// Another attempt of the same call may follow an attempt that ended so.
fn may_go_on(finish: &Fact) -> bool {
    let body = &finish.body;
    let unreached = words::kind(word(&body.outcome)).is_some_and(|kind| {
        matches!(
            kind,
            Kind::ConnectFailed | Kind::ConnectTimeout | Kind::ProxyFailed
        )
    });
    !body.committed && body.created_ms.is_none() && (unreached || word(&body.outcome) == "rejected")
}

/// It ended so that the bridge tries again, where it can, without the client.
fn moves_on(finish: &Fact) -> bool {
    let again = [
        ErrorClass::Authentication,
        ErrorClass::ConnectionLimit,
        ErrorClass::NotFoundAnchor,
        ErrorClass::Quota,
        ErrorClass::RateLimit,
        ErrorClass::StreamLimit,
    ];
    let error = finish.body.error.as_deref();
    let rejected = word(&finish.body.outcome) == "rejected";
    let again = again.iter().any(|class| Some(class.label()) == error);
    finish.is("turn_finished") && may_go_on(finish) && (!rejected || again)
}

/// Whether `next` can be a later attempt's end of the call of which `before` is one.
fn follows(before: &Fact, next: &Fact) -> bool {
    let (first, second) = (&before.body, &next.body);
    // A client that left while its call waited for another account left before another attempt.
    let left = !second.sent && word(&second.outcome) != "rejected" && before.account != next.account;
    let rises = second.attempt > first.attempt || left && second.attempt == first.attempt;
    rises && grew(before, next) && first.model == second.model && first.client == second.client
}

/// A call gets further names on its way, and loses none.
fn grew(before: &Fact, after: &Fact) -> bool {
    let cut = before.names.len() >= ALL_NAMES || after.names.len() >= ALL_NAMES;
    cut || before.names.iter().all(|name| after.names.contains(name))
}

/// Refusals of a call that may have had an attempt. All others come before any.
fn is_within_a_call(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Draining
            | Kind::SessionBusy
            | Kind::NoSocket
            | Kind::OwnerUnavailable
            | Kind::UnknownClientKey
            | Kind::Internal
    )
}

/// It is told when an attempt has ended, of that attempt.
fn is_behind(fact: &Fact) -> bool {
    matches!(
        fact.event.as_str(),
        "credential_rejected" | "owner_unavailable" | "continuation_rejected"
    )
}

/// It is the reason of a refusal, and told right before it.
fn is_of_a_refusal(fact: &Fact) -> bool {
    matches!(fact.event.as_str(), "owner_unavailable" | "owner_conflict")
}

fn is_at_once(before: &Fact, after: &Fact) -> bool {
    after.at_ms.saturating_sub(before.at_ms) <= AT_ONCE_MS
}

/// Between the two the clock was set, so that their moments do not compare. It is seen a little later.
fn is_stepped(before: &Fact, after: &Fact, steps: &[&Fact]) -> bool {
    let seen = after.at_ms.saturating_add(SEEN_MS);
    steps
        .iter()
        .any(|step| step.seq > before.seq && (step.seq < after.seq || step.at_ms <= seen))
}

/// Whether the next end of a call can be that of the attempt to which this happened.
fn leads_to(fact: &Fact, end: &Fact, steps: &[&Fact]) -> bool {
    if is_of_a_refusal(fact) || end.is("refused") {
        let of_it = end.is("refused") && word(&end.body.reason) == fact.event;
        return of_it && is_of_a_refusal(fact) && grew(fact, end) && is_at_once(fact, end);
    }
    let (was, is) = (&fact.body, &end.body);
    let here = was.key.is_none() || was.key == is.key && fact.account == end.account;
    let there = was.session.is_none() || was.session == is.session;
    let plan = match fact.event.as_str() {
        "http_fallback" => was.reason == is.plan,
        "quarantine_http_fallback" => word(&is.plan) == "quarantined",
        _ => true,
    };
    let verdict = verdict(&fact.event).is_none_or(|kind| word(&is.outcome) == kind.label());
    let began = arrival(end) <= fact.at_ms.saturating_add(AGREE_MS) || is_stepped(fact, end, steps);
    here && there && plan && verdict && began && grew(fact, end)
}

/// What an event of the watchdog's says that the attempt ended as, which is told right behind it.
fn verdict(event: &str) -> Option<Kind> {
    Some(match event {
        "response_created_timeout" => Kind::CreatedTimeout,
        "idle_timeout" => Kind::IdleTimeout,
        "slow_stream" => Kind::WriteStalled,
        "slow_client" => Kind::SlowClient,
        _ => return None,
    })
}
