//! What is remembered of turns and incidents: a bounded table beside the owners, written in batches by the same thread, and
//! read by whoever looks into an incident, beside the running bridge or on a dead one's file.
//!
//! Rows are appended and nothing else. What they are found by goes, sorted, into pages of a few thousand rows each: an index
//! with random keys would cost several times what the row does.

mod fault;
pub(crate) mod glob;
mod keeping;
mod names;
mod pages;
mod queue;
mod reader;
mod shape;
mod sweep;
mod table;

pub use fault::ReadFault;
pub use reader::{Query, Reader, Row};

pub(super) use keeping::Keeping;
pub(super) use queue::Queue;
pub(super) use table::{TABLES, until};

use std::time::Duration;

/// How much is remembered (JRN-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// For so long.
    pub keep: Duration,
    /// Entries at most; the oldest leaves first.
    pub max: usize,
}

impl Bounds {
    /// Nothing leaves.
    pub const NONE: Bounds = Bounds {
        keep: Duration::MAX,
        max: usize::MAX,
    };
}

#[cfg(test)]
mod tests;
