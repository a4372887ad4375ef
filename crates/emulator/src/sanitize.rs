//! A kernel under several schedules: findings are the same whatever the schedule, wrong results may not be.

use crate::backend::{Emulator, Error};
use crate::checks::nondeterminism;
use crate::identity::Identity;
use launch::backend::{Backend, Options, Run};
use launch::finding::Severity;
use launch::{Finding, Kernel, Memory, Operands};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Schedules that the default runs: the four extremes, one at random, and one whose bytes land range by range.
pub const DEFAULT_SEEDS: u64 = 6;

/// What the schedules showed together.
#[derive(Debug, Clone)]
pub struct Sanitized {
    /// One for each pair of statements, with the seed that found it first.
    pub findings: Vec<Finding>,
    /// Each seed's run and what it left in memory.
    pub runs: Vec<(u64, Run, Memory)>,
}

impl Sanitized {
    /// What instructions moved under all schedules, if that was counted.
    pub fn operands(&self) -> Option<Operands> {
        let runs = self.runs.iter().filter_map(|(_, run, _)| run.operands.clone());
        runs.reduce(|mut all, run| {
            all.absorb(run);
            all
        })
    }
}

/// Runs the kernel once for each seed. `data_seed` fills the buffers, the same for every schedule.
pub fn sanitize(kernel: &Kernel, seeds: &[u64], data_seed: u64, options: &Options) -> Result<Sanitized, Error> {
    let with_seed = |seed: &u64| Options { seed: *seed, ..*options };
    sanitize_under(kernel, &seeds.iter().map(with_seed).collect::<Vec<_>>(), data_seed)
}

/// The same under schedules of any kind.
pub fn sanitize_under(kernel: &Kernel, schedules: &[Options], data_seed: u64) -> Result<Sanitized, Error> {
    let loaded = Emulator.load(kernel)?;
    let memory = Memory::new(loaded.resolved(), data_seed)?;
    let run = |options: &Options| {
        let mut memory = memory.clone();
        let run = Emulator.run(&mut Emulator.load(kernel)?, &mut memory, options)?;
        Ok((options.seed, run, memory))
    };
    let runs = schedules.par_iter().map(run).collect::<Result<Vec<_>, Error>>()?;
    let mut findings = merge(runs.iter().flat_map(|(_, run, _)| &run.findings));
    if findings.iter().all(|finding| finding.severity != Severity::Error) {
        let memories: Vec<&Memory> = runs.iter().map(|(_, _, memory)| memory).collect();
        findings.extend(nondeterminism::compare(kernel, schedules, &memories));
    }
    Ok(Sanitized { findings, runs })
}

/// Each finding once, whichever schedule showed it, as the gravest of them tells it.
pub(crate) fn merge<'a>(all: impl Iterator<Item = &'a Finding>) -> Vec<Finding> {
    let mut merged: BTreeMap<Identity, Finding> = BTreeMap::new();
    for finding in all {
        let known = merged.entry(Identity::of(finding)).or_insert(finding.clone());
        let count = known.count.max(finding.count);
        if finding.severity > known.severity {
            *known = finding.clone();
        }
        known.count = count;
    }
    merged.into_values().collect()
}
