//! The emulator as a backend: loads a kernel, runs its launches, and says what the checks found.

use crate::algebra;
use crate::async_engines::tensor_map::{Fault, TensorMap};
use crate::checks;
use crate::checks::earlier_grid::EarlierGrid;
use crate::finding::Findings;
use crate::machine::{Grid, LaunchShape, Program, Unsupported, Wants};
use crate::memory::{GlobalMemory, Pages, SharedMemory, Variables};
use crate::operand_sets::{Census, OperandSets};
use crate::sanitize::merge;
use crate::trace::Timeline;
use happens_before::Footprint;
use launch::backend::{Backend, Engine, Options, Run, Witness};
use launch::resolved::{self, MAP_BYTES, Placement};
use launch::tensor_map::ResolvedMap;
use launch::{Element, Kernel, Limits, Memory, Operands, Resolved};
use ptx::{Function, Module};
use std::sync::Arc;
use std::time::Instant;

/// Runs kernels on the CPU, with all checks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Emulator;

/// Why a kernel cannot run here.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Recipe(#[from] launch::Error),
    #[error("{file}:{line}: {what}")]
    Unsupported { file: String, line: u32, what: Unsupported },
    #[error("tensor map of `{buffer}`: {why}")]
    TensorMap { buffer: String, why: Fault },
}

/// A kernel with its recipe in plain numbers.
pub struct Loaded {
    kernel: Kernel,
    resolved: Resolved,
    /// Synchronisations that are carried out without the race detector hearing of them: function and statement.
    silenced: Vec<(usize, usize)>,
}

impl Loaded {
    /// A kernel whose recipe is resolved, and that is known to run here or will be refused when it runs.
    pub(crate) fn prepared(kernel: Kernel, resolved: Resolved) -> Loaded {
        Loaded { kernel, resolved, silenced: vec![] }
    }

    /// The same, with synchronisations that order nothing: what happens stays the same, what is found does not.
    pub(crate) fn silenced(self, silenced: Vec<(usize, usize)>) -> Loaded {
        Loaded { silenced, ..self }
    }

    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }
}

impl Backend for Emulator {
    type Loaded = Loaded;
    type Error = Error;

    fn name(&self) -> &str {
        "emulator"
    }

    fn load(&self, kernel: &Kernel) -> Result<Loaded, Error> {
        let resolved = kernel.resolve(&Limits::default())?;
        for launch in &resolved.launches {
            let variables = Variables::place(kernel.module(), &mut GlobalMemory::default());
            decode(kernel, kernel.entry(launch)?, launch, &variables, Wants::default())?;
        }
        Ok(Loaded::prepared(kernel.clone(), resolved))
    }

    fn run(&self, loaded: &mut Loaded, memory: &mut Memory, options: &Options) -> Result<Run, Error> {
        if options.algebra {
            algebra::convert_buffers(memory);
        }
        let before = memory.clone();
        let mut device = Device::new(memory, loaded.kernel.module());
        device.silenced = loaded.silenced.clone();
        device.overlaps = loaded.resolved.launches.iter().any(|launch| launch.overlap);
        let launches = loaded.resolved.launches.len();
        device.timeline = (options.traced_blocks > 0).then(|| Timeline::new(options.traced_blocks, launches));
        let mut findings = Findings::new(&loaded.kernel, options);
        let (mut run, mut operands) = (Run::default(), Operands::default());
        let spots = loaded.kernel.recipe.launches.iter().map(|launch| launch.spot.0);
        for (launch, written) in loaded.resolved.launches.iter().zip(spots) {
            let start = Instant::now();
            let executed = device.launch(&loaded.kernel, (launch, written), &mut findings, options)?;
            run.instructions += executed.unwrap_or_default();
            operands.absorb(findings.settle_operands());
            run.times.push(start.elapsed());
            let entry = loaded.kernel.entry(launch)?;
            run.witness.extend(executed.map(|_| Witness::of(&entry.name, launch)));
        }
        let Footprint { shadow, memory: watched } = device.footprint;
        run.shadow = (watched > 0).then_some((shadow, watched));
        let timeline = device.timeline.take();
        run.trace = timeline.map(|timeline| timeline.into_trace(loaded.kernel.file(), options.seed));
        device.copy_back(memory);
        if options.algebra {
            algebra::settle_buffers(memory);
        }
        run.outputs = memory.changes_since(&before);
        run.stray_arrivals = findings.stray_arrivals;
        run.faults = findings.faults;
        run.operands = (options.audit && options.checks).then_some(operands);
        run.findings = merge(findings.into_vec().iter());
        Ok(run)
    }
}

