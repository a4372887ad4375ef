//! Every query sees every key.

use super::{Lengths, Mask};
use std::ops::Range;
use tile::prelude::*;

pub struct Full;

impl Mask for Full {
    fn seen_by_some(&self, _: Range<U32>, of: Lengths) -> Range<U32> {
        0.into()..of.keys
    }

    fn seen_by_all(&self, _: Range<U32>, of: Lengths) -> Range<U32> {
        0.into()..of.keys
    }

    fn sees(&self, _: Coordinate, _: Coordinate, _: Lengths) -> Pred {
        true.into()
    }
    fn moves_along(&self) -> bool {
        true
    }
    fn is_even(&self) -> bool {
        true
    }
}
