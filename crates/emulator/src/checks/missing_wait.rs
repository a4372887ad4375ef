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

use super::{Check, order};
use crate::finding::Report;
use crate::happens_before::{Agent, Batch, Fault};
use crate::machine::Block;

pub const CHECK: Check = Check::error("missing-wait", include_str!("missing_wait.rs"));

pub fn report(block: &Block, fault: &Fault) -> Report {
    let message = format!("{} still in flight when they are read", order::place(block, fault));
    let (missing, help) = remedy(fault);
    order::report(block, fault, &CHECK, message, Some(missing), help)
}

/// The wait that would do, and where it goes.
pub(super) fn remedy(fault: &Fault) -> (String, String) {
    let others = if fault.first.warp == fault.second.warp && fault.first.lane == fault.second.lane {
        ""
    } else {
        ", then a barrier"
    };
    match fault.first.agent {
        Agent::Copy(Batch::Committed { wait_group }) => {
            let wait = format!("cp.async.wait_group {wait_group}");
            let help = format!("emit `{wait}`, or a smaller count, between (1) and (2){others}");
            (wait, help)
        }
        _ => (
            "cp.async.commit_group and a wait".into(),
            format!("the copy belongs to no group: emit `cp.async.commit_group` after (1), wait for it{others}"),
        ),
    }
}
