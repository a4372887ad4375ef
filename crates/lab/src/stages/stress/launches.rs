//! Launches under every policy, and again on the same buffers.

use std::collections::BTreeMap;

use launch::backend::Options;
use launch::recipe::{ArgumentValue, Buffer};
use launch::{BufferMemory, Kernel, Memory, Policy};

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
    let spares = left.buffers.iter().filter(|buffer| case.outputs().contains(&buffer.name.as_str()));
    let spares: Vec<BufferMemory> =
        spares.map(|buffer| BufferMemory { name: spare(&buffer.name), ..buffer.clone() }).collect();
    left.buffers.extend(spares);
    let again = call(&twice(case), &left)?;
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

/// The launches of the recipe, and once more on the same device: variables of the module keep what they hold. The first call has
/// outputs of its own, so that those of the second are poisoned until it writes them.
fn twice(case: &Case) -> Kernel {
    let mut kernel = case.kernel.clone();
    let own = kernel.recipe.launches.clone();
    let outputs = case.outputs();
    let copies = kernel.recipe.buffers.iter().filter(|buffer| outputs.contains(&buffer.name.as_str()));
    let copies: Vec<Buffer> = copies.map(|buffer| Buffer { name: spare(&buffer.name), ..buffer.clone() }).collect();
    kernel.recipe.buffers.extend(copies);
    for argument in kernel.recipe.launches.iter_mut().flat_map(|launch| &mut launch.args) {
        if let ArgumentValue::Buffer { buffer, .. } = &mut argument.value
            && outputs.contains(&buffer.as_str())
        {
            *buffer = spare(buffer);
        }
    }
    kernel.recipe.launches.extend(own);
    kernel
}

fn spare(buffer: &str) -> String {
    format!("{buffer}_of_the_call_before")
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
