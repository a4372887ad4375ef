//! A launch: every block of the grid, one after the other.

use super::{Block, Program, Warp};
use crate::async_engines::Copies;
use crate::checks;
use crate::finding::Findings;
use crate::happens_before::Detector;
use crate::memory::{GlobalMemory, SharedMemory};
use crate::scheduler::Adversary;
use ptx::{Function, Module};
use std::collections::BTreeMap;

/// What a launch says about itself.
#[derive(Clone, Debug)]
pub struct LaunchShape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared: u32,
    /// The block of parameters.
    pub parameters: Vec<u8>,
}

/// Runs every block; stops early if one traps or the budget is used up.
pub fn run_grid(
    (module, function): (&Module, &Function),
    program: &Program,
    shape: &LaunchShape,
    global: &mut GlobalMemory,
    findings: &mut Findings,
    options: &launch::backend::Options,
) {
    let mut left = options.instruction_budget;
    let [x, y, z] = shape.grid.map(u64::from);
    for number in 0..x * y * z {
        let index = [number % x, number / x % y, number / (x * y)].map(|place| place as u32);
        let mut block = Block {
            index,
            dimensions: shape.block,
            grid: shape.grid,
            parameters: &shape.parameters,
            global,
            shared: SharedMemory::new(module, function, shape.shared),
            dynamic_shared: shape.shared,
            warps: warps(shape, program),
            barriers: BTreeMap::new(),
            copies: Copies::new(threads(shape).div_ceil(32) as usize),
            detector: Detector::new(&masks(shape), threads(shape).div_ceil(32)),
            findings,
            unwritten_reads: Default::default(),
            adversary: Adversary::new(options.seed, number),
            misused_barrier: false,
            stopped: false,
        };
        left -= block.run(program, left, options.instruction_budget);
        checks::report_faults(&mut block);
        if !block.stopped {
            checks::async_leak::report(&mut block);
        }
        block.land_all();
        if block.stopped {
            return;
        }
    }
}

fn threads(shape: &LaunchShape) -> u32 {
    shape.block.iter().product()
}

/// The lanes of each warp; the last may be partial.
fn masks(shape: &LaunchShape) -> Vec<u32> {
    let threads = threads(shape);
    (0..threads.div_ceil(32)).map(|warp| u32::MAX >> (32 - (threads - warp * 32).min(32))).collect()
}

fn warps(shape: &LaunchShape, program: &Program) -> Vec<Warp> {
    let (registers, frame) = (program.registers, program.units[0].frame.bytes);
    masks(shape).into_iter().zip(0..).map(|(live, index)| Warp::new(index, live, registers, frame)).collect()
}
