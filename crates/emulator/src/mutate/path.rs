//! Why a silent mutant is as good as the kernel: which other synchronisation orders what it no longer orders.
//!
//! The detector is exact for the control flow that ran, so a mutant without findings has every conflicting pair ordered
//! by something else. What that is, shows when it is gone too: a pair that conflicts without both, and does not without
//! either, is ordered by both.

use super::operators::Change;
use super::rewrite::{Mutant, mutants, rewritten};
use super::trial::{Key, Trial, key};
use super::verdict::Proof;
use crate::checks;
use std::collections::BTreeSet;

/// Other synchronisations that are asked one by one, the nearest first.
const MOST_ASKED: usize = 12;

/// A synchronisation that can be taken away.
type Removal<'a> = (usize, usize, &'a Change);

impl Trial<'_> {
    /// The proof for a mutant that no check minds.
    pub(super) fn proof(&self, mutant: &Mutant) -> Proof {
        let all = mutants(self.kernel, self.resolved());
        let mut others: Vec<&Mutant> =
            all.iter().filter(|one| one.is_removal() && one.site() != mutant.site()).collect();
        others.retain(|one| one.function == mutant.function);
        // Likely ones first: of the same kind, and near.
        let distance = |one: &Mutant| one.statement.abs_diff(mutant.statement);
        others.sort_by_key(|one| (one.operator != mutant.operator, distance(one)));
        let alone = others.iter().take(MOST_ASKED).find_map(|other| {
            let (first, second) = self.ordered_by(mutant, &[other.removal()])?;
            Some(Proof::Path { by: other.line, text: other.text.clone(), first, second })
        });
        alone.unwrap_or_else(|| {
            let removals: Vec<Removal> = others.iter().map(|other| other.removal()).collect();
            match self.ordered_by(mutant, &removals) {
                Some((first, second)) => Proof::Paths { first, second },
                None => Proof::NothingToOrder,
            }
        })
    }

    /// Two lines that conflict only when the mutant's synchronisation and the others are gone together.
    fn ordered_by(&self, mutant: &Mutant, others: &[Removal]) -> Option<(u32, u32)> {
        let both: Vec<Removal> = others.iter().copied().chain([mutant.removal()]).collect();
        let found = self.conflicts(&both)?;
        let without_others = self.conflicts(others)?;
        let (_, _, first, second) = found.difference(&without_others).next()?;
        Some((first.0, second.0))
    }

    /// What the checks find without these; none if it cannot run.
    fn conflicts(&self, removals: &[Removal]) -> Option<BTreeSet<Key>> {
        let run = self.glance(&rewritten(self.kernel, removals)).ok()?;
        // Who waits for ever tells nothing of order.
        let ordered = run.findings.iter().filter(|finding| finding.check != checks::deadlock::CHECK.name);
        Some(ordered.map(key).collect())
    }
}

impl Mutant {
    /// Does it take its synchronisation away?
    fn is_removal(&self) -> bool {
        self.operator.deletes()
    }

    fn removal(&self) -> Removal<'_> {
        (self.function, self.statement, &self.change)
    }
}
