//! # stress
//!
//! Without a GPU: the emulator launches each kernel under every policy of its adversary and several seeds. Each schedule
//! calls it three times on the same buffers, once alone and then twice in a row, so that what a call leaves behind meets
//! the next one. No call may die, and all must leave the same bits.
//!
//! Whether anybody would notice a fault is asked in the same run: each synchronisation of the kernel is taken away or
//! weakened in turn, and at least 99 % of those that make a difference must be caught.

mod launches;
mod mutation;

use std::collections::{BTreeMap, BTreeSet};

use launch::Policy;
use serde::{Deserialize, Serialize};

use super::parity::worst;
use super::{Log, Stage, counted};
use crate::case::Case;
use crate::figures::{Figure, Found, Seen, Subject};
use crate::outcome::State;

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
}

impl Shown {
    fn judge(&self, name: &str) -> State {
        let schedule = self.schedules.iter().find_map(|(policy, seeds)| Some((policy, seeds.first()?)));
        let Some((policy, seed)) = schedule else { return State::not_run(format!("{name}: a result of no schedule")) };
        let place = format!("{} with policy {policy}, seed {seed}", self.turn.describe());
        if let Some(found) = self.findings.iter().find(|found| found.is_error()) {
            return State::fail(format!("{name}: {place}: {found}"));
        }
        if let Some(missing) = self.seen.missing() {
            return State::not_run(format!("{name}: {missing} {place}"));
        }
        if let Some(offence) = self.seen.offence() {
            return State::fail(format!("{name}: {offence} {place}"));
        }
        if self.error.value() > 1.0 {
            return State::fail(format!("{name}: the result is wrong {place}"));
        }
        State::Pass
    }
}

impl Entry {
    fn judge(&self) -> State {
        let name = &self.subject.kernel;
        let of_calls = worst(self.shown.iter().map(|shown| shown.judge(name)));
        match of_calls {
            State::Pass if self.results().len() > 1 => {
                let count = self.results().len();
                State::fail(format!("{name}: calls under different schedules leave {count} different results"))
            }
            State::Pass => self.missing().map_or(State::Pass, |what| State::not_run(format!("{name}: {what}"))),
            state => state,
        }
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
        self.judge() == State::Pass
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
    fn coverage(&self) -> State {
        let mutated = |entry: &&Entry| self.mutations.iter().any(|one| one.module == entry.subject.module);
        match self.kernels.iter().find(|entry| !mutated(entry)) {
            Some(entry) => State::not_run(format!("{}: no fault was injected", entry.subject.kernel)),
            None => State::Pass,
        }
    }
}

impl Log for Report {
    const STAGE: Stage = Stage::Stress;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn judge(&self) -> State {
        let launches = self.kernels.iter().map(Entry::judge);
        worst(launches.chain(self.mutations.iter().map(Mutation::judge)).chain([self.coverage()]))
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
