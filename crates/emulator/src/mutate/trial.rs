//! A kernel whose mutants are judged: what it does itself, and what each mutant does differently.

use super::blind::{self, Surroundings};
use super::rewrite::{Mutant, trapping};
use super::verdict::{Catch, Cause, Verdict};
use crate::backend::{Emulator, Error, Loaded};
use crate::checks::{self, Check};
use crate::machine::is_isolated;
use launch::backend::{Backend, Options, Run};
use launch::{Finding, Kernel, Memory, Resolved};
use ptx::{Instruction, Statement};
use std::collections::BTreeSet;

/// A mutant may run so many times as long as the kernel; then it does not end.
const PATIENCE: u64 = 4;
/// Instructions that even the shortest kernel's mutants may run.
const LEAST_BUDGET: u64 = 100_000;

/// Two places, with the check that speaks of them.
pub(super) type Key = (&'static str, (u32, u32), (u32, u32));

/// A kernel under trial.
pub struct Trial<'k> {
    pub(super) kernel: &'k Kernel,
    resolved: Resolved,
    memory: Memory,
    seeds: Vec<u64>,
    budget: u64,
    /// What the kernel is blamed for without any mutation.
    known: BTreeSet<Key>,
    /// What the kernel leaves in memory, if that is the same under every schedule.
    result: Option<Memory>,
    /// One cluster alone behaves as it does among others.
    representative: bool,
    around: Surroundings,
}

impl<'k> Trial<'k> {
    /// Runs the kernel itself under every schedule.
    pub fn new(kernel: &'k Kernel, seeds: u64, data_seed: u64) -> Result<Trial<'k>, Error> {
        let loaded = Emulator.load(kernel)?;
        let (resolved, seeds) = (loaded.resolved().clone(), (0..seeds).collect());
        let memory = Memory::new(&resolved, data_seed)?;
        let around = surroundings(kernel, &resolved);
        let budget = Options::default().instruction_budget;
        let (known, representative) = (BTreeSet::new(), !around.communicating);
        let mut trial = Trial { kernel, resolved, memory, seeds, budget, known, result: None, representative, around };
        trial.observe()?;
        Ok(trial)
    }

    /// What the recipe says in plain numbers.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    fn observe(&mut self) -> Result<(), Error> {
        let all =
            self.seeds.iter().map(|seed| self.run(self.kernel, *seed, u64::MAX)).collect::<Result<Vec<_>, _>>()?;
        self.known = all.iter().flat_map(|(run, _)| run.findings.iter().map(key)).collect();
        let longest = all.iter().map(|(run, _)| run.instructions).max().unwrap_or_default();
        self.budget = (longest * PATIENCE).max(LEAST_BUDGET).min(self.budget);
        let same = all.windows(2).all(|pair| pair[0].1 == pair[1].1);
        self.result = all.into_iter().next().filter(|_| same).map(|(_, memory)| memory);
        Ok(())
    }

    /// So many clusters of each launch, under one schedule.
    fn run(&self, kernel: &Kernel, seed: u64, clusters: u64) -> Result<(Run, Memory), Error> {
        let options = Options { seed, instruction_budget: self.budget, clusters, ..Options::default() };
        let mut memory = self.memory.clone();
        let mut loaded = Loaded::prepared(kernel.clone(), self.resolved.clone());
        let run = Emulator.run(&mut loaded, &mut memory, &options)?;
        Ok((run, memory))
    }

    /// The cheapest run that shows most of what is wrong: one cluster, or all where clusters need each other.
    pub(super) fn glance(&self, kernel: &Kernel) -> Result<Run, Error> {
        let clusters = if self.representative { 1 } else { u64::MAX };
        Ok(self.run(kernel, 0, clusters)?.0)
    }

    /// The verdict on one mutant.
    pub fn judge(&self, mutant: &Mutant) -> Verdict {
        if let Some(catch) = self.caught(&mutant.of(self.kernel)) {
            return Verdict::Caught(catch);
        }
        if !self.executes(mutant) {
            return Verdict::NotExecuted;
        }
        match self.instruction(mutant).and_then(|instruction| blind::spot(instruction, self.around)) {
            Some(what) => Verdict::Missed(Cause::Blind(what)),
            None => Verdict::Equivalent(self.proof(mutant)),
        }
    }

    /// Who notices, from the cheapest run to the most thorough.
    fn caught(&self, changed: &Kernel) -> Option<Catch> {
        if self.representative
            && let Some(catch) = self.noticed(changed, 0, 1)
        {
            return Some(catch);
        }
        self.seeds.iter().find_map(|seed| self.noticed(changed, *seed, u64::MAX))
    }

    fn noticed(&self, changed: &Kernel, seed: u64, clusters: u64) -> Option<Catch> {
        let (run, memory) = match self.run(changed, seed, clusters) {
            Ok(ended) => ended,
            Err(error) => return Some(Catch::Refused(error.to_string())),
        };
        let news = run.findings.iter().find(|finding| !self.known.contains(&key(finding)));
        let whole = clusters == u64::MAX;
        news.map(catch).or_else(|| (whole && self.is_wrong(&memory)).then_some(Catch::WrongResult { seed }))
    }

    /// Results that are the same under every schedule must stay the same to the bit; others must be as expected.
    fn is_wrong(&self, memory: &Memory) -> bool {
        match &self.result {
            Some(result) => result != memory,
            None => !memory.failures(&self.resolved).is_empty(),
        }
    }

    /// Does any thread run the statement, under any schedule? A trap in its place tells.
    fn executes(&self, mutant: &Mutant) -> bool {
        let trapped = trapping(self.kernel, mutant.site());
        let name = checks::trap::CHECK.name;
        let traps = |run: Run| run.findings.iter().any(|one| one.check == name && one.primary().line == mutant.line);
        self.seeds.iter().any(|seed| self.run(&trapped, *seed, u64::MAX).is_ok_and(|(run, _)| traps(run)))
    }

    fn instruction(&self, mutant: &Mutant) -> Option<&Instruction> {
        match &self.kernel.module().functions[mutant.function].body[mutant.statement] {
            Statement::Instruction(instruction) => Some(instruction),
            _ => None,
        }
    }
}

fn surroundings(kernel: &Kernel, resolved: &Resolved) -> Surroundings {
    let bodies = kernel.module().functions.iter().flat_map(|function| &function.body);
    let cluster = |launch: &launch::resolved::Launch| {
        let required = || kernel.entry(launch).ok().and_then(checks::launch::required_cluster);
        launch.cluster.or_else(required).unwrap_or([1; 3]).iter().product::<u32>()
    };
    let several = |launch: &launch::resolved::Launch| launch.grid.iter().product::<u32>() > cluster(launch);
    Surroundings {
        communicating: !is_isolated(bodies) && resolved.launches.iter().any(several),
        clustered: resolved.launches.iter().any(|launch| cluster(launch) > 1),
    }
}

/// What makes two findings of different runs the same.
pub(super) fn key(finding: &Finding) -> Key {
    let by_second = Check::find(finding.check).is_some_and(|check| check.by_second);
    let (first, second) = (if by_second { finding.primary() } else { &finding.first }, finding.primary());
    let (first, second) = ((first.line, first.column), (second.line, second.column));
    (finding.check, first.min(second), first.max(second))
}

fn catch(finding: &Finding) -> Catch {
    let (check, line, seed) = (finding.check, finding.primary().line, finding.seed);
    Catch::Finding { check, line, message: finding.message.clone(), seed }
}
