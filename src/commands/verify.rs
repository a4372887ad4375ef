//! `verify`: does a pack hold what it claims?

use super::Exit;
use super::prove::Watch;
use lab::VerifyOptions;
use std::path::PathBuf;

/// Checks a pack: hashes, verdicts derived again from its logs, and the emulator stages run again
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash verify evidence\n  veriflash verify evidence --no-rerun      hashes and verdicts only"
)]
pub struct Arguments {
    /// The folder of the pack
    pack: PathBuf,

    /// Do not run the kernels again
    #[arg(long)]
    no_rerun: bool,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let watch = Watch::new()?;
    let options = VerifyOptions { rerun: !arguments.no_rerun, progress: &watch, ..VerifyOptions::default() };
    let verification = lab::verify(&arguments.pack, &options)?;
    print!("{}", verification.table());
    println!("the pack claims: {}", verification.tally());
    println!("{}", if verification.accepted() { "accepted" } else { "REJECTED" });
    Ok(Exit::of_findings(!verification.accepted()))
}
