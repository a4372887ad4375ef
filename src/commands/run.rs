//! `run`: a kernel on a chosen backend, and what it left in its buffers.

use super::input::Input;
use super::output::{Format, print_findings};
use super::{BackendName, Exit};
use attention::oracle::Parity;
use lab::Case;
use launch::backend::{Backend, Options, Run};
use launch::{Kernel, Limits, Memory};

/// Runs a kernel on the emulator or on a GPU and compares its results with what the recipe expects
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash run kernel.ptx\n  veriflash run kernel.ptx --backend cuda\n  veriflash run kernel.ptx --seed 3                the fourth schedule"
)]
pub struct Arguments {
    #[command(flatten)]
    input: Input,

    #[arg(long, value_enum, default_value_t)]
    backend: BackendName,

    /// The schedule of the emulator
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Fills buffers whose `init` has no seed of its own
    #[arg(long, default_value_t = 0)]
    data_seed: u64,

    /// Most instructions that the warps of one launch may execute on the emulator
    #[arg(long, default_value_t = Options::default().instruction_budget)]
    budget: u64,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let kernel = arguments.input.kernel()?;
    super::check_module(&kernel)?;
    let options = Options { seed: arguments.seed, instruction_budget: arguments.budget };
    match arguments.backend {
        BackendName::Emulator => on(&emulator::Emulator, &kernel, arguments, &options),
        BackendName::Cuda => on(&cuda::Cuda::open(0)?, &kernel, arguments, &options),
    }
}

fn on<B: Backend>(backend: &B, kernel: &Kernel, arguments: &Arguments, options: &Options) -> anyhow::Result<Exit> {
    let resolved = kernel.resolve(&Limits::default())?;
    let mut memory = Memory::new(&resolved, arguments.data_seed)?;
    let mut loaded = backend.load(kernel)?;
    let run = backend.run(&mut loaded, &mut memory, options)?;
    let repeat = arguments.input.repeat("run");
    print_findings("run", kernel, &run.findings, &repeat, Format::Text);
    print_run(&run);
    let failures = memory.failures(&resolved);
    failures.iter().for_each(|failure| println!("error: {failure}"));
    let parity = parity(kernel, &memory)?;
    let wrong = parity.as_ref().is_some_and(|parity| !parity.passes());
    parity.iter().for_each(|parity| println!("against the float64 oracle: {parity}"));
    let expected = resolved.buffers.iter().filter(|buffer| buffer.expectation.is_some()).count();
    println!("{} findings, {} of {expected} expectations fail", run.findings.len(), failures.len());
    Ok(Exit::of_findings(!run.findings.is_empty() || !failures.is_empty() || wrong))
}

/// A kernel whose recipe says that it computes attention is judged by the oracle.
fn parity(kernel: &Kernel, memory: &Memory) -> anyhow::Result<Option<Parity>> {
    match kernel.recipe.attention {
        Some(_) => Ok(Some(Case::new(kernel.clone())?.judge(memory)?)),
        None => Ok(None),
    }
}

fn print_run(run: &Run) {
    for (witness, time) in run.witness.iter().zip(&run.times) {
        let [grid, block] = [witness.grid, witness.block].map(|d| format!("{}x{}x{}", d[0], d[1], d[2]));
        println!("launched `{}` {} times: grid {grid}, block {block}, {time:.1?}", witness.entry, witness.count);
    }
    for output in &run.outputs {
        println!("buffer `{}` changed: sha256 {}", output.buffer, output.after);
    }
}
