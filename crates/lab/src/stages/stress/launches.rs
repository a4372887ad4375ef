//! Launches under every policy, and again on the same buffers.

use std::collections::BTreeMap;

use launch::backend::Options;
use launch::{Kernel, Memory, Policy};

use super::super::sanitize::error;
use super::{Entry, Shown, Turn};
use crate::Settings;
use crate::case::Case;
use crate::figures::{Figure, Found};
use crate::harness::{self, Execution, Poison};

/// An order of everything that no rule orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    policy: Policy,
    seed: u64,
}

/// Every policy with every seed.
pub(crate) fn schedules(settings: &Settings) -> Vec<Schedule> {
    let of = |policy: Policy| (0..settings.rounds).map(move |seed| Schedule { policy, seed });
    Policy::ALL.into_iter().flat_map(of).collect()
}

/// What the calls of one schedule show, turn by turn.
pub(crate) fn shown(case: &Case, schedule: Schedule, settings: &Settings) -> Result<Vec<Shown>, String> {
    let Schedule { policy, seed } = schedule;
    let instruction_budget = settings.instruction_budget;
    let options = Options { seed, policy: Some(policy), instruction_budget, ..Options::default() };
    let call = |kernel: &Kernel, before: &Memory| {
        harness::execute(case, kernel, before, &options).map_err(|error| error.to_string())
    };
    let before = harness::memory(case, settings.data_seed, Poison::Signalling).map_err(|error| error.to_string())?;
    let first = call(&case.kernel, &before)?;
    let mut left = first.memory.clone();
    harness::poison_outputs(case, &mut left, Poison::Plausible);
    let again = call(&twice(&case.kernel), &left)?;
    let shown = |turn, run: Execution| -> Result<Shown, String> {
        Ok(Shown {
            turn,
            schedules: BTreeMap::from([(policy.name().to_string(), vec![seed])]),
            findings: run.findings.iter().map(Found::from).collect(),
            seen: run.seen,
            error: Figure::new(error(case, &before, &run.memory).map_err(|error| error.to_string())?),
        })
    };
    Ok(vec![shown(Turn::First, first)?, shown(Turn::Again, again)?])
}

/// The launches of the recipe, and once more on the same device: variables of the module keep what they hold.
fn twice(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    kernel.recipe.launches.extend_from_within(..);
    kernel
}

/// Calls that showed the same stand together.
pub(crate) fn entry(case: &Case, all: impl IntoIterator<Item = Shown>) -> Entry {
    let mut shown: Vec<Shown> = Vec::new();
    for one in all {
        let same = |other: &&mut Shown| {
            (other.turn, &other.findings, &other.seen, other.error) == (one.turn, &one.findings, &one.seen, one.error)
        };
        match shown.iter_mut().find(same) {
            None => shown.push(one),
            Some(known) => {
                for (policy, seeds) in one.schedules {
                    known.schedules.entry(policy).or_default().extend(seeds);
                }
            }
        }
    }
    Entry { subject: case.subject(), shown }
}
