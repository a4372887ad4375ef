//! # barrier
//!
//! A block barrier that not all threads reach in the same way: by only some lanes of a warp (`bar.sync` is for whole
//! warps), with a thread count that is no multiple of 32 or larger than the block, with counts that differ between the
//! threads that meet, or with an id above 15; or one id serves two meetings, and nothing keeps them apart. Hardware
//! hangs, or lets threads pass that should wait.
//!
//! ```ptx
//! setp.lt.u32 %half, %thread, 16;
//! @%half bar.sync 0;           // half of warp 0 arrives, the other half does not
//! ```
//!
//! Fix: move the barrier out of the branch, so that every thread of every warp that takes part executes it, and write
//! one count, the threads of all those warps. PTX ISA, "bar, barrier": the barrier counts warps, and its `.aligned`
//! forms want all threads of a warp at the same instruction.

use super::{Check, words};
use crate::exec::At;
use crate::finding::Report;
use crate::machine::{Cluster, describe_lanes};
use happens_before::Site;

pub const CHECK: Check = Check::error("barrier", include_str!("barrier.rs"));

/// PTX ISA, "bar, barrier": sixteen barriers per block.
pub const BARRIERS: u32 = 16;

/// Called before the lanes of `at` come to barrier `id`.
pub fn watch(cluster: &mut Cluster, at: At, id: u32, threads: Option<u32>, aligned: bool) {
    let report = refused(cluster, at, id, threads)
        .or_else(|| other_count(cluster, at, id, threads))
        .or_else(|| mixed_up(cluster, at, id, threads))
        .or_else(|| divided(cluster, at, id).filter(|_| aligned));
    if let Some(report) = report {
        cluster.findings.add(report);
        cluster.misused_barrier = true;
    }
}

/// Operands that no barrier can have.
fn refused(cluster: &Cluster, at: At, id: u32, threads: Option<u32>) -> Option<Report> {
    let size: u32 = cluster.shape.block.iter().product();
    let (message, help) = match threads {
        _ if id >= BARRIERS => {
            (format!("barrier {id} does not exist: a block has barriers 0 to 15"), "use an id from 0 to 15".into())
        }
        Some(0) => ("a barrier of 0 threads".into(), "count all threads of the warps that take part".into()),
        Some(count) if count % 32 != 0 => (
            format!("a barrier of {}: expected a multiple of 32", words::counted(count.into(), "thread")),
            format!("barriers count whole warps: write {}", u64::from(count).next_multiple_of(32)),
        ),
        Some(count) if count > size.next_multiple_of(32) => (
            format!("a barrier of {count} threads in a block of {}", words::counted(size.into(), "thread")),
            format!("write {} or less: more threads will never come", size.next_multiple_of(32)),
        ),
        _ => return None,
    };
    Some(Report::new(&CHECK, message, cluster.actor(at, "this barrier")).help(help))
}

/// Threads that meet with different counts.
fn other_count(cluster: &Cluster, at: At, id: u32, threads: Option<u32>) -> Option<Report> {
    let (other, expected) = cluster.home(at.warp).barriers.get(id as usize).and_then(|barrier| barrier.opened)?;
    counts_differ(cluster, id, (other, expected), (at, threads))
}

/// Threads that might have joined the meeting before theirs. With another count that would be a finding of its own.
fn mixed_up(cluster: &Cluster, at: At, id: u32, threads: Option<u32>) -> Option<Report> {
    let watched = cluster.watched_barrier(at.warp, id);
    let (who, site) = cluster.detector.stranger_at_barrier(at.lanes(), Site(at.statement), watched)?;
    let other = At { warp: who.warp as usize, fragment: 0, mask: who.mask, statement: site.0 };
    let before = cluster.home(at.warp).barriers.get(id as usize)?.before;
    if let Some(report) = counts_differ(cluster, id, (other, before), (at, threads)) {
        return Some(report);
    }
    let mut sides = [other, at];
    sides.sort_by_key(|at| (at.statement, at.warp));
    let label = |at: At| {
        let comes = words::verb(at.mask.count_ones(), "comes", "come");
        cluster.actor(at, &format!("{} {comes} here", words::who(cluster, at.warp, at.mask)))
    };
    let message =
        format!("meetings at barrier {id} may get mixed up: nothing orders the one here and the one elsewhere");
    let report = Report::new(&CHECK, message, label(sides[1])).first(label(sides[0]));
    Some(report.help(format!("use another barrier than {id} for one of the two, or let the second wait for the first")))
}

/// Two counts of one meeting. The later line is the one judged, whoever came first.
fn counts_differ(
    cluster: &Cluster,
    id: u32,
    (other, expected): (At, Option<u32>),
    (at, threads): (At, Option<u32>),
) -> Option<Report> {
    let size: u32 = cluster.shape.block.iter().product();
    let count = |threads: Option<u32>| threads.unwrap_or(size.next_multiple_of(32));
    if count(expected) == count(threads) {
        return None;
    }
    let mut sides = [(other, count(expected)), (at, count(threads))];
    sides.sort_by_key(|(at, _)| at.statement);
    let [(first, before), (second, after)] = sides;
    let message = format!("barrier {id} is met with {after} threads here and with {before} elsewhere");
    let label = |at: At, count: u32| {
        let expect = words::verb(at.mask.count_ones(), "expects", "expect");
        cluster.actor(at, &format!("{} {expect} {count} threads", words::who(cluster, at.warp, at.mask)))
    };
    let report = Report::new(&CHECK, message, label(second, after)).first(label(first, before));
    Some(report.help(format!("write one count for everybody who meets at barrier {id}, or use two barriers")))
}

/// A warp of which only some lanes come.
fn divided(cluster: &Cluster, at: At, id: u32) -> Option<Report> {
    let absent = cluster.warps[at.warp].live & !at.mask;
    if absent == 0 {
        return None;
    }
    let who = words::who(cluster, at.warp, at.mask);
    let message = format!("barrier {id} is reached by {who} and not by {}", describe_lanes(absent));
    let elsewhere =
        cluster.whereabouts(at.warp).find(|(mask, statement, _)| mask & absent != 0 && *statement != at.statement);
    let label = |mask: u32| format!("{} went another way", describe_lanes(mask));
    let first = elsewhere.map(|(mask, statement, _)| cluster.actor(At { mask, statement, ..at }, &label(mask)));
    let report = Report::new(&CHECK, message, cluster.actor(at, "only some lanes of the warp come here")).first(first);
    Some(report.help("move the barrier out of the branch: every lane of the warp must execute it together"))
}
