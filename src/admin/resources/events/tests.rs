//! A reader's place.

use std::sync::Arc;

use super::*;

fn seen(number: u64, event: &'static str, account: Option<&str>) -> Seen {
    Seen {
        number,
        event,
        account: account.map(Arc::from),
        line: format!(r#"{{"event":"{event}"}}"#).into(),
    }
}

fn reader(kind: Option<&str>, account: Option<&str>) -> (Reader, broadcast::Sender<Seen>) {
    let (out, coming) = broadcast::channel(4);
    let reader = Reader {
        given: Filter {
            kind: kind.map(str::to_owned),
            account: account.map(str::to_owned),
        },
        waiting: VecDeque::new(),
        coming,
        over: CancellationToken::new(),
        revoked: CancellationToken::new(),
        _room: Arc::new(tokio::sync::Semaphore::new(1))
            .try_acquire_owned()
            .unwrap(),
    };
    (reader, out)
}

/// What waits after resuming, without the greeting: `gap N`, or the number of an event.
fn resumed(kept: std::ops::RangeInclusive<u64>, last: Option<&str>) -> Vec<String> {
    let (mut reader, _out) = reader(None, None);
    reader.resume(kept.map(|number| seen(number, "refused", None)).collect(), last);
    let told = reader.waiting.iter().skip(1).map(|chunk| {
        let text = std::str::from_utf8(chunk).unwrap();
        assert!(text.ends_with("\n\n"));
        match text.strip_prefix("event: gap\ndata: {\"missed\":") {
            Some(rest) => format!("gap {}", rest.trim_end().trim_end_matches('}')),
            None => text.lines().next().unwrap().replace("id: ", ""),
        }
    });
    told.collect()
}

/// [ADM-21] a reader resumes after what it saw; what is kept no more, and what was another process's, is told as a gap.
#[test]
fn resuming() {
    assert_eq!(resumed(1..=3, None), ["1", "2", "3"]);
    assert_eq!(resumed(1..=3, Some("2")), ["3"]);
    assert_eq!(resumed(1..=3, Some("3")), [] as [&str; 0]);
    assert_eq!(resumed(5..=6, Some("4")), ["5", "6"]);
    assert_eq!(resumed(5..=6, Some("2")), ["gap 2", "5", "6"]);
    assert_eq!(resumed(1..=2, Some("900")), ["gap null", "1", "2"]);
    assert_eq!(resumed(1..=1, Some("<b>")), ["gap null", "1"]);
    assert_eq!(resumed(1..=1, Some("0")), ["1"]);
}

/// [ADM-20] [JRN-8] what is wanted, by kind and account; a pattern means what it means everywhere.
#[test]
fn filters() {
    let takes = |kind, account, seen: &Seen| reader(kind, account).0.given.takes(seen);
    let opened = seen(1, "quarantine_opened", Some("openai/main"));
    assert!(takes(None, None, &opened));
    assert!(takes(Some("quarantine*"), Some("main"), &opened));
    assert!(takes(None, Some("openai/main"), &opened));
    assert!(!takes(Some("turn*"), None, &opened));
    assert!(!takes(None, Some("azure/main"), &opened));
    assert!(!takes(None, Some("main"), &seen(1, "refused", None)));
    for (pattern, event, is) in glob::TABLE {
        assert_eq!(
            takes(Some(pattern), None, &seen(1, event, None)),
            *is,
            "{pattern} {event}"
        );
    }
}

/// [ADM-22] [ADM-23] who falls behind is told by how many; and at the end of a drain the stream ends after what was told.
#[tokio::test]
async fn lagging_and_the_end() {
    let (reader, out) = reader(None, None);
    for number in 1..=10 {
        out.send(seen(number, "refused", None)).unwrap();
    }
    reader.over.cancel();
    let (mut told, mut reader) = (Vec::new(), Some(reader));
    while let Some((chunk, next)) = reader.take().unwrap().next().await {
        told.push(String::from_utf8(chunk.to_vec()).unwrap());
        reader = Some(next);
    }
    assert_eq!(told[0], "event: gap\ndata: {\"missed\":6}\n\n");
    assert_eq!(
        told[1],
        "id: 7\nevent: refused\ndata: {\"event\":\"refused\"}\n\n"
    );
    assert_eq!(told.len(), 5);
}

/// [REL-20] with a token that is in force no more nothing is told, what waits included.
#[tokio::test]
async fn revoked() {
    let (mut reader, out) = reader(None, None);
    reader.resume(vec![seen(1, "refused", None)], None);
    out.send(seen(2, "refused", None)).unwrap();
    reader.revoked.cancel();
    assert!(reader.next().await.is_none());
}

/// [ADM-20] a quiet stream shows that it is alive.
#[tokio::test(start_paused = true)]
async fn heartbeats() {
    let (reader, _out) = reader(None, None);
    let (chunk, _) = reader.next().await.unwrap();
    assert_eq!(&*chunk, b": quiet\n\n");
}
