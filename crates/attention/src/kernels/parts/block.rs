//! What one block computes: its rows, and the key tiles that matter to their queries.

use super::Lengths;
use super::masks::Mask;
use super::row_order::RowOrder;
use std::ops::Range;
use tile::prelude::*;

pub struct Block<'a> {
    mask: &'a dyn Mask,
    of: Lengths,
    order: RowOrder,
    keys_per_tile: u32,
    pub first_row: U32,
    queries: Range<U32>,
    /// Key tiles that some query sees.
    pub tiles: Range<U32>,
}

impl<'a> Block<'a> {
    /// The `number`-th block of `rows` queries of one head.
    pub fn new(mask: &'a dyn Mask, of: Lengths, number: U32, rows: u32, keys_per_tile: u32) -> Block<'a> {
        Block::ordered(mask, of, RowOrder::OneHead, number, [rows, keys_per_tile])
    }

    /// The `number`-th block of so many rows.
    pub fn ordered(
        mask: &'a dyn Mask,
        of: Lengths,
        order: RowOrder,
        number: U32,
        [rows, keys_per_tile]: [u32; 2],
    ) -> Block<'a> {
        let first_row = number * rows;
        let queries = order.queries(first_row..(first_row + rows).min(order.rows(of.queries)));
        let seen = mask.seen_by_some(queries.clone(), of);
        check(|| seen.end.le(of.keys), "keys that the mask shows exist");
        let tiles = seen.start / keys_per_tile..seen.end.div_ceil(keys_per_tile);
        Block { mask, of, order, keys_per_tile, first_row, queries, tiles }
    }

    /// Hides the scores of `tile` that the mask hides; `row` and `key` are those of the fragment's first row and
    /// column.
    pub fn hide(&self, scores: &mut Fragment, tile: U32, row: U32, key: U32) {
        when(!self.is_whole(tile), || {
            scores.update(|cell, score| {
                let seen = self.sees(self.order.query(cell.row() + row), cell.column() + key);
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
