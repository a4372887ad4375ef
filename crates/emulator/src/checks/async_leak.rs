//! # async-leak
//!
//! A thread exits while copies that it started are still in flight. Their bytes may land in shared memory that belongs
//! to another block by then.
//!
//! ```ptx
//! cp.async.ca.shared.global [%stage], [%address], 16;
//! cp.async.commit_group;
//! ret;                                  // nobody waited for the copy
//! ```
//!
//! Fix: `cp.async.wait_all` before the exit, or do not start the copy. PTX ISA, "cp.async": completion is observed with
//! `cp.async.wait_group` or `cp.async.wait_all`.

use super::Check;
use crate::exec::At;
use crate::finding::Report;
use crate::machine::{Block, describe_lanes};

pub const CHECK: Check = Check::error("async-leak", include_str!("async_leak.rs"));

/// At the end of a block.
pub fn report(block: &mut Block) {
    for copy in block.detector.unfinished_copies() {
        let lanes = describe_lanes(copy.mask);
        let message = format!("a copy of {lanes} of warp {} is still in flight when its thread exits", copy.warp);
        let at = At { warp: copy.warp as usize, fragment: 0, mask: copy.mask, statement: copy.site.0 };
        let second = block.actor(at, "copy started here");
        let missing = Some(if copy.committed { "cp.async.wait_group 0" } else { "cp.async.wait_all" }.to_string());
        let help = Some(format!("emit `{}` before the exit", missing.as_deref().unwrap_or_default()));
        let count = u64::from(copy.mask.count_ones());
        block.findings.add(Report { check: &CHECK, message, first: None, second, missing, help, count });
    }
}
