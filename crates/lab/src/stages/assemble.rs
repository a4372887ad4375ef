//! # assemble
//!
//! The PTX is well formed and typed for its target by our own verifier; where ptxas is found, it assembles the kernel
//! for every target. That cubin, made once, is the one that the stages `resources` and `code` read.

use std::collections::BTreeSet;

use launch::hash;
use serde::{Deserialize, Serialize};

use super::{Log, Stage, counted};
use crate::assembly::{self, Assembly};
use crate::case::Case;
use crate::figures::Subject;
use crate::guard::{Guard, Objection, Objections};
use crate::tools::INSTALL;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The version of ptxas, or nothing where it was not found.
    pub ptxas: Option<String>,
    pub kernels: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub subject: Subject,
    /// `.target` and `.version` of the module.
    pub target: String,
    pub version: String,
    /// What the verifier has against it, each with its line.
    pub faults: Vec<String>,
    pub assembled: Vec<Assembled>,
}

/// One run of ptxas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assembled {
    pub target: String,
    /// SHA-256, or nothing if ptxas refused.
    pub cubin: Option<String>,
    pub said: Vec<String>,
}

/// `assembly` holds what ptxas of the given version made; nothing without ptxas.
pub(crate) fn run(cases: &[Case], targets: &[ptx::Target], ptxas: Option<(&str, &Assembly)>) -> Report {
    let entry = |case: &Case| Entry {
        subject: case.subject(),
        target: case.kernel.module().target.to_string(),
        version: case.kernel.module().version.to_string(),
        faults: faults(case),
        assembled: ptxas.map(|(_, assembly)| assembled(case, targets, assembly)).unwrap_or_default(),
    };
    Report { ptxas: ptxas.map(|(version, _)| version.into()), kernels: cases.iter().map(entry).collect() }
}

fn faults(case: &Case) -> Vec<String> {
    let parsed = &case.kernel.parsed;
    let line = |span: ptx::Span| parsed.source.position(span.start).line;
    ptx::verify(parsed).iter().map(|fault| format!("line {}: {}", line(fault.span), fault.message)).collect()
}

fn assembled(case: &Case, targets: &[ptx::Target], assembly: &Assembly) -> Vec<Assembled> {
    let module = case.kernel.hash();
    let one = |target: &ptx::Target| {
        let made = assembly.get(&(module.clone(), target.to_string()))?;
        let cubin = made.cubin.as_ref().map(|cubin| hash::hex(cubin));
        Some(Assembled { target: target.to_string(), cubin, said: made.said.clone() })
    };
    assembly::targets(case, targets).iter().filter_map(one).collect()
}

impl Entry {
    /// What the verifier, or ptxas where it was asked, has against it.
    fn objections(&self, asked: bool) -> Vec<String> {
        let fault = self.faults.first().map(|fault| format!("{}: {fault}", counted(self.faults.len(), "fault")));
        let unasked = (asked && self.assembled.is_empty())
            .then(|| format!("ptxas was asked for no target that runs {} code", self.target));
        let refused = self.assembled.iter().find(|one| one.cubin.is_none()).map(|refused| {
            let said = cause(&refused.said).unwrap_or("nothing");
            format!("ptxas refuses it for {}: {said}", refused.target)
        });
        [fault, unasked, refused].into_iter().flatten().collect()
    }
}

/// The first line that has a cause; the one that only says that ptxas gave up where there is no other.
fn cause(said: &[String]) -> Option<&str> {
    const GAVE_UP: &str = "Ptx assembly aborted due to errors";
    let causes = || said.iter().filter(|line| !line.contains(GAVE_UP));
    let marked = causes().find(|line| ["error", "fatal", "Unsupported"].iter().any(|word| line.contains(word)));
    marked.or(causes().next()).or(said.first()).map(String::as_str)
}

impl Log for Report {
    const STAGE: Stage = Stage::Assemble;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn objections(&self) -> Objections {
        let faults = self.kernels.iter().flat_map(|entry| {
            let fault =
                |fault: String| Objection::fail(Guard::WellFormed, format!("{}: {fault}", entry.subject.kernel));
            entry.objections(self.ptxas.is_some()).into_iter().map(fault)
        });
        Objections::of(faults)
    }

    fn figures(&self) -> String {
        let faults = self.kernels.iter().map(|entry| entry.faults.len()).sum();
        let verified = format!("{}, {}", counted(self.kernels.len(), "kernel"), counted(faults, "fault"));
        let Some(version) = &self.ptxas else {
            return format!("{verified}; ptxas was not found, get it with `{INSTALL}`");
        };
        let assembled: Vec<&Assembled> = self.kernels.iter().flat_map(|entry| &entry.assembled).collect();
        let targets: BTreeSet<&str> = assembled.iter().map(|one| one.target.as_str()).collect();
        let targets = targets.into_iter().collect::<Vec<_>>().join(", ");
        let made = assembled.iter().filter(|one| one.cubin.is_some()).count();
        format!("{verified}; ptxas {version} made {made} of {} for {targets}", counted(assembled.len(), "cubin"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ptxas_refused_is_told_and_not_that_it_gave_up() {
        let cause = |said: &[&str]| cause(&said.iter().map(ToString::to_string).collect::<Vec<_>>()).map(String::from);
        let gave_up = "ptxas fatal   : Ptx assembly aborted due to errors";
        let version = "ptxas k.ptx, line 9; fatal   : Unsupported .version 9.4; current version is '9.0'";
        assert_eq!(cause(&[gave_up, version]).as_deref(), Some(version));
        assert_eq!(cause(&[version, gave_up]).as_deref(), Some(version));
        let (info, error) = ("ptxas info    : 0 bytes gmem", "ptxas k.ptx, line 3; error   : Unknown symbol 'x'");
        assert_eq!(cause(&[info, error, gave_up]).as_deref(), Some(error));
        assert_eq!(cause(&[gave_up]).as_deref(), Some(gave_up));
        assert_eq!(cause(&[]), None);
    }
}
