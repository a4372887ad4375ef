//! `ptx`: prints a built-in kernel as a complete case.

use super::Exit;
use super::input::BuiltIn;

/// Prints the kernel for a problem: PTX whose header is its recipe, ready for `sanitize`, `run` and `prove --kernel`
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash ptx --problem 'B2 H8 S512 D64 causal' > kernel.ptx\n  veriflash ptx --problem 'f16 B2 H2 Sq97 Sk161 D64' --config 1"
)]
pub struct Arguments {
    #[command(flatten)]
    kernel: BuiltIn,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    print!("{}", arguments.kernel.kernel()?.parsed.source.text);
    Ok(Exit::Clean)
}
