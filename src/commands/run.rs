//! `run`: a kernel on a chosen backend, and what it left in its buffers.

use super::input::Input;
use super::output::{Format, findings_json, print_findings, print_json};
use super::severity::{Denied, Tally};
use super::trace::TraceTo;
use super::{Arithmetic, BackendName, Exit, policies};
use anyhow::Context;
use attention::oracle::Parity;
use lab::Case;
use launch::backend::{Backend, Options, Output, Run, Witness};
use launch::{Kernel, Limits, Memory, Policy, hash};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs a kernel on the emulator or on a GPU and compares its results with what the recipe expects
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash run kernel.ptx\n  veriflash run kernel.ptx --backend cuda\n  veriflash run kernel.ptx --seed 3                the fourth schedule\n  veriflash run kernel.ptx --algebra               hashes that rounding does not change\n  veriflash run kernel.ptx --trace trace.json      a timeline for https://ui.perfetto.dev"
)]
pub struct Arguments {
    #[command(flatten)]
    input: Input,

    #[arg(long, value_enum, default_value_t)]
    backend: BackendName,

    /// The schedule of the emulator
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// What the emulator's adversary is after, instead of what the seed stands for
    #[arg(long, value_parser = policies())]
    policy: Option<Policy>,

    /// With `--backend cuda`: writes nothing to buffers whose `init` is `poison`, so that compute-sanitizer's initcheck
    /// sees who reads them
    #[arg(long)]
    leave_poison: bool,

    /// With `--backend cuda`: so many streams make the launches at once, each on buffers of its own, and each is judged
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=64), conflicts_with_all = ["dump", "leave_poison"])]
    streams: Option<u32>,

    /// With `--streams`: each stream loads the module anew, with variables of its own
    #[arg(long, requires = "streams")]
    apart: bool,

    /// Fills buffers whose `init` has no seed of its own
    #[arg(long, default_value_t = 0)]
    data_seed: u64,

    /// Most instructions that the warps of one launch may execute on the emulator
    #[arg(long, default_value_t = Options::default().instruction_budget)]
    budget: u64,

    /// How the emulator multiplies matrices
    #[arg(long, value_enum, default_value_t)]
    arithmetic: Arithmetic,

    /// Does not compare attention with the float64 oracle, which takes long for large problems
    #[arg(long)]
    unjudged: bool,

    /// Computes with exact numbers in place of floats: every way to compute one formula gives the same bits. Nothing is
    /// compared with what the recipe expects
    #[arg(long, conflicts_with = "arithmetic")]
    algebra: bool,

    #[command(flatten)]
    denied: Denied,

    #[command(flatten)]
    trace: TraceTo,

    /// Writes every buffer that the run changed to FOLDER/NAME.bin, raw and little-endian
    #[arg(long, value_name = "FOLDER")]
    dump: Option<PathBuf>,

    /// How the result is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What a run showed.
struct Shown {
    run: Run,
    /// Buffers that do not hold what the recipe expects.
    failures: Vec<String>,
    /// How many buffers the recipe expects something of.
    expected: usize,
    /// Of kernels that compute attention.
    parity: Option<Parity>,
    /// The numbers are no floats: nothing is expected of them.
    algebra: bool,
    denied: Denied,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let kernel = arguments.input.kernel()?;
    super::check_module(&kernel)?;
    let traced_blocks = arguments.trace.blocks();
    let options = Options {
        seed: arguments.seed,
        policy: arguments.policy,
        leaves_poison: arguments.leave_poison,
        instruction_budget: arguments.budget,
        precision: arguments.arithmetic.into(),
        algebra: arguments.algebra,
        traced_blocks,
        ..Options::default()
    };
    anyhow::ensure!(
        !arguments.algebra || kernel.recipe.assertions.is_none(),
        "`--algebra` has numbers without an order, and this kernel asserts which is larger: leave out `--algebra`, or \
         `--debug`"
    );
    match arguments.backend {
        BackendName::Cuda if traced_blocks > 0 => anyhow::bail!(
            "`--trace` needs `--backend emulator`: a GPU does not tell when a warp waits; leave `--trace` out, or trace on the emulator"
        ),
        BackendName::Cuda if arguments.algebra => anyhow::bail!(
            "`--algebra` needs `--backend emulator`: a GPU computes with floats; leave one of the two out"
        ),
        BackendName::Emulator if arguments.streams.is_some() => anyhow::bail!(
            "`--streams` needs `--backend cuda`: the emulator runs one launch after the other; leave it out, or run on a GPU"
        ),
        BackendName::Emulator => on(&emulator::Emulator, &kernel, arguments, &options),
        BackendName::Cuda => match arguments.streams {
            None => on(&lab::open_gpu()?, &kernel, arguments, &options),
            Some(count) => in_streams(&lab::open_gpu()?, &kernel, arguments, count),
        },
    }
}

fn on<B: Backend>(backend: &B, kernel: &Kernel, arguments: &Arguments, options: &Options) -> anyhow::Result<Exit> {
    let resolved = kernel.resolve(&Limits::default())?;
    let mut memory = Memory::new(&resolved, arguments.data_seed)?;
    let mut loaded = backend.load(kernel)?;
    let run = backend.run(&mut loaded, &mut memory, options)?;
    arguments.trace.write(run.trace.as_ref())?;
    if let Some(folder) = &arguments.dump {
        dump(folder, &run.outputs)?;
    }
    let (algebra, denied) = (arguments.algebra, arguments.denied);
    let shown = if algebra {
        Shown { run, failures: vec![], expected: 0, parity: None, algebra, denied }
    } else {
        Shown {
            run,
            failures: memory.failures(&resolved).iter().map(ToString::to_string).collect(),
            expected: resolved.buffers.iter().filter(|buffer| buffer.expectation.is_some()).count(),
            parity: if arguments.unjudged { None } else { parity(kernel, &memory)? },
            algebra,
            denied,
        }
    };
    match arguments.format {
        Format::Json => print_json("run", shown.exit().verdict(), shown.exit(), shown.json()),
        Format::Text => {
            print_findings(kernel, &shown.run.findings, &repeat(arguments));
            shown.print();
        }
    }
    Ok(shown.exit())
}

