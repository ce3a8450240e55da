//! With and without the bridge the model sees the same conversation, item by item: random conversations of random agents
//! through the real machines (without sockets), and some of them over real ones.
//!
//! A case follows from its seed. A failure is made smaller and prints how to replay it. `BRIDGE_DIFF_CASES=100000 cargo test
//! --profile fuzz --test differential` is the whole of it; without a number it is 2,000.
// A test file: all of it may panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "tasks of a test end with its runtime")]

#[path = "../support/client.rs"]
mod client;
#[path = "../support/simulator/rng.rs"]
mod rng;
#[path = "../support/world.rs"]
mod world;

mod agent;
mod bridge;
mod case;
mod dice;
mod live;
mod meaning;
mod tally;
mod upstream;
mod words;
mod writing;

use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use case::{Fault, Trial};
use dice::{Vice, Without};
use tally::Tally;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// [CONT-22] [CONT-3] [CONT-5] [CONT-6] [CONT-8] [CONT-9] [CONT-20] [CONT-21] [CONT-23] [CONT-24] [CONT-26] [CONT-27]
/// random conversations: what the model sees is what the client said; an anchor is one that upstream knows, of the same
/// settings, window and tenant, and never goes over HTTP; and what was only written anew is continued.
#[test]
fn random_conversations() {
    let without = Without::named(&std::env::var("BRIDGE_DIFF_WITHOUT").unwrap_or_default());
    let turns = number("BRIDGE_DIFF_TURNS").map_or(usize::MAX, |turns| turns as usize);
    if let Some(seed) = number("BRIDGE_DIFF_SEED") {
        let trial = Trial {
            seed,
            turns,
            without,
            aloud: true,
        };
        if let Err(fault) = attempt(trial, &mut Tally::default()) {
            panic!("turn {}: {}", fault.turn, fault.message);
        }
        return;
    }
    let cases = number("BRIDGE_DIFF_CASES").unwrap_or(2_000);
    let began = Instant::now();
    let next = AtomicU64::new(0);
    let whole = Mutex::new(Tally::default());
    let failed = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut tally = Tally::default();
                while failed.lock().unwrap().is_none() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= cases {
                        break;
                    }
                    let trial = Trial {
                        seed,
                        turns,
                        without,
                        aloud: false,
                    };
                    if let Err(fault) = attempt(trial, &mut tally) {
                        failed.lock().unwrap().get_or_insert((trial, fault));
                    }
                }
                whole.lock().unwrap().add(&tally);
            });
        }
    });
    if let Some((trial, fault)) = failed.into_inner().unwrap() {
        let (trial, fault) = smaller(trial, fault);
        panic!(
            "seed {}: turn {}: {}\nreplay: BRIDGE_DIFF_SEED={} BRIDGE_DIFF_TURNS={} BRIDGE_DIFF_WITHOUT={} \
             cargo test --profile fuzz --test differential random -- --nocapture",
            trial.seed,
            fault.turn,
            fault.message,
            trial.seed,
            trial.turns,
            trial.without.names()
        );
    }
    let tally = whole.into_inner().unwrap();
    println!("{tally}\n{:.1} s", began.elapsed().as_secs_f64());
    assert!(tally.share() > 40, "too few continuations: {} %", tally.share());
}

/// Runs a case; a panic is a fault too.
fn attempt(trial: Trial, tally: &mut Tally) -> Result<(), Fault> {
    let caught = panic::catch_unwind(AssertUnwindSafe(|| case::run(trial, tally)));
    caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Fault {
            message: format!("panic: {}", text.unwrap_or_default()),
            turn: trial.turns,
        })
    })
}

/// The same fault with fewer turns and fewer kinds of happenings, as far as leaving one out after the other leads.
fn smaller(mut trial: Trial, mut fault: Fault) -> (Trial, Fault) {
    let quietly = &mut Tally::default();
    for vice in Vice::ALL {
        let less = Trial {
            without: trial.without.and(vice),
            ..trial
        };
        if let Err(still) = attempt(less, quietly) {
            (trial, fault) = (less, still);
        }
    }
    for turns in 1..fault.turn {
        let less = Trial { turns, ..trial };
        if let Err(still) = attempt(less, quietly) {
            return (less, still);
        }
    }
    trial.turns = fault.turn;
    (trial, fault)
}
