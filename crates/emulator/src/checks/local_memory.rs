//! # local-memory
//!
//! A thread keeps data in local memory, which is device memory: a spilled register, or an array whose index is not known
//! when the kernel is compiled. Each access goes through the caches that the tiles need.
//!
//! ```ptx
//! .local .align 4 .b8 depot[64];
//! add.u32 %place, %depot, %index;
//! st.local.f32 [%place], %value;         // an array that is indexed at run time
//! ```
//!
//! Fix: unroll the loop, so that each index is a constant and the array becomes registers; use fewer registers, so that
//! none is spilled; or move the array to shared memory. CUDA C++ Best Practices Guide, "Local Memory".

use super::{Check, words};
use crate::cost::{Cost, Spent};
use crate::exec::{Access, Accessed, At};
use crate::finding::Report;
use crate::machine::Cluster;

pub const CHECK: Check = Check::lint("local-memory", include_str!("local_memory.rs"));

/// Arguments of calls lie in frames too; they become registers.
pub fn watch(cluster: &mut Cluster, at: At, access: &Access, accessed: &[Accessed; 32]) {
    let lanes = accessed.iter().filter(|place| matches!(place, Accessed::Local { .. })).count() as u64;
    if lanes == 0 || cluster.findings.text(at.statement).contains(".param") {
        return;
    }
    let spent = Spent { spent: lanes * u64::from(access.bytes), needed: 0 };
    let who = words::who(cluster, at.warp, at.mask);
    let verb = if access.kind.writes() { "written" } else { "read" };
    let example = cluster.actor(at, &format!("{verb} by {who}"));
    cluster.findings.costs.add(at.statement, &CHECK, Cost::new(example, spent, word));
}

fn word(cost: &Cost) -> Option<Report> {
    let message = format!("{} of local memory, which is device memory, in one access", words::bytes(cost.worst.spent));
    let help = format!(
        "unroll, so that indices are constants, or use fewer registers: {} in all",
        words::bytes(cost.total.spent)
    );
    Some(Report::new(&CHECK, message, cost.example.clone()).help(help))
}
