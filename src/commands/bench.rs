//! `bench`: kernels against peers on a GPU.

use super::heartbeat::{self, Heartbeat};
use super::input::{Arch, BuiltIn, math, splits};
use super::output::{Format, print_json};
use super::{Exit, file};
use anyhow::Context;
use attention::Problem;
use attention::configs::Math;
use attention::planner::Gpu;
use cuda::Cuda;
use indicatif::{ProgressBar, ProgressStyle};
use lab::bench::{Bencher, Calibration, Grid, PEERS, Patience, Point, SLOWDOWN};
use lab::gpu::{Contract, WARM_UP, Workers};
use lab::measure::{Limits, Verdict};
use lab::{Case, State};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Times kernels against FlashAttention-2, cuDNN, FlashAttention-4 and Triton on a GPU: paired rounds, intervals, a verdict
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash bench                                       the standard problem, the planner's kernel, all peers\n  veriflash bench --grid main --csv samples.csv         24 problems, with every raw sample\n  veriflash bench --kernel my/kernel.toml --peers cudnn\n  veriflash bench --problem 'B1 H8 S4096 D128 causal' --contract latency --warm\n\nThe candidate is timed twice under two names: what differs between these is noise. A verdict is FASTER, SLOWER, EQUAL (within 1 %) or AMBIGUOUS. Exit 0: all decided, whoever won; 1: a time cannot be believed or a result is wrong; 4: something is undecided."
)]
pub struct Arguments {
    /// A kernel that computes attention: a `.ptx` with its recipe, or a `.toml`; may be given several times
    #[arg(long = "kernel", value_name = "FILE")]
    kernels: Vec<PathBuf>,

    /// Built-in kernels instead, for these problems, such as `B2 H8 S512 D64 causal`; may be given several times
    #[arg(long = "problem", value_name = "PROBLEM", conflicts_with = "kernels")]
    problems: Vec<Problem>,

    /// Built-in kernels for a named list of problems: `small`, `main`, `decode`; with commas between several
    #[arg(long, value_delimiter = ',', value_parser = grid, conflicts_with = "kernels")]
    grid: Vec<Grid>,

    /// The number of the configuration; the planner's choice for this GPU unless given
    #[arg(long, conflicts_with = "kernels")]
    config: Option<u32>,

    /// What multiplies: `tensor`, or `scalar`, the baseline of configs 1 to 5
    #[arg(long, default_value = "tensor", value_parser = math, conflicts_with = "kernels")]
    math: Math,

    /// With `--config`: into how many blocks it splits the keys of one block of queries, 1 to 32
    #[arg(long, value_name = "N", requires = "config", value_parser = splits)]
    splits: Option<u32>,

    /// Peers, with commas between: fa2 and cudnn (through torch), fa4 (FlashAttention-4), triton
    #[arg(long, value_delimiter = ',', default_value = "fa2,cudnn,fa4,triton", value_parser = PEERS)]
    peers: Vec<String>,

    /// What is timed: `graph` (time on the GPU inside of a CUDA graph), `stream` (calls in a row), `latency` (one call, waited
    /// for), `host` (the host's time)
    #[arg(long, default_value = "graph")]
    contract: Contract,

    /// Every call on the same buffers, which stay in the cache, instead of each on its own
    #[arg(long)]
    warm: bool,

    /// The most rounds of a problem; fewer where all is decided
    #[arg(long, default_value_t = Limits::default().most)]
    rounds: usize,

    /// The most seconds of a problem
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,

    /// For how many milliseconds the same work is done before each sample, so that the GPU has the clock that it gives
    #[arg(long, value_name = "MILLISECONDS", default_value_t = WARM_UP.as_millis() as u64)]
    warm_up: u64,