fn decode(
    kernel: &Kernel,
    function: &Function,
    launch: &resolved::Launch,
    variables: &Variables,
    wants: Wants,
) -> Result<Program, Error> {
    let shared = SharedMemory::new(kernel.module(), function, launch.shared);
    let index = kernel.module().functions.iter().position(|one| std::ptr::eq(one, function)).unwrap_or(0);
    Program::decode(kernel.module(), index, &shared, variables, wants).map_err(|what| {
        let span = kernel.parsed.spans[what.function][what.statement.0 as usize].head;
        let line = kernel.parsed.source.position(span.start).line;
        Error::Unsupported { file: kernel.file().into(), line, what }
    })
}

/// Does the emulator execute this form? The support page and `--coverage` ask.
pub fn executes(form: &ptx::Form) -> bool {
    crate::exec::executes(form.op)
}

/// What the instructions of a kernel are fed: every launch of its recipe, lane by lane.
pub fn operand_sets(kernel: &Kernel) -> Result<OperandSets, Error> {
    let loaded = Emulator.load(kernel)?;
    let memory = Memory::new(&loaded.resolved, 0)?;
    let mut device = Device::new(&memory, kernel.module());
    device.counted = Some(OperandSets::default());
    let options = Options { engine: Engine::Lanes, checks: false, ..Options::default() };
    let mut findings = Findings::new(kernel, &options);
    for launch in &loaded.resolved.launches {
        device.launch(kernel, (launch, None), &mut findings, &options)?;
    }
    Ok(device.counted.unwrap_or_default())
}

/// The buffers of a run in emulated global memory.
struct Device {
    global: GlobalMemory,
    addresses: Vec<u64>,
    /// Name and element type of each.
    buffers: Vec<(String, Element)>,
    variables: Variables,
    timeline: Option<Timeline>,
    /// Of the launch whose detector needed most for its memory.
    footprint: Footprint,
    /// What instructions were fed, if somebody wants to know.
    counted: Option<OperandSets>,
    silenced: Vec<(usize, usize)>,
    /// Does a launch overlap with the one before it?
    overlaps: bool,
    /// The last launch, and those before it with which it overlaps.
    earlier: Vec<EarlierGrid>,
}

impl Device {
    fn new(memory: &Memory, module: &Module) -> Device {
        let mut global = GlobalMemory::default();
        let place = |buffer: &launch::BufferMemory| {
            global.allocate(&buffer.name, Pages::lent(&buffer.contents, buffer.initialised))
        };
        let addresses = memory.buffers.iter().map(place).collect();
        let variables = Variables::place(module, &mut global);
        let buffers = memory.buffers.iter().map(|buffer| (buffer.name.clone(), buffer.element)).collect();
        let footprint = Footprint::default();
        Device {
            global,
            addresses,
            buffers,
            variables,
            timeline: None,
            footprint,
            counted: None,
            silenced: vec![],
            overlaps: false,
            earlier: vec![],
        }
    }

