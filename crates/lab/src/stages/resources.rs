//! # resources
//!
//! What `ptxas -v` says each kernel takes on each target, and on a GPU what the driver says of the code that it loaded: registers, stack,
//! spilled bytes, shared memory; and how many blocks of the launch's size then share a multiprocessor. A spilled register or a stack
//! frame is a failure.

pub mod gpu;

use ptx::Target;
use serde::{Deserialize, Serialize};

use super::{Log, Stage, assemble, counted};
use crate::case::Case;
use crate::figures::Subject;
use crate::guard::{Guard, Objection, Objections};
use crate::occupancy::{self, Block};
use crate::usage::Said;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub ptxas: String,
    pub kernels: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub subject: Subject,
    /// Traps in the PTX: assertions of a debug build.
    pub traps: usize,
    pub used: Vec<Used>,
}

/// One entry function on one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    pub entry: String,
    pub target: String,
    /// Per thread.
    pub registers: u32,
    pub stack_bytes: u32,
    pub spill_store_bytes: u32,
    pub spill_load_bytes: u32,
    /// Declared in the PTX and asked for by the launch.
    pub shared_bytes: u32,
    pub threads: u32,
    /// Nothing where the target's limits are not known.
    pub blocks_per_processor: Option<u32>,
    pub occupancy_percent: Option<u32>,
}

/// Reads what ptxas said in the stage `assemble`; no tool runs here.
pub(crate) fn run(cases: &[Case], assembled: &assemble::Report) -> Result<Report, String> {
    let ptxas = assembled.ptxas.clone().ok_or_else(missing)?;
    let mut kernels = Vec::new();
    for (case, entry) in cases.iter().zip(&assembled.kernels) {
        let mut used = Vec::new();
        for one in &entry.assembled {
            used.extend(of_target(case, one).map_err(|error| format!("{}, {}: {error}", case.name, one.target))?);
        }
        kernels.push(Entry { subject: case.subject(), traps: traps(case), used });
    }
    Ok(Report { ptxas, kernels })
}

pub(crate) fn missing() -> String {
    format!("ptxas was not found: get it with `{}`", crate::tools::INSTALL)
}

/// Instructions that end a launch, wherever they stand.
fn traps(case: &Case) -> usize {
    let code = case.kernel.parsed.source.text.lines().filter_map(|line| line.split("//").next());
    code.filter(|line| line.trim_end().ends_with("trap;")).count()
}

fn of_target(case: &Case, assembled: &assemble::Assembled) -> Result<Vec<Used>, String> {
    let target: Target = assembled.target.parse().map_err(|()| "unknown target".to_string())?;
    let said = Said::read(&assembled.said)?;
    if let Some(remark) = said.remarks.first() {
        return Err(format!("ptxas said something unknown: `{remark}`"));
    }
    let mut all = Vec::new();
    for launch in &case.resolved.launches {
        let entry = case.kernel.entry(launch).map_err(|error| error.to_string())?;
        let function = said.functions.iter().find(|function| function.entry == entry.name);
        let function = function.ok_or_else(|| format!("ptxas said nothing of `{}`", entry.name))?;
        let (threads, shared_bytes) = (launch.block.iter().product(), function.shared_bytes + launch.shared);
        let occupancy = occupancy::of(target, Block { threads, registers: function.registers, shared_bytes });
        all.push(Used {
            entry: entry.name.clone(),
            target: assembled.target.clone(),
            registers: function.registers,
            stack_bytes: function.stack_bytes,
            spill_store_bytes: function.spill_store_bytes,
            spill_load_bytes: function.spill_load_bytes,
            shared_bytes,
            threads,
            blocks_per_processor: occupancy.as_ref().map(|occupancy| occupancy.blocks),
            occupancy_percent: occupancy.map(|occupancy| occupancy.percent),
        });
    }
    Ok(all)
}

impl Used {
    fn objections(&self, name: &str) -> Vec<Objection> {
        let Used { stack_bytes, spill_store_bytes, spill_load_bytes, target, .. } = self;
        let spills = (stack_bytes + spill_store_bytes + spill_load_bytes > 0).then(|| {
            let spilled = format!("{spill_store_bytes} spilled, {spill_load_bytes} loaded back on {target}");
            Objection::fail(Guard::Spills, format!("{name}: {stack_bytes} bytes of stack, {spilled}"))
        });
        let too_large = (self.blocks_per_processor == Some(0)).then(|| {
            let Used { threads, registers, shared_bytes, .. } = self;
            let takes = format!("{registers} registers, {shared_bytes} bytes of shared memory");
            let why = format!("{name}: a block of {threads} threads does not fit on {target}: {takes}");
            Objection::fail(Guard::Fits, why)
        });
        spills.into_iter().chain(too_large).collect()
    }
}

impl Log for Report {
    const STAGE: Stage = Stage::Resources;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn objections(&self) -> Objections {
        let of_entry = |entry: &Entry| {
            let name = &entry.subject.kernel;
            let nothing = || Objection::not_run(Guard::Witness, format!("{name}: ptxas made no cubin of it"));
            let nothing = entry.used.is_empty().then(nothing);
            let debug = format!("{name}: {} in the PTX: build it without assertions", counted(entry.traps, "trap"));
            let debug = (entry.traps > 0).then(|| Objection::fail(Guard::Release, debug));
            nothing
                .into_iter()
                .chain(debug)
                .chain(entry.used.iter().flat_map(|used| used.objections(name)))
                .collect::<Vec<_>>()
        };
        Objections::of(self.kernels.iter().flat_map(of_entry))
    }

    fn figures(&self) -> String {
        let used: Vec<&Used> = self.kernels.iter().flat_map(|entry| &entry.used).collect();
        let most = |of: fn(&Used) -> u32| used.iter().map(|used| of(used)).max().unwrap_or(0);
        let mut occupancy: Vec<String> = Vec::new();
        for one in &used {
            let text = one.occupancy_percent.map(|percent| format!("{percent} % on {}", one.target));
            occupancy.extend(text.filter(|text| !occupancy.contains(text)));
        }
        format!(
            "{}: at most {} registers, {} bytes spilled, {} bytes of stack, {} bytes of shared memory; occupancy {}",
            counted(self.kernels.len(), "kernel"),
            most(|used| used.registers),
            most(|used| used.spill_store_bytes + used.spill_load_bytes),
            most(|used| used.stack_bytes),
            most(|used| used.shared_bytes),
            if occupancy.is_empty() { "unknown".into() } else { occupancy.join(", ") },
        )
    }
}
