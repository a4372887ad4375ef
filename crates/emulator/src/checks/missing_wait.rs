//! # missing-wait
//!
//! Bytes that `cp.async` brings are read before their copy is known to be complete: no `cp.async.wait_group` that
//! covers it, or one that leaves too many groups pending, or a copy that was never committed to a group.
//!
//! ```ptx
//! cp.async.ca.shared.global [%stage], [%address], 4;
//! cp.async.commit_group;
//! ld.shared.b32 %value, [%stage];     // may read the old bytes
//! ```
//!
//! Fix: `cp.async.wait_group N` by the thread that started the copy, where N is the number of groups it committed
//! since; then a barrier, if other threads read. PTX ISA, "cp.async.wait_group", "cp.async.commit_group".

use super::{Check, order, words};
use crate::exec::shared_byte;
use crate::finding::Report;
use crate::machine::Cluster;
use happens_before::{Agent, Batch, Fault, Published};

pub const CHECK: Check = Check::error("missing-wait", include_str!("missing_wait.rs"));

pub fn report(cluster: &Cluster, fault: &Fault) -> Report {
    let they = if fault.bytes == 1 { "it is" } else { "they are" };
    let message = format!("{} still in flight when {they} read", order::place(cluster, fault));
    let (missing, help) = remedy(cluster, fault);
    order::report(cluster, fault, &CHECK, message).missing(missing).help(help)
}

/// Why a wait for an mbarrier orders nothing, and what to do, if its result is lost.
pub(super) fn unheard(cluster: &Cluster, barrier: u64) -> Option<(String, String)> {
    let (rank, offset) = shared_byte(barrier);
    let line = cluster.findings.line(*cluster.unheard.get(&(rank, offset as usize))?);
    let why = format!("the one at line {line} may give up, and nobody looks at its result");
    Some((why, format!("go back to line {line} as long as its result is false")))
}

/// The wait that would do, and where it goes. The second party knows of the start of the copy: if it is another thread,
/// a barrier lies between, and the wait belongs before that.
pub(super) fn remedy(cluster: &Cluster, fault: &Fault) -> (String, String) {
    let issuer = words::who(cluster, fault.first.warp as usize, 1 << fault.first.lane);
    let own = fault.first.warp == fault.second.warp && fault.first.lane == fault.second.lane;
    let before = if own { "before (2)" } else { "before the barrier between (1) and (2)" };
    match fault.first.agent {
        Agent::Copy(Batch::Committed { wait_group }) => {
            let less = if wait_group == 0 { "" } else { ", or a smaller count," };
            let missing = format!("`cp.async.wait_group {wait_group}`{less} by {issuer} between (1) and (2)");
            (missing, format!("emit `cp.async.wait_group {wait_group}` {before}"))
        }
        Agent::Load { barrier, phase, .. } | Agent::Copy(Batch::Told { barrier, phase }) => {
            let (rank, offset) = shared_byte(barrier);
            let place = cluster.shared_place(rank, offset);
            let missing = format!("a wait for phase {phase} of the mbarrier at {place} between (1) and (2)");
            match unheard(cluster, barrier) {
                Some((why, help)) => (format!("{missing}: {why}"), help),
                None => (missing, format!("wait with `mbarrier.try_wait` until phase {phase} is complete, before (2)")),
            }
        }
        Agent::Store(Batch::Committed { wait_group }) => {
            let read = if fault.first.write { "" } else { ".read" };
            let wait = format!("`cp.async.bulk.wait_group{read} {wait_group}`");
            (format!("{wait} by {issuer} between (1) and (2)"), format!("emit {wait} {before}"))
        }
        Agent::Store(_) => (
            format!("a group: {issuer} does not commit the copy before (2)"),
            format!("emit `cp.async.bulk.commit_group` after (1), and wait for that group {before}"),
        ),
        Agent::Product(Batch::Committed { wait_group }) => {
            let wait = format!("`wgmma.wait_group.sync.aligned {wait_group}`");
            match handed_on(cluster, fault) {
                Some((what, line)) => (
                    format!(
                        "{wait} between (1) and {what} at line {line}, which tells warp {} to go on",
                        fault.second.warp
                    ),
                    format!("emit {wait} before line {line}, or give the bytes back later"),
                ),
                None => (format!("{wait} between (1) and (2)"), format!("emit {wait} {before}")),
            }
        }
        Agent::Product(_) => (
            "a group: the warpgroup does not commit its products before (2)".into(),
            format!("emit `wgmma.commit_group.sync.aligned` after (1), and wait for that group {before}"),
        ),
        _ => (
            format!("a group: {issuer} does not commit the copy before (2)"),
            format!("emit `cp.async.commit_group` after (1), and wait for that group {before}"),
        ),
    }
}

/// What told the second party of the start of the products, and the line.
fn handed_on(cluster: &Cluster, fault: &Fault) -> Option<(String, u32)> {
    let Published::TooEarly(site) = fault.published else { return None };
    Some((format!("`{}`", cluster.findings.text(site.0)), cluster.findings.line(site.0)))
}
