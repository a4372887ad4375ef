//! The end of a ring that copies fill.

use super::{Shared, Stages, Turn};
use crate::control::{Rolled, either, for_each, select};
use crate::instructions::{
    mbarrier_arrive, mbarrier_arrive_expect_tx, mbarrier_wait_parity, mbarrier_wait_parity_of_cluster, st_shared_v4_u32,
};
use crate::values::{Element, TensorMap, TileAt, U32};

/// The end that fills the ring, for one thread.
pub struct Loads<E> {
    pub(super) stages: Stages<E>,
    pub(super) map: TensorMap<E>,
    pub(super) turn: Turn,
}

impl<E: Element> Loads<E> {
    /// Waits until a stage is free, and starts copying the tile into it.
    #[track_caller]
    pub fn load(&mut self, at: TileAt) {
        let stage = self.wait();
        self.start(stage, at);
    }

    /// The same of a tile of which only the first `count` rows count: the others become zeros, whatever the tensor has there. `rows` is the
    /// tensor in boxes of one row.
    #[track_caller]
    pub fn load_first(&mut self, at: TileAt, count: U32, rows: &TensorMap<E>) {
        let stage = self.wait();
        let (tile, full) = (self.stages.tile(stage), self.stages.full(stage));
        mbarrier_arrive_expect_tx(full, tile.bytes());
        either(
            count.ge(tile.rows),
            || self.map.load(&tile, at, full),
            || {
                for_each(Rolled(U32::from(0)..tile.rows.into()), |row| {
                    // No tensor has that row, and copies bring zeros for it.
                    let from = select(row.lt(count), at.row + row, u32::MAX);
                    rows.load_row(&tile, row, TileAt { row: from, ..at }, full);
                });
            },
        );
    }

    /// The same, with a note.
    #[track_caller]
    pub fn load_noted(&mut self, at: TileAt, note: [U32; 4]) {
        let stage = self.wait();
        st_shared_v4_u32(self.stages.note(stage), note);
        self.start(stage, at);
    }

    /// A note without a tile.
    #[track_caller]
    pub fn note(&mut self, note: [U32; 4]) {
        let stage = self.wait();
        st_shared_v4_u32(self.stages.note(stage), note);
        mbarrier_arrive(self.stages.full(stage));
    }

    #[track_caller]
    fn wait(&mut self) -> U32 {
        let (stage, parity) = self.turn.advance();
        // The first time round nobody has read anything: the phase before the first counts as complete.
        let parity = parity ^ 1;
        match self.stages.shared {
            None => mbarrier_wait_parity(self.stages.empty(stage), parity),
            Some(shared) => mbarrier_wait_parity_of_cluster(shared.free(stage), parity),
        }
        stage
    }

    #[track_caller]
    fn start(&self, stage: U32, at: TileAt) {
        let (tile, full) = (self.stages.tile(stage), self.stages.full(stage));
        mbarrier_arrive_expect_tx(full, tile.bytes());
        match self.stages.shared {
            None => self.map.load(&tile, at, full),
            Some(Shared { blocks, .. }) => self.map.load_part(&tile, at, full, blocks),
        }
    }
}
