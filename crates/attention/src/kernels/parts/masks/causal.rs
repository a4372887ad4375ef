//! The last query sees the last key, and each earlier one a key less (bottom-right, as FlashAttention has it).

use super::{Lengths, Mask};
use std::ops::Range;
use tile::prelude::*;

pub struct Causal;

impl Causal {
    /// How many keys query number `query` sees.
    #[track_caller]
    fn count(query: U32, of: Lengths) -> U32 {
        (query + of.keys + 1).saturating_sub(of.queries).min(of.keys)
    }
}

impl Mask for Causal {
    fn seen_by_some(&self, queries: Range<U32>, of: Lengths) -> Range<U32> {
        0.into()..Causal::count(queries.end - 1, of)
    }

    fn seen_by_all(&self, queries: Range<U32>, of: Lengths) -> Range<U32> {
        0.into()..Causal::count(queries.start, of)
    }

    fn sees(&self, query: Coordinate, key: Coordinate, of: Lengths) -> Pred {
        key.lt(Causal::count(query.value(), of))
    }
    fn knows_the_end(&self) -> bool {
        true
    }
    fn moves_along(&self) -> bool {
        true
    }
}
