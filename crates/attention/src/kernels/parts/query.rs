//! A warp's queries, the left side of every product with keys.

use tile::prelude::*;

pub enum Query<E> {
    /// Loaded once.
    Held(RowOperand<E>),
    /// Read again for every tile of keys, where the output leaves no registers for them.
    Shared { tile: Full<E>, first: U32, rows: u32 },
}

impl<E: Element> Query<E> {
    /// The `rows` of `tile` from `first`.
    pub fn new(tile: Full<E>, first: U32, rows: u32, held: bool) -> Query<E> {
        if !held {
            return Query::Shared { tile, first, rows };
        }
        let loaded = tile.rows(first, rows).load();
        tile.release();
        Query::Held(loaded)
    }

    /// `scores = queries · keys`
    pub fn multiply(&self, scores: &mut Accumulator, keys: Transposed<E>) {
        match self {
            Query::Held(queries) => mma(scores, queries, keys),
            Query::Shared { tile, first, rows } => mma(scores, tile.rows(*first, *rows), keys),
        }
    }

    /// After the last product.
    pub fn release(self) {
        if let Query::Shared { tile, .. } = self {
            tile.release();
        }
    }
}
