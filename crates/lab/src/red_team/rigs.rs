//! Tools that lie about what they ran.

use launch::backend::Options;
use launch::{Kernel, Memory};

use super::workshop;
use crate::case::Case;
use crate::guard::Guard;
use crate::harness::{self, Emulated, Execution, Poison, Rig};

/// The emulator as `parity` and `sanitize` use it.
pub fn emulator(seed: u64) -> Emulated {
    let poison = if seed.is_multiple_of(2) { Poison::Signalling } else { Poison::Plausible };
    Emulated { options: Options { seed, audit: true, ..Options::default() }, poison }
}

/// Memory in which the right answers lie already: freed by the reference, or left by an earlier run. Poison covers them, unless it is
/// switched off.
pub struct FreedAnswers {
    pub poisoned: bool,
}

impl FreedAnswers {
    pub fn new(off: &[Guard]) -> FreedAnswers {
        FreedAnswers { poisoned: !off.contains(&Guard::Poison) }
    }
}

impl Rig for FreedAnswers {
    fn memory(&self, case: &Case, data_seed: u64) -> Result<Memory, String> {
        let before = emulator(0).memory(case, data_seed)?;
        if self.poisoned {
            return Ok(before);
        }
        let honest = Kernel::with_text("honest.ptx", &workshop::honest()?, case.kernel.recipe.clone());
        let honest = honest.map_err(|error| error.to_string())?;
        Ok(emulator(0).execute(case, &honest, &before)?.memory)
    }

    fn execute(&self, case: &Case, kernel: &Kernel, before: &Memory) -> Result<Execution, String> {
        emulator(0).execute(case, kernel, before)
    }
}

/// Something else computes the answer; nothing is launched, and so nothing is found.
pub struct NothingLaunched(pub u64);

impl Rig for NothingLaunched {
    fn memory(&self, case: &Case, data_seed: u64) -> Result<Memory, String> {
        emulator(self.0).memory(case, data_seed)
    }

    fn execute(&self, case: &Case, kernel: &Kernel, before: &Memory) -> Result<Execution, String> {
        let mut execution = emulator(self.0).execute(case, kernel, before)?;
        execution.seen.launches.clear();
        Ok(execution)
    }
}

/// Another entry of the module answers in place of the one that was asked for.
pub struct OtherEntry;

impl Rig for OtherEntry {
    fn memory(&self, case: &Case, data_seed: u64) -> Result<Memory, String> {
        emulator(0).memory(case, data_seed)
    }

    fn execute(&self, case: &Case, kernel: &Kernel, before: &Memory) -> Result<Execution, String> {
        let asked = emulator(0).execute(case, kernel, before)?.seen.asked;
        let other = "attention_fallback";
        let mut recipe = kernel.recipe.clone();
        recipe.launches.iter_mut().for_each(|launch| launch.entry = Some(other.into()));
        let text = kernel.parsed.source.text.replace(".entry attention_forward", &format!(".entry {other}"));
        let fallback = Kernel::with_text("attack.ptx", &text, recipe).map_err(|error| error.to_string())?;
        let mut execution = emulator(0).execute(case, &fallback, before)?;
        execution.seen.asked = asked;
        Ok(execution)
    }
}

/// A fast path that passes the checks by.
pub struct FastPath(pub u64);

impl Rig for FastPath {
    fn memory(&self, case: &Case, data_seed: u64) -> Result<Memory, String> {
        emulator(self.0).memory(case, data_seed)
    }

    fn execute(&self, case: &Case, kernel: &Kernel, before: &Memory) -> Result<Execution, String> {
        let options = Options { seed: self.0, checks: false, audit: true, ..Options::default() };
        harness::execute(case, kernel, before, &options).map_err(|error| error.to_string())
    }
}
