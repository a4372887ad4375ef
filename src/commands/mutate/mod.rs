//! `mutate`: each synchronisation of a kernel taken away or weakened in turn, and whether the checks notice.

mod json;
mod machine_code;
mod table;

use super::Exit;
use super::heartbeat::{self, Heartbeat};
use super::input::{BuiltIn, RecipeFlags};
use super::output::{Format, print_json};
use anyhow::Context;
use emulator::mutate::{Mutant, Trial, Verdict, assigned};
use indicatif::{ProgressBar, ProgressStyle};
use launch::{Finding, Kernel};
use machine_code::Assembler;
use rayon::prelude::*;
use std::path::PathBuf;
use std::time::Instant;

/// Takes away or weakens each synchronisation of a kernel in turn and tells whether the checks notice
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash mutate kernel.ptx\n  veriflash mutate corpus/*.toml               a table for each, and one for all\n  veriflash mutate kernel.ptx --list           every mutant with its verdict\n  veriflash mutate --problem 'B1 H1 Sq33 Sk161 D64 causal'\n  veriflash mutate kernel.ptx --format json\n  veriflash mutate bare.ptx --arg 'x=f32[64]:ramp' --block 64\n\nExit codes: 0 every mutant is caught, or proven equivalent, or was not executed; 1 some were missed."
)]
pub struct Arguments {
    /// Kernels, each a `.ptx` whose header is its recipe, a `.ptx` with a `.toml` of the same name beside it, or such a
    /// `.toml`
    #[arg(required_unless_present = "problem", conflicts_with = "problem", value_name = "KERNEL")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    built_in: BuiltIn,

    #[command(flatten)]
    flags: RecipeFlags,

    /// How many schedules a mutant runs under before it counts as unnoticed
    #[arg(long, default_value_t = emulator::DEFAULT_SEEDS, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// Fills buffers whose `init` has no seed of its own
    #[arg(long, default_value_t = 0)]
    data_seed: u64,

    /// Print every mutant, not only those that nobody noticed
    #[arg(long)]
    list: bool,

    /// How the result is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The mutants of one kernel, each with its verdict over all launches.
pub struct Judged {
    /// The recipes of the kernel as the command line names them.
    names: Vec<String>,
    /// Its PTX.
    file: String,
    mutants: Vec<(Mutant, Verdict)>,
    /// What the kernel is blamed for without any mutation.
    findings: Vec<Finding>,
    /// Which of its results are not what its recipe expects.
    failures: Vec<String>,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let kernels = arguments.kernels()?;
    let (start, bar) = (Instant::now(), progress_bar());
    let _heartbeat = Heartbeat::new("mutate", heartbeat::place("mutants", &bar));
    let judged = by_module(&kernels).into_par_iter().map(|witnesses| arguments.judge(&witnesses, &bar));
    let judged = judged.collect::<anyhow::Result<Vec<Judged>>>()?;
    bar.finish_and_clear();
    let count: usize = judged.iter().map(|one| one.mutants.len()).sum();
    let missed = judged.iter().flat_map(|one| &one.mutants).any(|(_, verdict)| matches!(verdict, Verdict::Missed(_)));
    let idle = judged.iter().any(Judged::is_idle);
    let exit = if idle && !missed { Exit::Undecided } else { Exit::of_findings(missed) };
    match arguments.format {
        Format::Json => print_json("mutate", exit.verdict(), exit, json::document(&judged)),
        Format::Text => print!("{}", table::report(&judged, arguments.list)),
    }
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{count} mutants in {seconds:.1} s: {:.0} per second", count as f64 / seconds);
    if idle {
        eprintln!(
            "not decided: no mutant of a kernel was executed, so nothing was tried; does the launch reach its instructions?"
        );
    }
    Ok(exit)
}

impl Judged {
    /// Whether there were mutants, none of which ran: nothing was shown. A kernel that nothing synchronises has none.
    fn is_idle(&self) -> bool {
        let mut verdicts = self.mutants.iter().map(|(_, verdict)| verdict);
        !self.mutants.is_empty() && verdicts.all(|verdict| matches!(verdict, Verdict::NotExecuted))
    }
}

impl Arguments {
    fn kernels(&self) -> anyhow::Result<Vec<(String, Kernel)>> {
        if self.files.is_empty() {
            let kernel = self.built_in.kernel()?;
            return Ok(vec![(kernel.name.clone(), kernel)]);
        }
        let open = |path: &PathBuf| {
            self.built_in.refuse_beside_file(path)?;
            Ok((path.display().to_string(), self.flags.open(path, self.built_in.arch)?))
        };
        self.files.iter().map(open).collect()
    }

    /// Each mutant of one module under every recipe that runs it.
    fn judge(&self, witnesses: &[&(String, Kernel)], bar: &ProgressBar) -> anyhow::Result<Judged> {
        let trials = witnesses.iter().map(|one| self.trial(&one.0, &one.1)).collect::<anyhow::Result<Vec<_>>>()?;
        let all = assigned(&trials);
        let kernel = &witnesses[0].1;
        let assembler = Assembler::new(kernel);
        bar.inc_length(all.len() as u64);
        let judge = |(mutant, trials): (Mutant, Vec<&Trial>)| {
            let verdict = assembler.confirm(&mutant, emulator::mutate::judge(&mutant, &trials));
            bar.inc(1);
            (mutant, verdict)
        };
        let mutants = all.into_par_iter().map(judge).collect();
        let findings = trials.iter().flat_map(Trial::own_findings).cloned().collect();
        let failures = trials.iter().flat_map(Trial::own_failures).collect();
        let names = witnesses.iter().map(|(name, _)| name.clone()).collect();
        Ok(Judged { names, file: kernel.file().into(), mutants, findings, failures })
    }

    fn trial<'k>(&self, name: &str, kernel: &'k Kernel) -> anyhow::Result<Trial<'k>> {
        super::check_module(kernel)?;
        Trial::new(kernel, self.seeds, self.data_seed).with_context(|| name.to_string())
    }
}

/// Recipes that run the same module together, in the order of the first of each.
fn by_module(kernels: &[(String, Kernel)]) -> Vec<Vec<&(String, Kernel)>> {
    let mut groups: Vec<(String, Vec<&(String, Kernel)>)> = vec![];
    for one in kernels {
        let hash = one.1.hash();
        match groups.iter_mut().find(|(known, _)| *known == hash) {
            Some((_, group)) => group.push(one),
            None => groups.push((hash, vec![one])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// On a terminal; nothing in a pipe.
fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("mutants {bar:30} {pos}/{len}").unwrap_or(ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style)
}
