//! # stress
//!
//! Without a GPU: the emulator launches each kernel under every policy of its adversary and several seeds. Each schedule
//! calls it three times on the same buffers, once alone and then twice in a row, so that what a call leaves behind meets
//! the next one. No call may die, and all must leave the same bits.
//!
//! Whether anybody would notice a fault is asked in the same run: each synchronisation of the kernel is taken away or
//! weakened in turn, and at least 99 % of those that make a difference must be caught.

mod delays;
pub mod gpu;
mod launches;
mod mutation;

use std::collections::{BTreeMap, BTreeSet};

use launch::Policy;
use serde::{Deserialize, Serialize};

use super::{Log, Stage, counted};
use crate::case::Case;
use crate::figures::{Figure, Found, Seen, Subject};
use crate::guard::{Guard, Objection, Objections};

use launches::entry;
pub(crate) use launches::{Schedule, schedules, shown};
pub use mutation::{Mutated, Mutation, Verdict};
pub(crate) use mutation::{by_module, mutate};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub kernels: Vec<Entry>,
    /// One for each module that all its launches ran well.
    pub mutations: Vec<Mutation>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub subject: Subject,
    /// What calls showed; those that showed the same stand together.
    pub shown: Vec<Shown>,
}

/// What some calls showed, all the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    pub turn: Turn,
    /// Seeds by policy.
    pub schedules: BTreeMap<String, Vec<u64>>,
    pub findings: Vec<Found>,
    pub seen: Seen,
    /// How wrong the outputs are, in units of what is allowed.
    pub error: Figure,
}

/// Which calls of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turn {
    /// One call on fresh buffers.
    First,
    /// Two more in a row, on what the first left; only outputs are poisoned in between.
    Again,
}

impl Turn {
    const ALL: [Turn; 2] = [Turn::First, Turn::Again];

    fn describe(self) -> &'static str {
        match self {
            Turn::First => "in its first call",
            Turn::Again => "called again on the same buffers",
        }
    }

    /// Who objects to what a call did: in the first one, the check itself.
    fn guard(self, check: Guard) -> Guard {
        match self {
            Turn::First => check,
            Turn::Again => Guard::LaterCalls,
        }
    }
}

impl Shown {
    fn objections(&self, name: &str) -> Vec<Objection> {
        let schedule = self.schedules.iter().find_map(|(policy, seeds)| Some((policy, seeds.first()?)));
        let Some((policy, seed)) = schedule else {
            return vec![Objection::not_run(Guard::Schedules, format!("{name}: a result of no schedule"))];
        };
        let place = format!("{} with policy {policy}, seed {seed}", self.turn.describe());
        let fail = |guard: Guard, why: String| Objection::fail(self.turn.guard(guard), format!("{name}: {why}"));
        let found = self.findings.iter().find(|found| found.is_error());
        let found = found.map(|found| fail(Guard::Findings, format!("{place}: {found}")));
        let unseen = self.seen.missing();
        let unseen = unseen.map(|what| Objection::not_run(Guard::Witness, format!("{name}: {what} {place}")));
        let offences = self.seen.offences().into_iter().map(|(guard, what)| fail(guard, format!("{what} {place}")));
        let wrong = self.error.value() > 1.0;
        let wrong = wrong.then(|| fail(self.error.guard(), format!("the result is wrong {place}")));
        found.into_iter().chain(unseen).chain(offences).chain(wrong).collect()
    }
}

impl Entry {
    /// Call by call, then whether those that went well left the same, and whether all were made.
    fn objections(&self) -> Vec<Vec<Objection>> {
        let name = &self.subject.kernel;
        let mut parts: Vec<Vec<Objection>> = self.shown.iter().map(|shown| shown.objections(name)).collect();
        let well = self.shown.iter().zip(&parts).filter(|(_, part)| part.is_empty());
        let results: BTreeSet<_> = well.map(|(shown, _)| shown.seen.results()).collect();
        let differ = || format!("{name}: calls under different schedules leave {} different results", results.len());
        let differ = (results.len() > 1).then(|| Objection::fail(Guard::BitEqual, differ()));
        let missing = self.missing().map(|what| Objection::not_run(Guard::Schedules, format!("{name}: {what}")));
        parts.push(differ.into_iter().collect());
        parts.push(missing.into_iter().collect());
        parts
    }

