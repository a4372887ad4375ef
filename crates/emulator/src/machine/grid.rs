//! A launch: every cluster of the grid, on all cores where they know nothing of each other, else in turns.

use super::cluster::Block;
use super::gathered::{Gathered, Left};
use super::register_pool::RegisterPool;
use super::{Cluster, Program, Warp};
use crate::Detector;
use crate::async_engines::{Copies, Products};
use crate::audit::Audit;
use crate::checks;
use crate::checks::earlier_grid::EarlierGrid;
use crate::checks::nan_birth::{Births, Floats};
use crate::checks::race_global::Scene;
use crate::finding::Findings;
use crate::memory::{GlobalMemory, SharedMemory};
use crate::operand_sets::Census;
use crate::scheduler::{Adversary, Rounds};
use crate::simd::Level;
use crate::trace::{Recorder, Timeline};
use happens_before::{Commons, Footprint, Touches};
use launch::backend::Engine;
use rayon::prelude::*;
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

/// Clusters that run side by side before what they wrote is put together. Fixed, so that results do not depend on how
/// many cores there are.
const BATCH: u64 = 256;

/// Clusters that talk to each other are resident together: two on each processor of an H200.
const RESIDENT: usize = 264;

/// Instructions that a resident cluster executes before the next one has its turn.
const TURN: u64 = 512;

/// A launch that is about to run.
pub struct Grid<'a> {
    pub program: &'a Program,
    pub shape: &'a LaunchShape,
    /// The memory of each block, unwritten.
    pub shared: &'a SharedMemory,
    pub options: &'a launch::backend::Options,
    /// The floating-point numbers of each step, if somebody looks for the first NaN.
    pub floats: Option<&'a [Option<Floats>]>,
    /// Counts what instructions are fed, if somebody wants to know.
    pub census: Option<&'a Census>,
    /// Grids that need not be complete when this one starts.
    pub earlier: &'a [EarlierGrid],
    /// Is somebody going to ask who touched global memory?
    pub kept: bool,
    /// Steps that synchronise as ever, but of which the race detector hears nothing, in their order.
    pub silenced: &'a [u32],
}

/// What became of a cluster.
struct Ended<'k> {
    global: GlobalMemory,
    findings: Findings<'k>,
    executed: u64,
    stopped: bool,
    left: Left,
    /// The timeline of the cluster, and its blocks.
    trace: Option<(Box<Recorder>, Vec<[u32; 3]>)>,
}