/// Streams that left the same are judged once.
fn in_streams(cuda: &cuda::Cuda, kernel: &Kernel, arguments: &Arguments, count: u32) -> anyhow::Result<Exit> {
    let resolved = kernel.resolve(&Limits::default())?;
    let before = Memory::new(&resolved, arguments.data_seed)?;
    let streams = lab::Streams { count: count as usize, apart: arguments.apart };
    let left = lab::at_once(cuda, kernel, &before, streams)?;
    let (mut failures, mut judged): (Vec<String>, Option<Parity>) = (vec![], None);
    for (number, memory) in left.iter().enumerate().filter(|(number, memory)| !left[..*number].contains(memory)) {
        failures.extend(memory.failures(&resolved).iter().map(|failure| format!("stream {number}: {failure}")));
        if !arguments.unjudged && judged.as_ref().is_none_or(Parity::passes) {
            judged = parity(kernel, memory)?;
        }
    }
    let expected = resolved.buffers.iter().filter(|buffer| buffer.expectation.is_some()).count() * left.len();
    let run = Run { outputs: left[0].changes_since(&before), ..Run::default() };
    let shown = Shown { run, failures, expected, parity: judged, algebra: false, denied: arguments.denied };
    match arguments.format {
        Format::Json => print_json("run", shown.exit().verdict(), shown.exit(), shown.json()),
        Format::Text => {
            println!("launched in {count} streams at once");
            shown.print();
        }
    }
    Ok(shown.exit())
}

fn dump(folder: &Path, outputs: &[Output]) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("--dump: cannot make {}", folder.display()))?;
    for output in outputs {
        let path = folder.join(format!("{}.bin", output.buffer));
        std::fs::write(&path, output.after.to_vec())
            .with_context(|| format!("--dump: cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The command line that runs the same data again.
fn repeat(arguments: &Arguments) -> String {
    let flag = |name: &str, value: u64, default: u64| match value == default {
        true => String::new(),
        false => format!(" --{name} {value}"),
    };
    let data = flag("data-seed", arguments.data_seed, 0);
    let budget = flag("budget", arguments.budget, Options::default().instruction_budget);
    let arithmetic = match (arguments.algebra, arguments.arithmetic) {
        (true, _) => " --algebra",
        (false, Arithmetic::Fast) => " --arithmetic fast",
        (false, Arithmetic::Exact) => "",
    };
    format!("{}{data}{budget}{arithmetic}", arguments.input.repeat("run"))
}

/// A kernel whose recipe says that it computes attention is judged by the oracle.
fn parity(kernel: &Kernel, memory: &Memory) -> anyhow::Result<Option<Parity>> {
    match kernel.recipe.attention {
        Some(_) => Ok(Some(Case::new(kernel.clone())?.judge(memory)?)),
        None => Ok(None),
    }
}

impl Shown {
    fn exit(&self) -> Exit {
        let wrong = self.parity.as_ref().is_some_and(|parity| !parity.passes());
        let found = self.denied.exit(&self.run.findings) == Exit::Findings;
        Exit::of_findings(found || !self.failures.is_empty() || wrong)
    }

    fn print(&self) {
        for (witness, time) in self.run.witness.iter().zip(&self.run.times) {
            let [grid, block] = [witness.grid, witness.block].map(|d| format!("{}x{}x{}", d[0], d[1], d[2]));
            println!("launched `{}` {} times: grid {grid}, block {block}, {time:.1?}", witness.entry, witness.count);
        }
        for output in &self.run.outputs {
            println!("buffer `{}` changed: sha256 {}", output.buffer, hash::of(&output.after));
        }
        self.failures.iter().for_each(|failure| println!("error: {failure}"));
        self.parity.iter().for_each(|parity| println!("against the float64 oracle: {parity}"));
        let (tally, failures) = (Tally::of(&self.run.findings), self.failures.len());
        match self.algebra {
            true => println!("{tally}; exact numbers in place of floats: compare the hashes with another run's"),
            false => println!("{tally}; {failures} of {} expectations fail", self.expected),
        }
    }

    fn json(&self) -> Value {
        let launch = |(witness, time): (&Witness, &Duration)| {
            json!({
                "entry": witness.entry,
                "grid": witness.grid,
                "block": witness.block,
                "count": witness.count,
                "seconds": time.as_secs_f64(),
            })
        };
        let changed = |output: &Output| json!({ "buffer": output.buffer, "sha256": hash::of(&output.after) });
        json!({
            "findings": findings_json(&self.run.findings),
            "launches": self.run.witness.iter().zip(&self.run.times).map(launch).collect::<Vec<_>>(),
            "shadow": self.run.shadow.map(|(bytes, memory)| {
                json!({ "bytes": bytes, "memory": memory, "ratio": bytes as f64 / memory as f64 })
            }),
            "changed": self.run.outputs.iter().map(changed).collect::<Vec<_>>(),
            "expectations": self.expected,
            "failures": self.failures,
            "algebra": self.algebra,
            "parity": self.parity.as_ref().map(ToString::to_string),
        })
    }
}
