//! # out-of-bounds
//!
//! An access outside every buffer of the recipe, or outside the block's shared memory. Hardware stops the kernel with
//! "an illegal memory access was encountered", or silently hits a neighbour.
//!
//! ```ptx
//! mad.wide.u32 %address, %index, 4, %base;
//! ld.global.f32 %value, [%address];        // %index may be `length`, one behind the end
//! ```
//!
//! Fix: guard the access with a comparison of the index and the length; for `cp.async`, pass a source size of zero for
//! rows that do not exist. PTX ISA, "Addresses as Operands"; "cp.async", src-size.

use super::{Check, words};
use crate::exec::{Access, Accessed, At};
use crate::finding::Report;
use crate::machine::{Cluster, Values};
use crate::memory::Outside;
use happens_before::Kind;
use ptx::Space;

pub const CHECK: Check = Check::error("out-of-bounds", include_str!("out_of_bounds.rs"));

/// Nothing lies below: an address here is a null pointer and a small offset.
const NULL_PAGE: u64 = 4096;

/// `outside`: the lanes whose bytes lie nowhere.
pub fn report(cluster: &mut Cluster, at: At, access: &Access, addresses: &Values, outside: u32) {
    let lane = outside.trailing_zeros() as usize;
    let place = place(cluster, (at.warp, lane), access, addresses[lane]);
    tell(cluster, At { mask: outside, ..at }, access, &place, addresses[lane]);
}

/// Bytes at an offset of the block with this rank, which does not have them, or which does not exist.
pub fn report_shared(cluster: &mut Cluster, at: At, access: &Access, rank: usize, offset: u64) {
    let place = shared_place(cluster, rank, offset, access.bytes.into());
    tell(cluster, at, access, &place, offset);
}

fn tell(cluster: &mut Cluster, at: At, access: &Access, place: &str, address: u64) {
    let count = u64::from(access.bytes);
    let verb = if matches!(access.kind, Kind::Read | Kind::StrongRead) { "read" } else { "written" };
    let message = format!("{} {} {verb} {place}", words::bytes(count), words::are(count));
    let who = words::who(cluster, at.warp, at.mask & at.mask.wrapping_neg());
    let second = cluster.actor(at, &format!("{who} accesses address {address:#x}"));
    let help = "guard the access with the length, or make the memory larger";
    cluster.findings.add(Report::new(&CHECK, message, second).help(help).count(u64::from(at.mask.count_ones())));
}

/// Where the bytes are; those that exist are where the instruction cannot reach them: mbarriers live in shared memory.
fn place(cluster: &Cluster, (warp, lane): (usize, usize), access: &Access, address: u64) -> String {
    if cluster.locate((warp, lane), access, address) != Accessed::Nothing {
        return format!("at {address:#x}, which is not in shared memory");
    }
    let bytes = u64::from(access.bytes);
    let (space, offset) = access.space.map_or_else(|| cluster.resolve(address), |space| (space, address));
    if space == Space::Shared {
        let (rank, offset) = cluster.cluster_place(warp, offset);
        return shared_place(cluster, rank, offset, bytes);
    }
    if space == Space::Local {
        let size = cluster.warps[warp].local[lane].bytes.len() as u64;
        return relative("local memory", offset as i64, bytes, size);
    }
    if space == Space::Parameter {
        return relative("the parameters", offset as i64, bytes, cluster.shape.parameters.len() as u64);
    }
    match cluster.global.find(address, bytes) {
        Err(_) if address < NULL_PAGE => format!("through a null pointer, at address {address}"),
        Err(Outside { nearest: Some((name, size, offset)) }) => {
            relative(&format!("buffer `{name}`"), offset, bytes, size)
        }
        _ => format!("at {address:#x}, where no buffer is"),
    }
}

fn shared_place(cluster: &Cluster, rank: usize, offset: u64, bytes: u64) -> String {
    let Some(home) = cluster.blocks.get(rank) else {
        return format!("in block {rank} of a cluster of {}", words::counted(cluster.blocks.len() as u64, "block"));
    };
    // Addresses of shared memory have 32 bits, and count modulo that.
    relative("shared memory", i64::from(offset as u32 as i32), bytes, home.shared.bytes.len() as u64)
}

/// Where `bytes` bytes at `offset` lie, seen from something that has `size` bytes.
fn relative(what: &str, offset: i64, bytes: u64, size: u64) -> String {
    let whole = words::bytes(size);
    let Ok(start) = u64::try_from(offset) else {
        return format!("{} before {what}, which has {whole}", words::bytes(offset.unsigned_abs()));
    };
    match start.checked_sub(size) {
        None => {
            let over = start + bytes - size;
            format!("at byte {start} of {what}, which has {whole}: {} too far", words::bytes(over))
        }
        Some(0) => format!("right behind the end of {what}, which has {whole}"),
        Some(distance) => format!("{} behind the end of {what}, which has {whole}", words::bytes(distance)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_told_from_the_nearer_end() {
        assert_eq!(relative("`x`", -4, 4, 64), "4 bytes before `x`, which has 64 bytes");
        assert_eq!(relative("`x`", 64, 4, 64), "right behind the end of `x`, which has 64 bytes");
        assert_eq!(relative("`x`", 65, 1, 64), "1 byte behind the end of `x`, which has 64 bytes");
        assert_eq!(relative("`x`", 56, 16, 64), "at byte 56 of `x`, which has 64 bytes: 8 bytes too far");
    }
}