    /// How many instructions warps executed; none if the launch did not happen. A launch that the target would refuse is
    /// a finding, where it is written.
    fn launch(
        &mut self,
        kernel: &Kernel,
        (launch, written): (&resolved::Launch, Option<usize>),
        findings: &mut Findings,
        options: &Options,
    ) -> Result<Option<u64>, Error> {
        let function = kernel.entry(launch)?;
        let index = kernel.module().functions.iter().position(|one| std::ptr::eq(one, function)).unwrap_or(0);
        findings.enter(index);
        let cluster = launch.cluster.or_else(|| checks::launch::required_cluster(function));
        let shape = LaunchShape {
            grid: launch.grid,
            block: launch.block,
            cluster: cluster.unwrap_or([1; 3]),
            explicit_cluster: cluster.is_some(),
            shared: launch.shared,
            parameters: launch.parameters(function, self)?,
        };
        if let Some(report) = checks::launch::check(kernel, function, &shape, written) {
            findings.add(report);
            if !checks::launch::can_run(kernel.module(), function, &shape) {
                return Ok(None);
            }
        }
        let wants = Wants { each_access: options.lints, algebra: options.algebra };
        let program = decode(kernel, function, launch, &self.variables, wants)?;
        findings.lay_out(program.places());
        let shared = SharedMemory::new(kernel.module(), function, launch.shared);
        let inputs = || program.inputs(kernel.module(), &shared, &self.variables);
        let census = self.counted.take().map(|sets| Census::new(inputs(), sets));
        let floats = options.nan_birth.then(|| program.floats(kernel.module(), &shared, &self.variables));
        let (floats, census_ref) = (floats.as_deref(), census.as_ref());
        let silenced = program.steps_of(&self.silenced);
        self.timeline.iter_mut().for_each(|timeline| timeline.enter(&function.name));
        let mut executed = 0;
        for repeat in 0..launch.repeat {
            let (program, shape, shared, silenced) = (&program, &shape, &shared, silenced.as_slice());
            if !launch.overlap {
                self.earlier.clear();
            }
            let (census, kept) = (census_ref, self.overlaps);
            let earlier = self.earlier.as_slice();
            let grid = Grid { program, shape, shared, options, floats, census, earlier, kept, silenced };
            // Repeats look alike: the first is traced.
            let timeline = self.timeline.as_mut().filter(|_| repeat == 0);
            let (instructions, footprint, touches) = grid.run(&mut self.global, findings, timeline);
            executed += instructions;
            self.footprint = self.footprint.or(footprint);
            if self.overlaps {
                let starts = |one: &ptx::Instruction| one.op() == ptx::Op::Launch(ptx::forms::Launch::LaunchDependents);
                let early = function.instructions().any(|(_, one)| starts(one));
                let touches = if early { touches } else { touches.of_ended_blocks() };
                let (touches, layout) = (Arc::new(touches), program.places());
                self.earlier.push(EarlierGrid { touches, early, shape: shape.clone(), layout });
            }
        }
        findings.settle_costs();
        self.counted = census.map(Census::into_sets);
        Ok(Some(executed))
    }

    fn copy_back(self, memory: &mut Memory) {
        // Buffers come first, in their order; variables of the module follow.
        for (buffer, allocation) in memory.buffers.iter_mut().zip(self.global.into_allocations()) {
            let contents = allocation.pages.into_contents();
            buffer.initialised |= contents != buffer.contents;
            buffer.contents = contents;
        }
    }
}

impl Placement for Device {
    type Error = Error;

    fn address(&mut self, buffer: usize) -> Result<u64, Error> {
        Ok(self.addresses[buffer])
    }

    fn map(&mut self, map: &ResolvedMap) -> Result<[u8; MAP_BYTES], Error> {
        let (name, element) = &self.buffers[map.buffer];
        let map = TensorMap::of_recipe(map, *element, self.addresses[map.buffer]);
        map.check().map_err(|why| Error::TensorMap { buffer: name.clone(), why })?;
        Ok(map.encode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stride: u32) -> Result<Run, Error> {
        let recipe = "//@ [buffer.x]\n//@ type = \"f16\"\n//@ shape = [64]\n//@ [[launch]]\n//@ grid = [1, 1, 1]\n\
                      //@ block = [32, 1, 1]\n//@ args = [{ map = \"x\", dims = [8, 8], strides = [STRIDE], box = [8, 8] }]\n";
        let body = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry one(.param .align 64 .b8 map[128])\n\
                    {\n    ret;\n}\n";
        let text = format!("{recipe}{body}").replace("STRIDE", &stride.to_string());
        let kernel = Kernel::parse("one.ptx", &text)?;
        let mut loaded = Emulator.load(&kernel)?;
        let mut memory = Memory::new(loaded.resolved(), 0)?;
        Emulator.run(&mut loaded, &mut memory, &Options::default())
    }

    #[test]
    fn a_map_that_the_driver_would_refuse_is_refused() {
        assert!(run(16).is_ok());
        let error = run(24).unwrap_err().to_string();
        assert_eq!(
            error,
            "tensor map of `x`: stride 1 of the tensor map is 24 bytes: expected a multiple of 16 below 2^40"
        );
    }
}
