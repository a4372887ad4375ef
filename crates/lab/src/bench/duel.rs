//! One line of a bench: who won, of a kernel and a peer.

use crate::measure::Verdict;

/// A kernel against a peer at a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Duel {
    pub kernel: String,
    pub problem: String,
    pub peer: String,
    pub verdict: Verdict,
}

impl Duel {
    /// Is it of the same two, at the same problem?
    pub(crate) fn repeats(&self, other: &Duel) -> bool {
        (&self.kernel, &self.problem, &self.peer) == (&other.kernel, &other.problem, &other.peer)
    }
}
