//! # proxy-fence
//!
//! A thread's access and that of an asynchronous unit (a bulk copy, a `wgmma`) to the same bytes are ordered, but no
//! proxy fence lies between them. The unit reaches memory another way than threads do, and may see what was there before.
//! It is the same the other way round: a copy that refills a stage may overwrite what threads have read by program order
//! and arrived for, and not yet by that way. Hardware is often right by luck, as when the bytes have long arrived.
//!
//! ```ptx
//! st.shared.b32 [tile], %value;
//! bar.sync 0;                                // orders, but is no proxy fence
//! cp.async.bulk.global.shared::cta.bulk_group [%to], [tile], 128;
//! ```
//!
//! Fix: `fence.proxy.async` by the threads that wrote or read, before they arrive at the barrier, or by the thread that
//! starts the copy, after it. With `.shared::cta` or `.global` it orders only what lies there. Where the bytes were
//! written by `cp.async` and read by `wgmma` it is a warning: compilers leave the fence out there. PTX ISA, "Proxies";
//! "fence.proxy.async".

use super::{Check, order, words};
use crate::finding::Report;
use crate::machine::Cluster;
use happens_before::{Agent, Fault, Space};
use launch::finding::Severity;

pub const CHECK: Check = Check::error("proxy-fence", include_str!("proxy_fence.rs")).by_second();

pub fn report(cluster: &Cluster, fault: &Fault) -> Report {
    let (place, them) = (order::place(cluster, fault), words::them(fault.bytes.into()));
    let unit = match fault.second.agent {
        Agent::Product(_) => "a `wgmma` reads",
        _ if fault.second.write => "a bulk copy fills",
        _ => "a bulk copy reads",
    };
    let before = match (fault.first.agent, fault.first.write) {
        (Agent::Copy(_), _) => "a `cp.async` wrote",
        (_, true) => "a thread wrote",
        (_, false) => "a thread read",
    };
    let message = format!("{unit} {place} after {before} {them}, without a proxy fence between");
    let report = order::report(cluster, fault, &CHECK, message);
    if cluster.findings.text(fault.first.site.0).contains("tensormap.") {
        return report
            .missing(
                "`fence.proxy.tensormap::generic.release` behind (1), and `fence.proxy.tensormap::generic.acquire` of the \
                 map before (2)",
            )
            .help(
                "emit `fence.proxy.tensormap::generic.release.gpu` after (1) and `fence.proxy.tensormap::generic.acquire.gpu \
                 [map], 128` before (2)",
            );
    }
    let fence = match fault.space {
        Space::Shared => "fence.proxy.async.shared::cta",
        Space::Global => "fence.proxy.async.global",
    };
    let report = report
        .missing(format!("`fence.proxy.async`, or `{fence}`, on the way from (1) to (2)"))
        .help(format!("emit `{fence}` after (1), before the barrier that orders the two"));
    match (fault.first.agent, fault.second.agent) {
        // Triton's pipelined loops do so, and have run on many machines.
        (Agent::Copy(_), Agent::Product(_)) => report.severity(Severity::Warning),
        _ => report,
    }
}
