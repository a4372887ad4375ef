//! The launches of one kernel together: whoever notices has noticed, and nobody vouches for what another missed.

use super::blind;
use super::rewrite::{Mutant, mutants};
use super::trial::{Trial, Tried};
use super::verdict::{Cause, Proof, Verdict};
use std::collections::BTreeMap;

/// Every mutant of one module in the order of its text, with the launches that may run it, from the shortest to the longest.
pub fn assigned<'t, 'k>(trials: &'t [Trial<'k>]) -> Vec<(Mutant, Vec<&'t Trial<'k>>)> {
    let mut by_length: Vec<&Trial> = trials.iter().collect();
    by_length.sort_by_key(|trial| trial.length());
    let mut all = BTreeMap::new();
    for trial in by_length {
        for mutant in mutants(trial.kernel, trial.resolved()) {
            let (_, tried) = all.entry(mutant.key()).or_insert((mutant, vec![]));
            tried.push(trial);
        }
    }
    all.into_values().collect()
}

/// The verdict on a mutant, over launches from the shortest to the longest: a longer one runs only where the shorter ones
/// show nothing.
pub fn judge(mutant: &Mutant, witnesses: &[&Trial]) -> Verdict {
    // What stands behind a wait that never ends, or behind a trap, is not judged by any run.
    if !witnesses.iter().all(|trial| trial.ends()) {
        return Verdict::Missed(Cause::Undecided);
    }
    let (mut strays, mut refused) = (false, None);
    for trial in witnesses {
        match trial.tried(mutant) {
            Ok(Tried::Caught(catch)) => return Verdict::Caught(catch),
            Ok(Tried::Silent { strays: here }) => strays |= here,
            Err(error) => refused = Some(error.to_string()),
        }
    }
    if let Some(why) = refused {
        return Verdict::Missed(Cause::Refused(why));
    }
    let reached: Vec<&Trial> = witnesses.iter().filter(|trial| trial.executes(mutant)).copied().collect();
    let Some((shortest, longer)) = reached.split_first() else { return Verdict::NotExecuted };
    if strays && mutant.operator.miscounts() {
        return Verdict::Missed(Cause::Strays);
    }
    if mutant.operator.strengthens() {
        return Verdict::Equivalent(Proof::Stronger);
    }
    if let Some(what) = shortest.instruction(mutant).and_then(blind::spot) {
        return Verdict::Missed(Cause::Blind(what));
    }
    let proof = shortest.proof(mutant);
    let proof = longer.iter().fold(proof, |proof, trial| trial.confirmed(mutant, proof?));
    proof.map_or_else(Verdict::Missed, Verdict::Equivalent)
}
