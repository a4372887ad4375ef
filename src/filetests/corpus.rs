//! Judging a recipe of the corpus: PTX that another compiler wrote, and that stays as it was written.

use super::case::Case;
use super::expectation::{self, MISSING};
use super::verdict::{Judge, Verdict};
use attention::oracle::Parity;
use emulator::{Emulator, Error, sanitize};
use launch::backend::Backend;
use launch::{Kernel, Limits, Memory, Resolved};

/// The kernel that a recipe launches, if the verifier accepts its module.
pub fn kernel(case: &Case) -> Result<Kernel, launch::Error> {
    let kernel = Kernel::open(&case.path)?;
    let all = ptx::verify(&kernel.parsed);
    if all.is_empty() {
        return Ok(kernel);
    }
    Err(ptx::Diagnostics { source: kernel.parsed.source.clone(), all }.into())
}

/// The first thing in a case of the corpus that the emulator does not execute.
pub fn unsupported(case: &Case) -> Option<String> {
    let loaded = kernel(case).map_err(Error::from).and_then(|kernel| Emulator.load(&kernel));
    loaded.err().as_ref().and_then(missing)
}

/// A name where an error says that something is not executed yet.
fn missing(error: &Error) -> Option<String> {
    match error {
        Error::Unsupported { what, .. } => Some(format!("{}{}", what.mnemonic, what.why)),
        Error::Recipe(_) | Error::TensorMap { .. } => None,
    }
}

/// Every schedule gives the expected results, and the checks find what the recipe's `#~` lines say.
pub(super) fn judge(case: &Case, judge: &Judge) -> Verdict {
    let expected = match expectation::read_recipe(&case.text) {
        Ok(expected) => expected,
        Err(problem) => return Verdict::Failed(vec![problem]),
    };
    match happened(case, judge) {
        Ok((mut found, wrong)) => {
            // The reports of others' kernels are for people; what is missing is held to the word in the `fail` cases.
            found.retain(|one| one.what != MISSING);
            Verdict::of([expectation::compare(&expected, &found), wrong].concat())
        }
        Err(error) => match missing(&error) {
            Some(name) => Verdict::Skipped(format!("unsupported: {name}")),
            None => Verdict::Failed(vec![error.to_string()]),
        },
    }
}

/// What the checks found, and which results are wrong.
fn happened(case: &Case, judge: &Judge) -> Result<(Vec<expectation::Happening>, Vec<String>), Error> {
    let kernel = kernel(case)?;
    let resolved = kernel.resolve(&Limits::default())?;
    let seeds: Vec<u64> = (0..judge.seeds).collect();
    let sanitized = sanitize(&kernel, &seeds, 0, &judge.options())?;
    let mut wrong = vec![];
    if kernel.recipe.attention.is_none() && resolved.buffers.iter().all(|buffer| buffer.expectation.is_none()) {
        wrong.push("no buffer has an `expect`, and there is no [attention]: a case says what it computes".into());
    }
    for (seed, _, memory) in &sanitized.runs {
        wrong.extend(self::wrong(&kernel, &resolved, memory).iter().map(|failure| format!("seed {seed}: {failure}")));
    }
    Ok((expectation::happenings(&sanitized.findings), wrong))
}

/// What a run left in memory that it should not have.
pub(super) fn wrong(kernel: &Kernel, resolved: &Resolved, memory: &Memory) -> Vec<String> {
    let mut wrong: Vec<String> = memory.failures(resolved).iter().map(ToString::to_string).collect();
    if kernel.recipe.attention.is_some() {
        match parity(kernel, memory) {
            Ok(parity) if parity.passes() => {}
            Ok(parity) => wrong.push(format!("against the float64 oracle: {parity}")),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    wrong
}

/// The outputs of a kernel that computes attention, beside the oracle's.
fn parity(kernel: &Kernel, memory: &Memory) -> anyhow::Result<Parity> {
    Ok(lab::Case::new(kernel.clone())?.judge(memory)?)
}
