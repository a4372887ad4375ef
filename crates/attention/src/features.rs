//! What a kernel is asked for beside Q·K, a mask, and P·V: not every family has everything.

use crate::Problem;
use crate::scoring::ScoreKind;

/// What is asked for. A caller may know more of it than a problem says: a score of the user's own, or sequences of which only the GPU
/// knows where they begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Sequences that lie one behind the other.
    pub packed: bool,
    /// Nobody has said how long the longest of them is, other than as long as all together.
    pub unbounded: bool,
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
            unbounded: false,
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
