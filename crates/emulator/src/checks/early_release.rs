//! # early-release
//!
//! The source or destination of a copy that is still in flight is overwritten: a stage handed back too early. The copy
//! may land after the new bytes, or bring them.
//!
//! ```ptx
//! cp.async.cg.shared.global [%stage], [%address], 16;
//! cp.async.commit_group;
//! st.shared.v4.b32 [%stage], {%a, %b, %c, %d};   // the copy may land later
//! ```
//!
//! Fix: wait for the copy (`cp.async.wait_group`) before its bytes are used for anything else.
//! PTX ISA, "cp.async": nothing orders it with other operations but its waits.

use super::{Check, missing_wait, order, words};
use crate::finding::Report;
use crate::machine::Cluster;
use happens_before::{Agent, Fault};

pub const CHECK: Check = Check::error("early-release", include_str!("early_release.rs"));

pub fn report(cluster: &Cluster, fault: &Fault) -> Report {
    let (place, count) = (order::place(cluster, fault), u64::from(fault.bytes));
    let way = if fault.first.write { "into" } else { "from" };
    let (are, them) = (words::are(count), words::them(count));
    let flight = match fault.first.agent {
        Agent::Product(_) => format!("a product of {them}"),
        _ => format!("a copy {way} {them}"),
    };
    let message = format!("{place} {are} overwritten while {flight} is still in flight");
    let (missing, help) = missing_wait::remedy(cluster, fault);
    order::report(cluster, fault, &CHECK, message).missing(missing).help(help)
}
