//! Runs setups on the emulator and says how they fail.

use attention::oracle::Oracle;
use emulator::Emulator;
use launch::backend::Backend;
use launch::finding::Severity;
use launch::{Finding, Kernel, Memory, Resolved};
use ptx::Space;
use rayon::prelude::*;

use super::setup::{Between, Schedule, Setup, in_a_row};
use super::symptom::{Symptom, Trial};
use crate::Case;

/// What tries setups.
pub trait Bench: Sync {
    fn trial(&self, setup: &Setup) -> Trial;

    /// Has it a schedule that can be chosen, checks, and modules that are loaded anew?
    fn is_emulator(&self) -> bool;

    /// Several setups, each on its own; `done` hears of each.
    fn trials(&self, setups: &[&Setup], done: &(dyn Fn() + Sync)) -> Vec<Trial> {
        let one = |setup: &&Setup| {
            let trial = self.trial(setup);
            done();
            trial
        };
        if self.is_emulator() { setups.par_iter().map(one).collect() } else { setups.iter().map(one).collect() }
    }
}

/// The emulator, with all its checks.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnEmulator;

impl Bench for OnEmulator {
    fn trial(&self, setup: &Setup) -> Trial {
        if let Some(refusal) = refusal(&setup.kernel) {
            return Ok(vec![refusal]);
        }
        for schedule in &setup.schedules {
            let symptoms = under(setup, *schedule)?;
            if !symptoms.is_empty() {
                return Ok(symptoms);
            }
        }
        Ok(vec![])
    }

    fn is_emulator(&self) -> bool {
        true
    }
}

/// What the verifier has against a module: a driver would refuse it.
pub(super) fn refusal(kernel: &Kernel) -> Option<Symptom> {
    let first = ptx::verify(&kernel.parsed).into_iter().next()?;
    Some(Symptom::LaunchFailure(format!("the module is refused: {}", first.message)))
}

fn under(setup: &Setup, schedule: Schedule) -> Trial {
    let resolved = setup.kernel.resolve(&launch::Limits::default()).map_err(|error| error.to_string())?;
    let before = Memory::new(&resolved, setup.data_seed).map_err(|error| error.to_string())?;
    let (findings, after) = called(setup, schedule, &resolved, &before).map_err(|error| error.to_string())?;
    let counts =
        |finding: &&Finding| finding.severity >= if setup.warnings { Severity::Warning } else { Severity::Error };
    let mut symptoms: Vec<Symptom> =
        findings.iter().filter(counts).map(|finding| Symptom::Finding(Box::new(finding.clone()))).collect();
    // What a kernel leaves behind that was stopped says nothing more.
    if symptoms.is_empty() && setup.judged && !setup.first_cluster {
        symptoms.extend(wrong(setup, &resolved, &before, &after)?.map(Symptom::WrongResult));
    }
    Ok(symptoms)
}

/// The findings of all calls, and what the last one left.
fn called(
    setup: &Setup,
    schedule: Schedule,
    resolved: &Resolved,
    before: &Memory,
) -> Result<(Vec<Finding>, Memory), emulator::Error> {
    let (options, mut memory) = (setup.options(schedule), before.clone());
    let run = |kernel: &Kernel, memory: &mut Memory| {
        Ok::<_, emulator::Error>(Emulator.run(&mut Emulator.load(kernel)?, memory, &options)?.findings)
    };
    if setup.between == Between::Nothing && has_variables(&setup.kernel) {
        let findings = run(&in_a_row(&setup.kernel, setup.calls), &mut memory)?;
        return Ok((findings, memory));
    }
    for call in 0..setup.calls {
        if call > 0 {
            renew(setup, resolved, before, &mut memory);
        }
        let findings = run(&setup.kernel, &mut memory)?;
        if findings.iter().any(|finding| finding.severity == Severity::Error) {
            return Ok((findings, memory));
        }
    }
    Ok((vec![], memory))
}

/// Does something outlive a launch that is not in a buffer?
pub(super) fn has_variables(kernel: &Kernel) -> bool {
    kernel.module().variables.iter().any(|variable| variable.space == Space::Global)
}

/// Buffers whose result is judged begin each call as they began the first: a kernel may add to what it finds there.
fn renew(setup: &Setup, resolved: &Resolved, before: &Memory, memory: &mut Memory) {
    let is_judged = |name: &str| {
        let expected = resolved.buffers.iter().any(|buffer| buffer.name == name && buffer.expectation.is_some());
        let contract = setup.kernel.recipe.attention.as_ref();
        expected || contract.is_some_and(|contract| contract.o == name || contract.lse.as_deref() == Some(name))
    };
    for (old, new) in before.buffers.iter().zip(&mut memory.buffers) {
        if is_judged(&old.name) || setup.between == Between::Buffer(old.name.clone()) {
            *new = old.clone();
        }
    }
}

/// How the result is wrong: by the oracle where the kernel computes attention, else by what its recipe expects.
pub(super) fn wrong(
    setup: &Setup,
    resolved: &Resolved,
    before: &Memory,
    after: &Memory,
) -> Result<Option<String>, String> {
    if setup.kernel.recipe.attention.is_some() {
        let case = Case::new(setup.kernel.clone()).map_err(|error| error.to_string())?;
        let parity = case.read_inputs(before).and_then(|inputs| {
            let oracle = Oracle::new(&case.problem, &inputs)?;
            case.judge_by(&oracle, after)
        });
        let parity = parity.map_err(|error| error.to_string())?;
        return Ok((!parity.passes()).then(|| parity.to_string()));
    }
    let judges = |buffer: &str| setup.calls == 1 || starts_unwritten(resolved, buffer) || !has_variables(&setup.kernel);
    let failures = after.failures(resolved);
    let mut failures = failures.iter().filter(|failure| match failure {
        launch::Error::Expectation { buffer, .. } => judges(buffer),
        _ => true,
    });
    Ok(failures.next().map(ToString::to_string))
}

/// A buffer that nobody filled is not what a kernel adds to.
fn starts_unwritten(resolved: &Resolved, name: &str) -> bool {
    resolved.buffers.iter().any(|buffer| buffer.name == name && buffer.init == launch::resolved::Init::Poison)
}
