//! What an owner costs in the mirror: nanoseconds per look-up and insert, and bytes, from a thousand to a million.
//!
//! `cargo bench --bench owners`

use std::hint::black_box;
use std::time::Instant;

use responses_bridge::bridge::key::{AffinityKey, Hash16, Hasher, KeyKind};
use responses_bridge::bridge::ownership::{AccountId, Owner, Owners, SessionId};

/// Look-ups and inserts that are timed for each size.
const TIMED: usize = 1_000_000;

fn owner(hash: Hash16) -> Owner {
    let kind = KeyKind::Thread;
    Owner {
        account: AccountId(1),
        session: Some(SessionId(7)),
        key: Some(AffinityKey { kind, hash }),
        stored: true,
        expires_at: 4_000_000_000,
    }
}

fn main() {
    let hasher = Hasher::new([7; 32]);
    let hashes: Vec<Hash16> = (0..2 * TIMED as u64)
        .map(|n| hasher.hash("bench", &[&n.to_le_bytes()]))
        .collect();
    println!(
        "{:>9} {:>12} {:>12} {:>12} {:>12}",
        "owners", "fill ns", "look-up ns", "evict ns", "bytes each"
    );
    for size in [1_000, 10_000, 100_000, 1_000_000] {
        let mut owners = Owners::new(size);
        let began = Instant::now();
        for hash in &hashes[..size] {
            owners.record(*hash, owner(*hash));
        }
        let fill = began.elapsed().as_nanos() as f64 / size as f64;
        let bytes = owners.bytes() as f64 / size as f64;
        // A walk with a stride, so that neither the order of filling nor the cache's prefetch helps.
        let began = Instant::now();
        for n in 0..TIMED {
            black_box(owners.of(hashes[n.wrapping_mul(7919) % size], 0));
        }
        let look_up = began.elapsed().as_nanos() as f64 / TIMED as f64;
        let began = Instant::now();
        for hash in &hashes[TIMED..2 * TIMED] {
            black_box(owners.record(*hash, owner(*hash)));
        }
        let evict = began.elapsed().as_nanos() as f64 / TIMED as f64;
        println!("{size:>9} {fill:>12.0} {look_up:>12.0} {evict:>12.0} {bytes:>12.1}");
    }
}
