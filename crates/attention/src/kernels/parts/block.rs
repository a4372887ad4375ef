//! What one block computes: its queries, and the key tiles that matter to them.

use super::Lengths;
use super::masks::Mask;
use std::ops::Range;
use tile::prelude::*;

pub struct Block<'a> {
    mask: &'a dyn Mask,
    of: Lengths,
    keys_per_tile: u32,
    pub first_query: U32,
    /// Key tiles that some query sees.
    pub tiles: Range<U32>,
    /// Keys that all queries see.
    whole: Range<U32>,
}

impl<'a> Block<'a> {
    /// The `number`-th block of `rows` queries.
    pub fn new(mask: &'a dyn Mask, of: Lengths, number: U32, rows: u32, keys_per_tile: u32) -> Block<'a> {
        let first_query = number * rows;
        let queries = first_query..(first_query + rows).min(of.queries);
        let seen = mask.seen_by_some(queries.clone(), of);
        let tiles = seen.start / keys_per_tile..seen.end.div_ceil(keys_per_tile);
        let whole = mask.seen_by_all(queries, of);
        Block { mask, of, keys_per_tile, first_query, tiles, whole }
    }

    /// Hides the scores of `tile` that the mask hides; `query` and `key` are those of the fragment's first row and
    /// column.
    pub fn hide(&self, scores: &mut Accumulator, tile: U32, query: U32, key: U32) {
        when(!self.is_whole(tile), || {
            scores.update(|cell, score| {
                let seen = self.sees(cell.row() + query, cell.column() + key);
                select(seen, score, f32::NEG_INFINITY)
            });
        });
    }

    fn sees(&self, query: Coordinate, key: Coordinate) -> Pred {
        self.mask.sees(query, key, self.of) & key.lt(self.of.keys)
    }

    /// Every query sees every key of the tile, and all its keys exist.
    fn is_whole(&self, tile: U32) -> Pred {
        let first = tile * self.keys_per_tile;
        self.whole.start.le(first) & (first + self.keys_per_tile).le(self.whole.end)
    }
}
