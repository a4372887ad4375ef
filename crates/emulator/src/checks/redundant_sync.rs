//! # redundant-sync
//!
//! A barrier of the whole block that orders nothing, whenever it is executed: no thread has accessed memory since the
//! barrier before (or since the kernel began), or no thread does before it exits. All warps wait for the slowest for
//! nothing.
//!
//! ```ptx
//! bar.sync 0;
//! add.u32 %index, %index, 1;             // only registers
//! bar.sync 0;                            // orders nothing that the barrier above does not order
//! ```
//!
//! Fix: remove the barrier. Only runs of this recipe were seen: keep it if another input needs it. PTX ISA, "bar, barrier".

use super::Check;
use crate::cost::{Cost, Spent};
use crate::exec::{Action, At};
use crate::finding::Report;
use crate::machine::{Barrier, Cluster};

pub const CHECK: Check = Check::lint("redundant-sync", include_str!("redundant_sync.rs"));

/// What happened in a block since its last barrier.
#[derive(Clone, Copy, Debug, Default)]
pub struct Since {
    /// Something that a barrier may order.
    events: bool,
    /// The last barrier, where it ordered something so far.
    useful: Option<At>,
}

/// Before each step.
pub fn see(cluster: &mut Cluster, at: At, action: &Action) {
    let rank = cluster.rank(at.warp);
    if let Some(since) = cluster.lints.as_mut().filter(|_| at.mask != 0 && action.touches_memory()) {
        since[rank].events = true;
    }
}

/// A barrier of a block is full.
pub fn met(cluster: &mut Cluster, rank: usize, barrier: &Barrier) {
    let threads: u32 = cluster.shape.block.iter().product();
    let (Some((at, count)), Some(lints)) = (barrier.opened, cluster.lints.as_mut()) else { return };
    let since = &mut lints[rank];
    let whole = count.is_none_or(|count| count >= threads) && barrier.ballots.is_empty();
    if !whole {
        // Who meets elsewhere, and what for, is not looked at.
        since.events = true;
        return;
    }
    let useful = since.events;
    *since = Since { events: false, useful: useful.then_some(at) };
    count_one(cluster, at, !useful, true);
}

/// All threads have exited.
pub fn end(cluster: &mut Cluster) {
    let last: Vec<Since> = cluster.lints.iter().flat_map(|lints| lints.iter().copied()).collect();
    for at in last.iter().filter(|since| !since.events).filter_map(|since| since.useful) {
        count_one(cluster, at, true, false);
    }
}

fn count_one(cluster: &mut Cluster, at: At, redundant: bool, first: bool) {
    let example = cluster.actor(at, "nothing happens before or behind it that needs it");
    let cost = Cost::new(example, Spent { spent: redundant.into(), needed: 0 }, word);
    cluster.findings.costs.add(at.statement, &CHECK, if first { cost } else { cost.later() });
}

/// One execution that orders something is enough.
fn word(cost: &Cost) -> Option<Report> {
    let redundant = cost.total.spent >= cost.times;
    let message = "a barrier that orders nothing".to_string();
    let help = "remove it: no thread accesses memory since the barrier before, or until it exits";
    redundant.then(|| Report::new(&CHECK, message, cost.example.clone()).help(help))
}
