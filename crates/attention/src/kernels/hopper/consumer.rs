//! What a warpgroup computes: 64 queries of each tile of the output.

use super::super::parts::Lengths;
use super::super::parts::block::Block;
use super::super::parts::masks::Mask;
use super::super::parts::optimistic_softmax::OptimisticSoftmax;
use super::super::parts::sequences::Sequences;
use super::Setup;
use super::ended::Ended;
use super::position::Position;
use super::query::Query;
use super::result::WarpRows;
use super::schedule::OutputTile;
use crate::configs::{ROWS, product_columns};
use std::ops::Range;
use tile::prelude::*;

/// Queries of a warp.
pub const WARP_ROWS: u32 = 16;

pub struct Rings<E> {
    pub queries: Tiles<E>,
    pub keys: Tiles<E>,
    pub values: Tiles<E>,
}

pub fn consume<E: Element>(setup: &Setup<E>, warpgroup: &Warpgroup, rings: Rings<E>) {
    let Rings { queries, keys, values } = rings;
    let first = || Query::new(setup, warpgroup, queries);
    match setup.sequences {
        // A grid has no more blocks than there are tiles of the output.
        Sequences::Even(_) => attend(setup, warpgroup, first, keys, values),
        Sequences::Packed { .. } => {
            let query = first();
            let (_, exists) = query.tile(setup);
            when(exists.ne(0), || attend(setup, warpgroup, || query, keys, values));
        }
    }
}

fn attend<E: Element>(
    setup: &Setup<E>,
    warpgroup: &Warpgroup,
    first_query: impl FnOnce() -> Query<E>,
    mut keys: Tiles<E>,
    mut values: Tiles<E>,
) {
    let keys_per_tile = setup.config.keys;
    let mut scores = Accumulator::new("scores", WARP_ROWS, keys_per_tile);
    let mut weights = RowOperand::<E>::new("weights", WARP_ROWS, keys_per_tile);
    let mut output = Accumulator::new("output", WARP_ROWS, product_columns(setup.dims.value));
    let rows = Share::of_product(WARP_ROWS);
    let scale = setup.scores.exponent_scale();
    let mut softmax = OptimisticSoftmax::new(rows, scale, setup.joins_rows());
    let mut ended = Ended::new(setup, rows, scale);
    let mut query = first_query();
    query.load();
    let mut position = Position::first(setup, &query, warpgroup, &mut keys);

    // S = Q Kᵀ of the first item, and its weights.
    let key = keys.next();
    setup.turns.begin(warpgroup);
    setup.turns.wait(warpgroup);
    let first_scores = query.multiply(warpgroup, &mut scores, key.transposed());
    setup.turns.pass(warpgroup);
    let first_scores = first_scores.finish();
    setup.weigh(first_scores, &mut softmax, &query, &key, &position, warpgroup);
    key.release();
    weights.set(first_scores);
    setup.skip(&mut values, position.skipped());
    position.advance(setup, warpgroup, &mut query, &mut keys);

    repeat_while(position.exists(), || {
        // S = Q Kᵀ of this item, and O += P V of the one before, both in flight.
        query.release_before();
        let key = keys.next();
        setup.turns.wait(warpgroup);
        let next_scores = query.multiply(warpgroup, &mut scores, key.transposed());
        let value = values.next();
        let next_output = warpgroup.mma_add_if(!position.was_first(), &mut output, &weights, value.view());
        setup.turns.pass(warpgroup);

        // P = exp(S - max), while O is still being summed.
        let scores = next_scores.finish();
        when(position.is_first(), || {
            ended.end(setup, &mut softmax, || setup.rows_before(&query, &position, warpgroup));
        });
        setup.weigh(scores, &mut softmax, &query, &key, &position, warpgroup);
        key.release();

        // O is complete, or shrinks where the maximum has grown.
        next_output.finish_either(
            position.is_first(),
            |output| {
                setup.store(output, &mut ended, &mut query, &position, warpgroup);
            },
            |output| softmax.shrink(output),
        );
        value.release();
        when(position.is_first(), || setup.skip(&mut values, position.skipped()));
        weights.set(scores);
        position.advance(setup, warpgroup, &mut query, &mut keys);
        position.exists()
    });

    let value = values.next();
    setup.turns.wait(warpgroup);
    let output = warpgroup.mma_add_if(!position.was_first(), &mut output, &weights, value.view());
    setup.turns.pass(warpgroup);
    ended.end(setup, &mut softmax, || setup.rows_before(&query, &position, warpgroup));
    let output = output.finish();
    value.release();
    setup.skip(&mut values, position.skipped());
    setup.store(output, &mut ended, &mut query, &position, warpgroup);
    query.release_before();
    setup.turns.end(warpgroup);
}

