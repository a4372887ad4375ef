//! How work is divided: into items that one thread computes at a time, the same for any number of threads but for how many
//! tiles an item has, which no result depends on.

use super::simd::LANES;
use crate::visibility::Lengths;
use std::ops::{Range, RangeInclusive};

/// One sequence, and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    pub batch: usize,
    /// Rows of Q and of K before it, in its batch entry.
    pub first_query: usize,
    pub first_key: usize,
    pub of: Lengths,
}

/// Queries of some heads of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub sequence: Sequence,
    pub heads: Range<usize>,
    pub queries: Range<usize>,
}

/// All sequences, cut into items.
pub struct Division<'a> {
    batch: usize,
    heads: usize,
    cut: Cut,
    /// Of one batch entry.
    lengths: Lengths,
    /// Where packed sequences begin among queries and keys, and how many blocks of queries are before each.
    packed: Option<(Places<'a>, &'a [usize])>,
}

/// What items are.
#[derive(Clone, Debug)]
pub struct Cut {
    /// Heads that share their keys, or one; and how many of them an item has at most.
    pub group: usize,
    pub together: usize,
    /// Queries of an item at most.
    pub rows: usize,
    /// Packed sequences with other numbers of queries have no items.
    pub of_lengths: RangeInclusive<u32>,
}

/// Tiles of an item at most.
pub const MOST_TILES: usize = 16;

impl Cut {
    /// One tile of one head.
    pub const TILE: Cut = Cut { group: 1, together: 1, rows: LANES, of_lengths: 0..=u32::MAX };

    /// How many items the heads that share their keys are.
    fn parts(&self) -> usize {
        self.group.div_ceil(self.together)
    }

    fn blocks_of(&self, queries: u32) -> usize {
        if self.of_lengths.contains(&queries) { (queries as usize).div_ceil(self.rows) } else { 0 }
    }
}

/// Where packed sequences begin among queries and among keys, and behind the last entry where the last one ends.
pub type Places<'a> = [&'a [u32]; 2];

