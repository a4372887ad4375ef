//! # code
//!
//! The machine code of the very cubins that ptxas made, as nvdisasm prints it, and on a GPU of those that the driver made, loaded and
//! timed: tensor-core instructions stand in a loop, copies to shared memory are asynchronous, and no local memory is touched. A warning
//! that a compiler did not print proves none of this. One that it did print is believed: products of warpgroups (wgmma) that ptxas puts one behind the other are
//! none that run beside other work.

pub mod gpu;

use std::collections::BTreeMap;

use launch::hash;
use serde::{Deserialize, Serialize};

use super::{Log, Stage, assemble, counted};
use crate::case::Case;
use crate::figures::Subject;
use crate::guard::{Guard, Objection, Objections};
use crate::sass::{self, Census};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub nvdisasm: String,
    pub kernels: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub subject: Subject,
    pub cubins: Vec<Cubin>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cubin {
    pub target: String,
    /// SHA-256 of the cubin and of its disassembly.
    pub cubin: String,
    pub sass: String,
    pub census: Census,
    /// Why ptxas serialises products of warpgroups, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serialised: Option<String>,
}

/// How ptxas 13.0.88 says it, whatever the reason.
const SERIALISED: &str = "wgmma.mma_async instructions are serialized";

/// Disassemblies by the hash of their cubin.
pub(crate) type Disassembly = BTreeMap<String, String>;

/// Counts in texts that nvdisasm printed; no tool runs here.
pub(crate) fn run(
    cases: &[Case],
    assembled: &assemble::Report,
    nvdisasm: &str,
    disassembly: &Disassembly,
) -> Result<Report, String> {
    let mut kernels = Vec::new();
    for (case, entry) in cases.iter().zip(&assembled.kernels) {
        let mut cubins = Vec::new();
        for one in &entry.assembled {
            let Some(cubin) = one.cubin.clone() else { continue };
            let place = || format!("{}, {}", case.name, one.target);
            let text = disassembly.get(&cubin).ok_or_else(|| format!("{}: no disassembly", place()))?;
            let census = sass::census(text).map_err(|error| format!("{}: {error}", place()))?;
            let (target, sass) = (one.target.clone(), hash::hex(text.as_bytes()));
            let serialised = one.said.iter().find(|line| line.contains(SERIALISED)).cloned();
            cubins.push(Cubin { target, cubin, sass, census, serialised });
        }
        kernels.push(Entry { subject: case.subject(), cubins });
    }
    Ok(Report { nvdisasm: nvdisasm.into(), kernels })
}

pub(crate) fn missing(what: &str) -> String {
    format!("{what} was not found: get it with `{}`", crate::tools::INSTALL)
}

/// What counts speak against, of a kernel and `place`: `on sm_90a`.
fn objections(census: &Census, serialised: Option<&str>, name: &str, place: &str) -> Vec<Objection> {
    let Census { tensor_in_loop, async_copies, local, narrow, .. } = *census;
    let touched = format!("local memory is touched {local} times");
    let serialised = serialised.map(|said| format!("ptxas says: {said}")).unwrap_or_default();
    let checks = [
        (tensor_in_loop == 0, Guard::TensorCores, "no tensor-core instruction stands in a loop"),
        (!serialised.is_empty(), Guard::TensorCores, serialised.as_str()),
        (async_copies == 0, Guard::AsyncCopies, "no copy to shared memory is asynchronous"),
        (local > 0, Guard::LocalMemory, touched.as_str()),
        (narrow > 0, Guard::Accumulators, "tensor cores multiply or add in less than the contract's types"),
    ];
    let objects = checks.into_iter().filter(|(objects, ..)| *objects);
    objects.map(|(_, guard, what)| Objection::fail(guard, format!("{name}: {what} {place}"))).collect()
}

impl Cubin {
    fn objections(&self, name: &str) -> Vec<Objection> {
        objections(&self.census, self.serialised.as_deref(), name, &format!("on {}", self.target))
    }
}

impl Log for Report {
    const STAGE: Stage = Stage::Code;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn objections(&self) -> Objections {
        let of_entry = |entry: &Entry| {
            let name = &entry.subject.kernel;
            let nothing = || Objection::not_run(Guard::Witness, format!("{name}: there is no cubin of it"));
            let nothing = entry.cubins.is_empty().then(nothing);
            nothing.into_iter().chain(entry.cubins.iter().flat_map(|cubin| cubin.objections(name))).collect::<Vec<_>>()
        };
        Objections::of(self.kernels.iter().flat_map(of_entry))
    }

    fn figures(&self) -> String {
        let cubins: Vec<&Cubin> = self.kernels.iter().flat_map(|entry| &entry.cubins).collect();
        let least = |of: fn(&Census) -> usize| cubins.iter().map(|cubin| of(&cubin.census)).min().unwrap_or(0);
        let local: usize = cubins.iter().map(|cubin| cubin.census.local).sum();
        format!(
            "{}: at least {} tensor-core instructions in the loop, {} asynchronous copies ({} in the loop), \
             local memory touched {local} times",
            counted(cubins.len(), "cubin"),
            least(|census| census.tensor_in_loop),
            least(|census| census.async_copies),
            least(|census| census.async_copies_in_loop),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialised_products_fail() {
        let census = Census { tensor_in_loop: 8, async_copies: 3, ..Census::default() };
        let cubin = |serialised| Cubin {
            target: "sm_90a".into(),
            cubin: String::new(),
            sass: String::new(),
            census: census.clone(),
            serialised,
        };
        assert!(cubin(None).objections("one").is_empty());
        let said = format!(
            "ptxas info : (C7510) Potential Performance Loss: {SERIALISED} due to the presence of Extern calls"
        );
        assert_eq!(cubin(Some(said)).objections("one").len(), 1);
    }
}
