//! What a warpgroup computes: 64 queries of each tile of the output.

use super::super::parts::destination::Place;
use super::super::parts::key_share::KeyShare;
use super::super::parts::online_softmax::OnlineSoftmax;
use super::super::parts::sequences::Sequence;
use super::Setup;
use super::position::Position;
use super::schedule::OutputTile;
use crate::configs::product_columns;
use tile::prelude::*;

/// Queries of a warpgroup, and of each of its warps.
const ROWS: u32 = 64;
const WARP_ROWS: u32 = 16;

pub struct Rings<E> {
    pub queries: Tiles<E>,
    pub keys: Tiles<E>,
    pub values: Tiles<E>,
}

pub fn consume<E: Element>(setup: &Setup<E>, warpgroup: &Warpgroup, rings: Rings<E>) {
    let Rings { queries, mut keys, mut values } = rings;
    let keys_per_tile = setup.config.keys;
    let mut scores = Accumulator::new("scores", WARP_ROWS, keys_per_tile);
    let mut weights = RowOperand::<E>::new("weights", WARP_ROWS, keys_per_tile);
    let mut output = Accumulator::new("output", WARP_ROWS, product_columns(setup.dims.value));
    let rows = Share::of_product(WARP_ROWS);
    let mut softmax = OnlineSoftmax::new(rows, setup.scale);
    let mut finished = OnlineSoftmax::new(rows, setup.scale);
    let mut position = Position::first(setup);
    let mut query = queries.keep();
    let first_row = warpgroup.number * ROWS;

    // S = Q Kᵀ of the first item, and its weights.
    let (key, tile) = (keys.next(), query.tile());
    let first_scores = warpgroup.mma(&mut scores, tile.rows(first_row, ROWS), key.transposed()).finish();
    key.release();
    setup.hide(first_scores, &position, first_row);
    softmax.update(first_scores);
    weights.set(first_scores);
    position.advance(setup, || query.exchange());

    repeat_while(position.exists(setup), || {
        // S = Q Kᵀ of this item, and O += P V of the one before, both in flight.
        let (key, tile) = (keys.next(), query.tile());
        let next_scores = warpgroup.mma(&mut scores, tile.rows(first_row, ROWS), key.transposed());
        let value = values.next();
        let next_output = warpgroup.mma_add_if(!position.was_first(), &mut output, &weights, value.view());

        // P = exp(S - max), while O is still being summed.
        let scores = next_scores.finish();
        key.release();
        when(position.is_first(), || finished.take(&mut softmax));
        setup.hide(scores, &position, first_row);
        let shrink = softmax.update(scores);

        // O is complete, or shrinks to the new maximum.
        next_output.finish_either(
            position.is_first(),
            |output| setup.store(output, &mut finished, &position, first_row),
            |output| output.scale_rows(shrink),
        );
        value.release();
        weights.set(scores);
        position.advance(setup, || query.exchange());
        position.exists(setup)
    });

    let value = values.next();
    let output = warpgroup.mma_add_if(!position.was_first(), &mut output, &weights, value.view()).finish();
    value.release();
    setup.store(output, &mut softmax, &position, first_row);
}

impl<E: Element> Setup<'_, E> {
    /// Hides what the mask hides of an item's scores.
    fn hide(&self, scores: &mut Accumulator, position: &Position, first_row: U32) {
        let (block, tile) = (self.block(position.block()), position.tile());
        block.hide(scores, tile, block.first_query + first_row + warp_row(), tile * self.config.keys);
    }

    /// Stores the output tile before the item.
    fn store(&self, output: &mut Accumulator, softmax: &mut OnlineSoftmax, position: &Position, first_row: U32) {
        let OutputTile { block, head, batch } = position.tile_before(self);
        softmax.gather();
        let (sequence, share) = (Sequence::even(self.of, batch), KeyShare::whole(block));
        let first_query = block * self.config.rows + first_row + warp_row();
        let at = Place { sequence: &sequence, head, first_query, share: &share };
        self.destination.store(output, softmax, self.dims.value, &at);
    }
}

/// The first row of a warp, among those of its warpgroup.
fn warp_row() -> U32 {
    warp_index() % 4 * WARP_ROWS
}
