//! Does a pack hold what it claims? Nothing in it is believed that can be computed again.

mod again;
mod consistency;

use std::collections::BTreeSet;
use std::path::Path;

use launch::{Kernel, Recipe, hash};

use crate::case::Case;
use crate::gate::Made;
use crate::guard::Guard;
use crate::outcome::{Outcome, Tally};
use crate::pack::manifest::{Claimed, Manifest, Predicate, StageLine};
use crate::pack::{
    DRIVER, Files, MANIFEST, PAGE, REPORT, SAMPLES, SUMS, code_path, kernel_path, recipe_text, squeezed, sums, write,
};
use crate::prove::{self, Bench};
use crate::report::{self, Facts};
use crate::stages::code::Disassembly;
use crate::stages::half::Half;
use crate::stages::{Evidence, Record, Stage, Subjects, code, resources};
use crate::{Error, Progress, Silent, Toolbox};

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
#[derive(Clone, Debug, PartialEq)]
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
        let bench = Bench::emulated(&cases, &manifest.predicate.settings, self.options.progress);
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
        let cases = self.cases(&manifest.predicate.kernels)?;
        let measured = self.cases(&manifest.predicate.measured)?;
        self.push(CheckResult::Holds);
        let evidence = self.logs(&manifest, &cases, &measured)?;
        self.push(CheckResult::Holds);
        let Predicate { version, command, cost, .. } = &manifest.predicate;
        let facts = Facts { version, command, cases: &cases, evidence: &evidence, outcomes: &self.outcomes, cost };
        for (path, text) in [(REPORT, report::markdown(&facts)), (PAGE, report::html(&facts, self.files))] {
            if self.files.get(path).map(Vec::as_slice) != Some(text.as_bytes()) {
                return Err(format!("{path} does not say what follows from the logs"));
            }
        }
        self.push(CheckResult::Holds);
        Ok((manifest, cases, evidence))
    }

    fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.files.get(path)?).ok()
    }

    fn squeezed(&self, path: &str) -> Option<Vec<u8>> {
        squeezed::unsqueeze(self.files.get(path)?)
    }

    fn squeezed_text(&self, path: &str) -> Option<String> {
        String::from_utf8(self.squeezed(path)?).ok()
    }

    /// Kernels of the manifest, read from their files.
    fn cases(&self, claims: &[Claimed]) -> Result<Vec<Case>, String> {
        let mut cases: Vec<Case> = Vec::new();
        for claimed in claims {
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
        let missing = |path: &str| format!("{path} is missing or not text");
        let [ptx_path, toml_path] = ["kernel.ptx", "kernel.toml"].map(|file| kernel_path(name, file));
        let toml = self.text(&toml_path).ok_or_else(|| missing(&toml_path))?;
        let ptx = self.text(&ptx_path).map(String::from);
        let ptx = ptx.or_else(|| self.squeezed_text(&format!("{ptx_path}{}", squeezed::ENDING)));
        let ptx = ptx.ok_or_else(|| missing(&ptx_path))?;
        let recipe = Recipe::parse(&toml_path, toml).map_err(|error| error.to_string())?;
        let kernel = Kernel::with_text(&ptx_path, &ptx, recipe).map_err(|error| error.to_string())?;
        let case = Case::new(kernel).map_err(|error| error.to_string())?.named(name);
        if recipe_text(&case) != toml || case.name != name {
            return Err("recipe or name is not in the form that is written".into());
        }
        Ok(case)
    }

    /// Verdicts are derived again; logs agree with the manifest, with each other and with the files they speak of.
    fn logs(&mut self, manifest: &Manifest, cases: &[Case], measured: &[Case]) -> Result<Evidence, String> {
        let evidence = Evidence::read(|path| self.text(path))?;
        self.outcomes = evidence.outcomes(&Subjects::of(cases, measured));
        let derived: Vec<StageLine> = self.outcomes.iter().map(StageLine::of).collect();
        if self.asks(Guard::Derived) && derived != manifest.predicate.stages {
            let differs = derived.iter().zip(&manifest.predicate.stages).position(|(left, right)| left != right);
            let stage = differs.map_or("stages".to_string(), |index| Stage::ALL[index].to_string());
            return Err(format!("{stage}: what the manifest says does not follow from the log"));
        }
        consistency::check(&manifest.predicate, &evidence, &cases.iter().chain(measured).collect::<Vec<_>>())?;
        if self.files.get(SAMPLES).cloned() != prove::samples(&evidence) {
            return Err(format!("{SAMPLES} does not have the samples of the log"));
        }
        if self.asks(Guard::OneHash) {
            self.machine_code(cases, &evidence)?;
        }
        self.expected_files(cases, measured, &evidence)?;
        Ok(evidence)
    }

    /// `resources` follows from what ptxas said, `code` from the disassemblies, both from the cubins in the pack.
    fn machine_code(&self, cases: &[Case], evidence: &Evidence) -> Broken {
        let Record::Ran(assembled) = &evidence.assemble else { return Ok(()) };
        let mut disassembly = Disassembly::new();
        for (case, entry) in cases.iter().zip(&assembled.kernels) {
            for one in &entry.assembled {
                let path = |kind: &str| code_path(&case.name, &one.target, kind);
                let found = self.squeezed(&path("cubin")).map(|cubin| hash::hex(&cubin));
                if found != one.cubin {
                    return Err(format!("{} is not the cubin of the log", path("cubin")));
                }
                disassembly.extend(found.zip(self.squeezed_text(&path("sass"))));
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
        self.driver_code(evidence)
    }

    /// What the stage says of the driver's code follows from the cubins and disassemblies in the pack.
    fn driver_code(&self, evidence: &Evidence) -> Broken {
        let Half::Ran(log) = &evidence.code_gpu else { return Ok(()) };
        for listing in &log.listings {
            let path = |kind: &str| code_path(&listing.kernel, DRIVER, kind);
            let cubin = self.squeezed(&path("cubin")).ok_or_else(|| format!("{} is missing", path("cubin")))?;
            let text = self.squeezed_text(&path("sass")).ok_or_else(|| format!("{} is missing", path("sass")))?;
            if code::gpu::Listing::read(&listing.kernel, &cubin, &text)? != *listing {
                return Err(format!("code: the figures do not follow from {}", path("sass")));
            }
        }
        Ok(())
    }

    /// A pack has the files that its logs speak of, and no others.
    fn expected_files(&self, cases: &[Case], measured: &[Case], evidence: &Evidence) -> Broken {
        let mut expected: BTreeSet<String> = [MANIFEST, SUMS, REPORT, PAGE].map(String::from).into();
        expected.extend(evidence.files().into_iter().map(|(path, _)| path));
        expected.extend(matches!(evidence.bench, Record::Ran(_)).then(|| SAMPLES.into()));
        for case in cases {
            expected.extend(["kernel.ptx", "kernel.toml"].map(|file| kernel_path(&case.name, file)));
        }
        for case in measured.iter().filter(|case| !cases.iter().any(|other| other.name == case.name)) {
            expected.extend(["kernel.ptx.gz", "kernel.toml"].map(|file| kernel_path(&case.name, file)));
        }
        if let Half::Ran(log) = &evidence.code_gpu {
            let paths =
                |listing: &code::gpu::Listing| ["cubin", "sass"].map(|kind| code_path(&listing.kernel, DRIVER, kind));
            expected.extend(log.listings.iter().flat_map(paths));
        }
        if let Record::Ran(assembled) = &evidence.assemble {
            for (case, entry) in cases.iter().zip(&assembled.kernels) {
                for one in entry.assembled.iter().filter(|one| one.cubin.is_some()) {
                    let path = |kind: &str| code_path(&case.name, &one.target, kind);
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
}

#[cfg(test)]
mod tests;
