//! A request for one operation: judged, and with all that the operation may need.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::Admin;
use super::authority::By;
use super::parameters::Given;
use crate::refusal::{Kind, Refusal};
use crate::runtime::Runtime;
use crate::runtime::call::Reply;
use crate::runtime::operate::NotDone;

/// See the module.
pub struct Asked {
    pub admin: Arc<Admin>,
    pub given: Given,
    /// Empty where the operation takes none.
    pub body: Bytes,
    pub by: By,
    /// Cancelled when the token by which it was asked is not in force any more.
    pub revoked: CancellationToken,
    /// The configured clients.
    pub clients: Vec<([u8; 16], Arc<str>)>,
}

impl Asked {
    pub fn runtime(&self) -> &Runtime {
        &self.admin.runtime
    }
}

/// What an operation comes to.
pub type Answering = Pin<Box<dyn Future<Output = Result<Reply, Refusal>> + Send>>;

/// An answer that is there at once.
pub fn now(answer: Result<Reply, Refusal>) -> Answering {
    Box::pin(std::future::ready(answer))
}

impl From<NotDone> for Refusal {
    fn from(not_done: NotDone) -> Self {
        match not_done {
            NotDone::Unknown => Kind::NothingThere.into(),
        }
    }
}
