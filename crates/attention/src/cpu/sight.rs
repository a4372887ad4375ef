//! Which keys the queries of a tile see.

use super::simd::{LANES, Simd};
use crate::kernels::parts::masks::{Mask, OnHost};
use crate::visibility::{Lengths, MaskKind, Visibility};
use std::ops::Range;
use tile::prelude::U32;

/// A built-in mask, or one of the user's own.
#[derive(Clone, Copy)]
pub enum Sight<'a> {
    Kind(MaskKind),
    Own(&'a dyn Mask),
}

impl Sight<'_> {
    /// The keys outside of which a query sees none; and whether it sees all of them.
    pub fn of(self, query: u32, of: Lengths) -> (Range<u32>, bool) {
        match self {
            Sight::Kind(kind) => (kind.interval(query, of), true),
            Sight::Own(mask) => {
                let one = || U32::from(query)..U32::from(query + 1);
                let known = |range: Range<U32>| Some(range.start.known()?..range.end.known()?.min(of.keys));
                // A mask that does not answer constants is asked key by key.
                let some = known(mask.seen_by_some(one(), of.into())).unwrap_or(0..of.keys);
                let all = known(mask.seen_by_all(one(), of.into()));
                let exact = all.as_ref() == Some(&some);
                (some, exact)
            }
        }
    }

    pub fn sees(self, query: u32, key: u32, of: Lengths) -> bool {
        match self {
            Sight::Kind(kind) => kind.sees(query, key, of),
            Sight::Own(mask) => OnHost(mask).sees(query, key, of),
        }
    }
}

/// What each of sixteen queries sees: keys from `first` to before `end`, or some of them.
#[derive(Clone, Debug)]
pub struct TileSight {
    first: [u32; LANES],
    end: [u32; LANES],
    /// Whether queries see all keys of their ranges. Others ask the mask for each.
    pub exact: bool,
    /// Keys that at least one may see.
    pub some: Range<usize>,
    /// Keys that all see.
    all: Range<usize>,
}

impl TileSight {
    /// Of up to sixteen queries; lanes behind the last see what it does.
    pub fn new(sight: Sight, queries: Range<usize>, of: Lengths) -> TileSight {
        let mut tile = TileSight { first: [0; LANES], end: [0; LANES], exact: true, some: 0..0, all: 0..0 };
        let (mut first_of_some, mut end_of_some, mut all) = (u32::MAX, 0, 0..u32::MAX);
        for lane in 0..LANES {
            let query = (queries.start + lane).min(queries.end - 1);
            let (range, exact) = sight.of(query as u32, of);
            let range = if range.is_empty() { 0..0 } else { range };
            if !range.is_empty() {
                (first_of_some, end_of_some) = (first_of_some.min(range.start), end_of_some.max(range.end));
            }
            all = all.start.max(range.start)..all.end.min(range.end);
            (tile.first[lane], tile.end[lane]) = (range.start, range.end);
            tile.exact &= exact;
        }
        tile.some = first_of_some.min(end_of_some) as usize..end_of_some as usize;
        tile.all = if tile.exact { all.start as usize..all.end as usize } else { 0..0 };
        tile
    }

    /// Whether all queries see all of these keys.
    pub fn all_see(&self, keys: &Range<usize>) -> bool {
        self.all.start <= keys.start && keys.end <= self.all.end
    }

    /// First and end of each query's range, counted from key `from` on. Nearer than 2²⁴, numbers are exact; farther ones stay far.
    #[inline(always)]
    pub fn relative_to<S: Simd>(&self, s: S, from: usize) -> [S::Vector; 2] {
        let [mut first, mut end] = [[0.0; LANES]; 2];
        for lane in 0..LANES {
            first[lane] = (i64::from(self.first[lane]) - from as i64) as f32;
            end[lane] = (i64::from(self.end[lane]) - from as i64) as f32;
        }
        [s.load(&first), s.load(&end)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What a tile says of ranges is what the mask says of single keys, built-in or asked as a user's own.
        #[test]
        fn tiles_agree_with_single_answers(
            (queries, keys) in (1u32..60, 0u32..60), first in 0usize..60, (left, right) in (0u32..9, 0u32..9),
        ) {
            let of = Lengths { queries, keys };
            let first = first % queries as usize;
            let rows = first..(first + LANES).min(queries as usize);
            let kinds = [
                MaskKind::None,
                MaskKind::CausalBottomRight,
                MaskKind::CausalTopLeft,
                MaskKind::Window { left, right },
            ];
            for kind in kinds {
                let mask = kind.mask();
                for sight in [Sight::Kind(kind), Sight::Own(&*mask)] {
                    let tile = TileSight::new(sight, rows.clone(), of);
                    prop_assert!(tile.exact);
                    for key in 0..keys {
                        let sees = |lane: usize| {
                            kind.sees((first + lane).min(rows.end - 1) as u32, key, of)
                        };
                        for lane in 0..LANES {
                            let inside = tile.first[lane] <= key && key < tile.end[lane];
                            prop_assert_eq!(inside, sees(lane), "{:?}, lane {}, key {}", kind, lane, key);
                        }
                        let at = key as usize;
                        prop_assert!(tile.some.contains(&at) || !(0..LANES).any(sees));
                        prop_assert_eq!(tile.all_see(&(at..at + 1)), (0..LANES).all(sees));
                    }
                }
            }
        }
    }
}