/// Key tiles of an output tile: those that a warpgroup sees, and how many there are before and behind.
pub struct OwnTiles {
    pub before: U32,
    pub tiles: Range<U32>,
    pub behind: U32,
}

impl<E: Element> Setup<'_, E> {
    /// Whether finished rows are joined with others, or looked at by assertions.
    fn joins_rows(&self) -> bool {
        self.sinks.is_some() || self.output.splits().is_some() || self.config.debug
    }

    /// Makes weights of an item's scores.
    fn weigh(
        &self,
        scores: &mut Accumulator,
        softmax: &mut OptimisticSoftmax,
        query: &Query<E>,
        key: &Arrived<E>,
        position: &Position,
        warpgroup: &Warpgroup,
    ) {
        self.score(scores, query, position, warpgroup);
        softmax.update(scores, |scores| {
            query.multiply_again(scores, key.transposed());
            self.score(scores, query, position, warpgroup);
        });
    }

    /// Makes scores of an item's products, and hides what the mask hides.
    fn score(&self, products: &mut Accumulator, queries: &Query<E>, position: &Position, warpgroup: &Warpgroup) {
        check(|| products.all(F32::is_finite), "scores are finite");
        let documents = self.documents.map(|ids| ids.of(self.mask, &position.sequence(self, queries)));
        let mask = documents.as_ref().map_or(self.mask, |documents| documents);
        let of = position.lengths(self, queries);
        let (block, tile) = (self.block_of(mask, of, position.block(), warpgroup), position.key_tile());
        let (query, key) = (block.first_row + warp_index() % 4 * WARP_ROWS, tile * self.config.keys);
        if !self.scores.are_plain() {
            // Always so. Without the branch, ptxas computes what needs no products before they are there, and spills.
            when(position.exists(), || self.scores.of(of, position.number()).apply(products, query, key));
        }
        block.hide(products, tile, query, key);
    }

    /// The queries of a warpgroup, of a block of the output.
    fn block_of<'m>(&self, mask: &'m dyn Mask, of: Lengths, block: U32, warpgroup: &Warpgroup) -> Block<'m> {
        Block::new(mask, of, block * self.config.warpgroups() + warpgroup.number, ROWS, self.config.keys)
    }

    /// Stores the output tile before the item.
    fn store(
        &self,
        output: &mut Accumulator,
        ended: &mut Ended,
        query: &mut Query<E>,
        position: &Position,
        warpgroup: &Warpgroup,
    ) {
        ended.store(self, output, query, self.rows_before(query, position, warpgroup));
        query.is_done_with_rows_before();
    }

    /// The warp's rows of the output tile before the item.
    fn rows_before(&self, query: &Query<E>, position: &Position, warpgroup: &Warpgroup) -> WarpRows {
        let tile = position.tile_before(self, query);
        let first_query = tile.block * self.config.rows + warpgroup.number * ROWS + warp_index() % 4 * WARP_ROWS;
        WarpRows { tile, first_query }
    }

    /// The key tiles that a warpgroup takes of those of an output tile. It takes one at least.
    pub fn own_key_tiles(&self, of: Lengths, tile: OutputTile, warpgroup: &Warpgroup) -> OwnTiles {
        let all = self.key_tiles(of, tile);
        if !self.skips() {
            return OwnTiles { before: 0.into(), tiles: all, behind: 0.into() };
        }
        let own = self.block_of(self.mask, of, tile.block, warpgroup).tiles;
        let start = own.start.min(all.end - 1).max(all.start);
        let end = own.end.min(all.end).max(start + 1);
        OwnTiles { before: start - all.start, tiles: start..end, behind: all.end - end }
    }

    /// Whether each warpgroup leaves out what only others see. How much that is must be known: the rings have room for it.
    fn skips(&self) -> bool {
        self.config.skips() && self.mask.moves_along()
    }

    /// Leaves tiles to the other warpgroups.
    pub fn skip(&self, tiles: &mut Tiles<E>, count: U32) {
        if self.skips() {
            tiles.skip(count);
        }
    }
}
