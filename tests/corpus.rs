//! The corpus: every module reads, verifies and prints back, and every case that the emulator executes is right.
//!
//! `VERIFLASH_PTXAS=/path/to/ptxas cargo test --test corpus ptxas` has the printed modules assembled too; those of nvcc
//! 13.4 need a ptxas as new.

use libtest_mimic::{Arguments, Failed, Trial};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use veriflash::filetests::{Case, Judge, Verdict, corpus, find};

/// Cases that run; raise it whenever more do.
const RUNNING: usize = 199;
const CASES: usize = 199;
const SEEDS: u64 = 2;

fn main() -> ExitCode {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let cases = find(std::slice::from_ref(&folder)).expect("the corpus is readable");
    let missing: Vec<Option<String>> = cases.iter().map(corpus::unsupported).collect();
    let (total, running) = (cases.len(), missing.iter().filter(|name| name.is_none()).count());
    let mut trials: Vec<Trial> = modules(&folder.join("ptx")).into_iter().flat_map(module_trials).collect();
    trials.extend(cases.into_iter().zip(missing).map(|(case, missing)| case_trial(case, missing)));
    trials.push(Trial::test("the_number_of_running_cases_only_grows", move || check_count(total, running)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn modules(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder of modules is readable");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry is readable").path()).collect();
    paths.sort();
    paths
}

fn module_trials(path: PathBuf) -> [Trial; 2] {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (again, ptxas) = (path.clone(), std::env::var_os("VERIFLASH_PTXAS"));
    let missing = ptxas.is_none();
    let assemble = move || assemble(&ptxas.unwrap_or_default(), &again);
    [
        Trial::test(name.clone(), move || round_trip(&path)).with_kind("round trip"),
        Trial::test(name, assemble).with_kind("ptxas").with_ignored_flag(missing),
    ]
}

/// What the printer writes is the same module, and the verifier accepts it.
fn round_trip(path: &Path) -> Result<(), Failed> {
    let source = ptx::Source::new(path.display().to_string(), launch::module_text::read(path)?);
    let parsed = ptx::parse(&source)?;
    let printed = ptx::parse(&ptx::Source::new("printed.ptx", ptx::print(&parsed.module)))?;
    if printed.module != parsed.module {
        return Err("printed and read again it is another module".into());
    }
    match ptx::verify(&parsed).first() {
        Some(error) => Err(error.message.clone().into()),
        None => Ok(()),
    }
}

/// What the printer writes, ptxas takes.
fn assemble(ptxas: &OsStr, path: &Path) -> Result<(), Failed> {
    let source = ptx::Source::new(path.display().to_string(), launch::module_text::read(path)?);
    let module = ptx::parse(&source)?.module;
    let folder = tempfile::tempdir()?;
    let printed = folder.path().join("printed.ptx");
    std::fs::write(&printed, ptx::print(&module))?;
    let arch = format!("-arch={}", module.target);
    let run = Command::new(ptxas).arg(arch).arg("-o").arg(folder.path().join("out.cubin")).arg(&printed).output()?;
    if run.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&run.stderr).into_owned().into()) }
}

/// A case whose forms are not all executed is listed with the first of them, and must be skipped for that reason.
fn case_trial(case: Case, missing: Option<String>) -> Trial {
    let kind = missing.as_ref().map_or("run".into(), |name| format!("unsupported: {name}"));
    Trial::test(case.name.clone(), move || judge(&case, missing)).with_kind(kind)
}

fn judge(case: &Case, missing: Option<String>) -> Result<(), Failed> {
    let verdict = Judge { seeds: SEEDS, ..Judge::default() }.judge(case);
    let expected = missing.map_or(Verdict::Passed, |name| Verdict::Skipped(format!("unsupported: {name}")));
    match verdict {
        Verdict::Failed(problems) => Err(problems.join("\n").into()),
        verdict if verdict == expected => Ok(()),
        verdict => Err(format!("expected {expected:?}, found {verdict:?}").into()),
    }
}

fn check_count(total: usize, running: usize) -> Result<(), Failed> {
    match (total >= CASES, running >= RUNNING) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("the corpus has {total} cases: expected at least {CASES}").into()),
        (true, false) => Err(format!("{running} cases run: expected at least {RUNNING}").into()),
    }
}
