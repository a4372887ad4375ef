//! The first query sees the first key, and each later one a key more (top-left, as torch has it).

use super::{Lengths, Mask};
use std::ops::Range;
use tile::prelude::*;

pub struct CausalTopLeft;

impl CausalTopLeft {
    /// How many keys query number `query` sees.
    #[track_caller]
    fn count(query: U32, of: Lengths) -> U32 {
        (query + 1).min(of.keys)
    }
}

impl Mask for CausalTopLeft {
    fn seen_by_some(&self, queries: Range<U32>, of: Lengths) -> Range<U32> {
        0.into()..CausalTopLeft::count(queries.end - 1, of)
    }

    fn seen_by_all(&self, queries: Range<U32>, of: Lengths) -> Range<U32> {
        0.into()..CausalTopLeft::count(queries.start, of)
    }

    fn sees(&self, query: Coordinate, key: Coordinate, of: Lengths) -> Pred {
        key.lt(CausalTopLeft::count(query.value(), of))
    }
    fn knows_the_end(&self) -> bool {
        true
    }
    fn moves_along(&self) -> bool {
        true
    }
}
