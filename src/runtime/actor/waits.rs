//! What an actor waits for beside its socket. Each never resolves where there is nothing to wait for.

use crate::bridge::session::Session;
use crate::runtime::Runtime;
use crate::runtime::job::Job;

pub(super) async fn gone(job: Option<&Job>) {
    match job {
        Some(job) => job.feed.gone().await,
        None => std::future::pending().await,
    }
}

pub(super) async fn room(job: Option<&Job>) -> bool {
    match job {
        Some(job) => job.feed.room().await,
        None => std::future::pending().await,
    }
}

pub(super) async fn durable(runtime: &Runtime, session: &Session, job: Option<&Job>) {
    match (
        session.turn().is_some_and(|turn| turn.awaits_durable()),
        job.and_then(|job| job.ticket),
    ) {
        (true, Some(ticket)) => runtime.durable(ticket).await,
        _ => std::future::pending().await,
    }
}
