//! What the clients saw, in numbers (REH-6).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::seen::{Call, Ended, Record, Way};

/// The clients' side of a drill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub questions: usize,
    pub calls: usize,
    pub over_sessions: usize,
    pub over_http: usize,
    /// Calls that ended in an error, by what it was: status and code.
    pub errors: BTreeMap<String, usize>,
    /// Calls for a question that had been asked before.
    pub retries: usize,
    /// The longest that a call waited for `response.created` or an error; of the drill's time.
    pub slowest: Duration,
    /// Creates that a call sent although an earlier one of it may have been heard.
    pub duplicates: usize,
}

/// Counts.
pub fn tally(record: &Record) -> Tally {
    let mut tally = Tally {
        calls: record.calls.len(),
        duplicates: duplicates(record),
        ..Tally::default()
    };
    for call in &record.calls {
        tally.slowest = tally.slowest.max(call.waited);
        match call.attempt {
            0 | 1 => tally.questions += 1,
            _ => tally.retries += 1,
        }
        match &call.ended {
            Ended::Answered(Some(Way::Http)) => tally.over_http += 1,
            Ended::Answered(_) => tally.over_sessions += 1,
            _ => *tally.errors.entry(kind(call)).or_default() += 1,
        }
    }
    tally
}

/// What a client would call the error.
fn kind(call: &Call) -> String {
    match &call.ended {
        Ended::Error {
            status: Some(status),
            code,
            ..
        } => format!("{status} {code}"),
        Ended::Error { code, .. } => format!("response.failed {code}"),
        Ended::Answered(_) | Ended::Broken => "connection broken".to_owned(),
    }
}

/// A call sends one create; only a definite rejection permits it another.
fn duplicates(record: &Record) -> usize {
    let mut heard: HashMap<&str, usize> = HashMap::new();
    for sent in record.sent.iter().filter(|sent| !sent.rejected) {
        *heard.entry(&sent.call).or_default() += 1;
    }
    heard.values().map(|count| count.saturating_sub(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::seen::Sent;
    use super::*;

    fn sent(call: &str, rejected: bool) -> Sent {
        Sent {
            call: call.to_owned(),
            way: Way::Websocket,
            rejected,
            broken: false,
        }
    }

    /// [REH-6] A create after a definite rejection is none too many; a second one that may have been heard is.
    #[test]
    fn only_a_rejection_permits_another_create() {
        let sent_by = |sent| Record {
            sent,
            ..Record::default()
        };
        assert_eq!(
            tally(&sent_by(vec![
                sent("a", true),
                sent("a", false),
                sent("b", false)
            ]))
            .duplicates,
            0
        );
        assert_eq!(
            tally(&sent_by(vec![
                sent("a", false),
                sent("a", false),
                sent("b", false)
            ]))
            .duplicates,
            1
        );
    }

    /// [REH-6] Calls are counted by how they ended, and retries beside the questions.
    #[test]
    fn calls_are_counted_by_their_end() {
        let ms = Duration::from_millis;
        let call = |question, attempt, waited, ended| Call {
            client: 0,
            question,
            attempt,
            began: ms(0),
            waited: ms(waited),
            took: ms(waited),
            ended,
        };
        let silent = Ended::Error {
            status: Some(504),
            code: "bridge_x".to_owned(),
            retry_after: Some(1),
        };
        let record = Record {
            calls: vec![
                call(1, 1, 5, Ended::Answered(Some(Way::Websocket))),
                call(2, 1, 1000, silent),
                call(2, 2, 7, Ended::Answered(Some(Way::Http))),
                call(3, 1, 9, Ended::Broken),
            ],
            ..Record::default()
        };
        let tally = tally(&record);
        assert_eq!((tally.questions, tally.calls, tally.retries), (3, 4, 1));
        assert_eq!(
            (tally.over_sessions, tally.over_http, tally.slowest),
            (1, 1, ms(1000))
        );
        let errors: Vec<_> = tally
            .errors
            .iter()
            .map(|(kind, count)| (kind.as_str(), *count))
            .collect();
        assert_eq!(errors, [("504 bridge_x", 1), ("connection broken", 1)]);
    }
}
