//! Identical machine code: the proof that holds for every input, where ptxas is installed.

use emulator::mutate::{Mutant, Proof, Verdict};
use lab::{MachineCode, Tool, machine_code};
use launch::Kernel;
use std::sync::{LazyLock, OnceLock};

/// Looked for when it is first needed.
static PTXAS: LazyLock<Option<Tool>> = LazyLock::new(|| lab::tools::find("ptxas"));

/// What ptxas makes of a kernel and of its mutants.
pub struct Assembler<'k> {
    kernel: &'k Kernel,
    /// The kernel's own code; none if ptxas does not take it.
    code: OnceLock<Option<MachineCode>>,
}

impl<'k> Assembler<'k> {
    pub fn new(kernel: &'k Kernel) -> Assembler<'k> {
        Assembler { kernel, code: OnceLock::new() }
    }

    /// The verdict, unless it says that nobody noticed, or that nothing was found to notice, and the code is the same.
    pub fn confirm(&self, mutant: &Mutant, verdict: Verdict) -> Verdict {
        match &verdict {
            Verdict::Missed(_) | Verdict::Equivalent(Proof::NothingToOrder) => {
                self.proof(mutant).map_or(verdict, Verdict::Equivalent)
            }
            _ => verdict,
        }
    }

    fn proof(&self, mutant: &Mutant) -> Option<Proof> {
        let ptxas = PTXAS.as_ref()?;
        let code = |kernel: &Kernel| machine_code(kernel.module(), ptxas).ok().flatten();
        let own = self.code.get_or_init(|| code(self.kernel)).as_ref()?;
        let same = code(&mutant.of(self.kernel))? == *own;
        same.then(|| Proof::SameCode { assembler: format!("ptxas {}", ptxas.version) })
    }
}
