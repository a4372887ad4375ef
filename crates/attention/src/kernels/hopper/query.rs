//! The queries of a warpgroup, the left side of its products with keys.

use super::Setup;
use super::consumer::WARP_ROWS;
use super::schedule::OutputTile;
use crate::configs::{ROWS, product_columns};
use tile::prelude::*;

pub struct Query<E> {
    kept: Kept<E>,
    /// Where the warpgroup's rows begin in a tile, and the warp's.
    first_row: U32,
    warp_row: U32,
    /// Where there are registers for them, products need not read them from shared memory.
    held: Option<RowOperand<E>>,
    /// Whether they make room for the next ones before their output is complete.
    leave_early: bool,
}

impl<E: Element> Query<E> {
    /// Of the first tile, which is waited for; it is yet to be loaded.
    pub fn new(setup: &Setup<E>, warpgroup: &Warpgroup, queries: Tiles<E>) -> Query<E> {
        let held = setup.config.warpgroups_hold_queries(setup.dims, setup.crowded);
        let held = held.then(|| RowOperand::new("queries", WARP_ROWS, product_columns(setup.dims.head)));
        let leave_early = setup.config.queries_leave_early();
        let first_row = if leave_early { 0.into() } else { warpgroup.number * ROWS };
        let warp_row = first_row + warp_index() % 4 * WARP_ROWS;
        let kept = if leave_early { queries.keep_own(warpgroup) } else { queries.keep() };
        Query { kept, first_row, warp_row, held, leave_early }
    }

    pub fn load(&mut self) {
        let tile = self.kept.tile();
        if let Some(held) = &mut self.held {
            held.load(tile.rows(self.warp_row, WARP_ROWS));
            lanes_have_read();
        }
    }

    /// Which tile of the output they belong to, and whether there is one at all (else 0).
    #[track_caller]
    pub fn tile(&self, setup: &Setup<E>) -> (OutputTile, U32) {
        let [block, head, batch, exists] = self.kept.note();
        let share = setup.output.splits().map_or(0.into(), |_| exists - 1);
        (OutputTile { block, head, batch, share }, exists)
    }

    /// The tile of the output before this one, as long as its queries have not left.
    #[track_caller]
    pub fn tile_before(&self, setup: &Setup<E>) -> OutputTile {
        let [block, head, batch, exists] = self.kept.note_before();
        let share = setup.output.splits().map_or(0.into(), |_| exists - 1);
        OutputTile { block, head, batch, share }
    }

    /// `scores = queries · keys`
    pub fn multiply<'sum, 'keys>(
        &'keys self,
        warpgroup: &Warpgroup,
        scores: &'sum mut Accumulator,
        keys: Transposed<'keys, E>,
    ) -> InFlight<'sum, 'keys> {
        match &self.held {
            Some(held) => warpgroup.mma(scores, held, keys),
            None => warpgroup.mma(scores, self.kept.rows(self.first_row, ROWS), keys),
        }
    }

    /// The same by each warp for itself, where the scores are needed once more.
    pub fn multiply_again(&self, scores: &mut Accumulator, keys: Transposed<E>) {
        mma(scores, self.kept.rows(self.warp_row, WARP_ROWS), keys);
        lanes_have_read();
    }

    /// On to the next tile of the output, once the last keys have been scored. The memory of the queries before stays for the output, unless they
    /// leave early.
    pub fn exchange(&mut self) {
        if self.leave_early {
            self.kept.release()
        } else {
            self.kept.release_before()
        }
        self.kept.take_next();
    }

    /// Where the warp's queries of the tile before were.
    pub fn rows_before(&self) -> View<'_, E> {
        self.kept.rows_before(self.warp_row, WARP_ROWS)
    }

    /// That memory is needed no more, once copies have read it.
    pub fn is_done_with_rows_before(&mut self) {
        if !self.leave_early {
            self.kept.is_done_with_before();
        }
    }

    /// Lets the next queries come.
    pub fn release_before(&mut self) {
        if !self.leave_early {
            self.kept.release_before();
        }
    }
}