impl Grid<'_> {
    /// Runs every cluster; stops early if one traps or the budget is used up. Returns how many instructions warps
    /// executed, the room that watching memory took, and who touched it.
    pub fn run(
        &self,
        global: &mut GlobalMemory,
        findings: &mut Findings,
        timeline: Option<&mut Timeline>,
    ) -> (u64, Footprint, Touches) {
        #[cfg(feature = "definition")]
        happens_before::definition::begin_launch(&self.earlier.iter().map(|grid| grid.early).collect::<Vec<_>>());
        let (mut gathered, mut together) = (Gathered::default(), None);
        let executed = match self.program.isolated {
            true => self.run_apart(global, findings, &mut gathered, timeline),
            false => {
                let mut commons = Commons::default();
                let executed = self.run_in_turns(global, findings, (&mut gathered, &mut commons), timeline);
                // Nobody's turn: whoever asks sees all clusters alike.
                let masks = self.shape.masks(self.shape.blocks());
                let mut nobody = Detector::numbered(u32::MAX, &masks, self.shape.warps_per_block());
                nobody.exchange(&mut commons);
                gathered.note(nobody.read_only_crossings(&self.program.read_only));
                gathered.add_common(nobody.footprint(0));
                together = self.kept.then(|| nobody.summary());
                executed
            }
        };
        let footprint = gathered.footprint();
        let scene = Scene { shape: self.shape, global };
        let mut touches = gathered.report(&scene, self.earlier, findings);
        together.iter().for_each(|summary| touches.add(summary));
        (executed, footprint, touches)
    }

    /// How many clusters run.
    fn clusters(&self) -> u64 {
        self.shape.clusters().min(self.options.clusters)
    }

    /// Clusters that know nothing of each other, on all cores. Each sees memory as it was before its batch; what they
    /// wrote is put together in their order.
    fn run_apart(
        &self,
        global: &mut GlobalMemory,
        findings: &mut Findings,
        gathered: &mut Gathered,
        mut timeline: Option<&mut Timeline>,
    ) -> u64 {
        let (clusters, whole) = (self.clusters(), self.options.instruction_budget);
        let mut left = whole;
        for first in (0..clusters).step_by(BATCH as usize) {
            global.share();
            let (before, around, seen) = (&*global, &*findings, timeline.as_deref());
            let numbers = first..clusters.min(first + BATCH);
            let run = |number: u64| self.run_one(number, before.clone(), around.empty(), left, seen);
            let ended: Vec<Ended> = numbers.into_par_iter().map(run).collect();
            for (mut one, number) in ended.into_iter().zip(first..) {
                if one.executed > left {
                    // Alone it was within the budget; with those before it, it is not.
                    one = self.run_one(number, global.clone(), findings.empty(), left, timeline.as_deref());
                }
                left -= one.executed;
                global.take_changes(one.global);
                findings.absorb(one.findings);
                gathered.add_apart(number, one.left);
                record(&mut timeline, one.trace);
                if one.stopped {
                    return whole - left;
                }
            }
        }
        whole - left
    }

    fn run_one<'k>(
        &self,
        number: u64,
        global: GlobalMemory,
        findings: Findings<'k>,
        budget: u64,
        timeline: Option<&Timeline>,
    ) -> Ended<'k> {
        let mut cluster = self.cluster(number, global, findings, timeline);
        let executed = cluster.run(self.program, budget, self.options.instruction_budget);
        self.end(cluster, executed)
    }

    /// Clusters that may wait for each other, in turns, on one core.
    fn run_in_turns(
        &self,
        global: &mut GlobalMemory,
        findings: &mut Findings,
        (gathered, commons): (&mut Gathered, &mut Commons),
        mut timeline: Option<&mut Timeline>,
    ) -> u64 {
        let whole = self.options.instruction_budget;
        let mut rounds = Rounds::new(self.options);
        let (mut waiting, mut resident, mut left) = (0..self.clusters(), Vec::new(), whole);
        loop {
            // One cluster more is enough to tell that the budget is used up.
            let spent = left == 0;
            let room = if spent { 1 } else { RESIDENT - resident.len() };
            let (around, seen) = (&*findings, timeline.as_deref());
            let arrive = |number| self.cluster(number, GlobalMemory::default(), around.empty(), seen);
            resident.extend(waiting.by_ref().take(room).map(arrive));
            if resident.is_empty() {
                break;
            }
            rounds.arrange(&mut resident);
            let mut staying = Vec::new();
            let alone = resident.len() == 1 && waiting.is_empty();
            let mut round = std::mem::take(&mut resident).into_iter();
            while let Some(mut cluster) = round.next() {
                cluster.global = std::mem::take(global);
                let turn = if alone { left } else { TURN.min(left) };
                cluster.detector.exchange(commons);
                let (executed, goes_on) = cluster.advance(self.program, turn, left, whole);
                cluster.detector.exchange(commons);
                left -= executed;
                if goes_on {
                    *global = std::mem::take(&mut cluster.global);
                    staying.push(cluster);
                    continue;
                }
                let ended = self.end(cluster, executed);
                *global = ended.global;
                findings.absorb(ended.findings);
                gathered.add(ended.left);
                record(&mut timeline, ended.trace);
                if ended.stopped {
                    // Nothing runs any more; what the others did until now counts.
                    for mut other in staying.into_iter().chain(round) {
                        (other.global, other.stopped) = (std::mem::take(global), true);
                        let ended = self.end(other, 0);
                        *global = ended.global;
                        findings.absorb(ended.findings);
                        gathered.add(ended.left);
                    }
                    return whole - left;
                }
            }
            staying.sort_by_key(|cluster| cluster.number);
            resident = staying;
            if spent {
                break;
            }
        }
        whole - left
    }

    fn cluster<'s, 'k>(
        &'s self,
        number: u64,
        global: GlobalMemory,
        findings: Findings<'k>,
        timeline: Option<&Timeline>,
    ) -> Cluster<'s, 'k> {
        let blocks: Vec<Block> = self.shape.members(number).map(|index| self.block(index)).collect();
        let masks = self.shape.masks(blocks.len());
        let trace = timeline.and_then(|timeline| timeline.recorder(number, blocks.len(), masks.len()));
        let lints = self.options.lints.then(|| vec![Default::default(); blocks.len()]);
        let births = self.floats.map(|floats| Births::new(floats, masks.len()));
        let (audits, warps_per_block) = (self.options.audit && self.options.checks, masks.len() / blocks.len());
        let mut detector = Detector::watching(number as u32, &masks, warps_per_block as u32, self.options.checks);
        if audits {
            detector.keep_record();
        }
        detector.begin_behind(self.earlier.iter().map(|earlier| earlier.touches.clone()).collect());
        Cluster {
            shape: self.shape,
            number,
            global,
            warps: warps(&masks, self.program),
            copies: Copies::new(masks.len()),
            detector,
            blocks,
            cluster_barrier: Default::default(),
            mbarriers: BTreeMap::new(),
            initialisations: BTreeMap::new(),
            flights: Default::default(),
            products: masks.iter().map(|_| Products::default()).collect(),
            timeouts: 0,
            further_copies: 0,
            findings,
            unwritten_reads: Default::default(),
            adversary: Adversary::new(self.options, number, masks.len()),
            candidates: vec![],
            product_reads: Default::default(),
            misused_barrier: false,
            stopped: false,
            checks: self.options.checks,
            fault_limit: self.options.fault_limit,
            // Every step must be seen.
            engine: if births.is_some() { Engine::Lanes } else { self.options.engine },
            precision: self.options.precision,
            level: Level::best(),
            trace,
            lints,
            births,
            unheard: BTreeMap::new(),
            census: self.census,
            audit: audits.then(Box::<Audit>::default),
            silenced: self.silenced,
        }
    }

    fn block(&self, index: [u32; 3]) -> Block {
        let warps = self.shape.masks(1).len();
        let registers = RegisterPool::new(self.program.entry_registers, warps);
        Block { index, shared: self.shared.clone(), barriers: Default::default(), registers }
    }

    /// What is left to say when all threads of a cluster have exited, or nobody can go on.
    fn end<'k>(&self, mut cluster: Cluster<'_, 'k>, executed: u64) -> Ended<'k> {
        cluster.findings.faults = cluster.faults();
        let suspects = checks::report_faults(&mut cluster);
        if !cluster.stopped {
            checks::async_leak::report(&mut cluster);
            checks::mbarrier::report_all_written(&mut cluster);
            checks::redundant_sync::end(&mut cluster);
            checks::cluster_lifetime::report(&mut cluster);
            checks::registers::report_strays(&mut cluster);
        }
        cluster.land_all();
        if let Some(audit) = cluster.audit.take() {
            cluster.findings.operands.absorb(audit.into_tally(&mut cluster.detector));
        }
        cluster.findings.stray_arrivals += cluster.stray_arrivals();
        cluster.trace_end();
        let indices = cluster.blocks.iter().map(|block| block.index).collect();
        let trace = cluster.trace.map(|trace| (trace, indices));
        let too_early = cluster.detector.take_too_early();
        let mut crossings = cluster.detector.take_crossings();
        crossings.extend(cluster.detector.read_only_crossings(&self.program.read_only));
        let touched = cluster.detector.summary();
        let shared = cluster.blocks.iter().map(|block| block.shared.bytes.len() as u64).sum();
        let footprint = cluster.detector.footprint(shared);
        let left = Left { touched, too_early, crossings, suspects, footprint };
        let Cluster { global, findings, stopped, .. } = cluster;
        Ended { global, findings, executed, stopped, left, trace }
    }
}

fn record(timeline: &mut Option<&mut Timeline>, trace: Option<(Box<Recorder>, Vec<[u32; 3]>)>) {
    if let (Some(timeline), Some((trace, blocks))) = (timeline, trace) {
        timeline.add(&trace, &blocks);
    }
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
    pub fn members(&self, number: u64) -> impl Iterator<Item = [u32; 3]> {
        let along = |axis: usize| u64::from(self.grid[axis] / self.cluster[axis]);
        let place = place(number, [along(0), along(1)]);
        let cluster = self.cluster;
        (0..cluster.iter().product()).map(move |rank: u32| {
            let inside = self::place(rank.into(), [cluster[0].into(), cluster[1].into()]);
            [0, 1, 2].map(|axis| place[axis] * cluster[axis] + inside[axis])
        })
    }

    /// Blocks of a cluster.
    fn blocks(&self) -> usize {
        self.cluster.iter().product::<u32>() as usize
    }

    pub fn warps_per_block(&self) -> u32 {
        self.block.iter().product::<u32>().div_ceil(32)
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
