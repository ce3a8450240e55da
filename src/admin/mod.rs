//! What operators see and do.

pub mod ui;
