//! How work is divided: into items that one thread computes at a time, the same for any number of threads but for how many
//! tiles an item has, which no result depends on.

use super::simd::LANES;
use crate::visibility::Lengths;
use std::ops::Range;

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
    /// Heads of an item: one, or those that share their keys.
    group: usize,
    /// Queries of an item.
    rows: usize,
    /// Of one batch entry.
    lengths: Lengths,
    /// Where packed sequences begin among queries and keys, and how many blocks of queries are before each.
    packed: Option<(Places<'a>, &'a [usize])>,
}

/// Where packed sequences begin among queries and among keys, and behind the last entry where the last one ends.
pub type Places<'a> = [&'a [u32]; 2];

impl<'a> Division<'a> {
    /// `blocks` becomes the blocks before each packed sequence; it is the caller's, so that its memory is kept.
    pub fn new(
        [batch, heads, group]: [usize; 3],
        rows: usize,
        lengths: Lengths,
        packed: Option<Places<'a>>,
        blocks: &'a mut Vec<usize>,
    ) -> Division<'a> {
        blocks.clear();
        let packed = packed.map(|places| {
            // That items share no row is what lets threads write them at once.
            assert!(places[0].is_sorted() && places[1].is_sorted(), "sequences go forwards");
            assert!(places[0].last() <= Some(&lengths.queries), "sequences end inside of the tensors");
            let mut before = 0;
            blocks.push(0);
            blocks.extend(places[0].windows(2).map(|pair| {
                before += ((pair[1] - pair[0]) as usize).div_ceil(rows);
                before
            }));
            (places, blocks.as_slice())
        });
        Division { batch, heads, group, rows, lengths, packed }
    }

    /// Queries of an item that leave eight items for each thread, in whole tiles.
    pub fn rows_for(queries: usize, heads: usize, threads: usize) -> usize {
        const MOST_TILES: usize = 16;
        (queries * heads / (8 * threads) / LANES).clamp(1, MOST_TILES) * LANES
    }

    /// Batch entries, heads and rows of the log-sum-exp.
    pub fn extents(&self) -> [usize; 3] {
        [self.batch, self.heads, self.lengths.queries as usize]
    }

    pub fn items(&self) -> usize {
        self.heads / self.group * self.blocks()
    }

    /// Of all sequences together.
    fn blocks(&self) -> usize {
        match self.packed {
            Some((_, blocks)) => blocks.last().copied().unwrap_or(0),
            None => self.batch * self.blocks_of(self.lengths.queries as usize),
        }
    }

    fn blocks_of(&self, queries: usize) -> usize {
        queries.div_ceil(self.rows)
    }

    /// Sequence by sequence and head by head, so that K and V of one stay in the cache; the last queries of a head first, which
    /// see most under a causal mask.
    pub fn item(&self, index: usize) -> Item {
        let groups = self.heads / self.group;
        let (sequence, within) = match self.packed {
            Some(([queries, keys], blocks)) => {
                let at = blocks.partition_point(|&before| before * groups <= index) - 1;
                let of = Lengths { queries: queries[at + 1] - queries[at], keys: keys[at + 1] - keys[at] };
                let [first_query, first_key] = [queries[at] as usize, keys[at] as usize];
                (Sequence { batch: 0, first_query, first_key, of }, index - blocks[at] * groups)
            }
            None => {
                let per_entry = groups * self.blocks_of(self.lengths.queries as usize);
                let batch = index / per_entry;
                (Sequence { batch, first_query: 0, first_key: 0, of: self.lengths }, index % per_entry)
            }
        };
        let queries = sequence.of.queries as usize;
        let blocks = self.blocks_of(queries);
        let (group, block) = (within / blocks, blocks - 1 - within % blocks);
        let first = block * self.rows;
        Item {
            sequence,
            heads: group * self.group..(group + 1) * self.group,
            queries: first..(first + self.rows).min(queries),
        }
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
        Division::new([1, 1, 1], LANES, Lengths { queries: 10, keys: 10 }, Some([places; 2]), &mut vec![]);
    }

    #[test]
    #[should_panic(expected = "sequences end inside")]
    fn sequences_that_leave_the_tensors_are_refused() {
        let places: &[u32] = &[0, 11];
        Division::new([1, 1, 1], LANES, Lengths { queries: 10, keys: 10 }, Some([places; 2]), &mut vec![]);
    }

    proptest! {
        /// Every query of every head is in exactly one item, whatever the lengths are.
        #[test]
        fn items_cover_all_queries_once(
            lengths in prop::collection::vec(0u32..90, 1..5), groups in 1usize..4, group in 1usize..3, tiles in 1usize..4,
        ) {
            let mut places = vec![0];
            places.extend(lengths.iter().scan(0, |sum, length| { *sum += length; Some(*sum) }));
            let total = *places.last().unwrap();
            let (heads, of) = (groups * group, Lengths { queries: total, keys: total });
            for packed in [Some([places.as_slice(), places.as_slice()]), None] {
                let mut blocks = vec![];
                let division = Division::new([1, heads, group], tiles * LANES, of, packed, &mut blocks);
                let mut seen = vec![0; heads * total as usize];
                for item in (0..division.items()).map(|index| division.item(index)) {
                    prop_assert_eq!(item.queries.start % LANES, 0);
                    for head in item.heads.clone() {
                        for query in item.queries.clone() {
                            seen[head * total as usize + item.sequence.first_query + query] += 1;
                        }
                    }
                }
                prop_assert!(seen.iter().all(|count| *count == 1), "{:?}", seen);
            }
        }
    }
}
