//! # launch
//!
//! The launch does not fit the kernel or the architecture: more threads than `.maxntid` promises, other than
//! `.reqntid` demands, more shared memory than a block may have, more threads than a block may have. The driver refuses
//! such a launch; code that ignores the error measures a kernel that never ran.
//!
//! ```ptx
//! .visible .entry k() .maxntid 128, 1, 1   // launched with block = [256, 1, 1]
//! ```
//!
//! Fix: change the block, the shared memory or the directive. CUDA C++ Programming Guide, "Compute Capabilities";
//! PTX ISA, "Performance-Tuning Directives".

use super::Check;
use crate::finding::{Actor, Report};
use crate::machine::LaunchShape;
use crate::memory::SharedMemory;
use ptx::{Function, Module, Target, Tuning};

pub const CHECK: Check = Check::error("launch", include_str!("launch.rs"));

const MAX_THREADS: u32 = 1024; // CUDA C++ Programming Guide, compute capabilities: threads per block

/// Most shared memory of a block, in bytes. CUDA C++ Programming Guide, compute capabilities.
fn max_shared(target: Target) -> u64 {
    1024 * match target.sm {
        90.. => 227,
        86 | 89 => 99,
        80.. => 163,
        75.. => 64,
        _ => 48,
    }
}

/// What is wrong with the launch, if anything.
pub fn check(module: &Module, function: &Function, shape: &LaunchShape) -> Option<Report> {
    let threads: u32 = shape.block.iter().product();
    let shared = SharedMemory::static_bytes(module, function) + u64::from(shape.shared);
    let limit = max_shared(module.target);
    let message = if threads == 0 || shape.grid.contains(&0) {
        Some("the grid and the block need at least one block and one thread".to_string())
    } else if threads > MAX_THREADS {
        Some(format!("a block of {threads} threads: at most {MAX_THREADS} are possible"))
    } else if shared > limit {
        Some(format!("{shared} bytes of shared memory: {} has at most {limit} per block", module.target))
    } else {
        function.tuning.iter().find_map(|tuning| broken_promise(tuning, shape.block))
    };
    let second = Actor { statement: 0, cta: [0; 3], warp: 0, lanes: 0, label: "this launch".into() };
    let help = Some("change `block`, `shared` or the directive of the entry".into());
    message.map(|message| Report { check: &CHECK, message, first: None, second, missing: None, help, count: 1 })
}

fn broken_promise(tuning: &Tuning, block: [u32; 3]) -> Option<String> {
    let threads = |[x, y, z]: [u32; 3]| x * y * z;
    match tuning {
        Tuning::MaxThreads(most) if threads(block) > threads(*most) => {
            Some(format!("a block of {} threads: the entry has `.maxntid` {}", threads(block), threads(*most)))
        }
        Tuning::RequiredThreads(exact) if block != *exact => {
            Some(format!("a block of {block:?} threads: the entry has `.reqntid` {exact:?}"))
        }
        _ => None,
    }
}
