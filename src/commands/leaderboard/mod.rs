//! `leaderboard`: all configurations of a problem, ranked, and what the others died of.

mod board;

use super::bench::check_python;
use super::heartbeat::{self, Heartbeat};
use super::input::{Arch, arch};
use super::output::{Format, print_json};
use super::prove::Watch;
use super::{Exit, file};
use anyhow::Context;
use attention::Problem;
use attention::planner::Gpu;
use board::Board;
use cuda::Cuda;
use indicatif::{ProgressBar, ProgressStyle};
use lab::bench::{Bencher, PEERS, Patience};
use lab::gpu::{Contract, Workers};
use lab::leaderboard::{Entrant, Field, Survey, entrants, rank, survey};
use lab::measure::Limits;
use lab::{Case, Outcome, Progress, Stage, Toolbox};
use std::path::PathBuf;
use std::time::Duration;

/// Ranks all configurations of a problem on a GPU, with peers, intervals and ties, and tells what the others died of
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash leaderboard                                  the standard problem, B2 H8 S512 D64\n  veriflash leaderboard --problem 'B1 H8 S4096 D128 causal' --peers cudnn,fa4\n  veriflash leaderboard --problem 'B1 H8 Sq1 Sk8192 D128' --seconds 120 --csv samples.csv\n  veriflash leaderboard --format json\n\nBefore anything is timed, every configuration goes through the stages assemble, parity, sanitize, resources and code on a small problem of the same kind; one that fails is not timed. The planner's choice is timed twice: what differs between these is noise. Two that are not clear of each other by 1 % tie. Without a GPU nobody is ranked. Exit codes: 0 ranked; 1 a time or a result cannot be believed; 4 not ranked."
)]
pub struct Arguments {
    /// What to compute, such as `B2 H8 S512 D64 causal`; the standard problem unless given
    #[arg(long, value_name = "PROBLEM")]
    problem: Option<Problem>,

    /// Peers, with commas between: fa2 and cudnn (through torch), fa4 (FlashAttention-4), triton
    #[arg(long, value_delimiter = ',', default_value = "fa2,cudnn,fa4,triton", value_parser = PEERS)]
    peers: Vec<String>,

    /// What is timed: `graph`, `stream`, `latency` or `host`, as in `bench`
    #[arg(long, default_value = "graph")]
    contract: Contract,

    /// Every call on the same buffers, which stay in the cache, instead of each on its own
    #[arg(long)]
    warm: bool,

    /// The most rounds; fewer where all is decided
    #[arg(long, default_value_t = Limits::default().most)]
    rounds: usize,

    /// The most seconds of timing
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,

    /// Without a GPU: the one that the planner and ptxas have in mind, sm_80 unless given. Kernels for sm_90a go through the stages then,
    /// too; with a GPU they come if it is one of sm_90
    #[arg(long, value_parser = arch)]
    arch: Option<Arch>,

    /// The Python that has torch
    #[arg(long, default_value = "python3")]
    python: PathBuf,

    /// Decides inputs and the order within rounds
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Writes every raw sample
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// How the result is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.csv.iter().try_for_each(|path| file::check("--csv", path))?;
    check_python(&arguments.python)?;
    let problem = arguments.problem.clone().map_or_else(|| Problem::builder().build(), Ok)?;
    let cuda = match lab::open_gpu() {
        Ok(cuda) => Some(cuda),
        Err(cuda::Error::NoDriver | cuda::Error::NoGpu) => None,
        Err(error) => return Err(error.into()),
    };
    let arch = arguments.arch.unwrap_or(cuda.as_ref().map_or(Gpu::A100, gpu).into());
    let field = if cuda.is_some() { Field::Runnable } else { Field::Everybody };
    let survey = surveyed(&problem, arch, field)?;
    let board = match cuda {
        None => Board::unmeasured(&problem, survey, "times need a GPU, and there is none"),
        Some(_) if survey.living.is_empty() => Board::unmeasured(&problem, survey, "nobody is left to be timed"),
        Some(cuda) => measured(arguments, &problem, survey, cuda)?,
    };
    if let (Some(path), Some(point)) = (&arguments.csv, board.point()) {
        file::write("--csv", path, &lab::bench::csv(std::slice::from_ref(point)))?;
    }
    let exit = board.exit();
    match arguments.format {
        Format::Json => print_json("leaderboard", exit.verdict(), exit, board.json()),
        Format::Text => print!("{}", board.text()),
    }
    Ok(exit)
}

fn gpu(cuda: &Cuda) -> Gpu {
    let device = cuda.device();
    Gpu { capability: device.capability, processors: device.processors, shared_bytes: device.max_shared_bytes }
}

fn surveyed(problem: &Problem, arch: Arch, field: Field) -> anyhow::Result<Survey> {
    let all = entrants(problem, &arch.gpu, field)?;
    let style = ProgressStyle::with_template("stages {bar:30} {pos}/{len}").unwrap_or(ProgressStyle::default_bar());
    let bar = ProgressBar::new(all.len() as u64).with_style(style);
    let _heartbeat = Heartbeat::new("leaderboard", heartbeat::place("stages of configuration", &bar));
    let watch = Quiet(Watch::new()?);
    let survey = survey(problem, all, &Toolbox::find(), &arch.target.to_string(), &watch, &|| bar.inc(1));
    bar.finish_and_clear();
    Ok(survey.map_err(lab::Error::of_reader)?)
}

/// Ctrl-C works; the stages of each entrant have no bar of their own.
struct Quiet(Watch);

impl Progress for Quiet {
    fn begin(&self, _: Stage, _: usize) {}
    fn step(&self) {}
    fn end(&self, _: &Outcome) {}

    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }
}

fn measured(arguments: &Arguments, problem: &Problem, survey: Survey, cuda: Cuda) -> anyhow::Result<Board> {
    let workers = Workers::unpack(&arguments.python).context("the scripts of the peers need a temporary folder")?;
    let mut bencher = Bencher::new(cuda, &workers, &arguments.peers);
    let limits = Limits { most: arguments.rounds, least: Limits::default().least.min(arguments.rounds) };
    bencher.patience =
        Patience { limits, time: Duration::try_from_secs_f64(arguments.seconds)?, ..Patience::default() };
    bencher.seed = arguments.seed;
    if arguments.format == Format::Text {
        println!("{}", bencher.device());
        bencher.roll_call().iter().for_each(|line| println!("{line}"));
    }
    let case = |entrant: &Entrant| Ok((entrant.name.clone(), entrant.case(problem)?));
    let cases = survey.living.iter().map(case).collect::<anyhow::Result<Vec<(String, Case)>>>()?;
    let bar = ProgressBar::new_spinner().with_message(format!("timing {} kernels", cases.len()));
    bar.enable_steady_tick(Duration::from_millis(100));
    let _heartbeat = Heartbeat::new("leaderboard", || ", timing".into());
    let field = bencher.field(&cases, arguments.contract, !arguments.warm);
    bar.finish_and_clear();
    let field = field.map_err(anyhow::Error::msg)?;
    let ranking = rank(&field.point);
    Ok(Board::measured(problem, survey, field, ranking))
}
