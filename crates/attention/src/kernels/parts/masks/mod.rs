//! Masks: which keys a query sees. A mask is a value; no kernel asks which one it is.
//!
//! Kernels ask with registers, the host with constants: operators fold, so the answer is known at once and needs no
//! kernel under construction. [`OnHost`] lets the oracle ask the very mask that a kernel was built with.

mod causal;
mod causal_top_left;
mod documents;
mod full;
mod window;

pub use causal::Causal;
pub use causal_top_left::CausalTopLeft;
pub use documents::{DocumentIds, Documents};
pub use full::Full;
pub use window::Window;

use super::Lengths;
use crate::visibility::{self, MaskKind, Visibility};
use std::ops::Range;
use tile::prelude::*;

pub trait Mask: Sync {
    /// Keys that at least one of `queries` sees: other tiles are skipped.
    fn seen_by_some(&self, queries: Range<U32>, of: Lengths) -> Range<U32>;
    /// Keys that all of `queries` see: tiles inside are not tested score by score.
    fn seen_by_all(&self, queries: Range<U32>, of: Lengths) -> Range<U32>;
    /// Whether one query sees one key.
    fn sees(&self, query: Coordinate, key: Coordinate, of: Lengths) -> Pred;
    /// Whether it says of keys that do not exist that nobody sees them. Otherwise every score is asked that, too.
    fn knows_the_end(&self) -> bool {
        false
    }
    /// Whether what queries see moves along with them: as many queries later, at most as many keys later at either end.
    fn moves_along(&self) -> bool {
        false
    }
    /// Whether all queries see equally many keys.
    fn is_even(&self) -> bool {
        false
    }
}

impl MaskKind {
    /// The mask that kernels are built with.
    pub fn mask(self) -> Box<dyn Mask> {
        match self {
            MaskKind::None => Box::new(Full),
            MaskKind::CausalBottomRight => Box::new(Causal),
            MaskKind::CausalTopLeft => Box::new(CausalTopLeft),
            MaskKind::Window { left, right } => Box::new(Window { left, right }),
        }
    }
}

/// A kernel's mask, asked on the host.
pub struct OnHost<'a>(pub &'a dyn Mask);

impl Visibility for OnHost<'_> {
    fn sees(&self, query: u32, key: u32, of: visibility::Lengths) -> bool {
        self.0.sees(query.into(), key.into(), of.into()).known() == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [MaskKind; 6] = [
        MaskKind::None,
        MaskKind::CausalBottomRight,
        MaskKind::CausalTopLeft,
        MaskKind::Window { left: 5, right: 0 },
        MaskKind::Window { left: 2, right: 9 },
        MaskKind::Window { left: 0, right: 0 },
    ];

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
            let of = visibility::Lengths { queries, keys };
            let first = first % queries;
            let block = first..(first + rows).min(queries);
            let asked = || U32::from(block.start)..U32::from(block.end);
            for kind in KINDS {
                let mask = kind.mask();
                let sees = |query, key| OnHost(&*mask).sees(query, key, of);
                let some = known(mask.seen_by_some(asked(), of.into()));
                let all = known(mask.seen_by_all(asked(), of.into()));
                for key in 0..keys {
                    let seen = block.clone().filter(|&query| sees(query, key)).count();
                    // `seen_by_some` may promise too much, never too little; `seen_by_all` the other way round.
                    prop_assert!(seen == 0 || some.contains(&key), "{kind:?}: key {key} is seen but skipped");
                    prop_assert!(seen == block.len() || !all.contains(&key), "{kind:?}: key {key} is not seen by all");
                }
                // These masks see intervals, so that their answers are exact.
                prop_assert!(some.is_empty() || block.clone().any(|query| sees(query, some.end - 1)), "{kind:?}");
                prop_assert!(some.is_empty() || block.clone().any(|query| sees(query, some.start)), "{kind:?}");
                prop_assert!(all.is_empty() || all.end == keys || !block.clone().all(|query| sees(query, all.end)), "{kind:?}");
                prop_assert!(some.end <= keys && all.end <= keys, "{kind:?}");
                let beyond = (keys..keys + 20).any(|key| block.clone().any(|query| sees(query, key)));
                prop_assert!(!(mask.knows_the_end() && beyond), "{kind:?}");
            }
        }

        /// The mask of a kernel and the definition by which the oracle judges say the same.
        #[test]
        fn kernels_and_oracle_see_the_same(queries in 1u32..24, keys in 1u32..24) {
            let of = visibility::Lengths { queries, keys };
            for (query, key) in (0..queries).flat_map(|query| (0..keys).map(move |key| (query, key))) {
                for kind in KINDS {
                    let (kernel, oracle) = (OnHost(&*kind.mask()).sees(query, key, of), kind.sees(query, key, of));
                    prop_assert_eq!(kernel, oracle, "{:?}: query {} and key {}", kind, query, key);
                }
            }
        }
    }

    #[test]
    fn the_longest_lengths_do_not_wrap() {
        let most = (1 << 31) - 1;
        let of = visibility::Lengths { queries: most, keys: most };
        for (query, key, expected) in
            [(0, 0, true), (0, 1, false), (most - 1, most - 1, true), (most - 2, most - 1, false)]
        {
            assert_eq!(OnHost(&Causal).sees(query, key, of), expected, "{query} {key}");
        }
    }
}
