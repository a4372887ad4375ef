//! # uninitialised-memory
//!
//! A read of bytes that nobody wrote: shared memory before its first store, or a buffer whose `init` is `poison`.
//! Hardware returns whatever was there before, often the right values of the previous launch.
//!
//! ```ptx
//! .shared .b32 partial[32];
//! ld.shared.f32 %sum, [partial+64];   // only partial[0..8] was stored: the block has eight warps
//! ```
//!
//! Fix: write every byte that is read, if only with zeros; for ragged tiles let `cp.async` fill the rest with zeros
//! (its source size). PTX ISA, "State Spaces": the contents of shared memory are undefined at the start.

use super::{Check, mbarrier, words};
use crate::exec::{Access, Accessed, At};
use crate::finding::{Findings, Report};
use crate::machine::{Cluster, lanes};
use crate::memory::GlobalMemory;
use std::collections::BTreeMap;

pub const CHECK: Check = Check::error("uninitialised-memory", include_str!("uninitialised_memory.rs"));

/// Reads of bytes that nobody had written, by statement and place, until it is known whether they race.
pub type UnwrittenReads = BTreeMap<(u32, Accessed), Read>;

/// The first read of a place by a statement, and how many lanes read it so.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    at: At,
    bytes: usize,
    count: u64,
}

pub fn watch(cluster: &mut Cluster, at: At, access: &Access, accessed: &[Accessed; 32]) {
    watch_copy(cluster, at, accessed, &[access.bytes; 32]);
}

/// Each lane reads as many bytes as its size says.
pub fn watch_copy(cluster: &mut Cluster, at: At, accessed: &[Accessed; 32], sizes: &[u32; 32]) {
    lanes(at.mask).for_each(|lane| watch_piece(cluster, at, lane, accessed[lane], sizes[lane] as usize));
}

/// One lane reads, itself or through a copy that it starts.
pub fn watch_piece(cluster: &mut Cluster, at: At, lane: usize, place: Accessed, bytes: usize) {
    if let Some((place, bytes)) = cluster.first_unwritten(place, bytes) {
        if let Accessed::Shared { block, offset } = place
            && let Some(spot) = mbarrier::within(cluster, block, offset, bytes)
        {
            return mbarrier::report_data(cluster, at.lane(lane), spot, "read");
        }
        let read = Read { at: At { mask: 1 << lane, ..at }, bytes, count: 0 };
        cluster.unwritten_reads.entry((at.statement, place)).or_insert(read).count += 1;
    }
}

/// A read of global memory that nobody had written: other clusters may have raced with it.
#[derive(Clone, Debug)]
pub struct Suspect {
    statement: u32,
    allocation: usize,
    offset: usize,
    bytes: usize,
    report: Report,
}

/// At the end of a cluster. Whether the bytes of a read that races were there yet is luck, and the race is the finding;
/// but bytes that nobody has written to this day are a finding of their own. Of global memory that is told when all
/// clusters have ended.
pub fn settle(cluster: &mut Cluster, racing: &[u32]) -> Vec<Suspect> {
    let mut reads = std::mem::take(&mut cluster.unwritten_reads);
    reads.retain(|(statement, place), read| {
        !racing.contains(statement) || cluster.first_unwritten(*place, read.bytes).is_some()
    });
    let mut suspects = Vec::new();
    for ((statement, place), read) in reads {
        let report = report(cluster, place, &read);
        match place {
            Accessed::Global { allocation, offset } => {
                suspects.push(Suspect { statement, allocation, offset, bytes: read.bytes, report });
            }
            _ => cluster.findings.add(report),
        }
    }
    suspects
}

/// At the end of a launch, with the statements that race between clusters.
pub fn settle_global(findings: &mut Findings, global: &GlobalMemory, suspects: Vec<Suspect>, racing: &[u32]) {
    for Suspect { statement, allocation, offset, bytes, report } in suspects {
        let unwritten = || global.pages(allocation).first_unwritten(offset, bytes).is_some();
        if !racing.contains(&statement) || unwritten() {
            findings.add(report);
        }
    }
}

fn report(cluster: &Cluster, place: Accessed, read: &Read) -> Report {
    let count = read.bytes as u64;
    let (are, them) = (words::are(count), words::them(count));
    let message = format!("{} of {} {are} read, and nobody wrote {them}", words::bytes(count), cluster.place(place));
    let who = words::who(cluster, read.at.warp, read.at.mask);
    let second = cluster.actor(read.at, &format!("{who} reads {them}"));
    Report::new(&CHECK, message, second)
        .help("write every byte before it is read, if only with zeros")
        .count(read.count)
}
