//! # code
//!
//! The machine code of the very cubins that ptxas made, as nvdisasm prints it: tensor-core instructions stand in a
//! loop, copies to shared memory are asynchronous, and no local memory is touched. A warning that a compiler did not
//! print proves none of this.

use std::collections::BTreeMap;

use launch::hash;
use serde::{Deserialize, Serialize};

use super::{Log, Stage, assemble, counted};
use crate::case::Case;
use crate::figures::Subject;
use crate::outcome::State;
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
}

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
            cubins.push(Cubin { target: one.target.clone(), cubin, sass: hash::hex(text.as_bytes()), census });
        }
        kernels.push(Entry { subject: case.subject(), cubins });
    }
    Ok(Report { nvdisasm: nvdisasm.into(), kernels })
}

pub(crate) fn missing(what: &str) -> String {
    format!("{what} was not found: get it with `{}`", crate::tools::INSTALL)
}

impl Cubin {
    fn fault(&self) -> Option<String> {
        let Census { tensor_in_loop, async_copies, local, .. } = self.census;
        let target = &self.target;
        if tensor_in_loop == 0 {
            return Some(format!("no tensor-core instruction stands in a loop on {target}"));
        }
        if async_copies == 0 {
            return Some(format!("no copy to shared memory is asynchronous on {target}"));
        }
        (local > 0).then(|| format!("local memory is touched {local} times on {target}"))
    }
}

impl Log for Report {
    const STAGE: Stage = Stage::Code;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn judge(&self) -> State {
        for entry in &self.kernels {
            let name = &entry.subject.kernel;
            if entry.cubins.is_empty() {
                return State::not_run(format!("{name}: there is no cubin of it"));
            }
            if let Some(fault) = entry.cubins.iter().find_map(Cubin::fault) {
                return State::fail(format!("{name}: {fault}"));
            }
        }
        State::Pass
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
