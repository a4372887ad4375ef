//! A launch: every cluster of the grid, one after the other.

use super::block::Resident;
use super::{Block, Program, Warp};
use crate::async_engines::{Copies, Products};
use crate::checks;
use crate::finding::Findings;
use crate::happens_before::Detector;
use crate::memory::{GlobalMemory, SharedMemory};
use crate::scheduler::Adversary;
use crate::simd::Level;
use crate::trace::Timeline;
use std::collections::BTreeMap;

/// What a launch says about itself.
#[derive(Clone, Debug)]
pub struct LaunchShape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Blocks per cluster.
    pub cluster: [u32; 3],
    /// Did the launch or the entry ask for clusters?
    pub explicit_cluster: bool,
    /// Dynamic shared memory in bytes.
    pub shared: u32,
    /// The block of parameters.
    pub parameters: Vec<u8>,
}

/// Runs every cluster; stops early if one traps or the budget is used up. `shared`: the memory of each block, unwritten.
/// Returns how many instructions warps executed.
pub fn run_grid(
    program: &Program,
    shape: &LaunchShape,
    shared: &SharedMemory,
    global: &mut GlobalMemory,
    findings: &mut Findings,
    options: &launch::backend::Options,
    mut timeline: Option<&mut Timeline>,
) -> u64 {
    let mut left = options.instruction_budget;
    for number in 0..shape.clusters() {
        let blocks: Vec<Resident> = shape.members(number).map(|index| resident(index, shared)).collect();
        let masks = shape.masks(blocks.len());
        let trace = timeline.as_ref().and_then(|timeline| timeline.recorder(number, blocks.len(), masks.len()));
        let mut cluster = Block {
            shape,
            number,
            global,
            warps: warps(&masks, program),
            copies: Copies::new(masks.len()),
            detector: Detector::watching(&masks, (masks.len() / blocks.len()) as u32, options.checks),
            blocks,
            cluster_barrier: Default::default(),
            mbarriers: BTreeMap::new(),
            flights: Default::default(),
            products: masks.iter().map(|_| Products::default()).collect(),
            timeouts: 0,
            findings,
            unwritten_reads: Default::default(),
            adversary: Adversary::new(options.seed, number),
            misused_barrier: false,
            stopped: false,
            checks: options.checks,
            engine: options.engine,
            level: Level::best(),
            trace,
        };
        left -= cluster.run(program, left, options.instruction_budget);
        checks::report_faults(&mut cluster);
        if !cluster.stopped {
            checks::async_leak::report(&mut cluster);
        }
        cluster.land_all();
        cluster.trace_end();
        if let (Some(timeline), Some(trace)) = (&mut timeline, &cluster.trace) {
            timeline.add(trace, &cluster.blocks.iter().map(|block| block.index).collect::<Vec<_>>());
        }
        if cluster.stopped {
            break;
        }
    }
    options.instruction_budget - left
}

fn resident(index: [u32; 3], shared: &SharedMemory) -> Resident {
    Resident { index, shared: shared.clone(), barriers: BTreeMap::new() }
}

fn warps(masks: &[u32], program: &Program) -> Vec<Warp> {
    let (layout, frame) = (&program.layout, program.units[0].frame.bytes);
    masks.iter().zip(0..).map(|(live, index)| Warp::new(index, *live, layout, frame)).collect()
}

impl LaunchShape {
    fn clusters(&self) -> u64 {
        let along = |axis: usize| u64::from(self.grid[axis] / self.cluster[axis]);
        along(0) * along(1) * along(2)
    }

    /// The blocks of a cluster, by rank.
    fn members(&self, number: u64) -> impl Iterator<Item = [u32; 3]> {
        let along = |axis: usize| u64::from(self.grid[axis] / self.cluster[axis]);
        let place = place(number, [along(0), along(1)]);
        let cluster = self.cluster;
        (0..cluster.iter().product()).map(move |rank: u32| {
            let inside = self::place(rank.into(), [cluster[0].into(), cluster[1].into()]);
            [0, 1, 2].map(|axis| place[axis] * cluster[axis] + inside[axis])
        })
    }

    /// The lanes of each warp of `blocks` blocks; the last of a block may be partial.
    fn masks(&self, blocks: usize) -> Vec<u32> {
        let threads: u32 = self.block.iter().product();
        let block: Vec<u32> =
            (0..threads.div_ceil(32)).map(|warp| u32::MAX >> (32 - (threads - warp * 32).min(32))).collect();
        block.repeat(blocks)
    }
}

/// The coordinates of the `number`th of a row-major set that is this wide and high.
fn place(number: u64, [width, height]: [u64; 2]) -> [u32; 3] {
    [number % width, number / width % height, number / (width * height)].map(|place| place as u32)
}
