//! The resources, one in each file: its operations, and what they give.

pub mod accounts;
pub mod breakers;
pub mod config;
pub mod drain;
pub mod events;
pub mod health;
pub mod latency;
pub mod openapi;
pub mod owners;
pub mod quarantine;
pub mod queues;
pub mod sessions;
pub mod status;
pub mod turns;
