//! One file per command.

mod bench;
mod bisect;
mod compare;
mod doctor;
mod explain;
mod file;
mod filetests;
mod gate;
mod github;
mod heartbeat;
mod input;
mod inspect;
mod leaderboard;
mod mutate;
mod origin;
mod output;
mod prove;
mod ptx;
mod red_team;
mod report;
mod run;
mod sanitize;
mod sarif;
mod severity;
mod trace;
mod verify;

use annotate_snippets::Renderer;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use launch::Policy;
use launch::backend::Precision;
use std::process::ExitCode;

#[derive(clap::Subcommand)]
pub enum Command {
    Prove(prove::Arguments),
    Sanitize(sanitize::Arguments),
    Run(run::Arguments),
    Mutate(mutate::Arguments),
    Bisect(bisect::Arguments),
    Bench(bench::Arguments),
    Leaderboard(leaderboard::Arguments),
    Ptx(ptx::Arguments),
    Inspect(inspect::Arguments),
    Explain(explain::Arguments),
    Filetests(filetests::Arguments),
    Verify(verify::Arguments),
    Report(report::Arguments),
    Compare(compare::Arguments),
    Doctor(doctor::Arguments),
}

impl Command {
    /// Is it asked for annotations of a pull request?
    pub fn annotates(&self) -> bool {
        match self {
            Command::Prove(arguments) => arguments.annotates(),
            Command::Sanitize(arguments) => arguments.annotates(),
            Command::Verify(arguments) => arguments.annotates(),
            _ => false,
        }
    }

    /// Does it look for tools of the CUDA toolkit?
    fn uses_tools(&self) -> bool {
        use Command::*;
        matches!(self, Prove(_) | Mutate(_) | Leaderboard(_) | Inspect(_) | Verify(_) | Doctor(_))
    }

    pub fn execute(self) -> anyhow::Result<Exit> {
        if self.uses_tools() {
            lab::tools::complaint().iter().for_each(|complaint| eprintln!("warning: {complaint}"));
        }
        match self {
            Command::Prove(arguments) => prove::execute(&arguments),
            Command::Sanitize(arguments) => sanitize::execute(&arguments),
            Command::Run(arguments) => run::execute(&arguments),
            Command::Mutate(arguments) => mutate::execute(&arguments),
            Command::Bisect(arguments) => bisect::execute(&arguments),
            Command::Bench(arguments) => bench::execute(&arguments),
            Command::Leaderboard(arguments) => leaderboard::execute(&arguments),
            Command::Ptx(arguments) => ptx::execute(&arguments),
            Command::Inspect(arguments) => inspect::execute(&arguments),
            Command::Explain(arguments) => explain::execute(&arguments),
            Command::Filetests(arguments) => filetests::execute(&arguments),
            Command::Verify(arguments) => verify::execute(&arguments),
            Command::Report(arguments) => report::execute(&arguments),
            Command::Compare(arguments) => compare::execute(&arguments),
            Command::Doctor(arguments) => doctor::execute(&arguments),
        }
    }
}

/// The exit codes of every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Clean = 0,
    Findings = 1,
    BadInput = 2,
    Unsupported = 3,
    Undecided = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

impl Exit {
    pub fn of_findings(findings: bool) -> Exit {
        if findings { Exit::Findings } else { Exit::Clean }
    }

    /// The verdict of commands that end with a pass or a fail.
    pub fn verdict(self) -> &'static str {
        match self {
            Exit::Clean => "pass",
            Exit::Findings => "fail",
            Exit::BadInput | Exit::Unsupported | Exit::Undecided => "undecided",
        }
    }

    /// What an error means for the exit code.
    pub fn of(error: &anyhow::Error) -> Exit {
        if is_undecided(error) {
            Exit::Undecided
        } else if is_unsupported(error) {
            Exit::Unsupported
        } else if let Some(cuda::Error::ContextLost { .. }) = error.downcast_ref() {
            // The kernel did something that the GPU stops: a fault of the kernel, not of what we read.
            Exit::Findings
        } else {
            Exit::BadInput
        }
    }
}

