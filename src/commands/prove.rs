//! `prove`: from a kernel to a pack of evidence.

use super::Exit;
use super::output::{Format, print_findings};
use indicatif::{ProgressBar, ProgressStyle};
use lab::{Case, Gate, GateResult, Outcome, Progress, Request, Stage};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Turns a kernel into a pack of evidence: what was shown, with which figures, and what was not run
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash prove                                the built-in kernels, on the emulator\n  veriflash prove --kernel my/kernel.ptx         a kernel of yours, with an [attention] table in its recipe\n  veriflash prove --gate merge                   exits 0 only if the gate holds, 4 if a stage was not run\n\nThe pack is a folder; `veriflash verify` checks it again."
)]
pub struct Arguments {
    /// A kernel that computes attention: a `.ptx` with its recipe, or a `.toml`; may be given several times
    #[arg(long = "kernel", value_name = "FILE")]
    kernels: Vec<PathBuf>,

    /// The folder of the pack; a pack that is there is replaced
    #[arg(long, default_value = "evidence")]
    out: PathBuf,

    /// Judge the pack by this gate
    #[arg(long, value_parser = gate)]
    gate: Option<Gate>,
}

fn gate(name: &str) -> Result<Gate, String> {
    let known = || Gate::ALL.map(Gate::name).join(", ");
    Gate::by_name(name).ok_or_else(|| format!("expected one of {}", known()))
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let request = request(arguments)?;
    let watch = Watch::new()?;
    let pack = lab::prove(&request, &watch)?;
    for case in &request.cases {
        let file = case.kernel.file();
        let own: Vec<_> = pack.findings.iter().filter(|finding| finding.first.file == file).cloned().collect();
        print_findings("prove", &case.kernel, &own, &format!("veriflash sanitize {file}"), Format::Text);
    }
    println!("{}", pack.table());
    println!("pack: {} (check it with `veriflash verify {}`)", pack.folder.display(), pack.folder.display());
    let gates = arguments.gate.map_or(Gate::ALL.to_vec(), |gate| vec![gate]);
    gates.iter().for_each(|gate| println!("gate {}: {}", gate.name(), pack.gate(*gate)));
    let tally = pack.tally();
    println!("{tally}");
    Ok(match arguments.gate.map(|gate| pack.gate(gate)) {
        Some(GateResult::Held) => Exit::Clean,
        Some(GateResult::Failed(_)) => Exit::Findings,
        Some(GateResult::Undecided(_)) => Exit::Undecided,
        None => Exit::of_findings(tally.failed > 0),
    })
}

fn request(arguments: &Arguments) -> anyhow::Result<Request> {
    if arguments.kernels.is_empty() {
        return Ok(Request::standard(&arguments.out)?);
    }
    let cases = arguments.kernels.iter().map(|path| Case::open(path)).collect::<Result<_, _>>()?;
    let flags: String = arguments.kernels.iter().map(|path| format!(" --kernel {}", path.display())).collect();
    Ok(Request { command: format!("veriflash prove{flags}"), ..Request::new(cases, &arguments.out) })
}

/// A progress bar on a terminal, nothing in a pipe; Ctrl-C ends the run between two steps.
pub struct Watch {
    bar: Mutex<ProgressBar>,
    interrupted: Arc<AtomicBool>,
}

impl Watch {
    pub fn new() -> anyhow::Result<Watch> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = interrupted.clone();
        ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))?;
        Ok(Watch { bar: Mutex::new(ProgressBar::hidden()), interrupted })
    }

    fn bar(&self) -> std::sync::MutexGuard<'_, ProgressBar> {
        self.bar.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
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
