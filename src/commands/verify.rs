//! `verify`: does a pack hold what it claims?

use super::Exit;
use super::gate::{Judged, JudgedBy};
use super::github::Job;
use super::output::{PackFormat, print_json};
use super::prove::{Watch, stages_json};
use lab::{Check, CheckResult, Verification, VerifyOptions};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Checks a pack: hashes, verdicts derived again from its logs, and the emulator stages run again
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash verify pack\n  veriflash verify pack --no-rerun      hashes and verdicts only\n  veriflash verify pack --gate merge    exits 0 only if the pack is accepted and the gate holds"
)]
pub struct Arguments {
    /// The folder of the pack
    pack: PathBuf,

    /// Do not run the kernels again
    #[arg(long)]
    no_rerun: bool,

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
    let gates = arguments.judged_by.gates()?;
    let watch = Watch::new()?;
    let _heartbeat = watch.heartbeat("verify");
    let options = VerifyOptions { rerun: !arguments.no_rerun, progress: &watch, ..VerifyOptions::default() };
    let verification = lab::verify(&arguments.pack, &options).map_err(lab::Error::of_reader)?;
    let judged = gates.judge(&verification.outcomes, &options, || Ok(verification.clone()))?;
    // What a pack says counts only if it is accepted.
    let exit = if verification.accepted() { judged.exit().unwrap_or(Exit::Clean) } else { Exit::Findings };
    match arguments.format {
        PackFormat::Json => print_json("verify", exit.verdict(), exit, verification_json(&verification, &judged)),
        PackFormat::Github => {
            let job = Job::new("verify").checks(&verification.checks);
            let job = if verification.accepted() { job.stages(&verification.outcomes).gates(&judged) } else { job };
            job.finish(&sentence(&verification));
        }
        PackFormat::Text => {
            print!("{}", verification.table());
            if verification.accepted() {
                judged.lines().for_each(|line| println!("{line}"));
            }
            println!("{}", sentence(&verification));
        }
    }
    Ok(exit)
}

fn verification_json(verification: &Verification, judged: &Judged) -> Value {
    let check = |check: &Check| {
        let (result, why) = match &check.result {
            CheckResult::Holds => ("holds", None),
            CheckResult::Broken { why } => ("broken", Some(why)),
            CheckResult::NotChecked { why } => ("not checked", Some(why)),
        };
        json!({ "check": check.what, "result": result, "why": why })
    };
    json!({
        "checks": verification.checks.iter().map(check).collect::<Vec<_>>(),
        "stages": stages_json(&verification.outcomes),
        "gates": if verification.accepted() { judged.json() } else { json!([]) },
    })
}

/// Whether the pack is what it says it is, and, if so, what it says of its kernels.
fn sentence(verification: &Verification) -> String {
    let tally = verification.tally();
    match (verification.accepted(), tally.failed) {
        (false, _) => "REJECTED".into(),
        (true, 0) => format!("accepted: {tally}"),
        (true, _) => format!("accepted, and it says that its kernels FAIL: {tally}"),
    }
}
