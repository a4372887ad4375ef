//! Judging a case: what it says of itself against what happens.

use super::case::{Case, Kind, WRONG_RESULT};
use super::corpus;
use super::expectation::{self, Expectation, Happening};
use emulator::{checks, sanitize, sanitize_under};
use launch::backend::{Backend, Options};
use launch::finding::Severity;
use launch::{Kernel, Limits, Memory, cure};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed(Vec<String>),
    /// The chosen backend cannot judge this case.
    Skipped(String),
}

impl Verdict {
    pub(super) fn of(problems: Vec<String>) -> Verdict {
        if problems.is_empty() { Verdict::Passed } else { Verdict::Failed(problems) }
    }
}

/// How cases are judged on the emulator.
#[derive(Clone, Copy, Debug)]
pub struct Judge {
    /// Schedules per case.
    pub seeds: u64,
    pub budget: u64,
}

/// Instructions that the warps of a `run` case may execute; the longest needs a thousandth of it.
const BUDGET: u64 = 5_000_000;
/// The same for `pass` and `fail` cases, which are small, and some of which do not end.
const SMALL_BUDGET: u64 = 50_000;

impl Default for Judge {
    fn default() -> Judge {
        Judge { seeds: emulator::DEFAULT_SEEDS, budget: BUDGET }
    }
}

impl Judge {
    /// Of every schedule, but for its seed.
    pub fn options(&self) -> Options {
        Options { instruction_budget: self.budget, ..Options::default() }
    }

    pub fn judge(&self, case: &Case) -> Verdict {
        let problems = match case.kind {
            Kind::Run => self.run(case),
            Kind::Pass => self.happenings(&case.name, &case.text).map(|found| expectation::compare(&[], &found)),
            Kind::Fail if case.is_about_results() => self.wrong_result(case),
            Kind::Fail | Kind::Lint => self.fail(case),
            Kind::Reject => reject(case),
            Kind::Corpus => return corpus::judge(case, self),
        };
        problems.map_or_else(|error| Verdict::Failed(vec![error]), Verdict::of)
    }

    /// On another backend only results can be judged.
    pub fn judge_on<B: Backend>(&self, case: &Case, backend: &B) -> Verdict {
        if !matches!(case.kind, Kind::Run | Kind::Corpus) {
            return Verdict::Skipped(format!("only `run` and `corpus` cases are judged on {}", backend.name()));
        }
        match run_on(case, backend) {
            Ok(problems) => Verdict::of(problems),
            Err(Verdict::Failed(problems)) if case.traps() && problems.iter().any(|one| one.contains(LOST)) => {
                Verdict::Passed
            }
            Err(verdict) => verdict,
        }
    }

    /// Every schedule gives the expected bytes, and no check finds anything.
    fn run(&self, case: &Case) -> Result<Vec<String>, String> {
        let kernel = kernel(&case.name, &case.text)?;
        let resolved = kernel.resolve(&Limits::default()).map_err(|error| error.to_string())?;
        if resolved.buffers.iter().all(|buffer| buffer.expectation.is_none()) {
            return Ok(vec!["no buffer has an `expect`: a `run` case says what it computes".into()]);
        }
        let seeds: Vec<u64> = (0..self.seeds).collect();
        let sanitized = sanitize(&kernel, &seeds, 0, &self.options()).map_err(|error| error.to_string())?;
        let mut problems = expectation::compare(&[], &expectation::happenings(&sanitized.findings));
        for (seed, _, memory) in &sanitized.runs {
            problems.extend(memory.failures(&resolved).iter().map(|failure| format!("seed {seed}: {failure}")));
        }
        Ok(problems)
    }

    fn fail(&self, case: &Case) -> Result<Vec<String>, String> {
        let expected = expectation::read(&case.text)?;
        if !expected.iter().any(|one| one.what != "note") {
            return Ok(vec!["no `//~ error[check]: TEXT` line: a `fail` case says what is found".into()]);
        }
        let mut problems = misfiled(case, &expected);
        problems.extend(expectation::compare(&expected, &self.happenings(&case.name, &case.text)?));
        match cure::cured(&case.name, &case.text).map_err(|error| error.to_string())? {
            Some(cured) => {
                let found = self.happenings(&case.name, &cured)?;
                problems.extend(expectation::compare(&[], &found).iter().map(|one| format!("cured: {one}")));
            }
            None => problems.push("no `//@ fix` line: a `fail` case brings its cure".into()),
        }
        Ok(problems)
    }

    /// Bugs that no check can see: every schedule gives wrong results, and only that. The line is that of the entry.
    fn wrong_result(&self, case: &Case) -> Result<Vec<String>, String> {
        let expected = expectation::read(&case.text)?;
        let entry =
            case.text.lines().zip(1..).find(|(line, _)| line.contains(".entry")).map_or(0, |(_, number)| number);
        let happening = |text: String| Happening { line: entry, what: format!("error[{WRONG_RESULT}]"), text };
        let found: Vec<Happening> = self.run(case)?.into_iter().map(happening).collect();
        let mut problems = expectation::compare(&expected, &found);
        if found.len() as u64 != self.seeds {
            problems.push(format!("{} problems under {} schedules: expected one each", found.len(), self.seeds));
        }
        match cure::cured(&case.name, &case.text).map_err(|error| error.to_string())? {
            Some(text) => {
                let cured = self.run(&Case { text, ..case.clone() })?;
                problems.extend(cured.iter().map(|one| format!("cured: {one}")));
            }
            None => problems.push("no `//@ fix` line: a `fail` case brings its cure".into()),
        }
        Ok(problems)
    }