    /// Asks what verdicts are worth here instead: so many of each kernel against itself, and as many against itself slowed down
    /// by 2 %
    #[arg(long, value_name = "VERDICTS")]
    calibrate: Option<usize>,

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

pub fn grid(name: &str) -> Result<Grid, String> {
    Grid::by_name(name).ok_or_else(|| format!("expected one of {}", Grid::ALL.map(Grid::name).join(", ")))
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    // What is wrong with the arguments is said on a machine without a GPU, too.
    let time =
        Duration::try_from_secs_f64(arguments.seconds).with_context(|| format!("`--seconds {}`", arguments.seconds))?;
    arguments.csv.iter().try_for_each(|path| file::check("--csv", path))?;
    check_python(&arguments.python)?;
    let given = given(arguments)?;
    let cuda = lab::open_gpu().context("times need a GPU")?;
    let cases = given.map_or_else(|| planned(arguments, &cuda), Ok)?;
    let workers = Workers::unpack(&arguments.python).context("the scripts of the peers need a temporary folder")?;
    let peers = if arguments.calibrate.is_some() { &[] } else { arguments.peers.as_slice() };
    let mut bencher = Bencher::new(cuda, &workers, peers);
    let limits = Limits { most: arguments.rounds, least: Limits::default().least.min(arguments.rounds) };
    let warm_up = Duration::from_millis(arguments.warm_up);
    bencher.patience = Patience { limits, time, warm_up };
    bencher.seed = arguments.seed;
    if let Some(verdicts) = arguments.calibrate {
        return calibrate(&mut bencher, &cases, verdicts, arguments.format);
    }
    let text = arguments.format == Format::Text;
    if text {
        println!("{}", bencher.device());
        bencher.roll_call().iter().for_each(|line| println!("{line}"));
    }
    let (mut points, mut failures) = (vec![], vec![]);
    let bar = progress(cases.len());
    let _heartbeat = Heartbeat::new("bench", heartbeat::place("problems", &bar));
    for case in &cases {
        bar.set_message(case.problem.to_string());
        match bencher.point(case, arguments.contract, !arguments.warm) {
            Ok(point) => {
                if text {
                    bar.suspend(|| print_point(&point));
                }
                points.push(point);
            }
            Err(why) => {
                if text {
                    bar.suspend(|| println!("\n{}: {}: FAILED: {why}", case.problem, case.name));
                }
                failures
                    .push(json!({ "problem": case.problem.to_string(), "kernel": case.name, "why": why.to_string() }));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(path) = &arguments.csv {
        file::write("--csv", path, &lab::bench::csv(&points))?;
    }
    let exit = exit(&points, !failures.is_empty());
    match arguments.format {
        Format::Json => {
            let points: Vec<Value> = points.iter().map(point_json).collect();
            print_json("bench", exit.verdict(), exit, json!({ "points": points, "failures": failures }));
        }
        Format::Text => print_means(&points),
    }
    Ok(exit)
}

fn exit(points: &[Point], failed: bool) -> Exit {
    let states: Vec<State> = points.iter().map(Point::judge).collect();
    if failed || states.iter().any(|state| matches!(state, State::Fail { .. })) {
        Exit::Findings
    } else if states.iter().all(|state| *state == State::Pass) && !states.is_empty() {
        Exit::Clean
    } else {
        Exit::Undecided
    }
}

/// A Python that was asked for runs; without the usual one, peers are missing.
pub fn check_python(python: &Path) -> anyhow::Result<()> {
    if python == Path::new("python3") {
        return Ok(());
    }
    let asked = Command::new(python).arg("--version").output();
    asked.with_context(|| format!("`--python {}` does not run: expected a Python that has torch", python.display()))?;
    Ok(())
}

/// Those kernels that do not depend on the GPU: in files, or of a configuration that was asked for.
fn given(arguments: &Arguments) -> anyhow::Result<Option<Vec<Case>>> {
    let open = |path: &PathBuf| Case::open(path).with_context(|| format!("`--kernel {}`", path.display()));
    if !arguments.kernels.is_empty() {
        return arguments.kernels.iter().map(open).collect::<anyhow::Result<_>>().map(Some);
    }
    arguments.config.map(|_| built_in(arguments, None)).transpose()
}

fn planned(arguments: &Arguments, cuda: &Cuda) -> anyhow::Result<Vec<Case>> {
    let device = cuda.device();
    let gpu =
        Gpu { capability: device.capability, processors: device.processors, shared_bytes: device.max_shared_bytes };
    built_in(arguments, Some(gpu.into()))
}

fn built_in(arguments: &Arguments, arch: Option<Arch>) -> anyhow::Result<Vec<Case>> {
    let mut problems = arguments.problems.clone();
    for grid in &arguments.grid {
        problems.extend(grid.problems()?);
    }
    if problems.is_empty() {
        problems = Grid::Small.problems()?;
    }
    let Arguments { config, math, splits, .. } = *arguments;
    let one = |problem: Problem| {
        let kernel = BuiltIn { problem: Some(problem), config, math: Some(math), debug: false, splits, arch };
        Ok(Case::new(kernel.kernel()?)?)
    };
    problems.into_iter().map(one).collect()
}

/// Exit 0 if verdicts can be trusted for every kernel, 1 if not.
fn calibrate(bencher: &mut Bencher, cases: &[Case], verdicts: usize, format: Format) -> anyhow::Result<Exit> {
    let (mut all, mut holds) = (vec![], true);
    let bar = progress(2 * verdicts * cases.len());
    let _heartbeat = Heartbeat::new("bench", heartbeat::place("verdicts", &bar));
    for case in cases {
        bar.set_message(case.problem.to_string());
        let found = bencher.calibrate(case, verdicts, &|| bar.inc(1)).map_err(anyhow::Error::msg)?;
        holds &= found.holds();
        all.push((case.problem.to_string(), found));
    }
    bar.finish_and_clear();
    let exit = Exit::of_findings(!holds);
    if format == Format::Json {
        let one = |(problem, found): &(String, Calibration)| json!({ "problem": problem, "verdicts": found, "holds": found.holds() });
        print_json("bench", exit.verdict(), exit, json!({ "calibration": all.iter().map(one).collect::<Vec<_>>() }));
        return Ok(exit);
    }
    for (problem, found) in &all {
        let counts = |counts: &BTreeMap<String, usize>| {
            counts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect::<Vec<_>>().join(", ")
        };
        println!("{problem}: against itself: {}", counts(&found.of_the_same));
        println!("{problem}: slowed down by {:.0} %: {}", SLOWDOWN * 100.0, counts(&found.of_slower));
    }
    println!("verdicts {}", if holds { "can be trusted" } else { "CANNOT be trusted" });
    Ok(exit)
}

fn progress(points: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}").unwrap_or(ProgressStyle::default_bar());
    ProgressBar::new(points as u64).with_style(style)
}

fn print_point(point: &Point) {
    let Point { problem, plan, rounds, .. } = point;
    let kept = if plan.is_cold() { "cold" } else { "warm" };
    let (dropped, retaken) = (rounds.dropped(), point.retaken());
    let rounds = rounds.0.len();
    println!(
        "\n{problem}: {} by {}, {kept}, {} calls a sample, {rounds} rounds, {dropped} dropped, {retaken} samples taken again",
        point.subject.kernel, plan.contract, plan.calls
    );
    println!("  {:<16} {:>9} {:>9} {:>9} {:>8} {:>9}", "", "p50 µs", "p90", "p99", "TFLOP/s", "roofline");
    for (number, contender) in point.contenders.iter().enumerate() {
        let time = |share| point.percentile(number, share).map_or(f64::NAN, |seconds| seconds * 1e6);
        let teraflops = point.teraflops(number).unwrap_or(f64::NAN);
        let share = point.roofline(number).unwrap_or(f64::NAN) * 100.0;
        let [p50, p90, p99] = [0.5, 0.9, 0.99].map(time);
        println!("  {:<16} {p50:>9.2} {p90:>9.2} {p99:>9.2} {teraflops:>8.1} {share:>8.1}%", contender.name);
    }
    if let Some(same) = point.same() {
        println!("  {:<16} {same}", "against itself");
    }
    for (peer, versus) in point.duels() {
        let why = if let Verdict::Ambiguous { why } = &versus.verdict { format!(": {why}") } else { String::new() };
        println!("  {:<16} {}  {}{why}", format!("against {}", peer.name), versus.time, versus.verdict);
    }
    for missing in &point.missing {
        println!("  {:<16} not measured: {}", missing.name, missing.why);
    }
    match point.judge() {
        State::Fail { why } => println!("  FAILED: {why}"),
        state => state.why().iter().for_each(|why| println!("  undecided: {why}")),
    }
}

/// One line for each peer: the mean over the problems is never without their number and the least of them.
fn print_means(points: &[Point]) {
    let mut names: Vec<&str> = vec![];
    for (peer, _) in points.iter().flat_map(Point::duels) {
        if !names.contains(&peer.name.as_str()) {
            names.push(&peer.name);
        }
    }
    println!();
    for name in names {
        let of_peer = points.iter().flat_map(Point::duels).filter(|(peer, _)| peer.name == name);
        let ratios: Vec<f64> = of_peer.map(|(_, versus)| versus.time.ratio.value()).collect();
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        println!("against {name}: geomean {mean:.3} over {} problems, least {least:.3}", ratios.len());
    }
}

fn point_json(point: &Point) -> Value {
    let duels: Vec<Value> = point
        .duels()
        .map(|(peer, versus)| json!({ "peer": peer.name, "time": versus.time, "cycles": versus.cycles, "verdict": versus.verdict }))
        .collect();
    let mut value = serde_json::to_value(point).unwrap_or_default();
    value["duels"] = duels.into();
    value["state"] = point.judge().word().to_lowercase().into();
    value
}
