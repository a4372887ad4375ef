//! One file per command.

mod doctor;
mod explain;
mod filetests;
mod input;
mod output;
mod prove;
mod ptx;
mod run;
mod sanitize;
mod verify;

use annotate_snippets::Renderer;
use std::process::ExitCode;

#[derive(clap::Subcommand)]
pub enum Command {
    Prove(prove::Arguments),
    Sanitize(sanitize::Arguments),
    Run(run::Arguments),
    Ptx(ptx::Arguments),
    Explain(explain::Arguments),
    Filetests(filetests::Arguments),
    Verify(verify::Arguments),
    Doctor(doctor::Arguments),
}

impl Command {
    pub fn execute(self) -> anyhow::Result<Exit> {
        match self {
            Command::Prove(arguments) => prove::execute(&arguments),
            Command::Sanitize(arguments) => sanitize::execute(&arguments),
            Command::Run(arguments) => run::execute(&arguments),
            Command::Ptx(arguments) => ptx::execute(&arguments),
            Command::Explain(arguments) => explain::execute(&arguments),
            Command::Filetests(arguments) => filetests::execute(&arguments),
            Command::Verify(arguments) => verify::execute(&arguments),
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

    /// What an error means for the exit code.
    pub fn of(error: &anyhow::Error) -> Exit {
        if let Some(cuda::Error::NoDriver | cuda::Error::NoGpu) = error.downcast_ref() {
            return Exit::Undecided;
        }
        let unsupported = match (error.downcast_ref::<launch::Error>(), error.downcast_ref::<emulator::Error>()) {
            (Some(error), _) | (_, Some(emulator::Error::Recipe(error))) => is_unsupported(error),
            (_, Some(emulator::Error::Unsupported { .. } | emulator::Error::Feature(_))) => true,
            _ => false,
        };
        if unsupported { Exit::Unsupported } else { Exit::BadInput }
    }
}

fn is_unsupported(error: &launch::Error) -> bool {
    matches!(error, launch::Error::Ptx(diagnostics) if diagnostics.only_unsupported())
}

/// An error as the user reads it: diagnostics with their lines, everything else as a sentence.
pub fn describe(error: &anyhow::Error) -> String {
    let diagnostics = match (error.downcast_ref::<launch::Error>(), error.downcast_ref::<emulator::Error>()) {
        (Some(launch::Error::Ptx(all)), _) | (_, Some(emulator::Error::Recipe(launch::Error::Ptx(all)))) => Some(all),
        _ => None,
    };
    match diagnostics {
        Some(all) => all.render(&Renderer::styled()),
        None => format!("error: {error:#}"),
    }
}

/// Where `--backend` sends a kernel.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendName {
    #[default]
    Emulator,
    Cuda,
}

/// Refuses a module that the verifier refuses.
pub fn check_module(kernel: &launch::Kernel) -> Result<(), launch::Error> {
    let all = ::ptx::verify(&kernel.parsed);
    if all.is_empty() {
        return Ok(());
    }
    Err(::ptx::Diagnostics { source: kernel.parsed.source.clone(), all }.into())
}
