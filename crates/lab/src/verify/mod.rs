//! Does a pack hold what it claims? Nothing in it is believed that can be computed again.

use std::collections::BTreeSet;
use std::path::Path;

use launch::{Kernel, Recipe, hash};
use rayon::prelude::*;

use crate::assembly;
use crate::case::Case;
use crate::figures::Subject;
use crate::gate::Made;
use crate::guard::Guard;
use crate::outcome::{Outcome, Tally};
use crate::pack::manifest::{Manifest, Predicate, StageLine};
use crate::pack::{Files, MANIFEST, REPORT, SUMS, kernel_path, recipe_text, sums, write};
use crate::prove::Bench;
use crate::report::{self, Facts};
use crate::stages::code::Disassembly;
use crate::stages::{Evidence, Record, Stage, assemble, bench, code, profile, resources, sanitize};
use crate::{Error, Progress, Settings, Silent, Tool, Toolbox};

/// How much is done.
pub struct VerifyOptions<'a> {
    /// Run the emulator stages again.
    pub rerun: bool,
    /// Tools to assemble and disassemble with again.
    pub tools: Toolbox,
    pub progress: &'a dyn Progress,
}

impl Default for VerifyOptions<'_> {
    fn default() -> Self {
        VerifyOptions { rerun: true, tools: Toolbox::find(), progress: &Silent }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub what: &'static str,
    pub result: CheckResult,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckResult {
    Holds,
    Broken { why: String },
    NotChecked { why: String },
}

/// What became of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    pub checks: Vec<Check>,
    /// As derived from the logs; empty if they cannot be read.
    pub outcomes: Vec<Outcome>,
    /// What its manifest says; nothing if it cannot be read.
    pub made: Option<Made>,
}

impl Verification {
    /// Nothing is broken. What was not checked is among the checks.
    pub fn accepted(&self) -> bool {
        !self.checks.iter().any(|check| matches!(check.result, CheckResult::Broken { .. }))
    }

    /// The first thing that is broken.
    pub fn fault(&self) -> Option<&str> {
        self.checks.iter().find_map(|check| match &check.result {
            CheckResult::Broken { why } => Some(why.as_str()),
            _ => None,
        })
    }

    /// One line per check.
    pub fn table(&self) -> String {
        let line = |check: &Check| match &check.result {
            CheckResult::Holds => format!("{:<12} holds\n", check.what),
            CheckResult::Broken { why } => format!("{:<12} BROKEN: {why}\n", check.what),
            CheckResult::NotChecked { why } => format!("{:<12} not checked: {why}\n", check.what),
        };
        self.checks.iter().map(line).collect()
    }

    /// What the pack claims, and whether it holds.
    pub fn tally(&self) -> Tally {
        Tally::of(&self.outcomes)
    }
}

/// The checks, in order. Later ones trust nothing that an earlier one found broken.
const CHECKS: [&str; 8] = ["files", "manifest", "kernels", "logs", "report", "emulator", "assemble", "code"];

/// An error means that there is no pack to speak of.
pub fn verify(folder: &Path, options: &VerifyOptions) -> Result<Verification, Error> {
    let files = write::read(folder)?;
    if !files.contains_key(MANIFEST) && !files.contains_key(SUMS) {
        return Err(Error::folder(folder, format!("is no pack: it has neither {MANIFEST} nor {SUMS}")));
    }
    verify_without(&files, options, &[])
}

/// What would become of it if these checks did not exist.
pub(crate) fn verify_without(files: &Files, options: &VerifyOptions, off: &[Guard]) -> Result<Verification, Error> {
    let mut verifier = Verifier { off, ..Verifier::new(files, options) };
    let stopped = verifier.run()?;
    let Verifier { mut checks, outcomes, made, .. } = verifier;
    if let Err(why) = stopped {
        checks.push(Check { what: CHECKS[checks.len()], result: CheckResult::Broken { why } });
    }
    for what in &CHECKS[checks.len()..] {
        checks.push(Check { what, result: CheckResult::NotChecked { why: "the pack is broken".into() } });
    }
    Ok(Verification { checks, outcomes, made })
}

/// A pack that holds as far as can be told without running anything.
pub(crate) struct Opened {
    pub files: Files,
    pub manifest: Manifest,
    pub cases: Vec<Case>,
    pub evidence: Evidence,
    pub outcomes: Vec<Outcome>,
}

