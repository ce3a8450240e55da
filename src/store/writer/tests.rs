use super::*;
use crate::store::journal::Bounds;

/// [STATE-14] A writer that panics leaves nobody waiting: the store is degraded, later changes are lost at once.
#[tokio::test]
async fn a_panic_in_the_writer_leaves_nobody_waiting() {
    let (inbox, standing) = (Arc::new(Inbox::new(10)), Arc::new(Standing::new()));
    let writer = Writer {
        connect: Box::new(|| panic!("planted")),
        path: PathBuf::from("/nonexistent"),
        file: None,
        damaged: false,
        ledger: None,
        journal: Keeping::new(Bounds::NONE),
        inbox: inbox.clone(),
        standing: standing.clone(),
        options: Options::new(1, 1, 1),
        epoch: 1,
        _directory: None,
    };
    let ticket = inbox.put(Change::OwnerRemoved([0; 16]), |_| ());
    std::thread::spawn(move || writer.run()).join().unwrap_err();
    assert!(standing.durable(ticket).await.is_err());
    assert!(standing.is_degraded());
    assert_eq!(standing.lost(), 1);
    let mut refused = false;
    inbox.put(Change::OwnerRemoved([0; 16]), |_| refused = true);
    assert!(refused);
}
