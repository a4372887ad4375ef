//! What the emulator found, in the lines of the kernel, as the terminal shows it.

use std::collections::BTreeSet;

use annotate_snippets::Renderer;
use emulator::checks::Check;
use emulator::report::Reporter;
use launch::finding::{Event, Severity};
use launch::{Finding, Policy};
use ptx::Source;
use serde::Serialize;

use crate::case::Case;
use crate::figures::{Found, Spot};
use crate::pack::kernel_path;
use crate::report::Facts;
use crate::stages::Record;

/// Findings with their lines; one missing barrier may cause dozens.
const SHOWN: usize = 12;

#[derive(Serialize)]
pub(super) struct View {
    shown: Vec<Shown>,
    /// One line each for the others.
    others: Vec<String>,
    /// Why there is none.
    nothing: String,
}

#[derive(Serialize)]
struct Shown {
    kernel: String,
    check: String,
    severity: String,
    text: String,
}

/// Who found it, and how to meet it again.
struct Met<'a> {
    case: &'a Case,
    found: &'a Found,
    seed: u64,
    policy: Policy,
}

pub(super) fn view(facts: &Facts) -> View {
    let all = distinct(met(facts));
    View {
        shown: all.iter().take(SHOWN).map(Met::show).collect(),
        others: all.iter().skip(SHOWN).map(|met| format!("{}: {}", met.case.name, met.found)).collect(),
        nothing: if all.is_empty() { nothing(facts) } else { String::new() },
    }
}

fn nothing(facts: &Facts) -> String {
    match &facts.evidence.sanitize {
        Record::NotRun { why } => format!("sanitize was not run: {why}."),
        Record::Ran(log) => {
            let runs: usize = log.kernels.iter().map(|entry| entry.runs.len()).sum();
            format!("The emulator found nothing in {runs} runs under all its checks, and nothing under stress.")
        }
    }
}

/// In the order of kernels, those of `sanitize` before those of `stress`.
fn met<'a>(facts: &'a Facts) -> Vec<Met<'a>> {
    let case = |name: &str| facts.cases.iter().find(|case| case.name == name);
    let mut all = Vec::new();
    if let Record::Ran(log) = &facts.evidence.sanitize {
        for (entry, run) in log.kernels.iter().flat_map(|entry| entry.runs.iter().map(move |run| (entry, run))) {
            let (seed, policy) = (run.seed, Policy::of_seed(run.seed));
            let Some(case) = case(&entry.subject.kernel) else { continue };
            all.extend(run.findings.iter().map(|found| Met { case, found, seed, policy }));
        }
    }
    if let Record::Ran(log) = &facts.evidence.stress {
        for (entry, shown) in log.kernels.iter().flat_map(|entry| entry.shown.iter().map(move |shown| (entry, shown))) {
            let schedule = shown.schedules.iter().find_map(|(name, seeds)| Some((name.parse().ok()?, *seeds.first()?)));
            let (Some(case), Some((policy, seed))) = (case(&entry.subject.kernel), schedule) else { continue };
            all.extend(shown.findings.iter().map(|found| Met { case, found, seed, policy }));
        }
    }
    all
}

/// The first of each pair of lines and check; errors before warnings.
fn distinct(all: Vec<Met>) -> Vec<Met> {
    let mut known = BTreeSet::new();
    let mut distinct: Vec<Met> = all.into_iter().filter(|met| known.insert(met.key())).collect();
    distinct.sort_by_key(|met| !met.found.is_error());
    distinct
}

impl Met<'_> {
    /// Kernels of one module have one text: what is found in it is found once.
    fn key(&self) -> (String, String, u32, u32) {
        let lines = (self.found.first.line, self.found.second.as_ref().map_or(0, |second| second.line));
        let (low, high) = (lines.0.min(lines.1), lines.0.max(lines.1));
        (self.case.kernel.hash(), self.found.check.clone(), low, high)
    }

    fn show(&self) -> Shown {
        Shown {
            kernel: self.case.name.clone(),
            check: self.found.check.clone(),
            severity: self.found.severity.clone(),
            text: self.text().unwrap_or_else(|| self.found.to_string()),
        }
    }

    /// Nothing if it does not stand in the kernel's text.
    fn text(&self) -> Option<String> {
        let source = Source {
            name: kernel_path(&self.case.name, "kernel.ptx"),
            text: self.case.kernel.parsed.source.text.clone(),
        };
        let finding = self.finding(&source)?;
        let repeat = format!("veriflash sanitize {}", kernel_path(&self.case.name, "kernel.toml"));
        let reporter = Reporter {
            source: &source,
            repeat: &repeat,
            load: &|_| None,
            origin: &|_| None,
            renderer: Renderer::plain(),
        };
        Some(reporter.render(&finding))
    }

    fn finding(&self, source: &Source) -> Option<Finding> {
        let Found { message, missing, help, count, .. } = self.found.clone();
        let severity = [Severity::Error, Severity::Warning, Severity::Lint];
        Some(Finding {
            check: Check::find(&self.found.check)?.name,
            severity: severity.into_iter().find(|one| one.word() == self.found.severity)?,
            message,
            first: event(&self.found.first, source)?,
            second: match &self.found.second {
                Some(second) => Some(event(second, source)?),
                None => None,
            },
            missing,
            help,
            count,
            seed: self.seed,
            policy: self.policy,
        })
    }
}

/// Nothing if the place is not in the text: a log says what it likes.
fn event(spot: &Spot, source: &Source) -> Option<Event> {
    let line = source.text.lines().nth(usize::try_from(spot.line).ok()?.checked_sub(1)?)?;
    let column = usize::try_from(spot.column).ok()?.checked_sub(1)?;
    line.get(column..)?;
    let Spot { label, line, column, source: origin, cta, warp, lanes } = spot.clone();
    Some(Event { label, file: source.name.clone(), in_recipe: false, line, column, source: origin, cta, warp, lanes })
}
