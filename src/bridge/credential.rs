//! When a refused credential is read again: once for all turns that were refused together (UP-23).

/// What becomes of a refused turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Another credential is in force than the refused one: send once more.
    Again,
    /// Read the credential, then ask whether another is in force.
    Read,
    /// It was read after the refusal, and is still the refused one: the refusal stands.
    Stands,
}

/// The moment of a refusal, as [`Fence::refused`] gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which credential was refused, counted by its renewals.
    sent: u64,
    /// Reads begun before it.
    reads: u64,
}

/// Fences the reads of one account's credential. Whoever was told to read holds the others up until it has: they judge
/// after it, and need no read of their own.
#[derive(Debug, Default)]
pub struct Fence {
    /// Reads begun.
    reads: u64,
}

impl Fence {
    /// A turn that was sent with credential number `sent` has been refused.
    pub fn refused(&self, sent: u64) -> Refusal {
        Refusal {
            sent,
            reads: self.reads,
        }
    }

    /// Judges a refusal while nobody reads. `in_force`: the number of the credential that a turn would be sent with now.
    pub fn judge(&mut self, refusal: Refusal, in_force: u64) -> Verdict {
        if refusal.sent != in_force {
            Verdict::Again
        } else if refusal.reads != self.reads {
            Verdict::Stands
        } else {
            self.reads += 1;
            Verdict::Read
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [UP-23] Of refusals at the same time one reads; the others take what it found.
    #[test]
    fn simultaneous_refusals_read_once() {
        let mut fence = Fence::default();
        let refusals = [(); 3].map(|()| fence.refused(0));
        assert_eq!(fence.judge(refusals[0], 0), Verdict::Read);
        // It found another credential.
        assert_eq!(fence.judge(refusals[1], 1), Verdict::Again);
        assert_eq!(fence.judge(refusals[2], 1), Verdict::Again);
        // Or the same one.
        let mut fence = Fence::default();
        let refusals = [(); 3].map(|()| fence.refused(0));
        assert_eq!(fence.judge(refusals[0], 0), Verdict::Read);
        assert_eq!(fence.judge(refusals[1], 0), Verdict::Stands);
        assert_eq!(fence.judge(refusals[2], 0), Verdict::Stands);
    }

    /// [UP-23] A turn whose credential has been replaced meanwhile reads nothing; a later refusal of the new one does.
    #[test]
    fn a_replaced_credential_is_not_read_again() {
        let mut fence = Fence::default();
        let late = fence.refused(0);
        assert_eq!(fence.judge(late, 1), Verdict::Again);
        let of_the_new = fence.refused(1);
        assert_eq!(fence.judge(of_the_new, 1), Verdict::Read);
        // That read was before this refusal: it says nothing about it.
        let later = fence.refused(1);
        assert_eq!(fence.judge(later, 1), Verdict::Read);
    }
}