/// Reads a pack by the checks that need no run; an error is what is broken.
pub(crate) fn open(folder: &Path) -> Result<Opened, String> {
    let files = write::read(folder).map_err(|error| error.to_string())?;
    let options = VerifyOptions { rerun: false, tools: Toolbox::none(), progress: &Silent };
    let mut verifier = Verifier::new(&files, &options);
    let (manifest, cases, evidence) = verifier.read()?;
    let outcomes = verifier.outcomes;
    Ok(Opened { manifest, cases, evidence, outcomes, files })
}

struct Verifier<'a> {
    files: &'a Files,
    options: &'a VerifyOptions<'a>,
    /// Checks that are left out, by the red team alone.
    off: &'a [Guard],
    checks: Vec<Check>,
    outcomes: Vec<Outcome>,
    made: Option<Made>,
}

/// Why a check is broken.
type Broken = Result<(), String>;

impl<'a> Verifier<'a> {
    fn new(files: &'a Files, options: &'a VerifyOptions<'a>) -> Verifier<'a> {
        Verifier { files, options, off: &[], checks: Vec::new(), outcomes: Vec::new(), made: None }
    }
}

impl Verifier<'_> {
    fn asks(&self, guard: Guard) -> bool {
        !self.off.contains(&guard)
    }

    /// Goes through the checks; the inner error is what the next check found.
    fn run(&mut self) -> Result<Broken, Error> {
        let (manifest, cases, evidence) = match self.read() {
            Ok(read) => read,
            Err(why) => return Ok(Err(why)),
        };
        let bench = Bench { cases: &cases, settings: &manifest.predicate.settings, progress: self.options.progress };
        for check in [Verifier::emulator, Verifier::assemble, Verifier::code] {
            match check(self, &bench, &evidence)? {
                CheckResult::Broken { why } => return Ok(Err(why)),
                result => self.push(result),
            }
        }
        Ok(Ok(()))
    }

    fn push(&mut self, result: CheckResult) {
        self.checks.push(Check { what: CHECKS[self.checks.len()], result });
    }

    /// Everything that can be checked without running anything.
    fn read(&mut self) -> Result<(Manifest, Vec<Case>, Evidence), String> {
        if self.asks(Guard::Hashes) {
            sums::check(self.files)?;
        }
        self.push(CheckResult::Holds);
        let manifest = Manifest::read(self.files)?;
        self.push(CheckResult::Holds);
        self.made = Some(manifest.made());
        let cases = self.cases(&manifest)?;
        self.push(CheckResult::Holds);
        let evidence = self.logs(&manifest, &cases)?;
        self.push(CheckResult::Holds);
        let Predicate { version, command, cost, .. } = &manifest.predicate;
        let facts = Facts { version, command, cases: &cases, evidence: &evidence, outcomes: &self.outcomes, cost };
        if self.files.get(REPORT).map(Vec::as_slice) != Some(report::markdown(&facts).as_bytes()) {
            return Err(format!("{REPORT} does not say what follows from the logs"));
        }
        self.push(CheckResult::Holds);
        Ok((manifest, cases, evidence))
    }

    fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.files.get(path)?).ok()
    }

    /// The kernels of the manifest, read from their files.
    fn cases(&self, manifest: &Manifest) -> Result<Vec<Case>, String> {
        let mut cases: Vec<Case> = Vec::new();
        for claimed in &manifest.predicate.kernels {
            let name = &claimed.subject.kernel;
            let case = self.case(name).map_err(|error| format!("kernel {name}: {error}"))?;
            if case.subject() != claimed.subject || case.problem.to_string() != claimed.problem {
                return Err(format!("kernel {name} is not the one that the manifest names"));
            }
            if cases.iter().any(|other| other.name == case.name) {
                return Err(format!("kernel {name} is there twice"));
            }
            cases.push(case);
        }
        Ok(cases)
    }

    fn case(&self, name: &str) -> Result<Case, String> {
        let text = |file: &str| {
            let path = kernel_path(name, file);
            self.text(&path).map(|text| (path.clone(), text)).ok_or_else(|| format!("{path} is missing or not text"))
        };
        let ((ptx_path, ptx), (toml_path, toml)) = (text("kernel.ptx")?, text("kernel.toml")?);
        let recipe = Recipe::parse(&toml_path, toml).map_err(|error| error.to_string())?;
        let kernel = Kernel::with_text(&ptx_path, ptx, recipe).map_err(|error| error.to_string())?;
        let case = Case::new(kernel).map_err(|error| error.to_string())?.named(name);
        if recipe_text(&case) != toml || case.name != name {
            return Err("recipe or name is not in the form that is written".into());
        }
        Ok(case)
    }

    /// Verdicts are derived again; logs agree with the manifest, with each other and with the files they speak of.
    fn logs(&mut self, manifest: &Manifest, cases: &[Case]) -> Result<Evidence, String> {
        let evidence = Evidence::read(|path| self.text(path))?;
        let subjects: Vec<Subject> = cases.iter().map(Case::subject).collect();
        self.outcomes = evidence.outcomes(&subjects);
        let derived: Vec<StageLine> = self.outcomes.iter().map(StageLine::of).collect();
        if self.asks(Guard::Derived) && derived != manifest.predicate.stages {
            let differs = derived.iter().zip(&manifest.predicate.stages).position(|(left, right)| left != right);
            let stage = differs.map_or("stages".to_string(), |index| Stage::ALL[index].to_string());
            return Err(format!("{stage}: what the manifest says does not follow from the log"));
        }
        check_request(&manifest.predicate.settings, &evidence)?;
        if self.asks(Guard::OneHash) {
            self.machine_code(cases, &evidence)?;
        }
        self.expected_files(cases, &evidence)?;
        Ok(evidence)
    }

    /// `resources` follows from what ptxas said, `code` from the disassemblies, both from the cubins in the pack.
    fn machine_code(&self, cases: &[Case], evidence: &Evidence) -> Broken {
        let Record::Ran(assembled) = &evidence.assemble else { return Ok(()) };
        let mut disassembly = Disassembly::new();
        for (case, entry) in cases.iter().zip(&assembled.kernels) {
            for one in &entry.assembled {
                let path = |kind: &str| kernel_path(&case.name, &format!("kernel.{}.{kind}", one.target));
                let found = self.files.get(&path("cubin")).map(|cubin| hash::hex(cubin));
                if found != one.cubin {
                    return Err(format!("{} is not the cubin of the log", path("cubin")));
                }
                disassembly.extend(found.zip(self.text(&path("sass")).map(String::from)));
            }
        }
        if evidence.resources != Record::from(resources::run(cases, assembled)) {
            return Err("resources: the figures do not follow from what ptxas said".into());
        }
        if let Record::Ran(log) = &evidence.code
            && code::run(cases, assembled, &log.nvdisasm, &disassembly).as_ref() != Ok(log)
        {
            return Err("code: the figures do not follow from the disassembly".into());
        }
        Ok(())
    }

    /// A pack has the files that its logs speak of, and no others.
    fn expected_files(&self, cases: &[Case], evidence: &Evidence) -> Broken {
        let mut expected: BTreeSet<String> = [MANIFEST, SUMS, REPORT].map(String::from).into();
        expected.extend(Stage::ALL.map(Stage::log));
        for case in cases {
            expected.extend(["kernel.ptx", "kernel.toml"].map(|file| kernel_path(&case.name, file)));
        }
        if let Record::Ran(assembled) = &evidence.assemble {
            for (case, entry) in cases.iter().zip(&assembled.kernels) {
                for one in entry.assembled.iter().filter(|one| one.cubin.is_some()) {
                    let path = |kind: &str| kernel_path(&case.name, &format!("kernel.{}.{kind}", one.target));
                    expected.insert(path("cubin"));
                    expected.extend(matches!(evidence.code, Record::Ran(_)).then(|| path("sass")));
                }
            }
        }
        match self.files.keys().find(|path| !expected.contains(*path)) {
            Some(stray) => Err(format!("{stray} belongs to no log")),
            None => expected
                .iter()
                .find(|path| !self.files.contains_key(*path))
                .map_or(Ok(()), |path| Err(format!("{path} is missing"))),
        }
    }

    /// The emulator stages give the same figures again, to the last digit.
    fn emulator(&self, bench: &Bench, evidence: &Evidence) -> Result<CheckResult, Error> {
        if !self.options.rerun || !self.asks(Guard::Rerun) {
            return Ok(CheckResult::NotChecked { why: "not asked to run the emulator again".into() });
        }
        let differs = if bench.parity()? != evidence.parity {
            Some(Stage::Parity)
        } else if bench.sanitize()?.0 != evidence.sanitize {
            Some(Stage::Sanitize)
        } else {
            (bench.stress()? != evidence.stress).then_some(Stage::Stress)
        };
        Ok(match differs {
            None => CheckResult::Holds,
            Some(stage) => {
                let why = format!("{stage}: another run of the emulator gives other figures than the log");
                CheckResult::Broken { why }
            }
        })
    }

    /// Our verifier, and ptxas where it is of the same version, say and make the same again.
    fn assemble(&self, bench: &Bench, evidence: &Evidence) -> Result<CheckResult, Error> {
        let Record::Ran(logged) = &evidence.assemble else {
            return Ok(CheckResult::NotChecked { why: "the stage assemble was not run".into() });
        };
        let found = self.options.tools.ptxas.as_ref();
        let same_tool = found.filter(|tool| Some(&tool.version) == logged.ptxas.as_ref());
        let tools = Toolbox { ptxas: same_tool.cloned(), nvdisasm: None };
        let (again, machine_code) = bench.assemble(&tools)?;
        let Record::Ran(again) = again else {
            return Ok(CheckResult::NotChecked { why: "ptxas did not run again".into() });
        };
        let faults =
            |report: &assemble::Report| -> Vec<_> { report.kernels.iter().map(|entry| entry.faults.clone()).collect() };
        if faults(&again) != faults(logged) {
            return Ok(CheckResult::Broken { why: "assemble: the verifier says something else than the log".into() });
        }
        let Some(version) = &logged.ptxas else { return Ok(CheckResult::Holds) };
        if same_tool.is_none() {
            return Ok(CheckResult::NotChecked { why: other_version("ptxas", version, found) });
        }
        let mut files = bench.cases.iter().flat_map(|case| machine_code.files(case));
        let same = again == *logged && files.all(|(path, bytes)| self.files.get(&path) == Some(&bytes));
        Ok(if same {
            CheckResult::Holds
        } else {
            CheckResult::Broken { why: format!("assemble: ptxas {version} makes something else than is in the pack") }
        })
    }

    /// The disassemblies are those of the cubins.
    fn code(&self, bench: &Bench, evidence: &Evidence) -> Result<CheckResult, Error> {
        let (Record::Ran(assembled), Record::Ran(logged)) = (&evidence.assemble, &evidence.code) else {
            return Ok(CheckResult::NotChecked { why: "the stage code was not run".into() });
        };
        let found = self.options.tools.nvdisasm.as_ref();
        let Some(tool) = found.filter(|tool| tool.version == logged.nvdisasm) else {
            return Ok(CheckResult::NotChecked { why: other_version("nvdisasm", &logged.nvdisasm, found) });
        };
        let targets = |(case, entry): (&'_ Case, &'_ assemble::Entry)| {
            let stem = |one: &assemble::Assembled| kernel_path(&case.name, &format!("kernel.{}", one.target));
            entry.assembled.iter().map(stem).collect::<Vec<_>>()
        };
        let stems: Vec<String> = bench.cases.iter().zip(&assembled.kernels).flat_map(targets).collect();
        let differs = stems.par_iter().find_first(|stem| {
            let cubin = self.files.get(&format!("{stem}.cubin"));
            cubin.is_some_and(|cubin| {
                let again = assembly::disassemble(cubin, tool);
                again.as_deref().ok() != self.text(&format!("{stem}.sass"))
            })
        });
        Ok(match differs {
            Some(stem) => CheckResult::Broken { why: format!("{stem}.sass is not the code of the cubin") },
            None => CheckResult::Holds,
        })
    }
}

