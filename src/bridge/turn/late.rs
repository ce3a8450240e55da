//! Late frames of the response that the same socket made before: they are not the running turn's (SES-18).
//!
//! Events carry no response id, but a number: each response's begin at 0 and go on without a gap. An event that breaks
//! this turn's row, and goes on where the previous response's row ended, is the previous response's. An upstream that
//! leaves gaps tells nothing, and then nothing is dropped.

use crate::wire::head;

/// The response that a socket made before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previous {
    pub response_id: Box<str>,
    /// The number of its terminal, where it had one.
    pub last: Option<u64>,
}

/// Tells the two rows apart.
#[derive(Debug)]
pub(super) struct Late {
    previous: Option<Previous>,
    /// The number of this turn's latest event, from `response.created` on.
    own: Option<u64>,
    met: bool,
}

impl Late {
    pub fn new(previous: Option<Previous>) -> Self {
        Late {
            previous,
            own: None,
            met: false,
        }
    }

    /// Whether a terminal repeats the previous response's. One upstream gives both responses the same id: then an
    /// accepted turn's terminal is its own.
    pub fn repeats(&self, terminal: Option<&str>, own: Option<&str>) -> bool {
        let previous = self.previous.as_ref().map(|previous| &*previous.response_id);
        terminal.is_some() && terminal == previous && terminal != own
    }

    /// `response.created` begins this turn's row. Returns its number, where there can be late frames at all.
    pub fn begin(&mut self, created: &[u8]) -> Option<u64> {
        if self.previous.is_none() || self.own.is_some() {
            return None;
        }
        self.own = head::sequence_number(created);
        self.own
    }

    /// Whether the event is the previous response's, and nobody's.
    pub fn takes(&mut self, event: &[u8]) -> bool {
        let Some(last) = self.previous.as_mut().and_then(|previous| previous.last.as_mut()) else {
            return false;
        };
        let Some(number) = head::sequence_number(event) else {
            return false;
        };
        let own = self.own.map(|own| own.saturating_add(1));
        let late = last.saturating_add(1);
        if number == late && own != Some(number) {
            *last = number;
            self.met = true;
            return true;
        }
        match own {
            Some(next) if number == next && next != late => self.own = Some(number),
            // A gap, or both rows are at the same number: from here on they cannot be told apart.
            Some(_) => self.previous_is_no_help(),
            None => {}
        }
        false
    }

    fn previous_is_no_help(&mut self) {
        if let Some(previous) = &mut self.previous {
            previous.last = None;
        }
    }

    /// Whether there was any: such a socket is not to be used again.
    pub fn met(&self) -> bool {
        self.met
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> String {
        format!(r#"{{"type":"response.output_text.delta","sequence_number":{number},"delta":"x"}}"#)
    }

    fn taken(last: Option<u64>, created: Option<&str>, numbers: &[u64]) -> Vec<u64> {
        let previous = Previous {
            response_id: "r0".into(),
            last,
        };
        let mut late = Late::new(Some(previous));
        if let Some(created) = created {
            late.begin(created.as_bytes());
        }
        let mut taken = numbers.to_vec();
        taken.retain(|number| late.takes(event(*number).as_bytes()));
        assert_eq!(late.met(), !taken.is_empty());
        taken
    }

    /// [SES-18] [INV-5] what goes on where the last response ended, and breaks this one's row, is the last response's; where
    /// the rows meet or have gaps, nothing is taken from this turn.
    #[test]
    fn two_rows() {
        let created = Some(r#"{"type":"response.created","sequence_number":0}"#);
        assert_eq!(taken(Some(9), created, &[1, 2, 10, 11, 3, 12, 4]), [10, 11, 12]);
        assert_eq!(taken(Some(9), None, &[10, 3]), [10]);
        assert_eq!(taken(Some(9), created, &[1, 2, 3]), [] as [u64; 0]);
        assert_eq!(
            taken(Some(2), created, &[1, 2, 3, 4, 5]),
            [] as [u64; 0],
            "the rows meet"
        );
        assert_eq!(
            taken(Some(9), created, &[1, 5, 10]),
            [] as [u64; 0],
            "gaps tell nothing"
        );
        assert_eq!(taken(None, created, &[1, 10, 2]), [] as [u64; 0]);
        let unnumbered = Some(r#"{"type":"response.created"}"#);
        assert_eq!(taken(Some(9), unnumbered, &[1, 2]), [] as [u64; 0]);
    }

    /// [SES-18] a repeated terminal of the last response ends nothing, unless one upstream gave both the same id.
    #[test]
    fn repeated_terminals() {
        let late = Late::new(Some(Previous {
            response_id: "r0".into(),
            last: None,
        }));
        assert!(late.repeats(Some("r0"), None));
        assert!(late.repeats(Some("r0"), Some("r1")));
        assert!(!late.repeats(Some("r0"), Some("r0")));
        assert!(!late.repeats(Some("r1"), Some("r1")));
        assert!(!late.repeats(None, Some("r1")));
        assert!(!Late::new(None).repeats(None, None));
    }
}
