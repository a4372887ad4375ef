//! A kernel whose mutants are judged: what it does itself, and what each mutant does differently.

use super::blind;
use super::rewrite::{Mutant, trapping};
use super::verdict::{Catch, Cause, Proof, Verdict};
use crate::backend::{Emulator, Error, Loaded};
use crate::checks::{self, Check};
use crate::machine::is_isolated;
use launch::backend::{Backend, Options, Precision, Run};
use launch::finding::Severity;
use launch::{Finding, Kernel, Memory, Resolved};
use ptx::{Instruction, Statement};
use std::collections::BTreeSet;

/// A mutant may run so many times as long as the kernel; then it does not end.
const PATIENCE: u64 = 2;
/// Instructions that even the shortest kernel's mutants may run.
const LEAST_BUDGET: u64 = 20_000;

/// Two places, with the check that speaks of them and how bad it finds them.
pub(super) type Key = (&'static str, Severity, (u32, u32), (u32, u32));

/// A kernel under trial.
pub struct Trial<'k> {
    pub(super) kernel: &'k Kernel,
    resolved: Resolved,
    memory: Memory,
    seeds: Vec<u64>,
    /// Instructions that a mutant may run, of a glance and of a whole launch.
    budgets: [u64; 2],
    /// What the kernel is blamed for without any mutation.
    known: BTreeSet<Key>,
    /// What the kernel leaves in memory, if that is the same under every schedule.
    result: Option<Memory>,
    /// Several clusters that can tell each other something.
    communicating: bool,
}

/// How much of the launches is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// One cluster of each, or all where clusters may wait for each other.
    Glance,
    Whole,
}

impl<'k> Trial<'k> {
    /// Runs the kernel itself under every schedule.
    pub fn new(kernel: &'k Kernel, seeds: u64, data_seed: u64) -> Result<Trial<'k>, Error> {
        let loaded = Emulator.load(kernel)?;
        let (resolved, seeds) = (loaded.resolved().clone(), (0..seeds).collect());
        let memory = Memory::new(&resolved, data_seed)?;
        let communicating = communicates(kernel, &resolved);
        let budgets = [Options::default().instruction_budget; 2];
        let (known, result) = (BTreeSet::new(), None);
        let mut trial = Trial { kernel, resolved, memory, seeds, budgets, known, result, communicating };
        trial.observe()?;
        Ok(trial)
    }

    /// What the recipe says in plain numbers.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    fn observe(&mut self) -> Result<(), Error> {
        let run = |seed: &u64, extent| self.run(self.kernel, *seed, extent, false);
        let glances = self.seeds.iter().map(|seed| run(seed, Extent::Glance)).collect::<Result<Vec<_>, _>>()?;
        let wholes =
            self.seeds_of_whole().iter().map(|seed| run(seed, Extent::Whole)).collect::<Result<Vec<_>, _>>()?;
        let findings = glances.iter().chain(&wholes).flat_map(|(run, _)| &run.findings);
        self.known = findings.map(key).collect();
        self.budgets = [&glances, &wholes].map(|runs| {
            let longest = runs.iter().map(|(run, _)| run.instructions).max().unwrap_or_default();
            (longest * PATIENCE).clamp(LEAST_BUDGET, Options::default().instruction_budget)
        });
        let same = wholes.windows(2).all(|pair| pair[0].1 == pair[1].1);
        self.result = wholes.into_iter().next().filter(|_| same).map(|(_, memory)| memory);
        Ok(())
    }

    /// Schedules of whole launches. Where clusters know nothing of each other, a schedule is one of each cluster alone: a
    /// glance shows what it changes, and all clusters need to run once.
    fn seeds_of_whole(&self) -> &[u64] {
        if self.communicating { &self.seeds } else { &self.seeds[..1] }
    }

    /// A hasty run ends at its first finding.
    fn run(&self, kernel: &Kernel, seed: u64, extent: Extent, hasty: bool) -> Result<(Run, Memory), Error> {
        let clusters = if extent == Extent::Glance && !self.communicating { 1 } else { u64::MAX };
        let instruction_budget = self.budgets[extent as usize];
        // Nobody compares what a glance computes.
        let precision = if extent == Extent::Glance { Precision::Fast } else { Precision::Exact };
        let options = Options { seed, instruction_budget, clusters, hasty, precision, ..Options::default() };
        let mut memory = self.memory.clone();
        let mut loaded = Loaded::prepared(kernel.clone(), self.resolved.clone());
        let run = Emulator.run(&mut loaded, &mut memory, &options)?;
        Ok((run, memory))
    }

