//! Why a silent mutant is as good as the kernel: which other synchronisation orders what it no longer orders.
//!
//! The detector is exact for the control flow that ran, so a mutant without findings has every conflicting pair ordered
//! by something else. What that is, shows when the other is silenced too: it is carried out as ever, so that nothing waits
//! for ever and everything happens in the same order, but the detector does not hear of it. A pair that conflicts where
//! both are silent, and does not where either speaks, is ordered by both.

use super::rewrite::{Mutant, mutants};
use super::trial::Trial;
use super::verdict::{Cause, Proof};
use crate::checks;
use crate::identity::Identity;
use launch::Kernel;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Other synchronisations that are asked one by one, the nearest first.
const MOST_ASKED: usize = 12;

/// A function of the module, and a statement of it.
pub(super) type Site = (usize, usize);

/// How often each pair of places conflicts.
pub(super) type Conflicts = BTreeMap<Identity, u64>;

/// Two lines.
type Pair = (u32, u32);

impl Trial<'_> {
    /// The proof for a mutant that no check minds, or what stands against one.
    pub(super) fn proof(&self, mutant: &Mutant) -> Result<Proof, Cause> {
        self.is_not_needed(mutant)?;
        let others = self.others(mutant);
        for other in others.iter().take(MOST_ASKED) {
            if let Some((first, second)) = self.shared(mutant, &[other.site()])? {
                return Ok(Proof::Path { by: other.line, text: other.text.clone(), first, second });
            }
        }
        let sites: Vec<Site> = others.iter().map(|other| other.site()).collect();
        let alike = others.iter().take_while(|other| !mutant.operator.is_other_half(other.operator)).count();
        let mut counts: Vec<usize> = (1..).map(|power| 1 << power).take_while(|count| *count < sites.len()).collect();
        counts.extend([alike, sites.len()]);
        counts.sort_unstable();
        for count in counts {
            if let Some((first, second)) = self.shared(mutant, &sites[..count])? {
                return Ok(Proof::Paths { first, second });
            }
        }
        Ok(Proof::NothingToOrder)
    }

    /// What shorter launches have proven, as far as it holds for these: lines that only they run may need the mutant's
    /// synchronisation, or be ordered by it among others. Who else orders what the shorter ones run is not asked again.
    pub(super) fn confirmed(&self, mutant: &Mutant, proof: Proof) -> Result<Proof, Cause> {
        self.is_not_needed(mutant)?;
        if proof != Proof::NothingToOrder {
            return Ok(proof);
        }
        let sites: Vec<Site> = self.others(mutant).iter().map(|other| other.site()).collect();
        let shared = self.shared(mutant, &sites)?;
        Ok(shared.map_or(proof, |(first, second)| Proof::Paths { first, second }))
    }

    fn is_not_needed(&self, mutant: &Mutant) -> Result<(), Cause> {
        match self.shared(mutant, &[])? {
            Some((first, second)) => Err(Cause::Needed { first, second }),
            None => Ok(()),
        }
    }

    /// The other synchronisations of the mutant's function, one for each statement: likely ones first, which are of the
    /// same kind, and near; the other halves of its own edges last.
    fn others(&self, mutant: &Mutant) -> Vec<Mutant> {
        let mut others = mutants(self.kernel, self.resolved());
        let mut seen = BTreeSet::from([mutant.site()]);
        others.retain(|one| one.function == mutant.function && one.operator.silences() && seen.insert(one.site()));
        let distance = |one: &Mutant| one.statement.abs_diff(mutant.statement);
        let other_half = |one: &Mutant| mutant.operator.is_other_half(one.operator);
        others.sort_by_key(|one| (other_half(one), one.operator != mutant.operator, distance(one)));
        others
    }

    /// Two lines that the mutant's synchronisation orders where these others order nothing.
    fn shared(&self, mutant: &Mutant, others: &[Site]) -> Result<Option<Pair>, Cause> {
        let before = self.conflicts(others)?;
        let after = match mutant.operator.deletes() {
            true => self.conflicts(&[others, &[mutant.site()]].concat())?,
            false => self.weakened(mutant, others)?,
        };
        // Where threads may come in another order, how often they meet tells nothing.
        let more = |(pair, count): &(&Identity, &u64)| {
            before.get(*pair).is_none_or(|known| mutant.operator.keeps_course() && count > &known)
        };
        Ok(after.iter().find(more).map(|(pair, _)| pair.lines()))
    }

    /// What the checks find in the kernel where these order nothing.
    fn conflicts(&self, silenced: &[Site]) -> Result<Arc<Conflicts>, Cause> {
        let mut silenced = silenced.to_vec();
        silenced.sort_unstable();
        if let Some(known) = self.experiments.lock().ok().and_then(|known| known.get(&silenced).cloned()) {
            return Ok(known);
        }
        let found = Arc::new(self.observed(self.kernel, silenced.clone())?);
        if let Ok(mut known) = self.experiments.lock() {
            known.insert(silenced, found.clone());
        }
        Ok(found)
    }

    /// What they find in the mutant where these order nothing.
    fn weakened(&self, mutant: &Mutant, silenced: &[Site]) -> Result<Arc<Conflicts>, Cause> {
        let changed = mutant.of(self.kernel);
        let length = |kernel: &Kernel| kernel.module().functions[mutant.function].body.len();
        // A change may have put an instruction before its own.
        let moved = length(&changed) - length(self.kernel);
        let place = |&(function, statement): &Site| match (function, statement) >= mutant.site() {
            true if function == mutant.function => (function, statement + moved),
            _ => (function, statement),
        };
        Ok(Arc::new(self.observed(&changed, silenced.iter().map(place).collect())?))
    }

    fn observed(&self, kernel: &Kernel, silenced: Vec<Site>) -> Result<Conflicts, Cause> {
        let run = self.glance(kernel, silenced).map_err(|error| Cause::Refused(error.to_string()))?;
        let ended = |check: &str| check != checks::deadlock::CHECK.name && check != checks::trap::CHECK.name;
        if run.findings.iter().any(|finding| !ended(finding.check) && self.is_new(finding)) {
            return Err(Cause::Undecided);
        }
        Ok(run.findings.iter().map(|finding| (Identity::of(finding), finding.count)).collect())
    }
}