/// There is no GPU or no tool, somebody stopped the run, or what it would be judged by is broken.
fn is_undecided(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(cuda::Error::NoDriver | cuda::Error::NoGpu))
        || matches!(
            error.downcast_ref(),
            Some(
                lab::Error::Interrupted
                    | lab::Error::Stopped
                    | lab::Error::MissingTool(_)
                    | lab::Error::NoCompiler { .. }
                    | lab::Error::BrokenPack { .. }
            )
        )
}

fn is_unsupported(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(emulator::Error::Unsupported { .. }))
        || matches!(error.downcast_ref(), Some(cuda::Error::Unsupported(_)))
        || diagnostics(error).is_some_and(::ptx::Diagnostics::only_unsupported)
}

/// What is wrong with the PTX, whichever crate read it.
fn diagnostics(error: &anyhow::Error) -> Option<&::ptx::Diagnostics> {
    let inner = match (error.downcast_ref(), error.downcast_ref(), error.downcast_ref()) {
        (Some(lab::Error::Kernel(inner)), ..) => Some(inner),
        (_, Some(emulator::Error::Recipe(inner)), _) => Some(inner),
        (_, _, Some(cuda::Error::Recipe(inner))) => Some(inner),
        _ => error.downcast_ref::<launch::Error>(),
    };
    match inner {
        Some(launch::Error::Ptx(diagnostics)) => Some(diagnostics),
        _ => None,
    }
}

/// An error as the user reads it: diagnostics with their lines, everything else as a sentence.
pub fn describe(error: &anyhow::Error) -> String {
    match diagnostics(error) {
        Some(all) => all.render(&Renderer::styled()),
        None => format!("error: {error:#}"),
    }
}

/// The same for GitHub, on the line of the PTX where there is one.
pub fn annotate(error: &anyhow::Error) {
    let first = diagnostics(error).and_then(|all| Some((&all.source, all.all.first()?)));
    match first {
        Some((source, diagnostic)) => {
            let at = source.position(diagnostic.span.start);
            github::refused(Some((&source.name, at.line, at.column)), &diagnostic.message);
        }
        None => github::refused(None, &format!("{error:#}")),
    }
}

/// Where `--backend` sends a kernel.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendName {
    #[default]
    Emulator,
    Cuda,
}

/// How close to tensor cores the emulator multiplies matrices.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// To the bit
    #[default]
    Exact,
    /// Fused multiply-adds of f32: several times as fast, off in the last bits
    Fast,
}

impl From<Arithmetic> for Precision {
    fn from(arithmetic: Arithmetic) -> Precision {
        match arithmetic {
            Arithmetic::Exact => Precision::Exact,
            Arithmetic::Fast => Precision::Fast,
        }
    }
}

/// Refuses a module that the verifier refuses.
pub fn check_module(kernel: &launch::Kernel) -> Result<(), launch::Error> {
    let all = ::ptx::verify(&kernel.parsed);
    if all.is_empty() {
        return Ok(());
    }
    Err(::ptx::Diagnostics { source: kernel.parsed.source.clone(), all }.into())
}

/// Every policy with its line.
fn policies() -> impl TypedValueParser<Value = Policy> {
    let value = |policy: Policy| PossibleValue::new(policy.name()).help(policy.about());
    PossibleValuesParser::new(Policy::ALL.map(value)).try_map(|name| name.parse())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_writes_nothing_does_not_speak_of_it() {
        let said = lab::Error::Interrupted.of_reader().to_string();
        assert_eq!(said, "interrupted: there is no verdict, run it again");
        assert!(matches!(lab::Error::MissingTool("ptxas").of_reader(), lab::Error::MissingTool("ptxas")));
    }

    #[test]
    fn only_bad_input_is_called_bad_input() {
        assert_eq!(Exit::of(&lab::Error::Interrupted.into()), Exit::Undecided);
        assert_eq!(Exit::of(&lab::Error::Stopped.into()), Exit::Undecided);
        assert_eq!(Exit::of(&cuda::Error::NoGpu.into()), Exit::Undecided);
        assert_eq!(Exit::of(&cuda::Error::Unsupported("clusters").into()), Exit::Unsupported);
        let (place, name, text) = ("launch".into(), "CUDA_ERROR_ILLEGAL_ADDRESS".into(), String::new());
        assert_eq!(Exit::of(&cuda::Error::ContextLost { place, name, text }.into()), Exit::Findings);
        assert_eq!(Exit::of(&anyhow::anyhow!("no such file")), Exit::BadInput);
    }
}
