//! What the code takes that the driver made and launches, as the driver counts it: registers, and local memory, which is stack and
//! spilled registers.

use ptx::Target;
use serde::{Deserialize, Serialize};

use super::super::half::GpuLog;
use super::super::{Stage, counted};
use crate::case::Case;
use crate::figures::Subject;
use crate::gpu::Driven;
use crate::guard::{Guard, Objection};
use crate::occupancy::{self, Block};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Of the GPU: `sm_90`.
    pub target: String,
    pub kernels: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub subject: Subject,
    /// SHA-256 of the machine code that the driver loaded.
    pub cubin: String,
    pub used: Vec<Used>,
}

/// By one launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    pub entry: String,
    /// Per thread.
    pub registers: u32,
    pub local_bytes: u32,
    /// Declared in the PTX and asked for by the launch.
    pub shared_bytes: u32,
    pub threads: u32,
    /// Nothing where the GPU's limits are not known.
    pub blocks_per_processor: Option<u32>,
    pub occupancy_percent: Option<u32>,
}

pub(crate) fn run(cases: &[&Case], driven: &[Driven], (major, minor): (u32, u32)) -> Result<Report, String> {
    let target = format!("sm_{major}{minor}");
    let kernels = cases.iter().zip(driven).map(|(case, driven)| {
        let used = used(case, driven, target.parse().ok())?;
        Ok(Entry { subject: case.subject(), cubin: driven.hash(), used })
    });
    Ok(Report { kernels: kernels.collect::<Result<_, String>>()?, target })
}

fn used(case: &Case, driven: &Driven, target: Option<Target>) -> Result<Vec<Used>, String> {
    let launches = case.resolved.launches.iter().zip(&driven.resources);
    let used = launches.map(|(launch, resources)| {
        let entry = case.kernel.entry(launch).map_err(|error| error.to_string())?.name.clone();
        let (threads, registers) = (launch.block.iter().product(), resources.registers);
        let shared_bytes = resources.shared_bytes + launch.shared;
        let occupancy = target.and_then(|target| occupancy::of(target, Block { threads, registers, shared_bytes }));
        Ok(Used {
            entry,
            registers,
            local_bytes: resources.local_bytes,
            shared_bytes,
            threads,
            blocks_per_processor: occupancy.as_ref().map(|occupancy| occupancy.blocks),
            occupancy_percent: occupancy.map(|occupancy| occupancy.percent),
        })
    });
    used.collect()
}

impl Entry {
    fn objections(&self) -> Vec<Objection> {
        let place = format!("{}, on the GPU", self.subject.kernel);
        let nothing = || Objection::not_run(Guard::Witness, format!("{place}: nobody asked the driver"));
        let nothing = self.used.is_empty().then(nothing);
        let local = self.used.iter().filter(|used| used.local_bytes > 0).map(|used| {
            let Used { entry, local_bytes, .. } = used;
            let why = format!(
                "{place}: the driver's code of `{entry}` has {local_bytes} bytes of stack and spilled registers"
            );
            Objection::fail(Guard::Spills, why)
        });
        let too_large = self
            .used
            .iter()
            .filter(|used| used.blocks_per_processor == Some(0))
            .map(|used| Objection::fail(Guard::Fits, format!("{place}: a block of `{}` does not fit", used.entry)));
        nothing.into_iter().chain(local).chain(too_large).collect()
    }
}

impl GpuLog for Report {
    const STAGE: Stage = Stage::Resources;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn objections(&self) -> Vec<Vec<Objection>> {
        self.kernels.iter().map(Entry::objections).collect()
    }

    fn figures(&self) -> String {
        let most = |of: fn(&Used) -> u32| self.kernels.iter().flat_map(|entry| &entry.used).map(of).max().unwrap_or(0);
        format!(
            "the driver's code of {} takes at most {} registers and {} bytes of local memory on {}",
            counted(self.kernels.len(), "kernel"),
            most(|used| used.registers),
            most(|used| used.local_bytes),
            self.target,
        )
    }
}
