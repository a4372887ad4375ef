//! # async-leak
//!
//! Threads exit while something that they started is still in flight: a copy, whose bytes may land in shared memory that
//! belongs to another block by then; a store, whose source may belong to another block before it is read; a load of which
//! an mbarrier would tell, and nobody waits for the phase; a product of a warpgroup.
//!
//! ```ptx
//! cp.async.bulk.global.shared::cta.bulk_group [%to], [%stage], 256;
//! cp.async.bulk.commit_group;
//! ret;                                  // nobody waits until the store has read its source
//! ```
//!
//! Fix: wait before the exit, or do not start the operation: a pipeline that fetches ahead must stop at the last tile.
//! For stores `.read` is enough, for what is written outlives the block. PTX ISA, "cp.async.wait_group",
//! "cp.async.bulk.wait_group", "mbarrier.try_wait", "wgmma.wait_group".

use super::{Check, words};
use crate::exec::{At, shared_byte};
use crate::finding::Report;
use crate::machine::Cluster;
use happens_before::{Unfinished, Waitable};

pub const CHECK: Check = Check::error("async-leak", include_str!("async_leak.rs"));

/// At the end of a cluster. Whoever waits for ever has not left anything behind.
pub fn report(cluster: &mut Cluster) {
    let mut left = cluster.detector.unfinished_copies();
    left.extend(cluster.detector.unfinished_stores());
    if cluster.warps.iter().all(|warp| warp.live == 0) {
        left.extend(cluster.detector.unfinished_loads());
    }
    left.retain(|one| !cluster.detector.is_too_early(one.site));
    for one in left {
        let mask = one.mask & !cluster.warps[one.warp as usize].live;
        if mask != 0 {
            report_operation(cluster, Unfinished { mask, ..one });
        }
    }
    for warp in 0..cluster.warps.len() {
        if cluster.checks && cluster.warps[warp].live == 0 {
            report_product(cluster, warp);
        }
    }
}

fn report_operation(cluster: &mut Cluster, left: Unfinished) {
    let at = At { warp: left.warp as usize, fragment: 0, mask: left.mask, statement: left.site.0 };
    let who = words::who(cluster, at.warp, at.mask);
    let (one, many, wait) = match left.by {
        Waitable::Copies { committed: true } => ("copy", "copies", "`cp.async.wait_group 0`".into()),
        Waitable::Copies { committed: false } => ("copy", "copies", "`cp.async.wait_all`".into()),
        Waitable::Stores { committed: true } => ("store", "stores", "`cp.async.bulk.wait_group.read 0`".into()),
        Waitable::Stores { committed: false } => {
            let wait = "`cp.async.bulk.commit_group` and `cp.async.bulk.wait_group.read 0`";
            ("store", "stores", wait.into())
        }
        Waitable::Phase { barrier, phase } => {
            let (rank, offset) = shared_byte(barrier);
            let place = cluster.shared_place(rank, offset);
            ("copy", "copies", format!("a wait for phase {phase} of the mbarrier at {place}"))
        }
    };
    let message = match at.mask.count_ones() {
        1 => format!("a {one} by {who} is still in flight when its thread exits"),
        _ => format!("{many} by {who} are still in flight when their threads exit"),
    };
    let report = Report::new(&CHECK, message, cluster.actor(at, "started here, and nobody waits for it"))
        .missing(format!("{wait} between the {one} and the exit"))
        .help(format!("emit {wait} before the exit, or do not start a {one} that nobody needs"))
        .count(u64::from(at.mask.count_ones()));
    cluster.findings.add(report);
}

/// The youngest product that a warp has not waited for.
fn report_product(cluster: &mut Cluster, warp: usize) {
    let committed = cluster.products[warp].committed;
    let Some((at, group)) = cluster.products[warp].unobserved().next().map(|one| (one.at, one.group)) else { return };
    let message =
        format!("a product by {} is still in flight when its threads exit", words::who(cluster, warp, at.mask));
    let wait = match committed > group {
        true => "`wgmma.wait_group.sync.aligned 0`",
        false => "`wgmma.commit_group.sync.aligned` and `wgmma.wait_group.sync.aligned 0`",
    };
    let report = Report::new(&CHECK, message, cluster.actor(at, "started here, and nobody waits for it"))
        .missing(format!("{wait} between the product and the exit"))
        .help(format!("emit {wait} before the exit, or do not start a product that nobody needs"));
    cluster.findings.add(report);
}
