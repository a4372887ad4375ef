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

use super::Check;
use crate::exec::{Access, Accessed, At};
use crate::finding::Report;
use crate::machine::{Block, lanes};

pub const CHECK: Check = Check::error("uninitialised-memory", include_str!("uninitialised_memory.rs"));

pub fn watch(block: &mut Block, at: At, access: &Access, accessed: &[Accessed; 32]) {
    watch_copy(block, at, accessed, &[access.bytes; 32]);
}

/// Each lane reads as many bytes as its size says.
pub fn watch_copy(block: &mut Block, at: At, accessed: &[Accessed; 32], sizes: &[u32; 32]) {
    let unwritten = |lane: &usize| block.first_unwritten(accessed[*lane], sizes[*lane] as usize).is_some();
    let mask = lanes(at.mask).filter(unwritten).fold(0u32, |mask, lane| mask | 1 << lane);
    if mask == 0 {
        return;
    }
    let lane = mask.trailing_zeros() as usize;
    let message = format!("{} bytes of {} are read, and nobody wrote them", sizes[lane], block.place(accessed[lane]));
    let second = block.actor(At { mask, ..at }, &format!("lane {lane} reads them here"));
    let help = Some("write every byte before it is read, if only with zeros".into());
    let count = u64::from(mask.count_ones());
    block.unwritten_reads.push(Report { check: &CHECK, message, first: None, second, missing: None, help, count });
}

/// At the end of a block: a read that also races is a race; whether the bytes were there yet was luck.
pub fn settle(block: &mut Block, racing: &[u32]) {
    for report in std::mem::take(&mut block.unwritten_reads) {
        if !racing.contains(&report.second.statement) {
            block.findings.add(report);
        }
    }
}
