//! What is run again: the emulator, and tools of the same version.

use rayon::prelude::*;

use super::{CheckResult, Verifier};
use crate::assembly;
use crate::case::Case;
use crate::guard::Guard;
use crate::pack::{DRIVER, code_path};
use crate::prove::Bench;
use crate::stages::code::gpu::Listing;
use crate::stages::half::Half;
use crate::stages::{Evidence, Record, Stage, assemble};
use crate::{Error, Tool, Toolbox};

impl Verifier<'_> {
    /// The emulator stages give the same figures again, to the last digit.
    pub(super) fn emulator(&self, bench: &Bench, evidence: &Evidence) -> Result<CheckResult, Error> {
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
    pub(super) fn assemble(&self, bench: &Bench, evidence: &Evidence) -> Result<CheckResult, Error> {
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
    pub(super) fn code(&self, bench: &Bench, evidence: &Evidence) -> Result<CheckResult, Error> {
        let (Record::Ran(assembled), Record::Ran(logged)) = (&evidence.assemble, &evidence.code) else {
            return Ok(CheckResult::NotChecked { why: "the stage code was not run".into() });
        };
        let found = self.options.tools.nvdisasm.as_ref();
        let Some(tool) = found.filter(|tool| tool.version == logged.nvdisasm) else {
            let older = if evidence.code_gpu == Half::NotAsked { format!("; {OLDER}") } else { String::new() };
            let why = other_version("nvdisasm", &logged.nvdisasm, found) + &older;
            return Ok(CheckResult::NotChecked { why });
        };
        let targets = |(case, entry): (&'_ Case, &'_ assemble::Entry)| {
            let paths =
                |one: &assemble::Assembled| ["cubin", "sass"].map(|kind| code_path(&case.name, &one.target, kind));
            entry.assembled.iter().map(paths).collect::<Vec<_>>()
        };
        let mut paths: Vec<[String; 2]> = bench.cases.iter().zip(&assembled.kernels).flat_map(targets).collect();
        if let Half::Ran(log) = &evidence.code_gpu {
            let of_driver = |listing: &Listing| ["cubin", "sass"].map(|kind| code_path(&listing.kernel, DRIVER, kind));
            paths.extend(log.listings.iter().map(of_driver));
        }
        let differs = paths.par_iter().find_first(|[cubin, sass]| {
            self.squeezed(cubin).is_some_and(|cubin| {
                let again = assembly::disassemble(&cubin, tool);
                again.ok() != self.squeezed_text(sass)
            })
        });
        Ok(match differs {
            Some([_, sass]) => CheckResult::Broken { why: format!("{sass} is not the code of the cubin") },
            None if evidence.code_gpu == Half::NotAsked => {
                CheckResult::NotChecked { why: format!("ptxas' code holds; {OLDER}") }
            }
            None => CheckResult::Holds,
        })
    }
}

const OLDER: &str = "the pack is older than the questions what the driver made of the kernels, what a launch cost whom, and which samples were taken again";

fn other_version(name: &str, version: &str, found: Option<&Tool>) -> String {
    match found {
        None => format!("{name} {version} is not here"),
        Some(tool) => format!("the pack was made with {name} {version}, and here is {}", tool.version),
    }
}
