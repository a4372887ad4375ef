//! What a warpgroup computes: 64 queries of each tile of the output.

use super::super::parts::destination::Place;
use super::super::parts::key_share::KeyShare;
use super::super::parts::online_softmax::OnlineSoftmax;
use super::super::parts::optimistic_softmax::OptimisticSoftmax;
use super::super::parts::sequences::Sequence;
use super::Setup;
use super::position::Position;
use super::query::Query;
use super::schedule::OutputTile;
use crate::configs::product_columns;
use tile::prelude::*;

/// Queries of a warpgroup, and of each of its warps.
pub const ROWS: u32 = 64;
pub const WARP_ROWS: u32 = 16;

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
    let mut softmax = OptimisticSoftmax::new(rows, setup.scale);
    let mut finished = OnlineSoftmax::new(rows, setup.scale);
    let mut position = Position::first(setup);
    let mut query = Query::new(setup, warpgroup, queries.keep());

    // S = Q Kᵀ of the first item, and its weights.
    let key = keys.next();
    setup.turns.begin(warpgroup);
    setup.turns.wait(warpgroup);
    let first_scores = query.multiply(warpgroup, &mut scores, key.transposed());
    setup.turns.pass(warpgroup);
    let scores_again = |scores: &mut Accumulator| {
        query.multiply_again(scores, key.transposed());
        setup.hide(scores, &position, warpgroup);
    };
    let scores_now = first_scores.finish();
    setup.hide(scores_now, &position, warpgroup);
    softmax.update(scores_now, scores_again);
    key.release();
    weights.set(scores_now);
    position.advance(setup, || query.exchange());

    repeat_while(position.exists(setup), || {
        // S = Q Kᵀ of this item, and O += P V of the one before, both in flight.
        let key = keys.next();
        setup.turns.wait(warpgroup);
        let next_scores = query.multiply(warpgroup, &mut scores, key.transposed());
        let value = values.next();
        let next_output = warpgroup.mma_add_if(!position.was_first(), &mut output, &weights, value.view());
        setup.turns.pass(warpgroup);

        // P = exp(S - max), while O is still being summed.
        let scores = next_scores.finish();
        when(position.is_first(), || softmax.finish(&mut finished));
        setup.hide(scores, &position, warpgroup);
        softmax.update(scores, |scores| {
            query.multiply_again(scores, key.transposed());
            setup.hide(scores, &position, warpgroup);
        });
        key.release();

        // O is complete, or shrinks where the maximum has grown.
        next_output.finish_either(
            position.is_first(),
            |output| setup.store(output, &mut finished, &position, warpgroup),
            |output| softmax.shrink(output),
        );
        value.release();
        weights.set(scores);
        position.advance(setup, || query.exchange());
        position.exists(setup)
    });

    let value = values.next();
    setup.turns.wait(warpgroup);
    let output = warpgroup.mma_add_if(!position.was_first(), &mut output, &weights, value.view());
    setup.turns.pass(warpgroup);
    let output = output.finish();
    value.release();
    softmax.finish(&mut finished);
    setup.store(output, &mut finished, &position, warpgroup);
    setup.turns.end(warpgroup);
}

impl<E: Element> Setup<'_, E> {
    /// Hides what the mask hides of an item's scores.
    fn hide(&self, scores: &mut Accumulator, position: &Position, warpgroup: &Warpgroup) {
        let (block, tile) = (self.block(position.block()), position.tile());
        block.hide(scores, tile, block.first_query + first_row(warpgroup), tile * self.config.keys);
    }

    /// Stores the output tile before the item.
    fn store(&self, output: &mut Accumulator, softmax: &mut OnlineSoftmax, position: &Position, warpgroup: &Warpgroup) {
        let OutputTile { block, head, batch } = position.tile_before(self);
        softmax.gather();
        let (sequence, share) = (Sequence::even(self.of, batch), KeyShare::whole(block));
        let first_query = block * self.config.rows + first_row(warpgroup);
        let at = Place { sequence: &sequence, head, first_query, share: &share };
        self.destination.store(output, softmax, self.dims.value, &at);
    }
}

/// The first row of a warp, among those of its block.
fn first_row(warpgroup: &Warpgroup) -> U32 {
    warpgroup.number * ROWS + warp_index() % 4 * WARP_ROWS
}
