//! # barrier
//!
//! A block barrier that not all threads reach in the same way: by only some lanes of a warp (`bar.sync` is for whole
//! warps), with a thread count that is no multiple of 32 or larger than the block, with counts that differ between the
//! threads that meet, or with an id above 15. Hardware hangs, or lets threads pass that should wait.
//!
//! ```ptx
//! setp.lt.u32 %p, %tid, 16;
//! @%p bar.sync 0;              // half of warp 0 arrives, the other half does not
//! ```
//!
//! Fix: move the barrier out of the branch, so that every thread of every warp that takes part executes it.
//! PTX ISA, "bar, barrier": "all threads in the warp must execute the same barrier instruction".

use super::Check;
use crate::exec::At;
use crate::finding::Report;
use crate::machine::{Block, describe_lanes};

pub const CHECK: Check = Check::error("barrier", include_str!("barrier.rs"));

/// PTX ISA, "bar, barrier": sixteen barriers per block.
const BARRIERS: u32 = 16;

pub fn watch(block: &mut Block, at: At, id: u32, threads: Option<u32>, aligned: bool) {
    let live = block.warps[at.warp].live;
    let size: u32 = block.dimensions.iter().product();
    let expected = block.barriers.get(&id).and_then(|barrier| barrier.expected);
    let problem = match threads {
        _ if id >= BARRIERS => Some(format!("barrier {id} does not exist: a block has barriers 0 to 15")),
        Some(0) => Some("a barrier of 0 threads".into()),
        Some(count) if count % 32 != 0 => Some(format!("a barrier of {count} threads: expected a multiple of 32")),
        Some(count) if count > size.next_multiple_of(32) => {
            Some(format!("a barrier of {count} threads in a block of {size} threads"))
        }
        Some(count) if expected.is_some_and(|expected| expected != count) => {
            Some(format!("barrier {id} is met with {count} threads here and with {} elsewhere", expected.unwrap_or(0)))
        }
        _ if aligned && at.mask != live => Some(format!(
            "barrier {id} is reached by {} of warp {} and not by {}",
            describe_lanes(at.mask),
            at.warp,
            describe_lanes(live & !at.mask),
        )),
        _ => None,
    };
    if let Some(message) = problem {
        let second = block.actor(at, "this barrier");
        let help = Some("let every thread that takes part execute one barrier with one count".into());
        block.findings.add(Report { check: &CHECK, message, first: None, second, missing: None, help, count: 1 });
    }
}
