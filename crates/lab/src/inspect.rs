//! One kernel as the hardware will meet it: what ptxas gives it, what then runs at once, and its loops.

use launch::{Kernel, Limits, hash};
use ptx::ir::Tuning;
use ptx::{Module, Space, Target, Variable, VariableSize};

use crate::occupancy::{self, Block, Occupancy};
use crate::sass::{self, Counts, Function, Listing, Loop};
use crate::usage::{self, Said};
use crate::{Error, Tool, Toolbox, assembly};

/// A kernel on every target that was asked for.
#[derive(Clone, Debug)]
pub struct Inspection {
    pub kernel: String,
    /// SHA-256 of the module.
    pub module: String,
    /// The versions that were used.
    pub ptxas: String,
    pub nvdisasm: String,
    pub builds: Vec<Build>,
}

/// A kernel on one target.
#[derive(Clone, Debug)]
pub struct Build {
    pub target: Target,
    /// SHA-256 of the cubin.
    pub cubin: String,
    /// What ptxas said beside figures.
    pub remarks: Vec<String>,
    /// One for each launch; one for each entry that none launches.
    pub launches: Vec<Taken>,
    pub code: Vec<Code>,
}

/// What a launch takes.
#[derive(Clone, Debug)]
pub struct Taken {
    pub function: usage::Function,
    /// Unknown where nothing tells how it is launched.
    pub threads: Option<u32>,
    pub dynamic_shared_bytes: u32,
    /// Unknown where threads, or the target's limits, are.
    pub occupancy: Option<Occupancy>,
}

/// The machine code of an entry.
#[derive(Clone, Debug)]
pub struct Code {
    pub function: Function,
    /// Without padding.
    pub counts: Counts,
    pub loops: Vec<Loop>,
    /// The index of the loop that computes.
    pub main: Option<usize>,
}

/// Takes the place of what the recipe says, or of the recipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockShape {
    pub threads: Option<u32>,
    pub shared_bytes: Option<u32>,
}

/// Assembles and disassembles a kernel for these targets, its own if there are none.
pub fn inspect(kernel: &Kernel, targets: &[Target], shape: BlockShape, tools: &Toolbox) -> Result<Inspection, Error> {
    let ptxas = tools.ptxas.as_ref().ok_or(Error::MissingTool("ptxas"))?;
    let nvdisasm = tools.nvdisasm.as_ref().ok_or(Error::MissingTool("nvdisasm"))?;
    let own = [kernel.module().target];
    let targets = asked(own[0], targets);
    let refuse = |message: String| Error::Assembly { kernel: kernel.name.clone(), message };
    if let Some(target) = targets.iter().find(|target| !target.provides(own[0])) {
        return Err(refuse(format!("it is written for {}, and {target} does not run that: choose another", own[0])));
    }
    let shapes = shapes(kernel, shape)?;
    let build = |target: &Target| build(kernel, *target, &shapes, (ptxas, nvdisasm)).map_err(&refuse);
    Ok(Inspection {
        kernel: kernel.name.clone(),
        module: kernel.hash(),
        ptxas: ptxas.version.clone(),
        nvdisasm: nvdisasm.version.clone(),
        builds: targets.iter().map(build).collect::<Result<_, _>>()?,
    })
}

/// The targets that were asked for, each once. A GPU by its plain name is meant as the target that the kernel has of it: what is
/// made for sm_90a runs on sm_90.
fn asked(own: Target, targets: &[Target]) -> Vec<Target> {
    let (mut all, own_alone) = (Vec::new(), [own]);
    for target in if targets.is_empty() { &own_alone } else { targets } {
        let same_gpu = target.sm == own.sm && !target.provides(own);
        let target = if same_gpu { own } else { *target };
        if !all.contains(&target) {
            all.push(target);
        }
    }
    all
}

/// An entry, its threads in a block, and its dynamic shared memory.
type Shape = (String, Option<u32>, u32);

