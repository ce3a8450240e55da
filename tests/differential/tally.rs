//! What was tried, in numbers.

use std::collections::BTreeMap;
use std::fmt;

use responses_bridge::bridge::continuation::Rejected;

#[derive(Clone, Default)]
pub struct Tally {
    pub cases: u64,
    pub calls: u64,
    pub direct: u64,
    pub not_found: u64,
    sent: u64,
    continued: u64,
    bytes: [u64; 2],
    rejected: BTreeMap<&'static str, u64>,
}

impl Tally {
    pub fn planned(&mut self, continued: bool, extended: bool, rejected: Option<Rejected>) {
        let reason = match (continued, extended, rejected) {
            (true, ..) | (_, false, None) => return,
            (_, true, _) => "elsewhere",
            (.., Some(rejected)) => rejected.label(),
        };
        *self.rejected.entry(reason).or_default() += 1;
    }

    pub fn sent(&mut self, continued: bool, bytes: usize, body: usize) {
        self.sent += 1;
        self.continued += u64::from(continued);
        self.bytes[0] += bytes as u64;
        self.bytes[1] += body as u64;
    }

    /// The share of the turns on sockets that were continuations, in percent.
    pub fn share(&self) -> u64 {
        100 * self.continued / self.sent.max(1)
    }

    pub fn add(&mut self, other: &Tally) {
        self.cases += other.cases;
        self.calls += other.calls;
        self.direct += other.direct;
        self.not_found += other.not_found;
        self.sent += other.sent;
        self.continued += other.continued;
        self.bytes[0] += other.bytes[0];
        self.bytes[1] += other.bytes[1];
        for (reason, count) in &other.rejected {
            *self.rejected.entry(reason).or_default() += count;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sent = format!("{} on sockets, {} by HTTP", self.sent, self.direct);
        writeln!(f, "{} cases, {} calls: {sent}", self.cases, self.calls)?;
        let of_bytes = 100 * self.bytes[0] / self.bytes[1].max(1);
        let continued = format!("{} continued ({} %)", self.continued, self.share());
        writeln!(f, "{continued}, {of_bytes} % of the bytes sent")?;
        write!(f, "sent in full: not_found {}", self.not_found)?;
        self.rejected
            .iter()
            .try_for_each(|(reason, count)| write!(f, ", {reason} {count}"))
    }
}
