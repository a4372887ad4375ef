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
    end_quietly_when_nobody_reads();
    let arguments = Arguments::parse();
    let annotates = arguments.command.annotates();
    match arguments.command.execute() {
        Ok(exit) => exit.into(),
        Err(error) => {
            anstream::eprintln!("{}", commands::describe(&error));
            if annotates {
                commands::annotate(&error);
            }
            commands::Exit::of(&error).into()
        }
    }
}

/// `print!` panics when the reader of a pipe is gone (`veriflash explain forms | head`): that is no bug of ours, and no
/// pass either, because nobody has read the verdict.
fn end_quietly_when_nobody_reads() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload().downcast_ref::<String>().map_or("", String::as_str);
        if message.starts_with("failed printing to stdout") {
            std::process::exit(commands::Exit::Undecided as i32);
        }
        report(panic);
    }));
}
