use super::*;

fn candidates(in_flight: &[(u16, usize)]) -> Vec<Candidate> {
    in_flight
        .iter()
        .map(|(account, in_flight)| Candidate {
            account: AccountId(*account),
            in_flight: *in_flight,
        })
        .collect()
}

/// A number that looks like any other.
fn random(n: u64) -> u64 {
    let n = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (n ^ (n >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 3
}

fn spread(chooser: &mut Chooser, among: &[(u16, usize)], times: u64) -> Vec<usize> {
    let mut counts = vec![0; 8];
    for n in 0..times {
        let chosen = chooser.choose(&candidates(among), random(n)).unwrap();
        counts[usize::from(chosen.0)] += 1;
    }
    counts
}

const IDLE: [(u16, usize); 3] = [(0, 0), (1, 0), (2, 0)];

/// [ROUTE-2] the first of those that may serve gets everything.
#[test]
fn priority() {
    let mut chooser = Chooser::new(Strategy::Priority, [1, 1, 1]);
    assert_eq!(spread(&mut chooser, &IDLE, 10)[..3], [10, 0, 0]);
    assert_eq!(spread(&mut chooser, &IDLE[1..], 10)[..3], [0, 10, 0]);
    assert_eq!(chooser.choose(&[], 7), None);
}

/// [ROUTE-2] shares are those of the weights, in every run of as many choices as the weights sum up to, and stay so among
/// the others when one falls out.
#[test]
fn weighted() {
    let mut chooser = Chooser::new(Strategy::Weighted, [5, 1, 2]);
    for _ in 0..4 {
        assert_eq!(spread(&mut chooser, &IDLE, 8)[..3], [5, 1, 2]);
    }
    assert_eq!(spread(&mut chooser, &IDLE[1..], 30)[..3], [0, 10, 20]);
    let mut chooser = Chooser::new(Strategy::Weighted, [2, 2]);
    let order: Vec<_> = (0..4)
        .map(|n| chooser.choose(&candidates(&IDLE[..2]), n).unwrap().0)
        .collect();
    assert_eq!(order, [0, 1, 0, 1], "not two of one in a row");
    let mut chooser = Chooser::new(Strategy::Weighted, [0, 1]);
    assert_eq!(
        spread(&mut chooser, &IDLE[..2], 10)[..2],
        [5, 5],
        "a weight is at least one"
    );
}

/// [ROUTE-2] one after the other, also where two kinds of requests with different candidates alternate.
#[test]
fn round_robin() {
    let mut chooser = Chooser::new(Strategy::RoundRobin, [1; 4]);
    assert_eq!(spread(&mut chooser, &IDLE, 9)[..3], [3, 3, 3]);
    let (low, high) = (candidates(&[(0, 0), (1, 0)]), candidates(&[(2, 0), (3, 0)]));
    let mut counts = [0; 4];
    for n in 0..20 {
        let among = if n % 2 == 0 { &low } else { &high };
        counts[usize::from(chooser.choose(among, 0).unwrap().0)] += 1;
    }
    assert_eq!(counts, [5; 4]);
}

/// [ROUTE-2] the one with the fewest turns; among equals one after the other.
#[test]
fn least_in_flight() {
    let mut chooser = Chooser::new(Strategy::LeastInFlight, [1; 3]);
    assert_eq!(
        spread(&mut chooser, &[(0, 3), (1, 2), (2, 5)], 10)[..3],
        [0, 10, 0]
    );
    assert_eq!(spread(&mut chooser, &IDLE, 9)[..3], [3, 3, 3]);
}

/// [ROUTE-2] of two that the number takes, the one with fewer turns: the busiest is never chosen, and where all are equal
/// each gets its share.
#[test]
fn power_of_two() {
    let mut chooser = Chooser::new(Strategy::PowerOfTwo, [1; 3]);
    let counts = spread(&mut chooser, &[(0, 1), (1, 9), (2, 4)], 3000);
    assert_eq!(counts[1], 0, "{counts:?}");
    assert!((1800..2200).contains(&counts[0]), "{counts:?}");
    let counts = spread(&mut chooser, &IDLE, 3000);
    assert!(
        counts[..3].iter().all(|count| (900..1100).contains(count)),
        "{counts:?}"
    );
    assert_eq!(spread(&mut chooser, &IDLE[2..], 5)[2], 5, "one is enough");
    assert_eq!(chooser.choose(&[], 3), None);
}

/// [ROUTE-1] a star stands for any run of characters; without patterns every model is served.
#[test]
fn model_patterns() {
    let of = |patterns: &[&str], model| {
        let patterns: Vec<_> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        serves(&patterns, model)
    };
    assert!(of(&[], "anything"));
    for (pattern, model, wanted) in [
        ("gpt-5", "gpt-5", true),
        ("gpt-5", "gpt-5-mini", false),
        ("gpt-5*", "gpt-5-mini", true),
        ("gpt-5*", "gpt-5", true),
        ("*", "", true),
        ("*-mini", "gpt-5-mini", true),
        ("*-mini", "gpt-5-minimal", false),
        ("g*5*i", "gpt-5-mini", true),
        ("a*a", "a", false),
        ("a*a", "aa", true),
        ("*ab*ab", "ab", false),
        ("", "x", false),
        ("**", "x", true),
        ("modèle-*", "modèle-é", true),
    ] {
        assert_eq!(of(&[pattern], model), wanted, "{pattern} {model}");
    }
    assert!(of(&["x", "o4*"], "o4-mini"));
}

/// [CFG-19] Whether two lists of patterns have a model in common.
#[test]
fn patterns_that_meet() {
    let list = |patterns: &[&str]| patterns.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    for (some, others, wanted) in [
        (&[][..], &["gpt-5"][..], true),
        (&["gpt-5"], &["gpt-5"], true),
        (&["gpt-5"], &["o4-mini"], false),
        (&["gpt-5*"], &["gpt-5-mini"], true),
        (&["gpt-5*"], &["o4*"], false),
        (&["gpt-5*"], &["gpt*"], true),
        (&["*-mini"], &["gpt*"], true),
        (&["*-mini"], &["gpt*-nano"], false),
        (&["*-mini"], &["gpt*i"], true),
        (&["a", "b*"], &["c", "*d"], true),
    ] {
        let (some, others) = (list(some), list(others));
        assert_eq!(share_a_model(&some, &others), wanted, "{some:?} {others:?}");
        assert_eq!(share_a_model(&others, &some), wanted, "{others:?} {some:?}");
    }
}

/// [REL-14] other weights count from the next choice on, without a debt of the old ones; another strategy too, and it knows
/// whose turn was longest ago.
#[test]
fn reconfigured() {
    let mut chooser = Chooser::new(Strategy::Weighted, [100, 1, 1]);
    spread(&mut chooser, &IDLE, 50);
    chooser.reconfigure(Strategy::Weighted, [1, 1, 2]);
    assert_eq!(spread(&mut chooser, &IDLE, 40)[..3], [10, 10, 20]);
    chooser.reconfigure(Strategy::Weighted, [1, 1, 2]);
    assert_eq!(
        spread(&mut chooser, &IDLE, 4)[..3],
        [1, 1, 2],
        "the same again changes nothing"
    );
    chooser.reconfigure(Strategy::Priority, [1, 1, 1]);
    assert_eq!(spread(&mut chooser, &IDLE, 5)[..3], [5, 0, 0]);
    chooser.reconfigure(Strategy::RoundRobin, [1, 1, 1]);
    assert_ne!(chooser.choose(&candidates(&IDLE), 0), Some(AccountId(0)));
    assert_eq!(chooser.strategy(), Strategy::RoundRobin);
}
