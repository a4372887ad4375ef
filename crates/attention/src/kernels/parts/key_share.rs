//! Which keys a block takes: all that its queries see, or one of several shares, each of another block.

use std::ops::Range;
use tile::prelude::*;

pub struct KeyShare {
    /// Which queries.
    pub block: U32,
    part: Option<Part>,
}

#[derive(Clone, Copy)]
pub struct Part {
    pub number: U32,
    /// How many there are.
    pub of: U32,
}

impl KeyShare {
    /// All keys of a block of queries.
    pub fn whole(block: U32) -> KeyShare {
        KeyShare { block, part: None }
    }

    /// A share of them.
    pub fn part(block: U32, number: U32, of: U32) -> KeyShare {
        KeyShare { block, part: Some(Part { number, of }) }
    }

    /// Of this block; the shares of the same queries stand next to each other in the grid. The last queries see the most
    /// keys, where the mask is causal: they go first, and short blocks fill the end.
    pub fn of_block(splits: Option<U32>) -> KeyShare {
        let place = grid_size(0) - 1 - block_index(0);
        match splits {
            None => KeyShare { block: place, part: None },
            Some(of) => KeyShare { block: place / of, part: Some(Part { number: place % of, of }) },
        }
    }

    /// Of the tiles that its queries see, its own. Shares differ by one tile at most; some may be empty. There are less than
    /// 2²⁷ tiles, and 32 shares.
    pub fn tiles(&self, seen: Range<U32>) -> Range<U32> {
        let Some(Part { number, of }) = self.part else { return seen };
        let count = seen.end.saturating_sub(seen.start);
        let end = |parts: U32| seen.start + count * parts / of;
        end(number)..end(number + 1)
    }

    /// Its number among those of the same queries.
    pub fn number(&self) -> U32 {
        self.part.map_or(0.into(), |part| part.number)
    }
}
