//! The queries of a warpgroup, the left side of its products with keys.

use super::Setup;
use super::consumer::{ROWS, WARP_ROWS};
use tile::prelude::*;

pub struct Query<E> {
    tile: Kept<E>,
    /// Where the warpgroup's rows begin in a tile.
    first_row: U32,
    /// Where there are registers for them, products need not read them from shared memory.
    held: Option<RowOperand<E>>,
}

impl<E: Element> Query<E> {
    /// Of the tile that has just arrived.
    pub fn new(setup: &Setup<E>, warpgroup: &Warpgroup, tile: Kept<E>) -> Query<E> {
        let held = setup.config.holds_queries(setup.dims);
        let held =
            held.then(|| RowOperand::new("queries", WARP_ROWS, crate::configs::product_columns(setup.dims.head)));
        let mut query = Query { tile, first_row: warpgroup.number * ROWS, held };
        query.load();
        query
    }

    fn load(&mut self) {
        let tile = self.tile.tile();
        if let Some(held) = &mut self.held {
            held.load(tile.rows(self.first_row + warp_index() % 4 * WARP_ROWS, WARP_ROWS));
            lanes_have_read();
        }
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
            None => warpgroup.mma(scores, self.tile.rows(self.first_row, ROWS), keys),
        }
    }

    /// The same by each warp for itself, where the scores are needed once more.
    pub fn multiply_again(&self, scores: &mut Accumulator, keys: Transposed<E>) {
        mma(scores, self.tile.rows(self.first_row + warp_index() % 4 * WARP_ROWS, WARP_ROWS), keys);
        lanes_have_read();
    }

    /// On to the queries of the next tile of the output.
    pub fn exchange(&mut self) {
        self.tile.exchange();
        self.load();
    }
}
