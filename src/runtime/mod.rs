//! The way of a request, from a client's call to its one end. I/O at the edge; decisions are made in `bridge`.

pub mod budget;
pub mod call;
