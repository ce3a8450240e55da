use std::sync::Arc;

use serde_json::json;

use super::*;

fn book() -> Book {
    Book::new(Instant::now())
}

fn create(conversation: &str, socket: Option<u64>) -> Create {
    Create {
        number: 0,
        conversation: conversation.into(),
        transport: Transport::Websocket,
        socket,
        path: "/v1/responses".into(),
        model: "gpt-5".into(),
        response_id: "resp_1".into(),
        previous_response_id: None,
        store: false,
        generate: true,
        bytes: 1,
        fragments: 1,
        new_items: 0,
        transcript: Vec::new(),
        output: Vec::new(),
        behaviour: "healthy".into(),
        conclusion: Conclusion::Running,
        at_ms: 0,
        took_ms: None,
        headers: BTreeMap::new(),
        client_metadata: Vec::new(),
        traceparent: None,
        body_keys: Vec::new(),
        settings: String::new(),
    }
}

/// [SIM-16] The last place below the ceiling is given once; an ended socket gives its place back.
#[tokio::test]
async fn the_ceiling_counts_open_sockets() {
    let book = book();
    let open = || book.socket_opened(BTreeMap::new(), Some(2));
    assert_eq!((open(), open(), open()), (Some(1), Some(2), None));
    book.socket_ended(1, SocketEnd::ClientFin);
    assert_eq!((open(), open()), (Some(3), None));
    let ledger = book.snapshot();
    assert_eq!(
        (ledger.sockets_opened, ledger.sockets_open, ledger.sockets_most),
        (3, 2, 2)
    );
}

/// [SIM-18] A turn that runs when its socket ends is remembered as such; one that has its conclusion keeps it.
#[tokio::test]
async fn the_first_conclusion_counts() {
    let book = book();
    let socket = book.socket_opened(BTreeMap::new(), None);
    let done = book.created(create("a", socket));
    let running = book.created(create("a", socket));
    book.concluded(done, Conclusion::Completed);
    book.socket_ended(socket.unwrap(), SocketEnd::ClientReset);
    let ledger = book.snapshot();
    let conclusions: Vec<_> = ledger.creates_of("a").map(|create| create.conclusion).collect();
    assert_eq!(conclusions, [Conclusion::Completed, Conclusion::ClientGone]);
    assert!(
        ledger
            .creates
            .iter()
            .find(|create| create.number == running)
            .unwrap()
            .took_ms
            .is_some()
    );
}

/// [SIM-18] Lists and conversations are bounded: the oldest entry goes, and further conversations are counted together.
#[tokio::test]
async fn the_ledger_is_bounded() {
    let book = book();
    for number in 0..=KEPT {
        book.created(create(&number.to_string(), None));
    }
    book.look(|ledger| {
        assert_eq!(ledger.creates.len(), KEPT);
        assert_eq!(ledger.creates[0].number, 2);
        assert_eq!(ledger.conversations.len(), KEPT + 1);
        assert_eq!(ledger.conversation("(others)").total(), 1);
        assert_eq!(ledger.creates_total, KEPT as u64 + 1);
    });
}

/// [SIM-18] Transcripts beyond the bound are emptied, oldest first, and the latest one is always kept.
#[tokio::test]
async fn transcripts_are_bounded() {
    let book = book();
    let item = Arc::new(json!("x".repeat(KEPT_TRANSCRIPT_BYTES / 2)));
    for _ in 0..3 {
        book.created(Create {
            transcript: vec![item.clone()],
            output: vec![Arc::new(json!("said"))],
            ..create("a", None)
        });
    }
    let kept: Vec<usize> = book.look(|ledger| {
        ledger
            .creates
            .iter()
            .map(|create| create.transcript.len() + create.output.len())
            .collect()
    });
    assert_eq!(kept, [0, 0, 2]);
}

/// [SIM-19] A reset forgets all but the open sockets, and numbers go on.
#[tokio::test]
async fn a_reset_keeps_open_sockets() {
    let book = book();
    let socket = book.socket_opened(BTreeMap::new(), None);
    book.created(create("a", socket));
    book.reset();
    let ledger = book.snapshot();
    assert_eq!(
        (ledger.creates_total, ledger.sockets_open, ledger.sockets.len()),
        (0, 1, 1)
    );
    assert_eq!(book.created(create("a", socket)), 2);
}
