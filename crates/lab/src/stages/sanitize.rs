//! # sanitize
//!
//! The emulator runs each kernel under all its checks, once per seed: a seed decides the order of everything that no
//! rule orders. There must be no error. "No error" means nothing if nothing ran, so each run carries its witness: the
//! launches that were seen, and outputs that went from poison to the right answer. Poison differs between runs and the
//! bits of the outputs may not.

pub mod gpu;

use std::collections::BTreeSet;

use attention::oracle::Oracle;
use launch::Finding;
use launch::backend::Options;
use serde::{Deserialize, Serialize};

use super::{Log, Stage, counted};
use crate::case::Case;
use crate::figures::{Figure, Found, Seen, Subject};
use crate::guard::{Guard, Objection, Objections};
use crate::harness::{Emulated, Poison, Rig};
use crate::timeline::Timeline;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub kernels: Vec<Entry>,
    /// One block of the first kernel, to look at.
    pub timeline: Option<Timeline>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub subject: Subject,
    pub runs: Vec<Run>,
}

/// One run under one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub seed: u64,
    pub findings: Vec<Found>,
    pub seen: Seen,
    /// What the checks did not look at; nothing where nobody counted.
    pub unobserved: Option<Vec<String>>,
    /// How wrong the outputs are, in units of what is allowed.
    pub error: Figure,
}

/// What one seed showed, with the findings as the emulator words them.
pub(crate) fn run(case: &Case, data_seed: u64, seed: u64, budget: u64) -> Result<(Run, Vec<Finding>), String> {
    let poison = if seed.is_multiple_of(2) { Poison::Signalling } else { Poison::Plausible };
    let options = Options { seed, instruction_budget: budget, audit: true, ..Options::default() };
    examine(case, data_seed, seed, &Emulated { options, poison })
}

/// The same wherever it runs.
pub(crate) fn examine(case: &Case, data_seed: u64, seed: u64, rig: &dyn Rig) -> Result<(Run, Vec<Finding>), String> {
    let before = rig.memory(case, data_seed)?;
    let run = rig.execute(case, &case.kernel, &before)?;
    let error = error(case, &before, &run.memory).map_err(|error| error.to_string())?;
    let findings = run.findings.iter().map(Found::from).collect();
    let run_log = Run { seed, findings, seen: run.seen, unobserved: run.unobserved, error: Figure::new(error) };
    Ok((run_log, run.findings))
}

pub(super) fn error(case: &Case, before: &launch::Memory, after: &launch::Memory) -> Result<f64, attention::Error> {
    let inputs = case.read_inputs(before)?;
    let oracle = Oracle::new(&case.problem, &inputs)?;
    Ok(oracle.judge(&case.read_outputs(after, oracle.exact())?)?.ratio())
}

impl Run {
    fn objections(&self, name: &str) -> Vec<Objection> {
        let seed = self.seed;
        let errors: Vec<&Found> = self.findings.iter().filter(|found| found.is_error()).collect();
        let found = errors.first().map(|first| {
            let count = counted(errors.len(), "finding");
            Objection::fail(Guard::Findings, format!("{name}: {count} with seed {seed}: {first}"))
        });
        let unseen = self.seen.missing();
        let unseen = unseen.map(|what| Objection::not_run(Guard::Witness, format!("{name}: {what} with seed {seed}")));
        let offences = self.seen.offences().into_iter();
        let offences = offences.map(|(guard, what)| Objection::fail(guard, format!("{name}: {what} with seed {seed}")));
        let wrong = || Objection::fail(self.error.guard(), format!("{name}: the result is wrong with seed {seed}"));
        let wrong = (self.error.value() > 1.0).then(wrong);
        found.into_iter().chain(unseen).chain(self.blind(name)).chain(offences).chain(wrong).collect()
    }

    /// Why the checks may have overlooked something.
    fn blind(&self, name: &str) -> Option<Objection> {
        let why = match &self.unobserved {
            None => "nobody counted what the checks looked at".to_string(),
            Some(unobserved) => format!("the checks did not look at everything: {}", unobserved.first()?),
        };
        Some(Objection::not_run(Guard::Observed, format!("{name}: {why}, with seed {}", self.seed)))
    }
}

impl Entry {
    /// Run by run, and then whether those that went well left the same.
    fn objections(&self) -> Vec<Vec<Objection>> {
        let name = &self.subject.kernel;
        if self.runs.is_empty() {
            return vec![vec![Objection::not_run(Guard::Witness, "nothing was run")]];
        }
        let mut parts: Vec<Vec<Objection>> = self.runs.iter().map(|run| run.objections(name)).collect();
        let well = self.results().zip(&parts).filter(|(_, part)| part.is_empty());
        let results: BTreeSet<_> = well.map(|(result, _)| result).collect();
        let differ = || format!("{name}: different seeds give {} different results", results.len());
        parts.push((results.len() > 1).then(|| Objection::fail(Guard::BitEqual, differ())).into_iter().collect());
        parts
    }

    /// Which kernel wrote what, run by run.
    fn results(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.runs.iter().map(|run| (self.subject.kernel.as_str(), run.seen.results()))
    }
}

impl Log for Report {
    const STAGE: Stage = Stage::Sanitize;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn objections(&self) -> Objections {
        Objections::of_parts(self.kernels.iter().flat_map(Entry::objections))
    }

    fn figures(&self) -> String {
        let runs = self.kernels.iter().flat_map(|entry| &entry.runs);
        let (errors, others): (Vec<&Found>, Vec<&Found>) =
            runs.clone().flat_map(|run| &run.findings).partition(|found| found.is_error());
        let warnings =
            if others.is_empty() { String::new() } else { format!(", {}", counted(others.len(), "warning")) };
        let seeds = self.kernels.first().map_or(0, |entry| entry.runs.len());
        let results: BTreeSet<_> = self.kernels.iter().flat_map(Entry::results).collect();
        format!(
            "{} in {} of {} under {}{warnings}; {} to the bit",
            counted(errors.len(), "finding"),
            counted(runs.count(), "run"),
            counted(self.kernels.len(), "kernel"),
            counted(seeds, "seed"),
            counted(results.len(), "result"),
        )
    }
}
