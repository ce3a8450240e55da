//! A seeded simulator of the whole bridge without its I/O: the pure machines, driven by a small loop in place of the
//! runtime, over a virtual clock and in-memory transports whose upstream misbehaves by script or by chance.
//!
//! Everything that happens follows from the seed. A failure prints it; `BRIDGE_SIM_SEED=<seed>` replays it alone. `BRIDGE_SIM_HISTORIES=<n>`
//! tries more seeds than the usual 200.

pub mod history;
pub mod rng;
pub mod upstream;
pub mod world;
