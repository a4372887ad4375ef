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

use super::Check;
use crate::exec::{Access, At};
use crate::finding::Report;
use crate::happens_before::Kind;
use crate::machine::{Block, Values};
use crate::memory::{Outside, SharedMemory};
use ptx::Space;

pub const CHECK: Check = Check::error("out-of-bounds", include_str!("out_of_bounds.rs"));

/// `outside`: the lanes whose bytes lie nowhere.
pub fn report(block: &mut Block, at: At, access: &Access, addresses: &Values, outside: u32) {
    let lane = outside.trailing_zeros() as usize;
    let address = addresses[lane];
    let verb = if matches!(access.kind, Kind::Read | Kind::StrongRead) { "read" } else { "written" };
    let message = format!("{} bytes are {verb} {}", access.bytes, place(block, access, address));
    let second = block.actor(At { mask: outside, ..at }, &format!("lane {lane} accesses {address:#x}"));
    let help = Some("guard the access with the length, or make the buffer larger".into());
    let count = u64::from(outside.count_ones());
    block.findings.add(Report { check: &CHECK, message, first: None, second, missing: None, help, count });
}

fn place(block: &Block, access: &Access, address: u64) -> String {
    let shared = match access.space {
        Some(Space::Shared) => Some(address & 0xffff_ffff),
        None => SharedMemory::of_generic(address),
        _ => None,
    };
    if let Some(offset) = shared {
        return format!("at byte {offset} of shared memory, which has {} bytes", block.shared.bytes.len());
    }
    if access.space == Some(Space::Parameter) {
        return format!("at byte {address} of the parameters, which have {} bytes", block.parameters.len());
    }
    match block.global.find(address, u64::from(access.bytes)) {
        Err(Outside { nearest: Some((name, size, distance)) }) if distance < 0 => {
            format!("{} bytes before buffer `{name}` of {size} bytes", distance.unsigned_abs())
        }
        Err(Outside { nearest: Some((name, size, distance)) }) if distance >= 0 => {
            format!("{distance} bytes behind the end of buffer `{name}` of {size} bytes")
        }
        _ => format!("at {address:#x}, where no buffer is"),
    }
}
