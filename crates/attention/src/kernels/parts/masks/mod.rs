//! Masks: which keys a query sees. A mask is a value; no kernel asks which one it is.
//!
//! Kernels ask with registers, the host with constants: `Causal.sees(query.into(), key.into(), lengths)` of plain
//! numbers is known at once and needs no kernel under construction (see [`sees`]).

mod causal;
mod full;

pub use causal::Causal;
pub use full::Full;

use super::Lengths;
use std::ops::Range;
use tile::prelude::*;

pub trait Mask {
    /// Keys that at least one of `queries` sees: other tiles are skipped.
    fn seen_by_some(&self, queries: Range<U32>, of: Lengths) -> Range<U32>;
    /// Keys that all of `queries` see: tiles inside are not tested score by score.
    fn seen_by_all(&self, queries: Range<U32>, of: Lengths) -> Range<U32>;
    /// Whether one query sees one key.
    fn sees(&self, query: Coordinate, key: Coordinate, of: Lengths) -> Pred;
}

/// The mask's answer on the host.
pub fn sees(mask: &dyn Mask, query: u32, key: u32, of: Lengths) -> bool {
    mask.sees(query.into(), key.into(), of).known() == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MASKS: [(&str, &dyn Mask); 2] = [("full", &Full), ("causal", &Causal)];

    fn known(range: Range<U32>) -> Range<u32> {
        let end = |value: U32| value.known().expect("an answer to constants is a constant");
        end(range.start)..end(range.end)
    }

    proptest! {
        /// What a mask says of blocks is what it says of single scores.
        #[test]
        fn blocks_agree_with_single_answers(
            (queries, keys) in (1u32..40, 0u32..40), first in 0u32..40, rows in 1u32..16,
        ) {
            let of = Lengths { queries: queries.into(), keys: keys.into() };
            let first = first % queries;
            let block = first..(first + rows).min(queries);
            let asked = || U32::from(block.start)..U32::from(block.end);
            for (name, mask) in MASKS {
                let (some, all) = (known(mask.seen_by_some(asked(), of)), known(mask.seen_by_all(asked(), of)));
                for key in 0..keys {
                    let seen = block.clone().filter(|&query| sees(mask, query, key, of)).count();
                    // `seen_by_some` may promise too much, never too little; `seen_by_all` the other way round.
                    prop_assert!(seen == 0 || some.contains(&key), "{name}: key {key} is seen but skipped");
                    prop_assert!(seen == block.len() || !all.contains(&key), "{name}: key {key} is not seen by all");
                }
                // These masks see intervals, so that their answers are exact.
                prop_assert!(some.is_empty() || block.clone().any(|query| sees(mask, query, some.end - 1, of)));
                prop_assert!(all.end == keys || !block.clone().all(|query| sees(mask, query, all.end, of)));
                prop_assert!(some.end <= keys && all.end <= keys);
            }
        }
    }

    #[test]
    fn causal_is_aligned_to_the_bottom_right() {
        let row = |query: u32, queries: u32, keys: u32| {
            let of = Lengths { queries: queries.into(), keys: keys.into() };
            (0..keys).map(|key| sees(&Causal, query, key, of)).collect::<Vec<_>>()
        };
        assert_eq!(row(0, 2, 4), [true, true, true, false]);
        assert_eq!(row(1, 2, 4), [true, true, true, true]);
        assert_eq!(row(0, 3, 2), [false, false]);
        assert_eq!(row(1, 3, 2), [true, false]);
        assert_eq!(row(2, 3, 2), [true, true]);
    }
}
