//! Runs a case, with its outputs poisoned and its inputs watched.

use emulator::Emulator;
use launch::backend::{Backend, Options};
use launch::{Contents, Finding, Kernel, Memory, hash};

use crate::case::Case;
use crate::figures::{Hashes, Seen};

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
    let launches = kernel.recipe.launches.len();
    run_loaded(&Emulator, case, (&mut loaded, launches), before, options)
}

/// Runs what a backend has loaded, which has so many launches.
pub fn run_loaded<B: Backend>(
    backend: &B,
    case: &Case,
    (loaded, launches): (&mut B::Loaded, usize),
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
    let seen = Seen::new(launches, &run, inputs, outputs);
    Ok(Execution { seen, findings: run.findings, memory })
}
