//! Which tiles of the output a block computes, and in which order.

use tile::prelude::*;

/// A tile of the output: a block of queries of one head.
#[derive(Clone, Copy)]
pub struct OutputTile {
    pub block: U32,
    pub head: U32,
    pub batch: U32,
}

/// All tiles, numbered in the order in which they are begun: section by section of heads whose keys and values the cache holds together, and in
/// a section the last queries first. With a causal mask these see the most keys, so that short tiles fill the end.
pub struct Schedule {
    /// Blocks of queries of a head.
    blocks: U32,
    heads: U32,
    /// Heads of all batch entries, and of one section.
    all_heads: U32,
    section: U32,
}

impl Schedule {
    /// Parameters `heads`, `batch` and `section`.
    #[track_caller]
    pub fn parameter(blocks: U32) -> Schedule {
        let [heads, batch, section] = ["heads", "batch", "section"].map(parameter::<u32>);
        Schedule { blocks, heads, all_heads: heads * batch, section }
    }

    pub fn count(&self) -> U32 {
        self.blocks * self.all_heads
    }

    /// The tile of a number below the count.
    #[track_caller]
    pub fn tile(&self, number: U32) -> OutputTile {
        let in_section = self.blocks * self.section;
        let first = number / in_section * self.section;
        let within = number % in_section;
        // The last section may have fewer heads.
        let heads = self.section.min(self.all_heads - first);
        let head = first + within % heads;
        OutputTile { block: self.blocks - 1 - within / heads, head: head % self.heads, batch: head / self.heads }
    }
}

/// The tiles of one block: in the first round of the grid the one of its own number, in the second the one as far from the end, and so on by
/// turns. Who had a long tile in one round has a short one in the next.
pub struct Walk {
    number: Var<u32>,
    /// From this number to the next.
    step: Var<u32>,
}

impl Walk {
    #[track_caller]
    pub fn new() -> Walk {
        let block = block_index(0);
        let step = (grid_size(0) - block) * 2 - 1;
        let var = |name: &str, value: U32| Var::new(name, value).reaching(Reach::Block);
        Walk { number: var("number", block), step: var("step", step) }
    }

    #[track_caller]
    pub fn number(&self) -> U32 {
        self.number.get()
    }

    #[track_caller]
    pub fn advance(&mut self) {
        let step = self.step.get();
        self.number += step;
        self.step.set(grid_size(0) * 2 - step);
    }
}
