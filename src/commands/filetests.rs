//! `filetests`: cases that carry their own verdict.

use super::output::{Format, print_json};
use super::{BackendName, Exit};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::path::PathBuf;
use veriflash::filetests::{Case, Coverage, Executed, FormCoverage, Judge, Verdict, blessed, find};

/// Runs filetests: kernels that say themselves what they compute or which findings they cause
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash filetests                          all of them, on the emulator\n  veriflash filetests filetests/fail --seeds 50\n  veriflash filetests --backend cuda           the `run` cases, on a GPU\n  veriflash filetests --coverage               cases and operand sets per form, cases per check\n  veriflash filetests corpus                   kernels that nvcc and Triton wrote"
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

    /// List cases per instruction form and per check, and the most operand sets that one `run` case feeds to each form,
    /// by execution: all that one lane reads is one set, counted up to 64. A gap is a failure: a form or check without a
    /// case, a form with fewer sets than 64 (or than it has), a floating-point form that is never fed NaN, an infinity, a
    /// zero of either sign or a subnormal
    #[arg(long)]
    coverage: bool,

    /// How the result is written
    #[arg(long, value_enum, default_value_t, conflicts_with = "bless")]
    format: Format,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let cases = find(&arguments.paths).map_err(anyhow::Error::msg)?;
    let judge = Judge { seeds: arguments.seeds, ..Judge::default() };
    if arguments.bless {
        return bless(&cases, &judge);
    }
    if arguments.coverage {
        return Ok(show_coverage(&Coverage::of(&cases), arguments.format));
    }
    let verdicts: Vec<Verdict> = match arguments.backend {
        BackendName::Emulator => cases.par_iter().map(|case| judge.judge(case)).collect(),
        BackendName::Cuda => judge_on_gpu(&cases, &judge)?,
    };
    let failed = verdicts.iter().any(|verdict| matches!(verdict, Verdict::Failed(_)));
    let exit = Exit::of_findings(failed);
    match arguments.format {
        Format::Json => print_json("filetests", exit.verdict(), exit, verdicts_json(&cases, &verdicts)),
        Format::Text => print_verdicts(&cases, &verdicts),
    }
    Ok(exit)
}

/// One after the other. A kernel that fails on a GPU ends CUDA for the whole process: the cases behind it are judged by
/// a new one.
fn judge_on_gpu(cases: &[Case], judge: &Judge) -> anyhow::Result<Vec<Verdict>> {
    let backend = cuda::Cuda::open(0)?;
    let mut verdicts = vec![];
    for (index, case) in cases.iter().enumerate() {
        verdicts.push(judge.judge_on(case, &backend));
        let rest = &cases[index + 1..];
        if backend.is_lost() && !rest.is_empty() {
            drop(backend);
            verdicts.extend(judge_elsewhere(rest)?);
            return Ok(verdicts);
        }
    }
    Ok(verdicts)
}

/// The verdicts of another process of this program.
fn judge_elsewhere(cases: &[Case]) -> anyhow::Result<Vec<Verdict>> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.args(["filetests", "--backend", "cuda", "--format", "json"]).args(cases.iter().map(|case| &case.path));
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    let document: Value = serde_json::from_slice(&output.stdout)?;
    let listed = document["cases"].as_array().map_or(&[][..], Vec::as_slice);
    let verdict = |case: &Case| {
        let found = listed.iter().find(|one| one["case"] == case.name.as_str());
        let words = |one: &Value| one["why"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
        match found.map(|one| (one["verdict"].as_str(), words(one))) {
            Some((Some("passed"), _)) => Verdict::Passed,
            Some((Some("skipped"), why)) => Verdict::Skipped(why.join("; ")),
            Some((_, why)) => Verdict::Failed(why),
            None => Verdict::Failed(vec!["the process that should judge it did not".into()]),
        }
    };
    Ok(cases.iter().map(verdict).collect())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().into()
}

fn print_verdicts(cases: &[Case], verdicts: &[Verdict]) {
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
}

fn verdicts_json(cases: &[Case], verdicts: &[Verdict]) -> Value {
    let case = |(case, verdict): (&Case, &Verdict)| {
        let (word, why): (&str, &[String]) = match verdict {
            Verdict::Passed => ("passed", &[]),
            Verdict::Skipped(why) => ("skipped", std::slice::from_ref(why)),
            Verdict::Failed(problems) => ("failed", problems),
        };
        json!({ "case": case.name, "verdict": word, "why": why })
    };
    json!({ "cases": cases.iter().zip(verdicts).map(case).collect::<Vec<_>>() })
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

fn show_coverage(coverage: &Coverage, format: Format) -> Exit {
    let exit = Exit::of_findings(!coverage.gaps().is_empty());
    match format {
        Format::Json => print_json("filetests", exit.verdict(), exit, coverage_json(coverage)),
        Format::Text => print_coverage(coverage),
    }
    exit
}

/// The numbers of a form that only parses are null.
fn coverage_json(coverage: &Coverage) -> Value {
    let form = |form: &FormCoverage| {
        let executed = form.executed.as_ref();
        json!({
            "form": form.name,
            "spelling": form.spelling,
            "cases": executed.map(|one| one.cases),
            "operand_sets": executed.map(|one| one.sets),
            "needed_sets": executed.map(|one| one.needed),
            "missing_specials": executed.map(|one| &one.missing),
            "reason": executed.and_then(|one| one.reason),
        })
    };
    let forms: Vec<_> = coverage.forms.iter().map(form).collect();
    let checks = coverage.checks.iter().map(|(name, cases)| json!({ "check": name, "cases": cases }));
    json!({
        "forms": forms,
        "checks": checks.collect::<Vec<_>>(),
        "run_cases": coverage.run_cases,
        "gaps": coverage.gaps(),
    })
}

fn print_coverage(coverage: &Coverage) {
    println!("{:>5} {:>6}  form", "cases", "sets");
    for FormCoverage { spelling, executed, .. } in &coverage.forms {
        match executed {
            Some(Executed { cases, sets, reason, .. }) => {
                let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
                println!("{cases:>5} {sets:>6}  {spelling}{reason}");
            }
            None => println!("    -      -  {spelling} (parsed, not executed: held by a round-trip test)"),
        }
    }
    println!("\n{:>5}  check", "cases");
    coverage.checks.iter().for_each(|(name, cases)| println!("{cases:>5}  {name}"));
    let gaps = coverage.gaps();
    println!();
    gaps.iter().for_each(|gap| println!("gap: {gap}"));
    let executed = coverage.forms.iter().filter(|form| form.executed.is_some()).count();
    println!(
        "{executed} forms executed, {} parsed only, {} checks, {} `run` cases, {} forms below {} operand sets, {} gaps",
        coverage.forms.len() - executed,
        coverage.checks.len(),
        coverage.run_cases,
        coverage.hungry(),
        emulator::ENOUGH,
        gaps.len()
    );
}
