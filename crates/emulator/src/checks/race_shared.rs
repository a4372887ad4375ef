//! # race-shared
//!
//! Two warps of a block access the same bytes, at least one writes, and no barrier orders them. The result depends on
//! which warp is faster.
//!
//! ```ptx
//! st.shared.f32 [%mine], %value;
//! ld.shared.f32 %other, [%neighbours];   // no bar.sync in between
//! ```
//!
//! Fix: `bar.sync` between the two accesses, executed by both warps. Data that `cp.async` brought needs both: each
//! thread waits for its own copies, then a barrier tells the others. PTX ISA, "bar, barrier"; "cp.async.wait_group".

use super::{Check, order};
use crate::finding::Report;
use crate::happens_before::{Agent, Batch, Fault, Means, Published, Reach};
use crate::machine::Block;

pub const CHECK: Check = Check::error("race-shared", include_str!("race_shared.rs"));

pub fn report(block: &Block, fault: &Fault) -> Report {
    let place = order::place(block, fault);
    let (first, second) = (fault.first.warp, fault.second.warp);
    let waited = match fault.first.agent {
        Agent::Copy(Batch::Waited { site: Some(site) }) => {
            format!(" after the wait at line {}", block.findings.line(site.0))
        }
        _ => String::new(),
    };
    let message = format!("warps {first} and {second} access {place} without a barrier{waited} between them");
    let missing = Some(sentence(block, fault, &waited));
    let help = format!("emit `bar.sync 0` between (1) and (2){waited}, in every warp");
    order::report(block, fault, &CHECK, message, missing, help)
}

/// What should have told the second party of the first access.
fn sentence(block: &Block, fault: &Fault, waited: &str) -> String {
    let first = block.findings.line(fault.first.site.0);
    let Published::By(release) = fault.published else {
        return format!("a barrier{waited}: nothing after line {first} releases the access");
    };
    let line = block.findings.line(release.site.0);
    let what = match release.means {
        Means::Barrier { id } => format!("`bar.sync {id}` at line {line}"),
        Means::WarpSync { .. } => format!("`bar.warp.sync` at line {line}"),
    };
    let second = fault.second.warp;
    match release.reach {
        Reach::NotJoined => format!("{what} releases the access, and warp {second} did not join it before its own"),
        Reach::ArrivedOnly => format!("warp {second} arrived at {what} and did not wait"),
        Reach::FirstAbsent => format!("lane {} of the first access did not take part in {what}", fault.first.lane),
        Reach::TooLate => format!("{what} comes after the second access"),
    }
}
