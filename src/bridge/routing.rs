//! How an account is chosen for a new key, among those that may serve it (ROUTE-1..ROUTE-3). Randomness is passed in.

use super::ownership::AccountId;

/// How an account is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The first.
    Priority,
    /// By weight, evenly interleaved.
    Weighted,
    /// One after the other.
    RoundRobin,
    /// The one with the fewest turns at work.
    LeastInFlight,
    /// Of two taken at random the one with fewer turns at work.
    PowerOfTwo,
}

impl Strategy {
    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Strategy::Priority => "priority",
            Strategy::Weighted => "weighted",
            Strategy::RoundRobin => "round_robin",
            Strategy::LeastInFlight => "least_in_flight",
            Strategy::PowerOfTwo => "power_of_two",
        }
    }
}

/// An account that may be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub account: AccountId,
    /// Turns at work.
    pub in_flight: usize,
}

/// What an account's choices so far have left.
#[derive(Clone, Copy, Debug)]
struct Standing {
    weight: i64,
    /// How much the account has in store, or is overdrawn, of its share.
    credit: i64,
    /// The number of its latest choice; 0: never.
    chosen: u64,
}

/// Chooses accounts by a strategy. Which accounts are candidates may change from one choice to the next.
#[derive(Debug)]
pub struct Chooser {
    strategy: Strategy,
    accounts: Vec<Standing>,
    choices: u64,
}

impl Chooser {
    /// A chooser among accounts with these weights, in the order of the configuration.
    pub fn new(strategy: Strategy, weights: impl IntoIterator<Item = u32>) -> Self {
        let standing = |weight: u32| Standing {
            weight: weight.max(1).into(),
            credit: 0,
            chosen: 0,
        };
        Chooser {
            strategy,
            accounts: weights.into_iter().map(standing).collect(),
            choices: 0,
        }
    }

    /// Another strategy, or other weights for the same accounts. Whose turn was longest ago stays known; what is owed by the
    /// old weights is not (REL-14).
    pub fn reconfigure(&mut self, strategy: Strategy, weights: impl IntoIterator<Item = u32>) {
        self.strategy = strategy;
        let mut differs = false;
        for (standing, weight) in self.accounts.iter_mut().zip(weights) {
            let before = std::mem::replace(&mut standing.weight, weight.max(1).into());
            differs |= before != standing.weight;
        }
        if differs {
            for standing in &mut self.accounts {
                standing.credit = 0;
            }
        }
    }

    /// The strategy.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Chooses one of the candidates, which are in the order of the configuration. `random` is any number.
    pub fn choose(&mut self, candidates: &[Candidate], random: u64) -> Option<AccountId> {
        let chosen = match self.strategy {
            Strategy::Priority => candidates.first()?.account,
            Strategy::Weighted => self.by_weight(candidates)?,
            // The one whose turn was longest ago: fair also where one request's candidates are not the next one's.
            Strategy::RoundRobin => self.least(candidates, |_, chosen| (0, chosen))?,
            // Where all have equally much to do, which is most of the time, none is to get everything.
            Strategy::LeastInFlight => {
                self.least(candidates, |candidate, chosen| (candidate.in_flight, chosen))?
            }
            Strategy::PowerOfTwo => of_two(candidates, random)?,
        };
        self.choices += 1;
        let choices = self.choices;
        if let Some(standing) = self.accounts.get_mut(usize::from(chosen.0)) {
            standing.chosen = choices;
        }
        Some(chosen)
    }

    fn least(
        &self,
        candidates: &[Candidate],
        by: impl Fn(&Candidate, u64) -> (usize, u64),
    ) -> Option<AccountId> {
        let chosen = |account: AccountId| {
            self.accounts
                .get(usize::from(account.0))
                .map_or(0, |of| of.chosen)
        };
        candidates
            .iter()
            .min_by_key(|candidate| by(candidate, chosen(candidate.account)))
            .map(|candidate| candidate.account)
    }

    /// Each candidate is credited with its weight, the one with the most credit is chosen, and pays for all: over any run
    /// of choices the shares are right, and never many of one in a row.
    fn by_weight(&mut self, candidates: &[Candidate]) -> Option<AccountId> {
        let mut total = 0;
        let mut best: Option<(AccountId, i64)> = None;
        for candidate in candidates {
            let standing = self.accounts.get_mut(usize::from(candidate.account.0))?;
            standing.credit += standing.weight;
            total += standing.weight;
            if best.is_none_or(|(_, credit)| standing.credit > credit) {
                best = Some((candidate.account, standing.credit));
            }
        }
        let (account, _) = best?;
        self.accounts.get_mut(usize::from(account.0))?.credit -= total;
        Some(account)
    }
}

/// Two different candidates by one number; the first of them where they have equally much to do.
fn of_two(candidates: &[Candidate], random: u64) -> Option<AccountId> {
    let count = candidates.len() as u64;
    let (first, rest) = (random.checked_rem(count)?, random / count);
    let place = |number: u64| {
        usize::try_from(number)
            .ok()
            .and_then(|number| candidates.get(number))
    };
    let one = place(first)?;
    if count == 1 {
        return Some(one.account);
    }
    let other = place((first + 1 + rest % (count - 1)) % count)?;
    Some(if other.in_flight < one.in_flight {
        other.account
    } else {
        one.account
    })
}

/// Whether one of the patterns, `*` for any run of characters, matches the model. No pattern: every model.
pub fn serves(patterns: &[String], model: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, model))
}

/// Whether some model matches patterns of both.
pub fn share_a_model(some: &[String], others: &[String]) -> bool {
    let all = some.is_empty() || others.is_empty();
    all || some.iter().any(|one| others.iter().any(|other| meet(one, other)))
}

/// Between the first and the last star of a pattern anything else may stand beside what it asks for: of two with stars only
/// what is before and after them can clash.
fn meet(one: &str, other: &str) -> bool {
    let (Some((start, _)), Some((begin, _))) = (one.split_once('*'), other.split_once('*')) else {
        return matches(one, other) || matches(other, one);
    };
    let after = |pattern: &'_ str| pattern.len() - pattern.rfind('*').map_or(0, |star| star + 1);
    let (one_end, other_end) = (after(one), after(other));
    let short = one_end.min(other_end);
    let starts = start.starts_with(begin) || begin.starts_with(start);
    starts
        && one
            .as_bytes()
            .iter()
            .rev()
            .take(short)
            .eq(other.as_bytes().iter().rev().take(short))
}

fn matches(pattern: &str, model: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| model.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        // No star at all.
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests;
