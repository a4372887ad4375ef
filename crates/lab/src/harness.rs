//! Runs a case, with its outputs poisoned and its inputs watched.

use emulator::Emulator;
use launch::backend::{Backend, Options, Witness};
use launch::resolved::Launch;
use launch::{BufferMemory, Contents, Finding, Kernel, Memory, Operands, hash};

use crate::case::Case;
use crate::figures::{Hashes, Launched, Seen};

/// What outputs hold before a run. Bits that do not depend on it were written by the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poison {
    /// Signalling patterns: whoever computes with them shows it.
    Signalling,
    /// Plausible small numbers, as a previous result would be.
    Plausible,
}

/// The byte of [`Poison::Plausible`]: −0.0202 in f16, −2.87e-16 in bf16 and f32.
const PLAUSIBLE: u8 = 0xa5;

/// A run and the memory that it left.
pub struct Execution {
    pub seen: Seen,
    pub findings: Vec<Finding>,
    pub memory: Memory,
    /// What the checks did not look at, where that was counted.
    pub unobserved: Option<Vec<String>>,
}

/// Where stages run kernels: on the emulator, or wherever the red team says that it did.
pub trait Rig: Sync {
    /// What memory holds before a run.
    fn memory(&self, case: &Case, data_seed: u64) -> Result<Memory, String>;

    /// Runs `kernel`, which is the case's own or one that was changed on purpose.
    fn execute(&self, case: &Case, kernel: &Kernel, before: &Memory) -> Result<Execution, String>;
}

/// The emulator.
pub struct Emulated {
    pub options: Options,
    pub poison: Poison,
}

impl Rig for Emulated {
    fn memory(&self, case: &Case, data_seed: u64) -> Result<Memory, String> {
        memory(case, data_seed, self.poison).map_err(|error| error.to_string())
    }

    fn execute(&self, case: &Case, kernel: &Kernel, before: &Memory) -> Result<Execution, String> {
        execute(case, kernel, before, &self.options).map_err(|error| error.to_string())
    }
}

/// The memory before a run: inputs drawn from `data_seed`, outputs poisoned whatever the recipe says.
pub fn memory(case: &Case, data_seed: u64, poison: Poison) -> Result<Memory, launch::Error> {
    let mut memory = Memory::new(&case.resolved, data_seed)?;
    poison_outputs(case, &mut memory, poison);
    Ok(memory)
}

/// Outputs as if nobody had written them; everything else stays as it is.
pub fn poison_outputs(case: &Case, memory: &mut Memory, poison: Poison) {
    for buffer in memory.buffers.iter_mut().filter(|buffer| case.outputs().contains(&buffer.name.as_str())) {
        buffer.initialised = false;
        let mut element = vec![];
        match poison {
            Poison::Plausible => element.push(PLAUSIBLE),
            Poison::Signalling => buffer.element.write(buffer.element.poison(), &mut element),
        }
        buffer.contents = Contents::repeated(&element, buffer.contents.len());
    }
}

/// Runs `kernel`, which is the case's own or one that was changed on purpose, on the emulator.
pub fn execute(case: &Case, kernel: &Kernel, before: &Memory, options: &Options) -> Result<Execution, emulator::Error> {
    let mut loaded = Emulator.load(kernel)?;
    let asked = asked(kernel, &loaded.resolved().launches);
    run_loaded(&Emulator, case, (&mut loaded, asked), before, options)
}

/// The launches that must be seen.
pub fn asked(kernel: &Kernel, launches: &[Launch]) -> Vec<Launched> {
    let one = |launch: &Launch| {
        let entry = kernel.entry(launch).map(|entry| entry.name.as_str()).unwrap_or_default();
        Launched::from(&Witness::of(entry, launch))
    };
    launches.iter().map(one).collect()
}

/// Runs what a backend has loaded, of which these launches must be seen.
pub fn run_loaded<B: Backend>(
    backend: &B,
    case: &Case,
    (loaded, asked): (&mut B::Loaded, Vec<Launched>),
    before: &Memory,
    options: &Options,
) -> Result<Execution, B::Error> {
    let mut memory = before.clone();
    let run = backend.run(loaded, &mut memory, options)?;
    let hashes = |name: &str| {
        let of = |memory: &Memory| memory.buffer(name).map(|buffer| hash::of(&buffer.contents)).unwrap_or_default();
        Hashes { buffer: name.into(), before: of(before), after: of(&memory) }
    };
    let inputs = case.inputs().into_iter().map(hashes).collect();
    let outputs = case.outputs().into_iter().map(hashes).collect();
    let seen = Seen::new(asked, &run, inputs, outputs);
    let unobserved = run.operands.as_ref().map(Operands::faults);
    Ok(Execution { seen, findings: run.findings, memory, unobserved })
}

/// Elements of the outputs that hold poison.
pub fn still_poisoned(case: &Case, memory: &Memory) -> usize {
    let outputs = memory.buffers.iter().filter(|buffer| case.outputs().contains(&buffer.name.as_str()));
    let of_buffer = |buffer: &BufferMemory| {
        let mut poison = vec![];
        buffer.element.write(buffer.element.poison(), &mut poison);
        buffer.contents.to_vec().chunks_exact(poison.len()).filter(|element| **element == poison).count()
    };
    outputs.map(of_buffer).sum()
}
