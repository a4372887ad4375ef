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
    queries: Range<U32>,
    /// Key tiles that some query sees.
    pub tiles: Range<U32>,
}

impl<'a> Block<'a> {
    /// The `number`-th block of `rows` queries.
    pub fn new(mask: &'a dyn Mask, of: Lengths, number: U32, rows: u32, keys_per_tile: u32) -> Block<'a> {
        let first_query = number * rows;
        let queries = first_query..(first_query + rows).min(of.queries);
        let seen = mask.seen_by_some(queries.clone(), of);
        check(|| seen.end.le(of.keys), "keys that the mask shows exist");
        let tiles = seen.start / keys_per_tile..seen.end.div_ceil(keys_per_tile);
        Block { mask, of, keys_per_tile, first_query, queries, tiles }
    }

    /// Hides the scores of `tile` that the mask hides; `query` and `key` are those of the fragment's first row and
    /// column.
    pub fn hide(&self, scores: &mut Fragment, tile: U32, query: U32, key: U32) {
        when(!self.is_whole(tile), || {
            scores.update(|cell, score| {
                let seen = self.sees(cell.row() + query, cell.column() + key);
                select(seen, score, f32::NEG_INFINITY)
            });
        });
    }

    fn sees(&self, query: Coordinate, key: Coordinate) -> Pred {
        let seen = self.mask.sees(query, key, self.of);
        if self.mask.knows_the_end() { seen } else { seen & key.lt(self.of.keys) }
    }

    /// Every query sees every key of the tile, and all its keys exist.
    fn is_whole(&self, tile: U32) -> Pred {
        // Asked anew for every tile: a register for each answer is more than wide heads have left.
        let whole = self.mask.seen_by_all(self.queries.clone(), self.of);
        let first = tile * self.keys_per_tile;
        whole.start.le(first) & (first + self.keys_per_tile).le(whole.end)
    }
}
