//! An incident drill, decided: what is shortened and how far, what is played, what must then be seen, and whether it was.
//! Pure: `cli::rehearse` plays, and hands in what was seen. Requirements: `spec/rehearse.md`.

mod expect;
mod fault;
mod judge;
mod pace;
mod plan;
mod scale;
mod seen;
mod sequence;
mod tally;

pub use expect::{Expectation, Rule, Shape, expectations};
pub use fault::{Fault, healthy};
pub use judge::{Verdict, judge};
pub use pace::{Speed, clock, told};
pub use plan::{Lane, Plan, lanes};
pub use scale::{Window, scale, stars};
pub use seen::{Call, Ended, Phase, Record, Sent, Told, Way};
pub use sequence::{Step, sequence};
pub use tally::{Tally, tally};
