//! Barriers in shared memory: phases that end when enough arrivals and bytes have come. PTX ISA, "mbarrier".

/// Where a barrier lies: the block of the cluster, and the offset in its shared memory.
pub type Spot = (usize, usize);

/// Bits of a state that hold the arrivals still missing; the phase lies above.
const PENDING_BITS: u32 = 20;

/// Largest count of arrivals, and of bytes (PTX ISA, "mbarrier": supported operations and valid ranges).
pub const MOST: u32 = (1 << PENDING_BITS) - 1;

/// One barrier object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mbarrier {
    /// Arrivals that each phase needs.
    expected: u32,
    /// Arrivals that the open phase still needs.
    pending: u32,
    /// Bytes announced and not yet come; below zero while they come before they are announced.
    bytes: i64,
    /// Phases that are complete.
    phase: u64,
}

/// What an arrival, or the end of a copy, did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Effect {
    Open,
    /// The phase is complete, and the next one began.
    Completed,
    /// More arrivals than the phase needs.
    TooMany,
}

impl Mbarrier {
    pub fn new(expected: u32) -> Mbarrier {
        Mbarrier { expected, pending: expected, bytes: 0, phase: 0 }
    }

    /// Phases that are complete.
    pub fn phase(&self) -> u64 {
        self.phase
    }

    /// Nobody has used it yet.
    pub fn is_fresh(&self) -> bool {
        self.phase == 0 && self.pending == self.expected && self.bytes == 0
    }

    /// Arrivals that the open phase has got; bytes that are announced and missing count as one.
    pub fn arrived(&self) -> u64 {
        u64::from(self.expected.abs_diff(self.pending)) + u64::from(self.bytes != 0)
    }

    pub fn pending(&self) -> u32 {
        self.pending
    }

    pub fn bytes(&self) -> i64 {
        self.bytes
    }

    /// What `mbarrier.arrive` returns.
    pub fn state(&self) -> u64 {
        self.phase << PENDING_BITS | u64::from(self.pending)
    }

    /// `mbarrier.pending_count` of a state.
    pub fn pending_of(state: u64) -> u32 {
        state as u32 & MOST
    }

    /// Announces bytes that the open phase waits for.
    pub fn expect(&mut self, bytes: u32) {
        self.bytes += i64::from(bytes);
    }

    pub fn arrive(&mut self, count: u32) -> Effect {
        if count > self.pending {
            return Effect::TooMany;
        }
        self.pending -= count;
        self.settle()
    }

    /// Arrives, and takes no part in later phases.
    pub fn drop_out(&mut self, count: u32) -> Effect {
        self.expected = self.expected.saturating_sub(count);
        self.arrive(count)
    }

    /// One more arrival is needed in the open phase: `cp.async.mbarrier.arrive` without `.noinc`.
    pub fn raise(&mut self) {
        self.pending += 1;
    }

    /// Bytes have come.
    pub fn complete(&mut self, bytes: u32) -> Effect {
        self.bytes -= i64::from(bytes);
        self.settle()
    }

    fn settle(&mut self) -> Effect {
        if self.pending != 0 || self.bytes != 0 {
            return Effect::Open;
        }
        self.phase += 1;
        self.pending = self.expected;
        Effect::Completed
    }

    /// Is the phase of a state complete?
    pub fn has_passed(&self, state: u64) -> bool {
        self.phase > state >> PENDING_BITS
    }

    /// Is the last phase of this parity complete? A fresh barrier counts as having passed an odd one.
    pub fn has_passed_parity(&self, parity: u64) -> bool {
        self.phase & 1 != parity & 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_needs_arrivals_and_bytes() {
        let mut barrier = Mbarrier::new(2);
        let first = barrier.state();
        barrier.expect(64);
        assert_eq!(barrier.arrive(1), Effect::Open);
        assert_eq!(barrier.arrive(1), Effect::Open);
        assert_eq!(barrier.complete(32), Effect::Open);
        assert!(!barrier.has_passed(first));
        assert_eq!(barrier.complete(32), Effect::Completed);
        assert!(barrier.has_passed(first) && !barrier.has_passed(barrier.state()));
        assert_eq!(barrier.pending(), 2);
    }

    #[test]
    fn bytes_may_come_before_they_are_announced() {
        let mut barrier = Mbarrier::new(1);
        assert_eq!(barrier.complete(16), Effect::Open);
        barrier.expect(16);
        assert_eq!(barrier.arrive(1), Effect::Completed);
    }

    #[test]
    fn a_fresh_barrier_has_passed_parity_one() {
        let mut barrier = Mbarrier::new(1);
        assert!(barrier.has_passed_parity(1) && !barrier.has_passed_parity(0));
        assert_eq!(barrier.arrive(1), Effect::Completed);
        assert!(barrier.has_passed_parity(0) && !barrier.has_passed_parity(1));
    }

    #[test]
    fn who_drops_out_is_not_missed_later() {
        let mut barrier = Mbarrier::new(2);
        assert_eq!(barrier.drop_out(1), Effect::Open);
        assert_eq!(barrier.arrive(1), Effect::Completed);
        assert_eq!(barrier.arrive(1), Effect::Completed);
        assert_eq!(barrier.arrive(2), Effect::TooMany);
    }

    #[test]
    fn a_copy_that_raises_the_count_changes_nothing_in_the_end() {
        let mut barrier = Mbarrier::new(1);
        barrier.raise();
        assert_eq!(barrier.arrive(1), Effect::Open);
        assert_eq!(barrier.arrive(1), Effect::Completed);
        assert_eq!(barrier.pending(), 1);
    }
}
