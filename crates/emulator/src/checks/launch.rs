//! # launch
//!
//! The launch does not fit the kernel or the architecture: more threads than `.maxntid` promises, other than
//! `.reqntid` demands, more shared memory or more threads than a block may have. The driver refuses such a launch; code
//! that ignores the error measures a kernel that never ran. What only a later architecture than `.target` can hold is
//! reported and runs all the same, as it would there; `gpu = "sm_90"` in the recipe says that it is launched on one.
//!
//! ```ptx
//! .visible .entry k() .maxntid 128, 1, 1   // launched with block = [256, 1, 1]
//! ```
//!
//! Fix: change the block, the shared memory or the directive. CUDA C++ Programming Guide, "Compute Capabilities";
//! PTX ISA, "Performance-Tuning Directives".

use super::{Check, words};
use crate::finding::{Actor, Place, Report};
use crate::machine::LaunchShape;
use crate::memory::SharedMemory;
use launch::Kernel;
use ptx::{Function, Module, Target, Tuning};

pub const CHECK: Check = Check::error("launch", include_str!("launch.rs"));

const MAX_THREADS: u32 = 1024; // CUDA C++ Programming Guide, compute capabilities: threads per block
const MAX_CLUSTER: u32 = 16; // compute capability 9.0, with the attribute for non-portable sizes

/// The architecture that the emulator is, whatever `.target` says.
const MACHINE: Target = Target::SM_90;

/// Most shared memory of a block, in bytes. CUDA C++ Programming Guide, compute capabilities.
fn max_shared(gpu: Target) -> u64 {
    1024 * match gpu.sm {
        120.. => 99,
        90.. => 227,
        86 | 89 => 99,
        80.. => 163,
        75.. => 64,
        _ => 48,
    }
}

/// Shared memory that the target lacks and this machine has is a finding, but no reason not to launch.
pub fn can_run(module: &Module, function: &Function, shape: &LaunchShape) -> bool {
    wrong(MACHINE, module, function, shape).is_none()
}

/// What is wrong with the launch, if anything. `written`: where the recipe says it, if it has a text.
pub fn check(kernel: &Kernel, function: &Function, shape: &LaunchShape, written: Option<usize>) -> Option<Report> {
    let target = kernel.module().target;
    let gpu = kernel.recipe.gpu.unwrap_or(target);
    if gpu.sm < target.sm {
        let entry = Actor::nobody(Place::Entry, "the entry it launches");
        let message = format!("a module for {target} on {gpu}: no GPU runs code for a later one");
        return Some(Report::new(&CHECK, message, entry).help("change `gpu` of the recipe, or `.target`".to_string()));
    }
    let (message, help) = wrong(gpu, kernel.module(), function, shape)?;
    let entry = Actor::nobody(Place::Entry, "the entry it launches");
    let report = match written {
        Some(spot) => Report::new(&CHECK, message, Actor::nobody(Place::Recipe(spot), "this launch")).first(entry),
        None => Report::new(&CHECK, message, entry),
    };
    Some(report.help(help))
}

/// What is wrong on that GPU, and what to do.
fn wrong(gpu: Target, module: &Module, function: &Function, shape: &LaunchShape) -> Option<(String, String)> {
    let promises = || function.tuning.iter().find_map(|tuning| broken_promise(tuning, shape));
    refused(gpu, module, function, shape).or_else(promises)
}

/// What no kernel can have.
fn refused(gpu: Target, module: &Module, function: &Function, shape: &LaunchShape) -> Option<(String, String)> {
    let threads: u32 = shape.block.iter().product();
    let constant = SharedMemory::static_bytes(module, function);
    let shared = constant + u64::from(shape.shared);
    if threads == 0 || shape.grid.contains(&0) {
        let message = "an empty launch: expected at least one block of one thread";
        return Some((message.into(), "change `grid` or `block`".into()));
    }
    if !(1..=MAX_CLUSTER).contains(&shape.cluster.iter().product()) {
        let [x, y, z] = shape.cluster;
        let message = format!("a cluster of {x}, {y}, {z} blocks: 1 to {MAX_CLUSTER} are possible");
        return Some((message, "change the cluster".into()));
    }
    if threads > MAX_THREADS {
        let message = format!("a block of {threads} threads: at most {MAX_THREADS} are possible");
        return Some((message, "make `block` smaller, and `grid` larger".into()));
    }
    let limit = max_shared(gpu);
    (shared > limit).then(|| {
        let parts = format!("{constant} static and {} dynamic", shape.shared);
        let has = format!("{gpu} has at most {limit} per block");
        let message = format!("{} of shared memory ({parts}): {has}", words::bytes(shared));
        (message, format!("make `shared` or the arrays of the entry smaller by {}", words::bytes(shared - limit)))
    })
}

/// A directive of the entry that the block breaks.
fn broken_promise(tuning: &Tuning, shape: &LaunchShape) -> Option<(String, String)> {
    let threads = |[x, y, z]: [u32; 3]| x * y * z;
    let dimensions = |[x, y, z]: [u32; 3]| format!("{x}, {y}, {z}");
    let LaunchShape { grid, block, cluster, .. } = *shape;
    match tuning {
        Tuning::MaxThreads(most) if threads(block) > threads(*most) => Some((
            format!("a block of {} threads: the entry has `.maxntid {}`", threads(block), dimensions(*most)),
            format!("launch at most {} threads per block, or raise `.maxntid`", threads(*most)),
        )),
        Tuning::RequiredThreads(exact) if block != *exact => Some((
            format!("a block of {} threads: the entry has `.reqntid {}`", dimensions(block), dimensions(*exact)),
            format!("write `block = [{}]`, or change `.reqntid`", dimensions(*exact)),
        )),
        Tuning::RequiredCluster(exact) if cluster != *exact => Some((
            format!(
                "a cluster of {} blocks: the entry has `.reqnctapercluster {}`",
                dimensions(cluster),
                dimensions(*exact)
            ),
            format!("write `cluster = [{}]`, or change `.reqnctapercluster`", dimensions(*exact)),
        )),
        Tuning::RequiredCluster(exact) if (0..3).any(|axis| !grid[axis].is_multiple_of(exact[axis])) => Some((
            format!("a grid of {} blocks: the entry has `.reqnctapercluster {}`", dimensions(grid), dimensions(*exact)),
            "make each dimension of `grid` a multiple of the cluster's".into(),
        )),
        Tuning::MaxClusterRank(most) if threads(cluster) > *most => Some((
            format!("a cluster of {} blocks: the entry has `.maxclusterrank {most}`", threads(cluster)),
            format!("launch clusters of at most {most} blocks, or raise `.maxclusterrank`"),
        )),
        _ => None,
    }
}

/// The cluster that the entry demands of every launch.
pub fn required_cluster(function: &Function) -> Option<[u32; 3]> {
    function.tuning.iter().find_map(|tuning| match tuning {
        Tuning::RequiredCluster(blocks) => Some(*blocks),
        _ => None,
    })
}
