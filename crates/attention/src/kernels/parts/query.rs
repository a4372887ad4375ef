//! A warp's 16 queries, the left side of every product with keys.

use tile::prelude::*;

pub enum Query<E> {
    /// Loaded once.
    Held(RowOperand<E>),
    /// Read again for every tile of keys, where the output leaves no registers for them.
    Shared { tile: Full<E>, first: U32 },
}

impl<E: Element> Query<E> {
    /// The rows of `tile` from `first`.
    pub fn new(tile: Full<E>, first: U32, held: bool) -> Query<E> {
        if !held {
            return Query::Shared { tile, first };
        }
        let rows = tile.rows(first, 16).load();
        tile.release();
        Query::Held(rows)
    }

    /// `scores = queries · keys`
    pub fn multiply(&self, scores: &mut Accumulator, keys: Transposed<E>) {
        match self {
            Query::Held(rows) => mma(scores, rows, keys),
            Query::Shared { tile, first } => mma(scores, tile.rows(*first, 16), keys),
        }
    }

    /// After the last product.
    pub fn release(self) {
        if let Query::Shared { tile, .. } = self {
            tile.release();
        }
    }
}
