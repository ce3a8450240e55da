use super::*;

/// A seeded generator (splitmix64): the same waits in every run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Between 0 and 1, neither of them.
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0
    }

    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.uniform().ln()
    }

    pub fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
        let angle = std::f64::consts::TAU * self.uniform();
        let normal = (-2.0 * self.uniform().ln()).sqrt() * angle.cos();
        median * (sigma * normal).exp()
    }
}

pub const IN_FORCE: InForce = InForce {
    created_ms: 60_000,
    created_most_ms: 268_000,
    idle_ms: 900_000,
    idle_most_ms: 7_200_000,
    window_ms: 60_000,
    max_window_ms: 600_000,
    max_age_ms: 2_700_000,
    idle_ttl_ms: 2_700_000,
};

fn turn(model: &str, created: u64, gap: u64) -> String {
    serde_json::json!({
        "event": "turn_finished", "provider": "openai", "account": "main", "model": model, "key": "05420f42f987",
        "key_kind": "thread", "transport": "websocket", "outcome": "completed", "session": 7, "stream": true,
        "sent": true, "committed": true, "total_ms": created + gap + 100, "upstream_ms": created + gap + 50,
        "created_ms": created, "longest_gap_ms": gap, "age": "1m", "idle": "1s",
    })
    .to_string()
}

/// A client waited so long for `response.created`, and left.
fn left(after: u64) -> String {
    serde_json::json!({
        "event": "turn_finished", "provider": "openai", "account": "main", "model": "gpt-5", "key": "05420f42f987",
        "key_kind": "thread", "transport": "websocket", "outcome": "client_gone", "session": 7, "stream": true,
        "sent": true, "committed": true, "total_ms": after + 100, "upstream_ms": after, "age": "1m", "idle": "1s",
    })
    .to_string()
}

fn read(bodies: impl Iterator<Item = String>) -> Read {
    let mut evidence = Evidence::new(None, Vec::new());
    for (at_ms, body) in (1_796_000_000_000..).zip(bodies) {
        evidence.take(Row {
            at_ms,
            event: "turn_finished",
            body: &body,
        });
    }
    evidence.read()
}

/// [TUNE-1] every window has its section, and each says keep, raise, lower, or not enough evidence.
#[test]
fn every_window_is_told_of() {
    let report = report(
        &read(
            (0..6000)
                .map(|number| turn("gpt-5", number % 3000, 200))
                .chain([left(50_000)]),
        ),
        IN_FORCE,
    );
    let told: Vec<_> = report
        .sections
        .iter()
        .map(|section| (section.key, section.verdict.sentence(section.in_force_ms)))
        .collect();
    assert_eq!(
        told.iter().map(|(key, _)| *key).collect::<Vec<_>>(),
        [
            "watchdog.response_created_deadline",
            "watchdog.idle_deadline",
            "quarantine.window",
            "quarantine.max_window",
            "session.max_age",
            "session.idle_ttl",
        ]
    );
    let sentences = [
        "lower to 30s: less than 0.1 % of healthy turns are later with response.created, none tripped, and those that came to \
         nothing would have ended 20s sooner in all.",
        "keep 15m: no change is worth it: healthy turns would do with 10m, but none waited in vain for longer than that, so \
         nothing would have been saved.",
        "not enough evidence: 0 quarantines probed in time, 35 needed.",
        "not enough evidence: 0 quarantines probed in time, 35 needed.",
        "not enough evidence: 0 turns at an age over 30m, 381 needed.",
        "not enough evidence: 0 turns at an idle time over 30m, 381 needed.",
    ];
    for ((_, told), sentence) in told.iter().zip(sentences) {
        assert_eq!(told, sentence);
    }
}

/// [TUNE-1] an empty journal recommends nothing, and says how much it takes.
#[test]
fn an_empty_journal_says_so() {
    let report = report(&read(std::iter::empty()), IN_FORCE);
    for section in &report.sections {
        assert_eq!(section.verdict.value(), None, "{section:?}");
        assert!(
            section.verdict.sentence(1).starts_with("not enough evidence: 0 "),
            "{section:?}"
        );
    }
    let page = text(&report, false, |ms| ms.to_string());
    assert!(page.starts_with("Evidence: none\n"), "{page}");
}