    /// What the checks find, as lines.
    pub fn happenings(&self, name: &str, text: &str) -> Result<Vec<Happening>, String> {
        let kernel = kernel(name, text)?;
        let instruction_budget = self.budget.min(SMALL_BUDGET);
        let options = |seed| Options { seed, instruction_budget, ..asked_for(name) };
        let schedules: Vec<Options> = (0..self.seeds).map(options).collect();
        let sanitized = sanitize_under(&kernel, &schedules, 0).map_err(|error| error.to_string())?;
        Ok(expectation::happenings(&sanitized.findings))
    }
}

/// Lints and checks that must be asked for are on for cases in the folder of one: `lint/CHECK/COST.ptx`, `pass/CHECK/…`.
fn asked_for(name: &str) -> Options {
    let folder = name.split('/').nth(1).unwrap_or_default();
    let lints = checks::Check::find(folder).is_some_and(|check| check.severity == Severity::Lint);
    Options { lints, nan_birth: folder == checks::nan_birth::CHECK.name, ..Options::default() }
}

/// A `fail` case lies in the folder of a check that it expects: `fail/CHECK/BUG.ptx`.
fn misfiled(case: &Case, expected: &[Expectation]) -> Vec<String> {
    let folder = case.name.split('/').nth(1).unwrap_or_default();
    let known = checks::Check::find(folder).is_some();
    let expects = expected.iter().any(|one| one.what.ends_with(&format!("[{folder}]")));
    match (known, expects) {
        (false, _) => {
            vec![format!("the folder `{folder}` is no check: expected `fail/CHECK/BUG.ptx` or `lint/CHECK/COST.ptx`")]
        }
        (true, false) => vec![format!("expects no {folder}: move it to the folder of a check that it expects")],
        (true, true) => vec![],
    }
}

/// A kernel that the verifier accepts.
pub(super) fn kernel(name: &str, text: &str) -> Result<Kernel, String> {
    let kernel = Kernel::parse(name, text).map_err(|error| error.to_string())?;
    match ptx::verify(&kernel.parsed).first() {
        None => Ok(kernel),
        Some(error) => Err(format!("line {}: {}", kernel.parsed.source.position(error.span.start).line, error.message)),
    }
}

fn run_on<B: Backend>(case: &Case, backend: &B) -> Result<Vec<String>, Verdict> {
    let kernel = match case.kind {
        Kind::Corpus => corpus::kernel(case).map_err(failed)?,
        _ => kernel(&case.name, &case.text).map_err(failed)?,
    };
    let resolved = kernel.resolve(&Limits::default()).map_err(failed)?;
    let mut memory = Memory::new(&resolved, 0).map_err(failed)?;
    let mut loaded = backend.load(&kernel).map_err(stopped)?;
    backend.run(&mut loaded, &mut memory, &Options::default()).map_err(stopped)?;
    Ok(corpus::wrong(&kernel, &resolved, &memory))
}

/// What the GPU backend says of a kernel that trapped.
const LOST: &str = "the GPU context is lost";

fn failed(error: impl ToString) -> Verdict {
    Verdict::Failed(vec![error.to_string()])
}

/// What the GPU backend does not run yet is skipped, anything else is a failure.
fn stopped(error: impl std::error::Error + 'static) -> Verdict {
    match (&error as &dyn std::error::Error).downcast_ref() {
        Some(cuda::Error::Unsupported(what)) => Verdict::Skipped(format!("unsupported: {what}")),
        Some(cuda::Error::Jit { name, .. }) if name == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION" => {
            Verdict::Skipped("the driver is older than this PTX".into())
        }
        _ => failed(error),
    }
}

/// The parser or the verifier says what the case expects, line by line.
fn reject(case: &Case) -> Result<Vec<String>, String> {
    let expected = expectation::read(&case.text)?;
    let source = ptx::Source::new(&case.name, &case.text);
    let errors = match ptx::parse(&source) {
        Ok(parsed) => ptx::verify(&parsed),
        Err(diagnostics) => diagnostics.all,
    };
    let happening = |error: &ptx::Diagnostic| Happening {
        line: source.position(error.span.start).line,
        what: "error".into(),
        text: error.message.clone(),
    };
    let found: Vec<Happening> = errors.iter().map(happening).collect();
    if found.is_empty() {
        return Ok(vec!["nothing is refused".into()]);
    }
    Ok(expectation::compare(&expected, &found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_gpu_backend_lacks_is_skipped() {
        let skipped = stopped(cuda::Error::Unsupported("tensor maps"));
        assert_eq!(skipped, Verdict::Skipped("unsupported: tensor maps".into()));
        assert!(matches!(stopped(cuda::Error::NoGpu), Verdict::Failed(_)));
    }
}
