//! Responses Bridge: OpenAI Responses requests from coding agents, carried on long-lived upstream WebSocket sessions.
//!
//! The rooms, and who may look into whom, are described in `spec/README.md`; `tests/layering.rs` keeps the rules.
#![forbid(unsafe_code)]

pub mod app;
pub mod bridge;
pub mod cli;
pub mod config;
pub mod downstream;
pub mod event;
pub mod listen;
pub mod refusal;
pub mod runtime;
pub mod simulator;
pub mod store;
pub mod telemetry;
pub mod upstream;
pub mod wire;
