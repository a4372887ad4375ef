//! A kernel whose mutants are judged: what it does itself, and what each mutant does differently.

use super::path::{Conflicts, Site};
use super::results::{Results, is_same, may_vary};
use super::rewrite::{Mutant, trapping};
use super::verdict::{Catch, Verdict};
use super::witnesses;
use crate::backend::{Emulator, Error, Loaded};
use crate::checks;
use crate::identity::Identity;
use crate::machine::is_isolated;
use crate::sanitize::merge;
use launch::backend::{Backend, Options, Precision, Run};
use launch::finding::Severity;
use launch::{Finding, Kernel, Memory, Resolved};
use ptx::{Instruction, Statement};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A mutant may run so many times as long as the kernel; then it does not end.
const PATIENCE: u64 = 2;
/// Instructions that even the shortest kernel's mutants may run.
const LEAST_BUDGET: u64 = 20_000;

/// A kernel under trial.
pub struct Trial<'k> {
    pub(super) kernel: &'k Kernel,
    resolved: Resolved,
    memory: Memory,
    seeds: Vec<u64>,
    /// Instructions that a mutant may run, of a glance and of a whole launch.
    budgets: [u64; 2],
    /// Instructions that the kernel itself runs.
    length: u64,
    /// What the kernel is blamed for without any mutation.
    known: BTreeMap<Identity, Finding>,
    /// How many faults that is in one cluster, at most: a mutant with more has one of its own.
    own_faults: u64,
    results: Option<Results>,
    /// Arrivals of the kernel at mbarriers whose phase does not end, of a glance and of a whole launch; none if that depends
    /// on the schedule.
    strays: [Option<u64>; 2],
    /// Several clusters that can tell each other something.
    communicating: bool,
    /// What was found in the kernel where some synchronisations order nothing, so that nobody asks twice.
    pub(super) experiments: Mutex<BTreeMap<Vec<Site>, Arc<Conflicts>>>,
}

/// How much of the launches is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// One cluster of each, or all where clusters may wait for each other, or a launch read what all of an earlier one wrote.
    Glance,
    Whole,
}

/// What a mutant's runs showed.
pub(super) enum Tried {
    Caught(Catch),
    /// Nothing; but are mbarriers left with other arrivals in an open phase than the kernel leaves there?
    Silent {
        strays: bool,
    },
}

