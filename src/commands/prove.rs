//! `prove`: from a kernel to a pack of evidence.

use super::Exit;
use super::bench::{check_python, grid};
use super::gate::{Judged, JudgedBy};
use super::github::Job;
use super::heartbeat::Heartbeat;
use super::input::{Arch, BuiltIn, arch, math, quoted, splits, told};
use super::output::{PackFormat, findings_json, print_findings, print_json};
use super::red_team;
use anyhow::Context;
use attention::Problem;
use attention::configs::{BASELINE, Math};
use attention::planner::Gpu;
use indicatif::{ProgressBar, ProgressStyle};
use lab::bench::{Grid, PEERS};
use lab::{Case, Cost, Hardware, Outcome, Pack, Progress, Rate, Request, Stage, StageCost, VerifyOptions};
use launch::Finding;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Turns a kernel into a pack of evidence: what was shown, with which figures, and what was not run
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash prove                                the built-in kernels, on the emulator\n  veriflash prove --kernel my/kernel.ptx         a kernel of yours, with an [attention] table in its recipe\n  veriflash prove --kernel ampere --config 1      a built-in kernel, on problems that make it do all it can\n  veriflash prove --kernel hopper                the built-in kernels for sm_90a\n  veriflash prove --problem 'B1 H2 S128 D128' --config 8\n  veriflash prove --gate merge                   exits 0 only if the gate holds, 4 if a stage was not run\n  veriflash prove --gate publication --second DIR    and the pack of another day or machine agrees\n  veriflash prove --red-team                     is the lab fooled by any attack that we know?\n\nThe pack is a folder; `veriflash verify` checks it again."
)]
pub struct Arguments {
    /// A kernel that computes attention: a `.ptx` or `.cu` with its recipe, or a `.toml`; may be given several times. `ampere`
    /// and `hopper` name the built-in kernels for sm_80 and later, and for sm_90a
    #[arg(long = "kernel", value_name = "FILE|ampere|hopper")]
    kernels: Vec<PathBuf>,

    /// What a `.cu` is compiled for; unless given, what its recipe names, or `sm_80`
    #[arg(long, value_parser = arch)]
    arch: Option<Arch>,

    /// Built-in kernels for these problems, such as `B2 H8 S512 D64 causal`; may be given several times. Unless given, those
    /// that make the configuration do all it can
    #[arg(long = "problem", value_name = "PROBLEM")]
    problems: Vec<Problem>,

    /// The number of the built-in kernels' configuration; the planner's choice unless given
    #[arg(long)]
    config: Option<u32>,

    /// What multiplies: `tensor`, or `scalar`, the baseline of configs 1 to 5; with it, config 1 unless given
    #[arg(long, value_parser = math)]
    math: Option<Math>,

    /// With `--config`: into how many blocks it splits the keys of one block of queries, 1 to 32
    #[arg(long, value_name = "N", requires = "config", value_parser = splits)]
    splits: Option<u32>,

    /// The folder of the pack; a pack that is there is replaced
    #[arg(long, default_value = "pack")]
    out: PathBuf,

    /// Where there is a GPU: also measure the planner's kernels for these lists of problems, `small`, `main`, `decode`, with
    /// commas between; for kernels that are named, those themselves
    #[arg(long, value_delimiter = ',', value_parser = grid, default_value = "small,main")]
    grid: Vec<Grid>,

    /// Who is measured beside them: fa2 and cudnn (through torch), fa4 (FlashAttention-4), triton
    #[arg(long, value_delimiter = ',', default_value = "fa2,cudnn,fa4,triton", value_parser = PEERS)]
    peers: Vec<String>,

    /// The Python that has torch
    #[arg(long, default_value = "python3")]
    python: PathBuf,

    /// Leave the GPU alone, if there is one
    #[arg(long)]
    no_gpu: bool,

    /// Run every stage again. Unless given, a stage that passed in the pack that is there, on the same kernels, recipes and
    /// settings, with the same tools and by the same program, is kept
    #[arg(long)]
    fresh: bool,

    /// Prove the lab instead: try every built-in attack on it, and say which check caught each. Writes no pack; exits 0 only if all
    /// that can be tried here were caught by the check that they name
    #[arg(long, conflicts_with_all = ["kernels", "arch", "problems", "config", "math", "splits", "out", "grid", "peers", "python", "no_gpu", "fresh", "rate", "JudgedBy"])]
    red_team: bool,

    /// What an hour of this machine costs, such as 3.50/h: the pack says what it came to
    #[arg(long, value_name = "PRICE/h")]
    rate: Option<Rate>,

    #[command(flatten)]
    judged_by: JudgedBy,

    /// How the result is written
    #[arg(long, value_enum, default_value_t)]
    format: PackFormat,
}

