//! What goes where when something happens.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::*;
use crate::bridge::key::Hasher;
use crate::journal::{Entry, Names};
use crate::refusal::Kind;
use crate::telemetry::Telemetry;

type Texts = Arc<Mutex<Vec<String>>>;
type Entries = Arc<Mutex<Vec<Entry>>>;

/// A way out that remembers everything.
fn outlets(least: Level) -> (Events, Texts, Entries) {
    let (lines, entries) = (Texts::default(), Entries::default());
    let (sink, keep) = (lines.clone(), entries.clone());
    let events = Events::new(least, Arc::new(Telemetry::new().unwrap()), move |line| {
        sink.lock()
            .unwrap()
            .push(String::from_utf8(line.to_vec()).unwrap());
    })
    .kept(Hasher::new([7; 32]), move |entry| {
        keep.lock().unwrap().push(entry)
    })
    .live();
    (events, lines, entries)
}

fn refused(events: &Events, request_id: &str) {
    refused_for(events, request_id, Kind::Draining);
}

fn refused_for(events: &Events, request_id: &str, reason: Kind) {
    events.emit(&Event::Refused {
        ids: Ids {
            request_id,
            trace_id: Some("0af7651916cd43dd8448eb211c80319c"),
            parent_id: Some("b7ad6b7169203331"),
            names: &Names::NONE,
        },
        reason,
        door: AT_CLIENTS,
    });
}

/// [EVT-7] A line ends with the ids of the call; the journal's entry has names in their place, by which it is found.
#[test]
fn ids_are_in_lines_and_names_in_the_journal() {
    let (events, lines, entries) = outlets(Level::Info);
    refused(&events, "req-1");
    let line = lines.lock().unwrap().remove(0);
    let ids = r#","request_id":"req-1","trace_id":"0af7651916cd43dd8448eb211c80319c","parent_id":"b7ad6b7169203331"}"#;
    assert!(line.ends_with(&format!("{ids}\n")), "{line}");
    let members: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&members["event"], &members["level"]),
        (&"refused".into(), &"info".into())
    );
    let entry = entries.lock().unwrap().remove(0);
    assert_eq!((entry.event, entry.body.contains("req-1")), ("refused", false));
    let hasher = Hasher::new([7; 32]);
    let names = ["req-1", "0af7651916cd43dd8448eb211c80319c"].map(|id| hasher.name(id));
    assert_eq!(entry.names.as_slice(), names);
}

/// [EVT-8] Who looks sees what was and what comes, each once; the look back is bounded.
#[test]
fn the_latest_events_are_followed_without_a_gap() {
    let (events, ..) = outlets(Level::Warn);
    for number in 0..600 {
        refused(&events, &format!("req-{number}"));
    }
    let (latest, mut coming) = events.seen().unwrap().follow();
    refused(&events, "req-600");
    assert_eq!(latest.len(), 512);
    assert!(latest[0].line.contains(r#""req-88""#), "{}", latest[0].line);
    let next = coming.try_recv().unwrap();
    assert_eq!(next.number, latest.last().unwrap().number + 1);
    assert!(next.line.contains(r#""req-600""#), "{}", next.line);
    assert!(coming.try_recv().is_err());
}

/// [EVT-2] A member of an event is never called like one of its line's own: readers take the last of two.
#[test]
fn no_line_has_a_member_twice() {
    let (events, lines, _) = outlets(Level::Debug);
    events.emit(&Event::QuarantineOpened {
        at: At {
            provider: "p",
            account: "a",
        },
        key: crate::bridge::key::AffinityKey {
            kind: crate::bridge::key::KeyKind::Thread,
            hash: Hash16([1; 16]),
        }
        .into(),
        window_ms: 60_000,
        level: 1,
        generation: 1,
    });
    let line = lines.lock().unwrap().remove(0);
    let members: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&members["level"], &members["trip"]), (&"warn".into(), &1.into()));
    assert_eq!(line.matches("\"level\"").count(), 1, "{line}");
}

/// [JRN-19] Those who have shown nothing get some rows of the journal, and a line for each refusal all the same; refusals of
/// those who have are all kept.
#[test]
fn strangers_push_nothing_out() {
    let (events, lines, entries) = outlets(Level::Info);
    let strange: Vec<_> = Kind::ALL
        .into_iter()
        .filter(|kind| kind.is_before_any_credential())
        .collect();
    for kind in &strange {
        (0..100).for_each(|_| refused_for(&events, "req", *kind));
    }
    assert_eq!(lines.lock().unwrap().len(), strange.len() * 100);
    assert_eq!(entries.lock().unwrap().len(), 256);
    (0..1000).for_each(|_| refused(&events, "req"));
    assert_eq!(entries.lock().unwrap().len(), 1256);
}