impl<'a> Division<'a> {
    /// `blocks` becomes the blocks before each packed sequence; it is the caller's, so that its memory is kept.
    pub fn new(
        [batch, heads]: [usize; 2],
        cut: Cut,
        lengths: Lengths,
        packed: Option<Places<'a>>,
        blocks: &'a mut Vec<usize>,
    ) -> Division<'a> {
        blocks.clear();
        let packed = packed.map(|places| {
            // That items share no row is what lets threads write them at once.
            assert!(places[0].is_sorted() && places[1].is_sorted(), "sequences go forwards");
            assert!(places[0].len() == places[1].len(), "every sequence has queries and keys");
            assert!(places[0].last() <= Some(&lengths.queries), "sequences end inside of the tensors");
            let mut before = 0;
            blocks.push(0);
            blocks.extend(places[0].windows(2).map(|pair| {
                before += cut.blocks_of(pair[1] - pair[0]);
                before
            }));
            (places, blocks.as_slice())
        });
        Division { batch, heads, cut, lengths, packed }
    }

    /// Queries of an item that leave eight items for each thread, in whole tiles.
    pub fn rows_for(queries: usize, heads: usize, threads: usize) -> usize {
        (queries * heads / (8 * threads) / LANES).clamp(1, MOST_TILES) * LANES
    }

    /// Batch entries, heads and rows of the log-sum-exp.
    pub fn extents(&self) -> [usize; 3] {
        [self.batch, self.heads, self.lengths.queries as usize]
    }

    pub fn items(&self) -> usize {
        self.groups() * self.blocks()
    }

    /// Heads that are in items together.
    fn groups(&self) -> usize {
        self.heads / self.cut.group * self.cut.parts()
    }

    /// Those of one of them.
    fn heads_of(&self, group: usize) -> Range<usize> {
        let (shared, part) = (group / self.cut.parts(), group % self.cut.parts());
        let (first, end) = (shared * self.cut.group + part * self.cut.together, (shared + 1) * self.cut.group);
        first..(first + self.cut.together).min(end)
    }

    /// Of all sequences together.
    fn blocks(&self) -> usize {
        match self.packed {
            Some((_, blocks)) => blocks.last().copied().unwrap_or(0),
            None => self.batch * self.cut.blocks_of(self.lengths.queries),
        }
    }

    /// Sequence by sequence and head by head, so that K and V of one stay in the cache; the last queries of a head first, which
    /// see most under a causal mask.
    pub fn item(&self, index: usize) -> Item {
        let groups = self.groups();
        let (sequence, within) = match self.packed {
            Some(([queries, keys], blocks)) => {
                let at = blocks.partition_point(|&before| before * groups <= index) - 1;
                let of = Lengths { queries: queries[at + 1] - queries[at], keys: keys[at + 1] - keys[at] };
                let [first_query, first_key] = [queries[at] as usize, keys[at] as usize];
                (Sequence { batch: 0, first_query, first_key, of }, index - blocks[at] * groups)
            }
            None => {
                let per_entry = groups * self.cut.blocks_of(self.lengths.queries);
                let batch = index / per_entry;
                (Sequence { batch, first_query: 0, first_key: 0, of: self.lengths }, index % per_entry)
            }
        };
        let blocks = self.cut.blocks_of(sequence.of.queries);
        let (group, block) = (within / blocks, blocks - 1 - within % blocks);
        let first = block * self.cut.rows;
        let queries = first..(first + self.cut.rows).min(sequence.of.queries as usize);
        Item { sequence, heads: self.heads_of(group), queries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    #[should_panic(expected = "sequences go forwards")]
    fn sequences_that_overlap_are_refused() {
        let places: &[u32] = &[0, 10, 5, 10];
        Division::new([1, 1], Cut::TILE, Lengths { queries: 10, keys: 10 }, Some([places; 2]), &mut vec![]);
    }

    #[test]
    #[should_panic(expected = "sequences end inside")]
    fn sequences_that_leave_the_tensors_are_refused() {
        let places: &[u32] = &[0, 11];
        Division::new([1, 1], Cut::TILE, Lengths { queries: 10, keys: 10 }, Some([places; 2]), &mut vec![]);
    }

    proptest! {
        /// Every query of every head is in exactly one item, whatever the lengths are, and however sequences are divided among two.
        #[test]
        fn items_cover_all_queries_once(
            lengths in prop::collection::vec(0u32..90, 1..5),
            (groups, group, together) in (1usize..4, 1usize..6, 1usize..6),
            tiles in 1usize..4,
        ) {
            let mut places = vec![0];
            places.extend(lengths.iter().scan(0, |sum, length| { *sum += length; Some(*sum) }));
            let total = *places.last().unwrap();
            let (heads, of, rows) = (groups * group, Lengths { queries: total, keys: total }, tiles * LANES);
            let few = Cut { group, together: together.min(group), rows, of_lengths: 0..=40 };
            let many = Cut { of_lengths: 41..=u32::MAX, ..few.clone() };
            let all = Cut { of_lengths: 0..=u32::MAX, ..few.clone() };
            let packed = Some([places.as_slice(), places.as_slice()]);
            for (packed, cuts) in [(packed, vec![few, many]), (packed, vec![all.clone()]), (None, vec![all])] {
                let mut seen = vec![0; heads * total as usize];
                for cut in cuts {
                    let mut blocks = vec![];
                    let division = Division::new([1, heads], cut, of, packed, &mut blocks);
                    for item in (0..division.items()).map(|index| division.item(index)) {
                        prop_assert_eq!(item.queries.start % LANES, 0);
                        prop_assert!(item.heads.start / group == (item.heads.end - 1) / group, "heads share their keys");
                        for head in item.heads.clone() {
                            for query in item.queries.clone() {
                                seen[head * total as usize + item.sequence.first_query + query] += 1;
                            }
                        }
                    }
                }
                prop_assert!(seen.iter().all(|count| *count == 1), "{:?}", seen);
            }
        }
    }
}
