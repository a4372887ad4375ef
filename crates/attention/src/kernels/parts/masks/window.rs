//! A query sees keys near its own place, counted as in [`super::Causal`]: the last query stands at the last key.

use super::{Lengths, Mask};
use std::ops::Range;
use tile::prelude::*;

pub struct Window {
    /// Keys before the query's place, and behind it.
    pub left: u32,
    pub right: u32,
}

impl Window {
    /// The first key that query number `query` sees, if it sees any.
    #[track_caller]
    fn first(&self, query: U32, of: Lengths) -> U32 {
        (query + of.keys).saturating_sub(of.queries + self.left)
    }

    /// The first key behind those that it sees.
    #[track_caller]
    fn end(&self, query: U32, of: Lengths) -> U32 {
        (query + of.keys + self.right + 1).saturating_sub(of.queries).min(of.keys)
    }
}

impl Mask for Window {
    fn seen_by_some(&self, queries: Range<U32>, of: Lengths) -> Range<U32> {
        let end = self.end(queries.end - 1, of);
        self.first(queries.start, of).min(end)..end
    }

    fn seen_by_all(&self, queries: Range<U32>, of: Lengths) -> Range<U32> {
        self.first(queries.end - 1, of)..self.end(queries.start, of)
    }

    fn sees(&self, query: Coordinate, key: Coordinate, of: Lengths) -> Pred {
        let query = query.value();
        !key.lt(self.first(query, of)) & key.lt(self.end(query, of))
    }
    fn knows_the_end(&self) -> bool {
        true
    }
    fn moves_along(&self) -> bool {
        true
    }
}
