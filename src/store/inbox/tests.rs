use super::*;

fn change() -> Change {
    Change::OwnerRemoved([7; 16])
}

fn put(inbox: &Inbox) -> Result<Ticket, Refused> {
    let mut refusal = None;
    let ticket = inbox.put(change(), |why| refusal = Some(why));
    match refusal {
        None => Ok(ticket),
        Some(why) => {
            assert_eq!(ticket, Ticket::LOST);
            Err(why)
        }
    }
}

/// [STATE-6] At cap + 1 a change is refused, also while the writer holds the others; room comes with the commit.
#[test]
fn the_cap_counts_what_the_writer_holds() {
    let inbox = Inbox::new(3);
    for n in 1..=3 {
        assert_eq!(put(&inbox), Ok(Ticket(n)));
    }
    assert_eq!(put(&inbox), Err(Refused::Full));
    let mut batch = Vec::new();
    assert_eq!(inbox.take(&mut batch, 2), Ticket(2));
    assert_eq!(put(&inbox), Err(Refused::Full));
    inbox.settle();
    assert_eq!(put(&inbox), Ok(Ticket(4)));
    assert_eq!(inbox.lag().changes, 2);
}

/// [STATE-15] The age is that of the oldest change, until the commit and not only until the drain.
#[test]
fn the_lag_ends_with_the_commit() {
    let inbox = Inbox::new(10);
    assert_eq!(inbox.lag(), Lag::default());
    put(&inbox).unwrap();
    std::thread::sleep(Duration::from_millis(5));
    put(&inbox).unwrap();
    inbox.take(&mut Vec::new(), 10);
    let lag = inbox.lag();
    assert_eq!(lag.changes, 2);
    assert!(lag.age >= Duration::from_millis(5), "{lag:?}");
    inbox.settle();
    assert_eq!(inbox.lag(), Lag::default());
}

/// [STATE-14] After the close nothing is taken any more, and a resting writer wakes up.
#[test]
fn a_closed_inbox_takes_nothing() {
    let inbox = Inbox::new(10);
    put(&inbox).unwrap();
    inbox.close();
    assert_eq!(put(&inbox), Err(Refused::Closed));
    let begin = Instant::now();
    inbox.rest(Duration::from_secs(60));
    inbox.wait(Duration::from_secs(60));
    assert!(begin.elapsed() < Duration::from_secs(30));
    assert_eq!(inbox.take(&mut Vec::new(), 10), Ticket(1));
}