impl Arguments {
    pub fn annotates(&self) -> bool {
        self.format == PackFormat::Github
    }
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    if arguments.red_team {
        return red_team::execute(&arguments.format);
    }
    check_python(&arguments.python)?;
    let gates = arguments.judged_by.gates()?;
    let Arguments { fresh, ref rate, .. } = *arguments;
    let hardware = hardware(arguments)?;
    let request = Request { fresh, rate: rate.clone(), ..request(arguments, hardware)? };
    let watch = Watch::new()?;
    let _heartbeat = watch.heartbeat("prove");
    let pack = lab::prove(&request, &watch)?;
    let options = VerifyOptions { progress: &watch, ..VerifyOptions::default() };
    // What was just run need not run again.
    let fresh = VerifyOptions { rerun: false, ..VerifyOptions::default() };
    let judged = gates.judge(&pack.outcomes, &options, || lab::verify(&pack.folder, &fresh))?;
    let exit = judged.exit().unwrap_or(Exit::of_findings(pack.tally().failed > 0));
    match arguments.format {
        PackFormat::Json => print_json("prove", exit.verdict(), exit, pack_json(&pack, &judged)),
        PackFormat::Text => print_pack(&request.cases, &pack, &judged),
        PackFormat::Github => {
            let job = Job::new("prove").findings(&pack.findings).stages(&pack.outcomes).gates(&judged);
            job.finish(&pack.tally().to_string());
        }
    }
    Ok(exit)
}

fn print_pack(cases: &[Case], pack: &Pack, judged: &Judged) {
    let folder = quoted(&pack.folder.display().to_string());
    for case in cases {
        let of_case = |finding: &&Finding| finding.first.file == case.kernel.file();
        let own: Vec<_> = pack.findings.iter().filter(of_case).cloned().collect();
        // The pack has every kernel as a complete case, also one that no file holds.
        let repeat = format!("veriflash sanitize {folder}/kernels/{}/kernel.ptx", case.name);
        print_findings(&case.kernel, &own, &repeat);
    }
    println!("{}", pack.table());
    println!("cost: {}", pack.cost);
    println!("pack: {} (check it with `veriflash verify {folder}`)", pack.folder.display());
    judged.lines().for_each(|line| println!("{line}"));
    println!("{}", pack.tally());
}

fn pack_json(pack: &Pack, judged: &Judged) -> Value {
    json!({
        "findings": findings_json(&pack.findings),
        "stages": stages_json(&pack.outcomes),
        "gates": judged.json(),
        "pack": pack.folder.display().to_string(),
        "cost": cost_json(&pack.cost),
    })
}

fn cost_json(cost: &Cost) -> Value {
    let stage = |one: &StageCost| json!({ "stage": one.stage.name(), "seconds": one.seconds(), "kept": one.kept });
    json!({
        "stages": cost.stages.iter().map(stage).collect::<Vec<_>>(),
        "seconds": cost.seconds(),
        "rate": cost.rate.as_ref().map(Rate::to_string),
    })
}

/// The field `stages` of commands that speak of a pack.
pub fn stages_json(outcomes: &[Outcome]) -> Value {
    let stage = |outcome: &Outcome| {
        let (state, stage) = (outcome.state(), outcome.stage().name());
        json!({ "stage": stage, "state": state.word().to_lowercase(), "why": state.why(), "figures": outcome.figures() })
    };
    outcomes.iter().map(stage).collect()
}

/// Kernels of ours, by the GPUs that they are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// Those that sm_80 and all later ones run.
    Ampere,
    /// Those for sm_90a.
    Hopper,
}

