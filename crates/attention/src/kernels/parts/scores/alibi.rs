//! A penalty in proportion to the distance, with a slope for each head; the last query stands at the last key, as
//! FlashAttention has it.

use super::{Head, Score};
use tile::prelude::*;

pub struct Alibi;

impl Score for Alibi {
    fn numbers(&self) -> Option<&'static str> {
        Some("slopes")
    }

    fn apply(&self, score: F32, query: Coordinate, key: Coordinate, head: Head) -> F32 {
        let place = query + (head.of.keys - head.of.queries);
        (-key.minus(place).abs()).mul_add(head.number, score)
    }
}
