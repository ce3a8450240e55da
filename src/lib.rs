//! Responses Bridge: OpenAI Responses requests from coding agents, carried on long-lived upstream WebSocket sessions.
//!
//! `wire`, `bridge` and `tune` are pure: no I/O, no async, no clock, no logging. They decide; `runtime`, `upstream`, `downstream`,
//! `listen` and `store` do the I/O and decide nothing. `refusal` is the one table of what the bridge answers by itself,
//! `event`, `telemetry` and `journal` tell what happened. `upstream` and `downstream` never look into each other, and `app` alone
//! sees everything. `tests/layering.rs` keeps these rules; what the rooms must do is in `spec/`.
#![forbid(unsafe_code)]

pub mod admin;
pub mod app;
pub mod bridge;
pub mod cli;
pub mod config;
pub mod counted;
pub mod downstream;
pub mod event;
pub mod explain;
pub mod journal;
pub mod lapse;
pub mod listen;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod refusal;
pub mod rehearse;
pub mod runtime;
pub mod simulator;
pub mod store;
pub mod telemetry;
pub mod tune;
pub mod upstream;
pub mod wire;
