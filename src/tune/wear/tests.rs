use super::*;

fn judged(in_force_ms: u64, counts: [(u64, u64); 5]) -> Section {
    section("session.max_age", in_force_ms, AGES, "age", Buckets(counts))
}

fn sentence(section: &Section) -> String {
    section.verdict.sentence(section.in_force_ms)
}

/// [TUNE-8] an upstream that closes sockets after half an hour: the age at which it begins is recommended, with what
/// happened before and after it.
#[test]
fn sockets_that_fail_when_old_live_shorter() {
    let section = judged(45 * MINUTE, [(5000, 5), (3000, 2), (2000, 3), (400, 60), (0, 0)]);
    assert_eq!(section.verdict.value(), Some(30 * MINUTE));
    assert_eq!(
        sentence(&section),
        "lower to 30m: beyond it 60 of 400 turns failed with their socket, before it 10 of 10000."
    );
}

/// [TUNE-8] an upstream that fails at every age is no reason to shorten the life of sockets.
#[test]
fn sockets_that_fail_at_any_age_stay() {
    let section = judged(
        45 * MINUTE,
        [(5000, 250), (3000, 150), (2000, 100), (400, 20), (0, 0)],
    );
    assert!(
        sentence(&section).starts_with("keep 45m: sockets fail (20 of 400 turns)"),
        "{}",
        sentence(&section)
    );
}

/// [TUNE-8] healthy old sockets: kept, and raised only to an age that was seen beyond the one in force.
#[test]
fn healthy_sockets_stay_or_live_longer() {
    let kept = judged(45 * MINUTE, [(5000, 1), (3000, 0), (2000, 1), (1000, 0), (0, 0)]);
    assert_eq!(
        sentence(&kept),
        "keep 45m: at most 1 % of turns fail at that age; nothing is known about a longer one."
    );
    let raised = judged(18 * MINUTE, [(5000, 1), (3000, 0), (2000, 1), (1000, 0), (0, 0)]);
    assert_eq!(raised.verdict.value(), Some(30 * MINUTE), "{}", sentence(&raised));
    // Not past a bucket that fails.
    let between = judged(
        18 * MINUTE,
        [(5000, 1), (3000, 0), (2000, 200), (1000, 0), (0, 0)],
    );
    assert_eq!(
        between.verdict.value(),
        Some(10 * MINUTE),
        "{}",
        sentence(&between)
    );
}

/// [TUNE-6] [TUNE-8] few turns at the age in question decide nothing.
#[test]
fn too_few_turns() {
    let section = judged(45 * MINUTE, [(5000, 1), (3000, 0), (2000, 1), (20, 0), (0, 0)]);
    assert_eq!(
        sentence(&section),
        "not enough evidence: 20 turns at an age over 30m, 381 needed."
    );
}

/// [TUNE-8] sockets that fail after seconds of rest are no reason to close every socket after each turn.
#[test]
fn never_below_what_a_session_is_for() {
    let idle = Buckets([(1000, 0), (1000, 500), (1000, 500), (0, 0), (0, 0)]);
    let section = section("session.idle_ttl", 45 * MINUTE, IDLES, "idle time", idle);
    assert_ne!(section.verdict.value(), Some(1000), "{section:?}");
}
