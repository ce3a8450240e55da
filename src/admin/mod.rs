//! `/admin`: what operators see and do over HTTP (`spec/admin.md`).
//!
//! Every operation stands in one table (`table`), each resource in a file of its own (`resources`); both the routing and
//! the OpenAPI document come from it. A later policy adds its file and its line. Parameters are judged by the table before
//! an operation runs (`parameters`), who may ask by `authority`; the edge (`downstream`) has judged where the request came
//! from, and knows the keys.

mod answers;
mod asked;
pub mod attempts;
mod authority;
mod body;
mod openapi;
mod parameters;
mod resources;
mod table;
pub mod ui;

pub use authority::{Browsers, By, Keys};
pub use openapi::document;

use std::path::PathBuf;
use std::sync::Arc;

use http::{Method, Request};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::sync::Semaphore;

use self::asked::Asked;
use self::attempts::Attempts;
use crate::refusal::{Kind, Refusal};
use crate::runtime::Runtime;
use crate::runtime::call::Reply;

/// Event streams at one time: dozens of operators. Each holds a connection and a place in the events' broadcast.
const STREAMS: usize = 32;

/// What an admin API is made of.
pub struct Parts {
    pub runtime: Arc<Runtime>,
    /// The configuration in force, without secrets.
    pub effective: Box<dyn Fn() -> Value + Send + Sync>,
    /// Where the journal lies, if there is one.
    pub journal: Option<PathBuf>,
    /// Knows browsers that have signed in.
    pub browsers: Option<Box<dyn Browsers>>,
}

/// The admin API.
pub struct Admin {
    pub(in crate::admin) runtime: Arc<Runtime>,
    effective: Box<dyn Fn() -> Value + Send + Sync>,
    journal: Option<PathBuf>,
    browsers: Option<Box<dyn Browsers>>,
    streams: Arc<Semaphore>,
}

/// Why a request is not answered by its operation.
#[derive(Debug)]
pub enum Declined {
    Refused(Refusal),
    /// The path takes these methods, as `Allow` lists them.
    Method(String),
}

impl<R: Into<Refusal>> From<R> for Declined {
    fn from(refusal: R) -> Self {
        Declined::Refused(refusal.into())
    }
}

/// Whether a path is the admin API's.
pub fn is_below(path: &str) -> bool {
    path.strip_prefix(table::ROOT)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Admin {
    /// An admin API.
    pub fn new(parts: Parts) -> Arc<Admin> {
        Arc::new(Admin {
            runtime: parts.runtime,
            effective: parts.effective,
            journal: parts.journal,
            browsers: parts.browsers,
            streams: Arc::new(Semaphore::new(STREAMS)),
        })
    }

    /// Answers a request whose path [`is_below`] the root.
    ///
    /// # Errors
    /// It is refused: who asks is no operator, there is no such path or method, or a parameter or the body is wrong.
    pub async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        keys: &(impl Keys + ?Sized),
        attempts: &Attempts,
    ) -> Result<Reply, Declined> {
        let (head, body) = request.into_parts();
        let by = self.authorised(&head, keys, attempts)?;
        let path = head.uri.path();
        let (found, segments) = table::find(path).ok_or(Kind::NotFound)?;
        let method = if head.method == Method::HEAD {
            Method::GET
        } else {
            head.method.clone()
        };
        if method == Method::OPTIONS {
            return Ok(answers::options(&table::allow(&found)));
        }
        let Some(operation) = found.iter().find(|operation| operation.method.is(&method)) else {
            return Err(Declined::Method(table::allow(&found)));
        };
        let given = parameters::given(operation, &segments, head.uri.query(), &head.headers)?;
        let body = match operation.body {
            Some(_) => body::read(body).await?,
            None => bytes::Bytes::new(),
        };
        let asked = Asked {
            admin: self.clone(),
            given,
            body,
            by,
            revoked: keys.revoked(),
            clients: keys.clients(),
        };
        Ok((operation.run)(asked).await?)
    }
}
