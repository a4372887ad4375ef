//! `bisect`: the smallest change that turns a kernel's failure on or off.

mod json;
mod table;

use super::heartbeat::{self, Heartbeat};
use super::input::Input;
use super::output::{Format, print_findings, print_json};
use super::{BackendName, Exit, policies};
use anyhow::Context;
use emulator::Emulator;
use indicatif::{ProgressBar, ProgressStyle};
use lab::bisect::{
    Bench, Bisection, Design, OnEmulator, OnHardware, Schedule, Setup, Spectator, Subject, Symptom, Tried,
};
use launch::backend::{Backend, Options};
use launch::{Finding, Kernel, Policy};

/// Finds the smallest change that turns a kernel's failure on or off, with the finding behind it
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash bisect kernel.ptx\n  veriflash bisect corpus/wmma_local.sm_80.toml\n  veriflash bisect --problem 'B1 H2 Sq33 Sk161 D64 causal' --config 3\n  veriflash bisect kernel.ptx --backend cuda       each trial on the GPU, in a process of its own\n  veriflash bisect kernel.ptx --seed 17            under one schedule alone\n  veriflash bisect kernel.ptx --format json        everything that was tried\n\nExit codes: 0 nothing that was tried makes it fail; 1 it fails, and the smallest change is told; 4 there is no GPU."
)]
pub struct Arguments {
    #[command(flatten)]
    input: Input,

    #[arg(long, value_enum, default_value_t)]
    backend: BackendName,

    /// How many schedules must go well before a kernel counts as one that does not fail
    #[arg(long, default_value_t = emulator::DEFAULT_SEEDS, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// Run under this schedule alone
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,

    /// What the adversary is after, instead of what the seeds stand for
    #[arg(long, value_parser = policies())]
    policy: Option<Policy>,

    /// Calls on the same buffers, as it is given
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    calls: u32,

    /// Fills buffers whose `init` has no seed of its own
    #[arg(long, default_value_t = 0)]
    data_seed: u64,

    /// Most instructions that the warps of one launch may execute on the emulator
    #[arg(long, default_value_t = Options::default().instruction_budget)]
    budget: u64,

    /// Warnings count as failures, too
    #[arg(long)]
    deny_warnings: bool,

    /// How the result is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let subject = arguments.subject()?;
    let found = match arguments.backend {
        BackendName::Emulator => {
            refuse_unsupported(&subject.setup.kernel)?;
            search(&subject, &OnEmulator)?
        }
        BackendName::Cuda => {
            // Without a GPU every trial would fail, and tell nothing of the kernel.
            drop(cuda::Cuda::open(0)?);
            let folder = tempfile::tempdir().context("trials need a temporary folder")?;
            search(&subject, &OnHardware::new(std::env::current_exe()?, folder.path()))?
        }
    };
    let exit = Exit::of_findings(found.symptom.is_some());
    let note = found.symptom.as_ref().and_then(|symptom| lab::bisect::left_by_compiler(&subject.setup.kernel, symptom));
    match arguments.format {
        Format::Json => print_json("bisect", exit.verdict(), exit, json::document(&found, note.as_deref())),
        Format::Text => arguments.print(&subject.setup.kernel, &found, note.as_deref()),
    }
    Ok(exit)
}

/// An instruction that the emulator does not know is no failure of the kernel; one that the verifier refuses is.
fn refuse_unsupported(kernel: &Kernel) -> anyhow::Result<()> {
    if ptx::verify(&kernel.parsed).is_empty() {
        Emulator.load(kernel)?;
    }
    Ok(())
}

fn search(subject: &Subject, bench: &dyn Bench) -> anyhow::Result<Bisection> {
    let bar = Bar::new();
    let _heartbeat = Heartbeat::new("bisect", heartbeat::place("trials", &bar.0));
    let found = lab::bisect::bisect(subject, bench, &bar).map_err(anyhow::Error::msg);
    bar.0.finish_and_clear();
    found
}

impl Arguments {
    fn subject(&self) -> anyhow::Result<Subject> {
        let kernel = self.input.kernel()?;
        let seeds: Vec<u64> = self.seed.map_or_else(|| (0..self.seeds).collect(), |seed| vec![seed]);
        let schedule = |seed: u64| Schedule { seed, policy: self.policy.unwrap_or(Policy::of_seed(seed)) };
        let setup = Setup {
            schedules: seeds.into_iter().map(schedule).collect(),
            data_seed: self.data_seed,
            calls: self.calls,
            warnings: self.deny_warnings,
            instruction_budget: self.budget,
            ..Setup::new(kernel, 0)
        };
        let design = self.input.design()?.map(|(problem, config)| Design::new(problem, config));
        Ok(Subject { setup, design })
    }

    fn print(&self, kernel: &Kernel, found: &Bisection, note: Option<&str>) {
        print!("{}", table::report(kernel.file(), found));
        if let Some((finding, trial)) = behind(found) {
            println!();
            trial.iter().for_each(|tried| {
                println!("in the trial with this change, not in the kernel as it is given: {}", tried.what)
            });
            print_findings(kernel, std::slice::from_ref(finding), &self.repeat());
        }
        note.iter().for_each(|note| println!("note: {note}"));
    }

    /// The command that does the same again, up to the seed.
    fn repeat(&self) -> String {
        let calls = if self.calls > 1 { format!(" --calls {}", self.calls) } else { String::new() };
        let data = if self.data_seed > 0 { format!(" --data-seed {}", self.data_seed) } else { String::new() };
        format!("{}{calls}{data}", self.input.repeat("bisect"))
    }
}

/// The finding that explains the failure: its own, or one that a trial brought to light, which is named then: a change may have
/// put it there.
fn behind(found: &Bisection) -> Option<(&Finding, Option<&Tried>)> {
    let of_trial = |tried| Some((Tried::finding(tried)?, Some(tried)));
    let own = found.symptom.as_ref().and_then(Symptom::finding).map(|finding| (finding, found.on()));
    own.or_else(|| found.cured.iter().find_map(of_trial))
}

/// A progress bar on a terminal; nothing in a pipe.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Bar {
        let style = ProgressStyle::with_template("trials {bar:30} {pos}/{len}").unwrap_or(ProgressStyle::default_bar());
        Bar(ProgressBar::new(0).with_style(style))
    }
}

impl Spectator for Bar {
    fn more(&self, trials: usize) {
        self.0.inc_length(trials as u64);
    }

    fn tried(&self) {
        self.0.inc(1);
    }
}
