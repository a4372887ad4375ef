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
//! Fix: `cp.async.wait_all` before the exit, or do not start the copy: a pipeline that fetches ahead must stop at the
//! last tile. PTX ISA, "cp.async": completion is observed with `cp.async.wait_group` or `cp.async.wait_all`.

use super::{Check, words};
use crate::exec::At;
use crate::finding::Report;
use crate::machine::Cluster;

pub const CHECK: Check = Check::error("async-leak", include_str!("async_leak.rs"));

/// At the end of a block.
pub fn report(cluster: &mut Cluster) {
    for copy in cluster.detector.unfinished_copies() {
        let who = words::who(cluster, copy.warp as usize, copy.mask);
        let message = match copy.mask.count_ones() {
            1 => format!("a copy by {who} is still in flight when its thread exits"),
            _ => format!("copies by {who} are still in flight when their threads exit"),
        };
        let at = At { warp: copy.warp as usize, fragment: 0, mask: copy.mask, statement: copy.site.0 };
        let wait = if copy.committed { "cp.async.wait_group 0" } else { "cp.async.wait_all" };
        let report = Report::new(&CHECK, message, cluster.actor(at, "started here, and nobody waits for it"))
            .missing(format!("`{wait}` between the copy and the exit of its thread"))
            .help(format!("emit `{wait}` before the exit, or do not start a copy that nobody needs"))
            .count(u64::from(copy.mask.count_ones()));
        cluster.findings.add(report);
    }
}