    /// The cheapest run that shows most of what is wrong, all of it.
    pub(super) fn glance(&self, kernel: &Kernel) -> Result<Run, Error> {
        Ok(self.run(kernel, 0, Extent::Glance, false)?.0)
    }

    /// The verdict on one mutant.
    pub fn judge(&self, mutant: &Mutant) -> Verdict {
        if let Some(catch) = self.caught(&mutant.of(self.kernel)) {
            return Verdict::Caught(catch);
        }
        if !self.executes(mutant) {
            return Verdict::NotExecuted;
        }
        if mutant.operator.strengthens() {
            return Verdict::Equivalent(Proof::Stronger);
        }
        match self.instruction(mutant).and_then(|instruction| blind::spot(instruction)) {
            Some(what) => Verdict::Missed(Cause::Blind(what)),
            None => Verdict::Equivalent(self.proof(mutant)),
        }
    }

    /// Who notices, from the cheapest run to the most thorough.
    fn caught(&self, changed: &Kernel) -> Option<Catch> {
        let glance = |seed: &u64| self.noticed(changed, *seed, Extent::Glance);
        let whole = |seed: &u64| self.noticed(changed, *seed, Extent::Whole);
        let glances = if self.communicating { &[] } else { &self.seeds[..] };
        glances.iter().find_map(glance).or_else(|| self.seeds_of_whole().iter().find_map(whole))
    }

    fn noticed(&self, changed: &Kernel, seed: u64, extent: Extent) -> Option<Catch> {
        // Where the kernel itself is blamed for something, the first finding tells nothing.
        let hasty = self.known.is_empty();
        let (run, memory) = match self.run(changed, seed, extent, hasty) {
            Ok(ended) => ended,
            Err(error) => return Some(Catch::Refused(error.to_string())),
        };
        let new = |finding: &&Finding| finding.severity > Severity::Lint && !self.known.contains(&key(finding));
        let news = run.findings.iter().find(new).map(|finding| Catch::Finding(Box::new(finding.clone())));
        let wrong = || extent == Extent::Whole && self.is_wrong(&memory);
        news.or_else(|| wrong().then_some(Catch::WrongResult { seed }))
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
        let seen = |seed: &u64, extent| {
            self.run(&trapped, *seed, extent, self.known.is_empty()).is_ok_and(|(run, _)| traps(run))
        };
        seen(&0, Extent::Glance) || self.seeds_of_whole().iter().any(|seed| seen(seed, Extent::Whole))
    }

    fn instruction(&self, mutant: &Mutant) -> Option<&Instruction> {
        match &self.kernel.module().functions[mutant.function].body[mutant.statement] {
            Statement::Instruction(instruction) => Some(instruction),
            _ => None,
        }
    }
}

/// Can clusters of a launch tell each other anything?
fn communicates(kernel: &Kernel, resolved: &Resolved) -> bool {
    let bodies = kernel.module().functions.iter().flat_map(|function| &function.body);
    let cluster = |launch: &launch::resolved::Launch| {
        let required = || kernel.entry(launch).ok().and_then(checks::launch::required_cluster);
        launch.cluster.or_else(required).unwrap_or([1; 3]).iter().product::<u32>()
    };
    let several = |launch: &launch::resolved::Launch| launch.grid.iter().product::<u32>() > cluster(launch);
    !is_isolated(bodies) && resolved.launches.iter().any(several)
}

/// What makes two findings of different runs the same.
pub(super) fn key(finding: &Finding) -> Key {
    let by_second = Check::find(finding.check).is_some_and(|check| check.by_second);
    let (first, second) = (if by_second { finding.primary() } else { &finding.first }, finding.primary());
    let (first, second) = ((first.line, first.column), (second.line, second.column));
    (finding.check, finding.severity, first.min(second), first.max(second))
}