impl Family {
    const BY_NAME: [(&'static str, Family); 2] = [("ampere", Family::Ampere), ("hopper", Family::Hopper)];

    fn named(word: &Path) -> Option<Family> {
        Family::BY_NAME.iter().find(|(name, _)| word.as_os_str() == *name).map(|(_, family)| *family)
    }

    fn name(self) -> &'static str {
        match self {
            Family::Ampere => "ampere",
            Family::Hopper => "hopper",
        }
    }

    /// Whether a kernel of ours is one of them.
    fn has(self, case: &Case) -> bool {
        (case.kernel.module().target == ptx::Target::SM_90A) == (self == Family::Hopper)
    }

    /// The GPU as the planner must see it to choose of this family.
    fn on(self, gpu: Gpu) -> Gpu {
        match self {
            Family::Ampere => Gpu { capability: gpu.capability.min((8, 9)), ..gpu },
            Family::Hopper => gpu,
        }
    }
}

/// The GPU of this machine, or why it is not used.
fn hardware(arguments: &Arguments) -> anyhow::Result<Result<Hardware, String>> {
    if arguments.no_gpu {
        return Ok(Err("`--no-gpu` was given".into()));
    }
    let found = Hardware::find(&arguments.python, arguments.peers.clone());
    found.context("the scripts of the peers need a temporary folder")
}

/// What the planner chooses on a GPU for the lists of problems, and witnesses of it, each module once; of a config that is named, all that
/// it can compute.
fn chosen(arguments: &Arguments, gpu: Gpu) -> anyhow::Result<[Vec<Case>; 2]> {
    let Arguments { config, math, splits, .. } = *arguments;
    let words = BuiltIn { problem: None, config, math, debug: false, splits, arch: Some(gpu.into()) };
    let [mut witnesses, mut measured]: [Vec<Case>; 2] = Default::default();
    for problem in arguments.grid.iter().map(|grid| grid.problems()).collect::<Result<Vec<_>, _>>()?.concat() {
        let config = words.config_for(&problem)?;
        let case = Case::new(attention::kernels::kernel(&problem, &config)?)?;
        if witnesses.iter().all(|witness| witness.kernel.hash() != case.kernel.hash()) {
            witnesses.push(lab::witness(&problem, &config)?);
        }
        measured.push(case);
    }
    Ok([witnesses, measured])
}

fn gpu(hardware: &Hardware) -> Gpu {
    let device = hardware.cuda.device();
    Gpu { capability: device.capability, processors: device.processors, shared_bytes: device.max_shared_bytes }
}

fn request(arguments: &Arguments, hardware: Result<Hardware, String>) -> anyhow::Result<Request> {
    let Arguments { kernels, problems, config, math, out, .. } = arguments;
    let family = kernels.iter().find_map(|kernel| Family::named(kernel));
    anyhow::ensure!(
        arguments.arch.is_none() || !(family.is_some() || kernels.is_empty()),
        "`--arch` is what a `.cu` is compiled for: give one with `--kernel FILE.cu`, or leave it out"
    );
    let help = "prove those of one kind first, then the others into another folder";
    anyhow::ensure!(
        kernels.len() <= 1 || family.is_none(),
        "`--kernel {}` stands for many kernels, and cannot be used beside others: {help}",
        family.map_or("", Family::name)
    );
    if !problems.is_empty() {
        anyhow::ensure!(
            kernels.is_empty() || family.is_some(),
            "`--kernel FILE` cannot be used with `--problem`: {help}"
        );
        // Problems that were named are measured themselves.
        return Ok(Request { hardware, ..built_in(arguments, family)? });
    }
    for (flag, given) in [("config", config.is_some()), ("math", math.is_some())] {
        let help = "give a `--problem`, or `--kernel ampere` or `--kernel hopper` alone";
        anyhow::ensure!(!given || family.is_some(), "`--{flag}` asks for a kernel of ours: {help}");
    }
    if kernels.is_empty() || family.is_some() {
        return of_ours(arguments, family, hardware);
    }
    let cases = kernels.iter().map(|path| case(path, arguments.arch)).collect::<anyhow::Result<Vec<Case>>>()?;
    refuse_twice(kernels, &cases)?;
    let mut flags: String = kernels.iter().map(|path| format!(" --kernel {}", path.display())).collect();
    flags.extend(arguments.arch.map(|arch| format!(" --arch {}", arch.target)));
    Ok(Request { command: format!("veriflash prove{flags}"), hardware, ..Request::new(cases, out) })
}

/// Where there is a GPU, what the planner chooses there, and witnesses of it; without one, the standard ones.
fn of_ours(
    arguments: &Arguments,
    family: Option<Family>,
    hardware: Result<Hardware, String>,
) -> anyhow::Result<Request> {
    let request = built_in(arguments, family)?;
    let Ok(hardware) = hardware else { return Ok(Request { measured: vec![], hardware, ..request }) };
    let [witnesses, measured] = chosen(arguments, family.unwrap_or(Family::Hopper).on(gpu(&hardware)))?;
    let cases = if measured.is_empty() { request.cases } else { Request::new(witnesses, &arguments.out).cases };
    Ok(Request { cases, measured, hardware: Ok(hardware), ..request })
}

/// A kernel of the user's own.
fn case(path: &Path, arch: Option<Arch>) -> anyhow::Result<Case> {
    if lab::is_source(path) {
        return Ok(Case::new(told(lab::open_source(path, arch.map(|arch| arch.target))?))?);
    }
    let is_word = path.components().count() == 1 && path.extension().is_none();
    anyhow::ensure!(
        !is_word || path.exists(),
        "there is no file `{}`: expected a .toml, .ptx or .cu, or one of the families `ampere` and `hopper`",
        path.display()
    );
    anyhow::ensure!(
        arch.is_none(),
        "`--arch` is what a `.cu` is compiled for, and {} is none: leave it out",
        path.display()
    );
    Ok(Case::open(path)?)
}

fn built_in(arguments: &Arguments, family: Option<Family>) -> anyhow::Result<Request> {
    let Arguments { config, math, splits, ref out, .. } = *arguments;
    let arch = (family == Some(Family::Hopper)).then(|| Gpu::H200.into());
    let words = |problem: Option<Problem>| BuiltIn { problem, config, math, debug: false, splits, arch };
    let family_words = family.map(|family| format!(" --kernel {}", family.name()));
    let cases = match (arguments.problems.as_slice(), config.or(math.map(|_| BASELINE))) {
        ([], None) if family == Some(Family::Hopper) => chosen(arguments, Gpu::H200)?[0].clone(),
        ([], None) => {
            let command = format!("veriflash prove{}", family_words.unwrap_or_default());
            return Ok(Request { command, ..Request::standard(out)? });
        }
        ([], Some(id)) => lab::witnesses(&words(None).config_of(id)?)?,
        (problems, _) => {
            let case = |problem: &Problem| Ok(Case::new(words(Some(problem.clone())).kernel()?)?);
            problems.iter().map(case).collect::<anyhow::Result<_>>()?
        }
    };
    check_family(family, &cases)?;
    let problems = arguments.problems.iter().map(|problem| format!(" --problem {}", quoted(&problem.to_string())));
    let config = config.map(|id| format!(" --config {id}"));
    let scalar = (math == Some(Math::Scalar)).then_some(" --math scalar".into());
    let splits = splits.map(|splits| format!(" --splits {splits}"));
    let flags: String = family_words.into_iter().chain(problems).chain(config).chain(scalar).chain(splits).collect();
    Ok(Request { command: format!("veriflash prove{flags}"), ..Request::new(cases, out) })
}

/// Evidence of a kernel that is named twice would count twice.
fn refuse_twice(paths: &[PathBuf], cases: &[Case]) -> anyhow::Result<()> {
    let same =
        |one: &Case, other: &Case| one.kernel.hash() == other.kernel.hash() && one.kernel.recipe == other.kernel.recipe;
    for (later, case) in cases.iter().enumerate() {
        if let Some(earlier) = cases[..later].iter().position(|earlier| same(earlier, case)) {
            let (path, earlier) = (paths[later].display(), paths[earlier].display());
            anyhow::bail!(
                "`--kernel {path}` is the same kernel as `--kernel {earlier}`, and evidence counts once: leave one out"
            );
        }
    }
    Ok(())
}

/// Nobody who asks for a family is shown another's kernel.
fn check_family(family: Option<Family>, cases: &[Case]) -> anyhow::Result<()> {
    let Some(family) = family else { return Ok(()) };
    let Some(case) = cases.iter().find(|case| !family.has(case)) else { return Ok(()) };
    let (name, kernel, problem) = (family.name(), &case.name, &case.problem);
    let help = format!("give a `--config` of that family, or another problem, or leave `--kernel {name}` out");
    anyhow::bail!("`{problem}` has kernel {kernel}, which is none of `--kernel {name}`: {help}")
}

/// A progress bar on a terminal, nothing in a pipe; Ctrl-C ends the run between two steps.
pub struct Watch {
    bar: Arc<Mutex<ProgressBar>>,
    interrupted: Arc<AtomicBool>,
}

impl Watch {
    pub fn new() -> anyhow::Result<Watch> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = interrupted.clone();
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                lab::end_tools();
                std::process::exit(Exit::Undecided as i32); // Asked twice: nothing was written yet.
            }
            eprintln!("stopping after the step that runs; once more stops at once");
        })?;
        Ok(Watch { bar: Arc::new(Mutex::new(ProgressBar::hidden())), interrupted })
    }

    /// Where there is no bar, says every minute how far the command is, until it is dropped.
    pub fn heartbeat(&self, command: &'static str) -> Heartbeat {
        let bar = self.bar.clone();
        Heartbeat::new(command, move || {
            let bar = locked(&bar);
            format!(", {} {} of {}", bar.message(), bar.position(), bar.length().unwrap_or_default())
        })
    }

    fn bar(&self) -> MutexGuard<'_, ProgressBar> {
        locked(&self.bar)
    }
}

fn locked(bar: &Mutex<ProgressBar>) -> MutexGuard<'_, ProgressBar> {
    bar.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Progress for Watch {
    fn begin(&self, stage: Stage, steps: usize) {
        let style =
            ProgressStyle::with_template("{msg:<10} {bar:30} {pos}/{len}").unwrap_or(ProgressStyle::default_bar());
        *self.bar() = ProgressBar::new(steps as u64).with_style(style).with_message(stage.name());
        self.bar().tick();
    }

    fn step(&self) {
        self.bar().inc(1);
    }

    fn end(&self, _: &Outcome) {
        self.bar().finish_and_clear();
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
