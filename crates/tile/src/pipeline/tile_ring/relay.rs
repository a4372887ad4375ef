//! What a block of a cluster tells the others.

use super::{BARRIER_BYTES, Shared, Turn};
use crate::control::{Rolled, for_each, when};
use crate::instructions::{Pointer, lane_index, mapa, mbarrier_arrive_in_cluster, mbarrier_wait_parity};
use crate::values::U32;

/// Tells all blocks of a cluster which stages this one has read, for one warp.
///
/// What one block tells another it must release to the cluster, and that waits for memory (ptxas: MEMBAR.ALL.GPU). The warps that multiply would
/// stand still for it, twice in every pass; they tell the relay, which has nothing else to do.
pub struct Relay {
    pub(super) empty: U32,
    pub(super) shared: Shared,
    pub(super) turn: Turn,
}

impl Relay {
    /// Of the next `count` tiles. A lane tells each block.
    #[track_caller]
    pub fn pass_on(&mut self, count: U32) {
        let lane = lane_index();
        when(lane.lt(self.shared.blocks), || {
            for_each(Rolled(U32::from(0)..count), |_| {
                let (stage, parity) = self.turn.advance();
                mbarrier_wait_parity(Pointer::new(self.empty + stage * BARRIER_BYTES), parity);
                mbarrier_arrive_in_cluster(mapa(self.shared.free(stage), lane));
            });
        });
    }
}
