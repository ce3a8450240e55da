//! What happens in a case: all of it follows from a seed, and kinds of happenings can be left out to make a case smaller.

use crate::rng::Rng;

/// A kind of happening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vice {
    /// The client edits, drops, moves or doubles items.
    Edits,
    /// It changes a compared setting.
    Settings,
    /// It writes the same anew, in another way.
    Rewriting,
    /// It compacts its history.
    Compaction,
    /// It names a response itself.
    Anchors,
    /// It asks for other storage than `store:false`.
    Storing,
    /// It sends the same once more.
    Retries,
    /// Turns run at the same time.
    Together,
    /// Sockets are lost, or grow old.
    Losses,
    /// Answers fail, or have an odd shape.
    Answers,
    /// The upstream goes silent.
    Silence,
}

impl Vice {
    pub const ALL: [Vice; 11] = [
        Vice::Edits,
        Vice::Settings,
        Vice::Rewriting,
        Vice::Compaction,
        Vice::Anchors,
        Vice::Storing,
        Vice::Retries,
        Vice::Together,
        Vice::Losses,
        Vice::Answers,
        Vice::Silence,
    ];
}

/// The kinds that are left out.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Without(u32);

impl Without {
    pub fn and(self, vice: Vice) -> Without {
        Without(self.0 | 1 << vice as u32)
    }

    pub fn has(self, vice: Vice) -> bool {
        self.0 & 1 << vice as u32 != 0
    }

    /// As `BRIDGE_DIFF_WITHOUT` names them.
    pub fn named(names: &str) -> Without {
        let named = |vice: &&Vice| names.split(',').any(|name| name == format!("{vice:?}"));
        let found = Vice::ALL.iter().filter(named);
        found.fold(Without::default(), |without, vice| without.and(*vice))
    }

    pub fn names(self) -> String {
        let names = Vice::ALL.iter().filter(|vice| self.has(**vice));
        names
            .map(|vice| format!("{vice:?}"))
            .collect::<Vec<_>>()
            .join(",")
    }
}

pub struct Dice {
    rng: Rng,
    without: Without,
}

impl Dice {
    pub fn new(seed: u64, without: Without) -> Dice {
        let rng = Rng::new(seed.wrapping_mul(0xd129_0d3b_39c5_4e77));
        Dice { rng, without }
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        self.rng.below(bound as u64) as usize
    }

    /// True in `percent` of all cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.rng.chance(percent)
    }

    /// True in so many of a thousand cases, where this kind is not left out.
    pub fn may(&mut self, vice: Vice, of_thousand: u64) -> bool {
        let may = self.rng.below(1000) < of_thousand;
        may && !self.without.has(vice)
    }

    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            let other = self.below(at + 1);
            list.swap(at, other);
        }
    }
}