/// Logs answer the request, and stages that this version has not say nothing else than that.
fn check_request(settings: &Settings, evidence: &Evidence) -> Broken {
    let unable = evidence.bench == bench::run() && evidence.profile == profile::run();
    let seeded = match &evidence.parity {
        Record::Ran(log) => log.kernels.iter().all(|entry| entry.data_seed == settings.data_seed),
        Record::NotRun { .. } => true,
    };
    let seeds_of = |entry: &sanitize::Entry| entry.runs.iter().map(|run| run.seed).collect::<Vec<_>>();
    let sown = match &evidence.sanitize {
        Record::Ran(log) => log.kernels.iter().all(|entry| seeds_of(entry) == settings.seeds),
        Record::NotRun { .. } => true,
    };
    let stressed = match &evidence.stress {
        Record::Ran(log) => log.kernels.iter().all(|entry| entry.has_rounds(settings.rounds)),
        Record::NotRun { .. } => true,
    };
    match (unable, seeded && sown && stressed) {
        (false, _) => Err("bench or profile claims what this version of veriflash cannot do".into()),
        (_, false) => Err("a log has other seeds than the manifest".into()),
        (true, true) => Ok(()),
    }
}

fn other_version(name: &str, version: &str, found: Option<&Tool>) -> String {
    match found {
        None => format!("{name} {version} is not here"),
        Some(tool) => format!("the pack was made with {name} {version}, and here is {}", tool.version),
    }
}

#[cfg(test)]
mod tests;
