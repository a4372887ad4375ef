//! The command line: parse, run, print.

mod commands;

use clap::Parser;
use std::io::Write;
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

/// How the standard library writes EPIPE.
const BROKEN_PIPE: &str = "(os error 32)";

fn main() -> ExitCode {
    end_when_nobody_reads();
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

/// `print!` panics when what it writes goes nowhere: that is no bug of ours, and no pass either, because nobody has read the
/// verdict. A reader who is gone (`veriflash explain forms | head`) wants no word of it; a full disk must be said.
fn end_when_nobody_reads() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload().downcast_ref::<String>().map_or("", String::as_str);
        if let Some(why) = message.strip_prefix("failed printing to stdout: ") {
            if !why.contains(BROKEN_PIPE) {
                // Standard error may be on the same disk.
                let _ = writeln!(std::io::stderr(), "error: standard output cannot be written: {why}");
            }
            std::process::exit(commands::Exit::Undecided as i32);
        }
        report(panic);
    }));
}
