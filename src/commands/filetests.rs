//! `filetests`: cases that carry their own verdict.

use super::{BackendName, Exit};
use rayon::prelude::*;
use std::path::PathBuf;
use veriflash::filetests::{Case, Coverage, Judge, Verdict, blessed, find};

/// Runs filetests: kernels that say themselves what they compute or which findings they cause
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash filetests                          all of them, on the emulator\n  veriflash filetests filetests/fail --seeds 50\n  veriflash filetests --backend cuda           the `run` cases, on a GPU\n  veriflash filetests --coverage               cases per form and per check"
)]
pub struct Arguments {
    /// Files or folders
    #[arg(default_value = "filetests")]
    paths: Vec<PathBuf>,

    #[arg(long, value_enum, default_value_t)]
    backend: BackendName,

    /// Schedules per case
    #[arg(long, default_value_t = emulator::DEFAULT_SEEDS, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// Rewrite the `//~` lines of `fail` cases to what is found
    #[arg(long)]
    bless: bool,

    /// List cases per instruction form and per check; a gap is a failure
    #[arg(long)]
    coverage: bool,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let cases = find(&arguments.paths).map_err(anyhow::Error::msg)?;
    let judge = Judge { seeds: arguments.seeds, ..Judge::default() };
    if arguments.bless {
        return bless(&cases, &judge);
    }
    if arguments.coverage {
        return Ok(print_coverage(&Coverage::of(&cases)));
    }
    let verdicts: Vec<Verdict> = match arguments.backend {
        BackendName::Emulator => cases.par_iter().map(|case| judge.judge(case)).collect(),
        BackendName::Cuda => {
            let backend = cuda::Cuda::open(0)?;
            cases.iter().map(|case| judge.judge_on(case, &backend)).collect()
        }
    };
    Ok(print_verdicts(&cases, &verdicts))
}

fn print_verdicts(cases: &[Case], verdicts: &[Verdict]) -> Exit {
    for (case, verdict) in cases.iter().zip(verdicts) {
        match verdict {
            Verdict::Passed => println!("passed   {}", case.name),
            Verdict::Skipped(why) => println!("skipped  {}: {why}", case.name),
            Verdict::Failed(problems) => {
                println!("FAILED   {}", case.name);
                problems.iter().for_each(|problem| println!("         {problem}"));
            }
        }
    }
    let passed = verdicts.iter().filter(|verdict| **verdict == Verdict::Passed).count();
    let skipped = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Skipped(_))).count();
    let failed = verdicts.len() - passed - skipped;
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    Exit::of_findings(failed > 0)
}

fn bless(cases: &[Case], judge: &Judge) -> anyhow::Result<Exit> {
    for case in cases {
        let text = blessed(case, judge).map_err(|error| anyhow::anyhow!("{}: {error}", case.name))?;
        if let Some(text) = text.filter(|text| *text != case.text) {
            std::fs::write(&case.path, text)?;
            println!("blessed  {}", case.name);
        }
    }
    Ok(Exit::Clean)
}

fn print_coverage(coverage: &Coverage) -> Exit {
    println!("{:>5}  form", "cases");
    for (_, spelling, cases) in &coverage.forms {
        match cases {
            Some(cases) => println!("{cases:>5}  {spelling}"),
            None => println!("    -  {spelling} (parsed, not executed: held by a round-trip test)"),
        }
    }
    println!("\n{:>5}  check", "cases");
    coverage.checks.iter().for_each(|(name, cases)| println!("{cases:>5}  {name}"));
    let gaps = coverage.gaps();
    println!();
    gaps.iter().for_each(|gap| println!("gap: {gap}"));
    let executed = coverage.forms.iter().filter(|(_, _, cases)| cases.is_some()).count();
    println!(
        "{executed} forms executed, {} parsed only, {} checks, {} gaps",
        coverage.forms.len() - executed,
        coverage.checks.len(),
        gaps.len()
    );
    Exit::of_findings(!gaps.is_empty())
}
