//! # cluster-lifetime
//!
//! A thread uses shared memory of another block of its cluster, and nothing says that this block has started, or that it
//! has not exited yet. Blocks of a cluster are scheduled together, but they start when they start, and the shared memory
//! of a block that has exited belongs to somebody else.
//!
//! ```ptx
//! mapa.shared::cluster.u32 %far, %near, %rank;
//! st.shared::cluster.u32 [%far], %value;    // has the other block started?
//! ret;                                      // did the other block wait for it?
//! ```
//!
//! Fix: `barrier.cluster.arrive` and `barrier.cluster.wait` by all threads before the first access, and again between the
//! last access and the exit; an mbarrier of the other block on which it waits does as well. PTX ISA, "barrier.cluster",
//! CUDA C++ Programming Guide, "Distributed Shared Memory".

use super::{Check, words};
use crate::exec::At;
use crate::finding::Report;
use crate::machine::Cluster;
use happens_before::{Absence, Absent};

pub const CHECK: Check = Check::error("cluster-lifetime", include_str!("cluster_lifetime.rs"));

/// At the end of a cluster.
pub fn report(cluster: &mut Cluster) {
    for Absent { absence, site, warp, mask, block } in cluster.detector.absences() {
        let at = At { warp: warp as usize, fragment: 0, mask, statement: site.0 };
        let (message, missing, help) = match absence {
            Absence::NotStarted => (
                format!("shared memory of block {block} of the cluster is used, which need not have started"),
                format!("a cluster barrier, or another sign of block {block}, before the access"),
                "let all threads of the cluster execute `barrier.cluster.arrive` and `barrier.cluster.wait` before it",
            ),
            Absence::Gone => (
                format!("shared memory of block {block} of the cluster is used, which may have exited"),
                format!("a cluster barrier, or another wait by block {block}, between the access and its exit"),
                "let all threads of the cluster execute `barrier.cluster.arrive` and `barrier.cluster.wait` behind it",
            ),
        };
        let second = cluster.actor(at, &format!("used by {}", words::who(cluster, at.warp, mask)));
        let report = Report::new(&CHECK, message, second).missing(missing).help(help);
        cluster.findings.add(report.count(mask.count_ones().into()));
    }
}
