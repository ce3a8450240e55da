use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// [STATE-7] A ticket waits for its own commit; trouble resolves those that are not committed, and only those.
#[test]
fn a_ticket_waits_for_its_commit_or_for_trouble() {
    let standing = Standing::new();
    let (mut first, mut second) = (
        pin!(standing.durable(Ticket(1))),
        pin!(standing.durable(Ticket(2))),
    );
    assert!(poll(first.as_mut()).is_pending());
    assert!(poll(second.as_mut()).is_pending());
    standing.advance(Ticket(1));
    assert_eq!(poll(first), Poll::Ready(Ok(())));
    assert!(poll(second.as_mut()).is_pending());
    standing.degrade(Reason::Full);
    assert_eq!(poll(second), Poll::Ready(Err(NotDurable::Degraded(Reason::Full))));
    assert_eq!(poll(pin!(standing.durable(Ticket(1)))), Poll::Ready(Ok(())));
    standing.recover();
    assert!(poll(pin!(standing.durable(Ticket(2)))).is_pending());
}

/// [STATE-7] A watcher sees the change, the change of the reason and the recovery, but not every failing try.
#[test]
fn health_changes_are_told_once() {
    let standing = Standing::new();
    let mut watch = standing.watch();
    standing.recover();
    assert!(!watch.has_changed().unwrap());
    standing.count_lost(5);
    standing.degrade(Reason::Locked);
    standing.count_lost(2);
    let Health::Degraded(first) = *watch.borrow_and_update() else {
        panic!("not degraded")
    };
    assert_eq!(first.reason, Reason::Locked);
    standing.degrade(Reason::Locked);
    standing.degrade(Reason::QueueFull);
    assert!(!watch.has_changed().unwrap(), "a full queue is only what follows");
    standing.degrade(Reason::Full);
    let Health::Degraded(now) = *watch.borrow_and_update() else {
        panic!("not degraded")
    };
    assert_eq!((now.reason, now.since), (Reason::Full, first.since));
    let expected = Degradation { lost: 2, ..now };
    assert_eq!(standing.health(), Health::Degraded(expected));
    standing.recover();
    assert_eq!(*watch.borrow_and_update(), Health::Recovered(expected));
    assert_eq!(
        (standing.health(), standing.lost()),
        (Health::Recovered(expected), 7)
    );
}

/// [STATE-14] When the writer has ended, what it committed is durable and the rest is lost: nobody waits on.
#[test]
fn nobody_waits_for_a_writer_that_has_ended() {
    let standing = Standing::new();
    let mut waiting = pin!(standing.durable(Ticket(2)));
    assert!(poll(waiting.as_mut()).is_pending());
    standing.advance(Ticket(1));
    standing.end();
    assert_eq!(poll(waiting), Poll::Ready(Err(NotDurable::Lost)));
    assert_eq!(poll(pin!(standing.durable(Ticket(1)))), Poll::Ready(Ok(())));
    assert_eq!(
        poll(pin!(standing.durable(Ticket::LOST))),
        Poll::Ready(Err(NotDurable::Lost))
    );
}
