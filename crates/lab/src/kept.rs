//! What a pack that is there already spares a new run: stages that passed on the same inputs.
//!
//! Nothing is taken from a pack that [`verify`](crate::verify()) would refuse without running anything. What failed runs
//! again, so that it can be shown, and so does what was not run.

use launch::hash;

use crate::assembly::{Assembled, Assembly};
use crate::case::Case;
use crate::cost::Cost;
use crate::machine;
use crate::outcome::State;
use crate::pack::{code_path, squeezed};
use crate::stages::code::Disassembly;
use crate::stages::{Evidence, Log, Record, Stage, assemble};
use crate::verify::{self, Opened};
use crate::{Request, Tool, Toolbox};

/// Stages that need not run.
pub(crate) struct Kept {
    pack: Opened,
    stages: Vec<Stage>,
}

impl Kept {
    /// Nothing if there is no pack, if it is broken, or of other inputs: kernels, recipes, settings, or this program.
    pub fn open(request: &Request) -> Option<Kept> {
        if request.fresh {
            return None;
        }
        let pack = verify::open(&request.folder).ok()?;
        let predicate = &pack.manifest.predicate;
        let subjects = |cases: &[Case]| cases.iter().map(Case::subject).collect::<Vec<_>>();
        let same_inputs = subjects(&pack.cases) == subjects(&request.cases) && predicate.settings == request.settings;
        let same_program = predicate.machine.program.is_some() && predicate.machine.program == machine::program();
        if !same_inputs || !same_program {
            return None;
        }
        let passed = |stage: &Stage| pack.outcomes[*stage as usize].state() == &State::Pass;
        let stages = Stage::ALL.into_iter().filter(passed).filter(|stage| same_tools(*stage, &pack, &request.tools));
        Some(Kept { stages: stages.collect(), pack })
    }

    /// The record of a stage that need not run.
    pub fn record<L: Log>(&self, of: fn(&Evidence) -> &Record<L>) -> Option<&Record<L>> {
        self.stages.contains(&L::STAGE).then(|| of(&self.pack.evidence))
    }

    pub fn cost(&self) -> &Cost {
        &self.pack.manifest.predicate.cost
    }

    /// The cubins of the pack, and the disassemblies that it has.
    pub fn machine_code(&self, log: &assemble::Report) -> (Assembly, Disassembly) {
        let (mut assembly, mut disassembly) = (Assembly::new(), Disassembly::new());
        for (entry, one) in log.kernels.iter().flat_map(|entry| entry.assembled.iter().map(move |one| (entry, one))) {
            let path = |kind: &str| code_path(&entry.subject.kernel, &one.target, kind);
            let file = |kind: &str| self.pack.files.get(&path(kind)).and_then(|bytes| squeezed::unsqueeze(bytes));
            let cubin = file("cubin");
            let sass = file("sass").and_then(|bytes| String::from_utf8(bytes).ok());
            disassembly.extend(cubin.as_ref().map(|cubin| hash::hex(cubin)).zip(sass));
            let key = (entry.subject.module.clone(), one.target.clone());
            assembly.insert(key, Assembled { said: one.said.clone(), cubin });
        }
        (assembly, disassembly)
    }
}

/// Are the tools that a stage uses here those that it used?
fn same_tools(stage: Stage, pack: &Opened, tools: &Toolbox) -> bool {
    let version = |tool: &Option<Tool>| tool.as_ref().map(|tool| tool.version.clone());
    let ptxas = match &pack.evidence.assemble {
        Record::Ran(log) => log.ptxas == version(&tools.ptxas),
        Record::NotRun { .. } => false,
    };
    let nvdisasm = match &pack.evidence.code {
        Record::Ran(log) => Some(&log.nvdisasm) == version(&tools.nvdisasm).as_ref(),
        Record::NotRun { .. } => false,
    };
    match stage {
        Stage::Assemble | Stage::Resources => ptxas,
        Stage::Code => ptxas && nvdisasm,
        Stage::Parity | Stage::Sanitize | Stage::Stress => true,
        // What a machine measures is measured again.
        Stage::Bench | Stage::Profile => false,
    }
}
