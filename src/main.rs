//! The command line: parse, run, print.

mod commands;

use clap::Parser;
use std::process::ExitCode;

/// Attention kernels for NVIDIA GPUs that can be trusted: check any PTX without a GPU, and prove what a kernel computes.
#[derive(Parser)]
#[command(
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 clean or pass, 1 findings or fail, 2 bad input, 3 unsupported instruction, 4 not decided."
)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command.execute() {
        Ok(exit) => exit.into(),
        Err(error) => {
            anstream::eprintln!("{}", commands::describe(&error));
            commands::Exit::of(&error).into()
        }
    }
}
