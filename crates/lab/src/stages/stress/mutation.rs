//! Injected faults: each synchronisation taken away or weakened in turn, as `veriflash mutate` does.
//!
//! No assembler is asked for proofs here: verdicts are the same on every machine.

use std::fmt;

use emulator::mutate::{self, Mutant, Trial};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Settings;
use crate::case::Case;
use crate::guard::{Guard, Objection};

/// Of the mutants that make a difference, the share that must be caught.
const LEAST_SCORE: f64 = 0.99;
/// So many mutants are tried of a kernel however long it runs, if it has them.
const LEAST_MUTANTS: u64 = 8;

/// The mutants of one module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutation {
    pub module: String,
    /// The kernels whose launches judge it: their recipes run the same module.
    pub witnesses: Vec<String>,
    /// How many mutants there are.
    pub mutants: usize,
    /// Those that the budget allows, spread evenly over the text.
    pub tried: Vec<Mutated>,
}

/// What became of one mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutated {
    pub operator: String,
    pub line: u32,
    pub text: String,
    pub verdict: Verdict,
    /// Who caught it, what proves that it makes no difference, or why nobody noticed.
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Caught,
    Equivalent,
    NotExecuted,
    Missed,
}

/// The cases of each module, in the order of the first of each.
pub(crate) fn by_module(cases: &[Case]) -> Vec<(String, Vec<&Case>)> {
    let mut groups: Vec<(String, Vec<&Case>)> = Vec::new();
    for case in cases {
        let module = case.kernel.hash();
        match groups.iter_mut().find(|(known, _)| *known == module) {
            Some((_, group)) => group.push(case),
            None => groups.push((module, vec![case])),
        }
    }
    groups
}

/// Judges the mutants of one module; nothing if `interrupted` says so in between.
pub(crate) fn mutate(
    module: String,
    cases: &[&Case],
    settings: &Settings,
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Mutation>, String> {
    let trials = cases.iter().map(|case| Trial::new(&case.kernel, settings.seeds.len() as u64, settings.data_seed));
    let trials = trials.collect::<Result<Vec<Trial>, _>>().map_err(|error| error.to_string())?;
    let all = mutate::assigned(&trials);
    let length = trials.iter().map(Trial::length).min().unwrap_or_default().max(1);
    let most = (settings.mutation_budget / length).max(LEAST_MUTANTS) as usize;
    let (mutants, tried) = (all.len(), all.len().min(most));
    let chosen: Vec<_> = (0..tried).map(|index| &all[index * mutants / tried]).collect();
    let judge = |(mutant, trials): &&(Mutant, Vec<&Trial>)| {
        (!interrupted()).then(|| Mutated::new(mutant, mutate::judge(mutant, trials)))
    };
    let tried: Option<Vec<Mutated>> = chosen.par_iter().map(judge).collect();
    let witnesses = cases.iter().map(|case| case.name.clone()).collect();
    Ok(tried.map(|tried| Mutation { module, witnesses, mutants, tried }))
}

impl Mutated {
    fn new(mutant: &Mutant, verdict: mutate::Verdict) -> Mutated {
        let (verdict, why) = match verdict {
            mutate::Verdict::Caught(catch) => (Verdict::Caught, catch.by().to_string()),
            mutate::Verdict::Equivalent(proof) => (Verdict::Equivalent, proof.to_string()),
            mutate::Verdict::NotExecuted => (Verdict::NotExecuted, String::new()),
            mutate::Verdict::Missed(cause) => (Verdict::Missed, cause.to_string()),
        };
        let (operator, text) = (mutant.operator.name().into(), mutant.text.clone());
        Mutated { operator, line: mutant.line, text, verdict, why }
    }
}

impl fmt::Display for Mutated {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "line {}, {}: `{}` ({})", self.line, self.operator, self.text, self.why)
    }
}

impl Mutation {
    fn count(&self, verdict: Verdict) -> usize {
        self.tried.iter().filter(|one| one.verdict == verdict).count()
    }

    fn name(&self) -> &str {
        self.witnesses.first().map_or("a kernel", String::as_str)
    }

    fn missed(&self) -> impl Iterator<Item = &Mutated> {
        self.tried.iter().filter(|one| one.verdict == Verdict::Missed)
    }

    /// Nothing may go unnoticed; a kernel that nothing synchronises has nothing to notice.
    pub(super) fn objection(&self) -> Option<Objection> {
        let (caught, missed) = (self.count(Verdict::Caught), self.count(Verdict::Missed));
        if self.mutants > 0 && self.count(Verdict::NotExecuted) == self.tried.len() {
            let why = format!("{}: no injected fault was executed", self.name());
            return Some(Objection::not_run(Guard::Mutation, why));
        }
        if missed == 0 || (caught as f64) >= LEAST_SCORE * (caught + missed) as f64 {
            return None;
        }
        let missed: Vec<String> = self.missed().map(Mutated::to_string).collect();
        let (name, of, missed) = (self.name(), caught + missed.len(), missed.join("; "));
        let why = format!("{name}: {caught} of {of} injected faults caught; missed: {missed}");
        Some(Objection::fail(Guard::Mutation, why))
    }
}

/// All modules in one sentence, with every mutant that was missed.
pub(super) fn figures(mutations: &[Mutation]) -> String {
    let count = |verdict| mutations.iter().map(|one| one.count(verdict)).sum::<usize>();
    let (caught, missed) = (count(Verdict::Caught), count(Verdict::Missed));
    let skipped = match count(Verdict::NotExecuted) {
        0 => String::new(),
        many => format!(", {many} not executed"),
    };
    let untried: usize = mutations.iter().map(|one| one.mutants.saturating_sub(one.tried.len())).sum();
    let untried = if untried == 0 { String::new() } else { format!(", {untried} not tried") };
    let list =
        |one: &Mutation| one.missed().map(|mutant| format!("; missed: {} {mutant}", one.name())).collect::<String>();
    let list: String = mutations.iter().map(list).collect();
    let equivalent = count(Verdict::Equivalent);
    format!("{caught} of {} injected faults caught, {equivalent} equivalent{skipped}{untried}{list}", caught + missed)
}
