//! The same of the code that the driver made, which is what is launched and timed: ptxas may have made other code of the same text.

use std::collections::BTreeMap;

use launch::hash;
use serde::{Deserialize, Serialize};

use super::super::half::GpuLog;
use super::super::{Stage, counted};
use super::objections;
use crate::case::Case;
use crate::figures::Subject;
use crate::gpu::{Driven, code_hash};
use crate::guard::{Guard, Objection};
use crate::sass::{self, Census};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub nvdisasm: String,
    pub kernels: Vec<Entry>,
    /// Kernels that differ in their recipe alone are the same code: each code once.
    pub listings: Vec<Listing>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub subject: Subject,
    /// SHA-256 of the cubin that the driver loaded, and of the code in it.
    pub cubin: String,
    pub code: String,
}

/// A cubin and its disassembly, which the pack holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// In whose folder they are.
    pub kernel: String,
    /// SHA-256 of the cubin, of the code in it, and of its disassembly.
    pub cubin: String,
    pub code: String,
    pub sass: String,
    pub census: Census,
}

impl Listing {
    /// Counts in a text that nvdisasm printed; no tool runs here.
    pub(crate) fn read(kernel: &str, cubin: &[u8], text: &str) -> Result<Listing, String> {
        Ok(Listing {
            kernel: kernel.into(),
            cubin: hash::hex(cubin),
            code: code_hash(cubin).ok_or_else(|| format!("{kernel}: the driver's code is no cubin"))?,
            sass: hash::hex(text.as_bytes()),
            census: sass::census(text).map_err(|error| format!("{kernel}, the driver's code: {error}"))?,
        })
    }
}

/// The first kernel of each code, by the code's hash.
pub(crate) fn firsts<'a>(cases: &[&'a Case], driven: &'a [Driven]) -> BTreeMap<String, (&'a Case, &'a Driven)> {
    let mut firsts = BTreeMap::new();
    for (case, driven) in cases.iter().zip(driven) {
        firsts.entry(driven.code().unwrap_or_default()).or_insert((*case, driven));
    }
    firsts
}

/// `text` finds the disassembly of a cubin by its hash.
pub(crate) fn run<'a>(
    cases: &[&Case],
    driven: &[Driven],
    nvdisasm: &str,
    text: impl Fn(&str) -> Option<&'a str>,
) -> Result<Report, String> {
    if driven.is_empty() {
        return Err("there is no code of the driver".into());
    }
    let listing = |(case, driven): &(&Case, &Driven)| {
        let text = text(&driven.hash()).ok_or_else(|| format!("{}: no disassembly of the driver's code", case.name))?;
        Listing::read(&case.name, &driven.cubin, text)
    };
    let listings = firsts(cases, driven).values().map(listing).collect::<Result<_, _>>()?;
    let entry = |(case, driven): (&&Case, &Driven)| Entry {
        subject: case.subject(),
        cubin: driven.hash(),
        code: driven.code().unwrap_or_default(),
    };
    Ok(Report { nvdisasm: nvdisasm.into(), kernels: cases.iter().zip(driven).map(entry).collect(), listings })
}

impl GpuLog for Report {
    const STAGE: Stage = Stage::Code;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn objections(&self) -> Vec<Vec<Objection>> {
        let of_entry = |entry: &Entry| match self.listings.iter().find(|listing| listing.code == entry.code) {
            Some(listing) => objections(&listing.census, None, &entry.subject.kernel, "in the driver's code"),
            None => {
                let why = format!("{}: nobody saw the code that the driver loaded", entry.subject.kernel);
                vec![Objection::not_run(Guard::Witness, why)]
            }
        };
        self.kernels.iter().map(of_entry).collect()
    }

    fn figures(&self) -> String {
        let least = |of: fn(&Census) -> usize| self.listings.iter().map(|one| of(&one.census)).min().unwrap_or(0);
        format!(
            "the driver makes {} of {}: at least {} tensor-core instructions in the loop, local memory touched {} times",
            counted(self.listings.len(), "code"),
            counted(self.kernels.len(), "kernel"),
            least(|census| census.tensor_in_loop),
            self.listings.iter().map(|one| one.census.local).sum::<usize>(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(local: usize, code: &str) -> Report {
        let subject = Subject { kernel: "k".into(), module: "m".into(), recipe: "r".into() };
        let census = Census { tensor_in_loop: 8, async_copies: 3, local, ..Census::default() };
        let [cubin, sass] = ["c", "s"].map(String::from);
        let listing = Listing { kernel: "k".into(), cubin: cubin.clone(), code: "code".into(), sass, census };
        let kernels = vec![Entry { subject, cubin, code: code.into() }];
        Report { nvdisasm: "13".into(), kernels, listings: vec![listing] }
    }

    fn guards(report: &Report) -> Vec<Guard> {
        report.objections().concat().iter().map(|objection| objection.guard).collect()
    }

    #[test]
    fn the_code_that_runs_is_judged_and_not_another() {
        assert!(guards(&report(0, "code")).is_empty());
        assert_eq!(guards(&report(2, "code")), [Guard::LocalMemory]);
        assert_eq!(guards(&report(0, "other code")), [Guard::Witness]);
    }
}