impl<'k> Trial<'k> {
    /// Runs the kernel itself under every schedule.
    pub fn new(kernel: &'k Kernel, seeds: u64, data_seed: u64) -> Result<Trial<'k>, Error> {
        let loaded = Emulator.load(kernel)?;
        let (resolved, seeds) = (loaded.resolved().clone(), (0..seeds).collect());
        let memory = Memory::new(&resolved, data_seed)?;
        let communicating = communicates(kernel, &resolved);
        let budgets = [Options::default().instruction_budget; 2];
        let (known, own_faults, results, experiments) = (BTreeMap::new(), 0, None, Mutex::default());
        let mut trial = Trial {
            kernel,
            resolved,
            memory,
            seeds,
            budgets,
            length: 0,
            known,
            own_faults,
            results,
            strays: [None; 2],
            communicating,
            experiments,
        };
        trial.observe()?;
        Ok(trial)
    }

    /// What the recipe says in plain numbers.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// Instructions that its launches execute.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Does the kernel itself run to its end?
    pub(super) fn ends(&self) -> bool {
        let stuck = [checks::deadlock::CHECK.name, checks::trap::CHECK.name];
        self.known.values().all(|finding| !stuck.contains(&finding.check))
    }

    /// What the kernel is blamed for itself: mutants are judged by what is new.
    pub fn own_findings(&self) -> impl Iterator<Item = &Finding> {
        self.known.values()
    }

    /// Which results of the kernel are not what its recipe expects.
    pub fn own_failures(&self) -> Vec<String> {
        self.results.iter().flat_map(Results::failures).collect()
    }

    fn observe(&mut self) -> Result<(), Error> {
        let run = |seeds: &[u64], extent| {
            let run = |seed: &u64| self.run(self.prepared(self.kernel), *seed, extent, u64::MAX);
            seeds.par_iter().map(run).collect::<Result<Vec<_>, _>>()
        };
        let glances = run(&self.seeds, Extent::Glance)?;
        // Without races and without atomics, one schedule shows the results of all; with races whose outcome no schedule
        // of a glance changes, two opposite ones.
        let clean = glances.iter().all(|(run, _)| run.findings.is_empty());
        let alike = || !self.communicating && glances.iter().all(|(_, memory)| is_same(memory, &glances[0].1));
        let seeds = match may_vary(self.kernel) {
            false if clean => self.seeds_of_whole(),
            false if alike() => &self.seeds[..self.seeds.len().min(2)],
            _ => &self.seeds,
        };
        let wholes = run(seeds, Extent::Whole)?;
        let findings = glances.iter().chain(&wholes).flat_map(|(run, _)| &run.findings);
        self.known = merge(findings).into_iter().map(|finding| (Identity::of(&finding), finding)).collect();
        self.own_faults = glances.iter().chain(&wholes).map(|(run, _)| run.faults).max().unwrap_or_default();
        self.budgets = [&glances, &wholes].map(|runs| {
            let longest = runs.iter().map(|(run, _)| run.instructions).max().unwrap_or_default();
            (longest * PATIENCE).clamp(LEAST_BUDGET, Options::default().instruction_budget)
        });
        self.length = wholes.iter().map(|(run, _)| run.instructions).max().unwrap_or_default();
        self.strays = [&glances, &wholes].map(|runs| {
            let first = runs.first()?.0.stray_arrivals;
            runs.iter().all(|(run, _)| run.stray_arrivals == first).then_some(first)
        });
        let left = wholes.into_iter().map(|(_, memory)| memory).collect();
        self.results = Results::new(self.kernel, &self.resolved, left);
        Ok(())
    }

    /// Schedules of whole launches. Where clusters know nothing of each other, a schedule is one of each cluster alone: a
    /// glance shows what it changes, and all clusters need to run once.
    fn seeds_of_whole(&self) -> &[u64] {
        if self.communicating { &self.seeds } else { &self.seeds[..1] }
    }

    fn prepared(&self, kernel: &Kernel) -> Loaded {
        Loaded::prepared(kernel.clone(), self.resolved.clone())
    }

    /// Ends soon after a cluster has more faults than the limit.
    fn run(&self, mut loaded: Loaded, seed: u64, extent: Extent, fault_limit: u64) -> Result<(Run, Memory), Error> {
        let alone = !self.communicating && self.resolved.launches.len() == 1;
        let clusters = if extent == Extent::Glance && alone { 1 } else { u64::MAX };
        let instruction_budget = self.budgets[extent as usize];
        // Of what a glance computes only whether schedules agree is asked.
        let precision = if extent == Extent::Glance { Precision::Fast } else { Precision::Exact };
        let options = Options { seed, instruction_budget, clusters, fault_limit, precision, ..Options::default() };
        let mut memory = self.memory.clone();
        let run = Emulator.run(&mut loaded, &mut memory, &options)?;
        Ok((run, memory))
    }

    /// The cheapest run that shows most of what is wrong, all of it, where some synchronisations order nothing.
    pub(super) fn glance(&self, kernel: &Kernel, silenced: Vec<Site>) -> Result<Run, Error> {
        Ok(self.run(self.prepared(kernel).silenced(silenced), 0, Extent::Glance, u64::MAX)?.0)
    }

    /// Is the kernel itself not blamed for this, or less?
    pub(super) fn is_new(&self, finding: &Finding) -> bool {
        self.known.get(&Identity::of(finding)).is_none_or(|known| finding.severity > known.severity)
    }

    /// The verdict on one mutant, where these launches are all there are.
    pub fn judge(&self, mutant: &Mutant) -> Verdict {
        witnesses::judge(mutant, &[self])
    }

    /// Who notices, from the cheapest run to the most thorough.
    pub(super) fn tried(&self, mutant: &Mutant) -> Result<Tried, Error> {
        let changed = mutant.of(self.kernel);
        let glances = if self.communicating { &[] } else { &self.seeds[..] };
        let glances = glances.iter().map(|seed| (*seed, Extent::Glance));
        let wholes = self.seeds_of_whole().iter().map(|seed| (*seed, Extent::Whole));
        let mut strays = false;
        for (seed, extent) in glances.chain(wholes) {
            match self.tried_once(&changed, seed, extent)? {
                Tried::Silent { strays: now } => strays |= now,
                caught => return Ok(caught),
            }
        }
        Ok(Tried::Silent { strays })
    }

    fn tried_once(&self, changed: &Kernel, seed: u64, extent: Extent) -> Result<Tried, Error> {
        let new = |finding: &&Finding| finding.severity > Severity::Lint && self.is_new(finding);
        let news = |run: &Run| run.findings.iter().find(new).cloned();
        let (mut run, mut memory) = self.run(self.prepared(changed), seed, extent, self.own_faults)?;
        if run.faults > self.own_faults && news(&run).is_none() {
            // It ended early over faults that differ only in who came first.
            (run, memory) = self.run(self.prepared(changed), seed, extent, u64::MAX)?;
        }
        let news = news(&run).map(|finding| Catch::Finding(Box::new(finding)));
        let differ = |results: &Results| results.differ(&memory, &self.resolved);
        let wrong = || extent == Extent::Whole && self.results.as_ref().is_some_and(differ);
        let catch = news.or_else(|| wrong().then_some(Catch::WrongResult { seed }));
        let strays = self.strays[extent as usize].is_some_and(|own| run.stray_arrivals != own);
        Ok(catch.map_or(Tried::Silent { strays }, Tried::Caught))
    }

    /// Does any thread run the statement, under any schedule? A trap in its place tells.
    pub(super) fn executes(&self, mutant: &Mutant) -> bool {
        let trapped = trapping(self.kernel, mutant.site());
        let name = checks::trap::CHECK.name;
        let traps = |run: Run| run.findings.iter().any(|one| one.check == name && one.primary().line == mutant.line);
        let seen = |seed: &u64, extent| {
            self.run(self.prepared(&trapped), *seed, extent, self.own_faults).is_ok_and(|(run, _)| traps(run))
        };
        seen(&0, Extent::Glance) || self.seeds_of_whole().iter().any(|seed| seen(seed, Extent::Whole))
    }

    pub(super) fn instruction(&self, mutant: &Mutant) -> Option<&Instruction> {
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
