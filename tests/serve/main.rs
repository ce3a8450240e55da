//! `responses-bridge serve` as an operator meets it: the real binary, its signals, its exit codes and its log.

mod bridge;
mod client;
mod draining;
mod starting;
