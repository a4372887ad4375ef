//! # misaligned
//!
//! An access at an address that is no multiple of its size. Hardware stops the kernel with "misaligned address".
//!
//! ```ptx
//! ld.global.v4.f32 {%a, %b, %c, %d}, [%row+8];   // 16 bytes at an address that is 8 modulo 16
//! ```
//!
//! Fix: align the pointer and the stride (rows of `ldmatrix` and `cp.async` of 16 bytes need 16), or use a narrower access.
//! PTX ISA, "Addresses as Operands"; "ldmatrix"; "cp.async".

use super::{Check, words};
use crate::exec::{Access, At};
use crate::finding::Report;
use crate::machine::{Cluster, Values, lanes};

pub const CHECK: Check = Check::error("misaligned", include_str!("misaligned.rs"));

/// Every lane's address must be a multiple of what it accesses.
pub fn watch(cluster: &mut Cluster, at: At, access: &Access, addresses: &Values) {
    let size = u64::from(access.bytes);
    let astray = lanes(at.mask).filter(|lane| !addresses[*lane].is_multiple_of(size)).fold(0, |m, lane| m | 1 << lane);
    if astray != 0 {
        report(cluster, at.among(astray), access, addresses);
    }
}

/// Bulk copies of a line move multiples of 16 bytes between multiples of 16. PTX ISA, "cp.async.bulk".
pub fn watch_line(cluster: &mut Cluster, at: At, [far, near, bytes]: [u64; 3]) {
    for (what, value) in [("source or target", far), ("place in shared memory", near), ("size", bytes)] {
        if !value.is_multiple_of(16) {
            let message = format!("the {what} of a bulk copy is {value:#x}: {} modulo 16", value % 16);
            let who = words::who(cluster, at.warp, at.mask);
            let second = cluster.actor(at, &format!("{who} starts this copy"));
            let help = "make addresses and size multiples of 16; copy the rest with ordinary loads and stores";
            cluster.findings.add(Report::new(&CHECK, message, second).help(help));
            return;
        }
    }
}

fn report(cluster: &mut Cluster, at: At, access: &Access, addresses: &Values) {
    let (lane, size) = (at.mask.trailing_zeros() as usize, u64::from(access.bytes));
    let address = addresses[lane];
    // The first byte exists, even if the last does not.
    let place = cluster.locate((at.warp, lane), &Access { bytes: 1, ..*access }, address);
    let verb = if access.kind.writes() { "written" } else { "read" };
    let over = address % size;
    let message = format!("{} {verb} at {}: {over} modulo {size}", words::bytes(size), cluster.place(place));
    let who = words::who(cluster, at.warp, 1 << lane);
    let second = cluster.actor(at, &format!("{who} accesses address {address:#x}"));
    let help = format!("make the address a multiple of {size}, or access fewer bytes at once");
    cluster.findings.add(Report::new(&CHECK, message, second).help(help).count(at.mask.count_ones().into()));
}