fn shapes(kernel: &Kernel, given: BlockShape) -> Result<Vec<Shape>, Error> {
    let mut shapes: Vec<Shape> = Vec::new();
    if !kernel.recipe.launches.is_empty() {
        for launch in &kernel.resolve(&Limits::default())?.launches {
            let shape = (kernel.entry(launch)?.name.clone(), Some(launch.block.iter().product()), launch.shared);
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
    }
    for entry in kernel.module().entries() {
        if !shapes.iter().any(|(name, ..)| *name == entry.name) {
            let required = entry.tuning.iter().find_map(|tuning| match tuning {
                Tuning::RequiredThreads(threads) => Some(threads.iter().product()),
                _ => None,
            });
            // How much there is of what a launch provides, nobody has said: blocks cannot be counted.
            let known = given.shared_bytes.is_some() || !takes_dynamic_shared(kernel.module());
            shapes.push((entry.name.clone(), required.filter(|_| known), 0));
        }
    }
    let with = |(name, threads, shared): Shape| (name, given.threads.or(threads), given.shared_bytes.unwrap_or(shared));
    Ok(shapes.into_iter().map(with).collect())
}

fn takes_dynamic_shared(module: &Module) -> bool {
    let is_dynamic = |variable: &Variable| variable.space == Space::Shared && variable.size == VariableSize::Dynamic;
    module.variables.iter().any(is_dynamic)
}

fn build(kernel: &Kernel, target: Target, shapes: &[Shape], tools: (&Tool, &Tool)) -> Result<Build, String> {
    let (ptxas, nvdisasm) = tools;
    let assembled = assembly::run_ptxas(&ptx::print(kernel.module()), &target.to_string(), ptxas)?;
    let Some(cubin) = &assembled.cubin else {
        return Err(format!("ptxas {} refuses it for {target}: {}", ptxas.version, assembled.said.join("\n  ")));
    };
    let said = Said::read(&assembled.said)?;
    let listing = Listing::read(&assembly::disassemble(cubin, nvdisasm)?)?;
    let launches = shapes.iter().map(|shape| taken(target, shape, &said)).collect::<Result<_, _>>()?;
    let code = listing.functions.into_iter().map(Code::of).collect();
    Ok(Build { target, cubin: hash::hex(cubin), remarks: said.remarks, launches, code })
}

fn taken(target: Target, (entry, threads, shared): &Shape, said: &Said) -> Result<Taken, String> {
    let function = said.functions.iter().find(|function| function.entry == *entry);
    let function = function.ok_or_else(|| format!("ptxas said nothing of `{entry}`"))?.clone();
    let shared_bytes = function.shared_bytes.saturating_add(*shared);
    let block = |threads| Block { threads, registers: function.registers, shared_bytes };
    let occupancy = threads.and_then(|threads| occupancy::of(target, block(threads)));
    Ok(Taken { function, threads: *threads, dynamic_shared_bytes: *shared, occupancy })
}

impl Code {
    fn of(function: Function) -> Code {
        let loops = sass::loops(&function);
        let counts = function.without_padding().iter().map(|one| one.class).collect();
        Code { main: sass::main_loop(&loops), counts, loops, function }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_by_its_plain_name_is_the_kernels_own_target() {
        let [ampere, plain, own] = ["sm_80", "sm_90", "sm_90a"].map(|name| name.parse::<Target>().unwrap());
        assert_eq!(asked(own, &[plain]), [own]);
        assert_eq!(asked(own, &[plain, own]), [own]);
        assert_eq!(asked(own, &[ampere]), [ampere], "which is refused");
        assert_eq!(asked(ampere, &[plain, ampere]), [plain, ampere]);
        assert_eq!(asked(ampere, &[]), [ampere]);
    }

    #[test]
    fn blocks_whose_shared_memory_nobody_knows_are_not_counted() {
        let text = |shared: &str| {
            format!(
                ".version 8.0\n.target sm_80\n.address_size 64\n{shared}\n.visible .entry k() .reqntid 128, 1, 1 {{ ret; }}"
            )
        };
        let threads = |shared: &str, given: BlockShape| {
            let parsed = ptx::parse(&ptx::Source::new("k.ptx", text(shared))).unwrap();
            shapes(&Kernel::new("k", parsed, launch::Recipe::default()), given).unwrap()[0].1
        };
        let dynamic = ".extern .shared .align 16 .b8 tiles[];";
        assert_eq!(threads(dynamic, BlockShape::default()), None);
        assert_eq!(threads(dynamic, BlockShape { shared_bytes: Some(1024), ..BlockShape::default() }), Some(128));
        assert_eq!(threads(".shared .align 16 .b8 tiles[64];", BlockShape::default()), Some(128));
    }
}
