//! What a kernel is asked for beside Q·K, a mask, and P·V: not every family has everything.

use crate::Problem;
use crate::problem::lengths;
use crate::scoring::ScoreKind;

/// What is asked for. A caller may know more of it than a problem says: a score of the user's own, or sequences of which only the GPU
/// knows where they begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Sequences that lie one behind the other.
    pub packed: bool,
    /// There is a block for each part of the longest of them in all others, too, and most of these have nothing to do.
    pub sparse: bool,
    pub documents: bool,
    pub sinks: bool,
    /// Scores do not stay as they are.
    pub scored: bool,
    /// Tensors that no tensor map describes.
    pub unmapped: bool,
}

impl Features {
    pub fn of(problem: &Problem) -> Features {
        Features {
            packed: problem.packed().is_some(),
            sparse: problem.packed().is_some_and(|packed| {
                let lengths = || lengths(packed.queries());
                is_sparse(lengths().count() as u32, lengths().max().unwrap_or_default(), lengths().sum())
            }),
            documents: problem.documents(),
            sinks: problem.sinks(),
            scored: problem.score() != ScoreKind::Plain,
            unmapped: false,
        }
    }

    /// Whether kernels keep more in mind than others: where their sequence begins and ends, or who is in which document.
    pub const fn is_crowded(&self) -> bool {
        self.packed || self.documents
    }
}

/// Rows of a block, of most kernels to whom it matters.
const BLOCK_ROWS: u32 = 128;
/// So many places for each block that has something to do. Measured: with three, thirteen sequences of 44 to 4,096 rows are still faster in
/// blocks that stay. More is a model: 64 sequences of one query, all but one of which has 4,096, have 21.
const MOST_PLACES: u64 = 4;

/// Whether of packed sequences, so many with so many rows together, most blocks would have nothing to do.
pub fn is_sparse(sequences: u32, longest: u32, rows: u32) -> bool {
    let blocks = |rows: u32| u64::from(rows.div_ceil(BLOCK_ROWS));
    // The last block of a sequence may have few rows.
    u64::from(sequences) * blocks(longest) > MOST_PLACES * (blocks(rows) + u64::from(sequences))
}
