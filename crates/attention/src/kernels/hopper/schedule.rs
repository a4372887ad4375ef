//! Which tiles of the output a block computes, and in which order.

use crate::configs::Config;
use tile::prelude::*;

/// A tile of the output: a block of queries of one head. Where keys are split, it is what one share of them adds.
#[derive(Clone, Copy)]
pub struct OutputTile {
    pub block: U32,
    pub head: U32,
    pub batch: U32,
    pub share: U32,
}

/// The tile that a block is to compute next.
pub struct NextTile([Var<u32>; 4]);

impl Default for NextTile {
    fn default() -> NextTile {
        NextTile(["next_block", "next_head", "next_batch", "next_share"].map(|name| Var::new(name, 0)))
    }
}

impl NextTile {
    #[track_caller]
    pub fn set(&mut self, tile: OutputTile) {
        let OutputTile { block, head, batch, share } = tile;
        self.0.iter_mut().zip([block, head, batch, share]).for_each(|(held, word)| held.set(word));
    }

    #[track_caller]
    pub fn get(&self) -> OutputTile {
        let [block, head, batch, share] = self.0.each_ref().map(Var::get);
        OutputTile { block, head, batch, share }
    }
}

/// All tiles, numbered in the order in which they are begun: section by section of heads whose keys and values the cache holds together, and in
/// a section the last queries first. With a causal mask these see the most keys, so that short tiles fill the end.
pub struct Schedule {
    /// Blocks that take neighbouring tiles of the same keys together.
    cluster: u32,
    /// Blocks of queries of a head, as many at a time as a cluster takes, or of all their shares.
    blocks: U32,
    splits: Option<U32>,
    pub heads: U32,
    /// Heads of all batch entries, and of one section; none if a section has one.
    all_heads: U32,
    section: Option<U32>,
}

impl Schedule {
    /// Parameters `heads`, `batch` and `section`, for so many queries in blocks of `rows`. Where all tiles are as long, heads follow each other.
    #[track_caller]
    pub fn parameter(queries: U32, config: &Config, splits: Option<U32>, is_even: bool) -> Schedule {
        let blocks = queries.div_ceil(config.rows * config.cluster);
        let [heads, batch, section] = ["heads", "batch", "section"].map(parameter::<u32>);
        let section = (!is_even).then_some(section);
        let blocks = splits.map_or(blocks, |splits| blocks * splits);
        Schedule { cluster: config.cluster, blocks, splits, heads, all_heads: heads * batch, section }
    }

    pub fn count(&self) -> U32 {
        self.blocks * self.all_heads
    }

    /// The number that a block begins with.
    #[track_caller]
    pub fn first(&self) -> U32 {
        block_index(0) / self.cluster
    }

    /// How many numbers are taken at a time.
    #[track_caller]
    fn taken_together(&self) -> U32 {
        grid_size(0) / self.cluster
    }

    /// The tile of a number below the count. Of others, any, by divisions by zero among them: nobody reads it.
    #[track_caller]
    pub fn tile(&self, number: U32) -> OutputTile {
        let (head, from_the_last) = match self.section {
            None => number.div_rem(self.blocks),
            Some(section) => {
                let (number_of_section, within) = number.div_rem(self.blocks * section);
                let first = number_of_section * section;
                // The last section may have fewer heads.
                let (from_the_last, head) = within.div_rem(section.min(self.all_heads - first));
                (first + head, from_the_last)
            }
        };
        let place = self.blocks - 1 - from_the_last;
        let (block, share) = self.splits.map_or((place, 0.into()), |splits| place.div_rem(splits));
        let (batch, head) = head.div_rem(self.heads);
        // Behind the last block of queries, a block of a cluster brings keys for the others, and nobody stores what it computes.
        let block = if self.cluster == 1 { block } else { block * self.cluster + block_of_cluster() };
        OutputTile { block, head, batch, share }
    }
}

/// How blocks share the tiles.
pub enum Order {
    /// All are as long: every block takes as many, one of each round of the grid.
    InRounds,
    /// Whoever is done takes the next. The word counts tiles that were taken after the first round; the launch finds it zero, and leaves it so.
    ByCounter(Slice<u32>),
}

impl Order {
    /// Parameter `counter`, if there is one.
    #[track_caller]
    pub fn parameter(counts: bool) -> Order {
        if counts { Order::ByCounter(Slice::parameter("counter")) } else { Order::InRounds }
    }

    /// The number of the next tile, for a block that has put all of one under way: what is under way takes longer than the answer. Blocks that
    /// asked when they begin would share out all tiles at once, and who has a long one might get another long one.
    #[track_caller]
    pub fn next(&self, number: U32, schedule: &Schedule) -> U32 {
        let together = schedule.taken_together();
        let Order::ByCounter(counter) = self else { return number + together };
        let (taken, count) = (counter.count(0), schedule.count());
        // Every tile takes one: who has taken the last leaves the word as it was.
        when(taken.eq(count - 1), || counter.publish(0, 0.into()));
        taken + together
    }
}