    /// Every result to the bit.
    fn results(&self) -> BTreeSet<Vec<&str>> {
        self.shown.iter().map(|shown| shown.seen.results()).collect()
    }

    /// Was every policy run with so many seeds, in both turns?
    pub(crate) fn has_rounds(&self, rounds: u64) -> bool {
        self.missing().is_none() && self.seeds(Policy::ALL[0], Turn::First) == (0..rounds).collect::<Vec<_>>()
    }

    /// The seeds of a policy in a turn, in order.
    fn seeds(&self, policy: Policy, turn: Turn) -> Vec<u64> {
        let shown = self.shown.iter().filter(|shown| shown.turn == turn);
        let mut seeds: Vec<u64> =
            shown.filter_map(|shown| shown.schedules.get(policy.name())).flatten().copied().collect();
        seeds.sort_unstable();
        seeds
    }

    /// A schedule that lacks: every policy has the same seeds in each turn.
    fn missing(&self) -> Option<String> {
        let seeds = self.seeds(Policy::ALL[0], Turn::First);
        let every = Policy::ALL.into_iter().flat_map(|policy| Turn::ALL.map(|turn| (policy, turn)));
        let lacks = |(policy, turn): &(Policy, Turn)| seeds.is_empty() || self.seeds(*policy, *turn) != seeds;
        let (policy, turn) = every.into_iter().find(lacks)?;
        Some(format!("not every seed was run {} with policy {policy}", turn.describe()))
    }

    fn is_clean(&self) -> bool {
        self.objections().iter().all(Vec::is_empty)
    }
}

impl Report {
    /// What launches showed, as many schedules for each case; faults are injected afterwards.
    pub(crate) fn new(cases: &[Case], runs: Vec<Vec<Shown>>) -> Report {
        let schedules = runs.len() / cases.len().max(1);
        let mut runs = runs.into_iter();
        let kernels = cases.iter().map(|case| entry(case, runs.by_ref().take(schedules).flatten())).collect();
        Report { kernels, mutations: Vec::new() }
    }

    /// May mutants of this module be judged by what its launches do?
    pub(crate) fn is_clean(&self, module: &str) -> bool {
        self.kernels.iter().filter(|entry| entry.subject.module == module).all(Entry::is_clean)
    }

    /// Whether every module had its faults injected.
    fn coverage(&self) -> Vec<Objection> {
        let mutated = |entry: &&Entry| self.mutations.iter().any(|one| one.module == entry.subject.module);
        let without = self.kernels.iter().find(|entry| !mutated(entry));
        let why = without.map(|entry| format!("{}: no fault was injected", entry.subject.kernel));
        why.map(|why| Objection::not_run(Guard::Mutation, why)).into_iter().collect()
    }
}

impl Log for Report {
    const STAGE: Stage = Stage::Stress;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn objections(&self) -> Objections {
        let launches = self.kernels.iter().flat_map(Entry::objections);
        let faults = self.mutations.iter().map(|one| one.objection().into_iter().collect());
        Objections::of_parts(launches.chain(faults).chain([self.coverage()]))
    }

    fn figures(&self) -> String {
        let seeds = self.kernels.first().map_or(0, |entry| entry.seeds(Policy::ALL[0], Turn::First).len());
        let results: BTreeSet<_> = self
            .kernels
            .iter()
            .flat_map(|entry| entry.results().into_iter().map(|one| (&entry.subject.kernel, one)))
            .collect();
        let faults = mutation::figures(&self.mutations);
        format!(
            "{} called 3 times under each of {} with {}: {} to the bit; {faults}",
            counted(self.kernels.len(), "kernel"),
            Policy::ALL.len().to_string() + " policies",
            counted(seeds, "seed"),
            counted(results.len(), "result"),
        )
    }
}
