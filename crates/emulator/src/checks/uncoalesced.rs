//! # uncoalesced
//!
//! The lanes of a warp access global memory so far apart that more sectors are moved than their bytes fill. Memory moves
//! sectors of 32 bytes; a warp that reads 32 words in a row needs four, one that reads a word of each row of a matrix 32.
//!
//! ```ptx
//! mul.wide.u32 %offset, %lane, 4096;     // a column of a matrix with rows of 4096 bytes
//! add.u64 %place, %matrix, %offset;
//! ld.global.f32 %value, [%place];        // 32 sectors for 128 bytes
//! ```
//!
//! Fix: let neighbouring lanes access neighbouring addresses; where a column is needed, go through shared memory. Less than
//! twice the sectors is not reported. CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".

use super::{Check, words};
use crate::cost::{Cost, Spent};
use crate::exec::{Access, Accessed, At};
use crate::finding::Report;
use crate::machine::Cluster;
use happens_before::Kind;
use ptx::Space;

pub const CHECK: Check = Check::lint("uncoalesced", include_str!("uncoalesced.rs"));

const SECTOR: u64 = 32;

/// Atomics go where they must, and constants come through a cache of their own.
pub fn watch(cluster: &mut Cluster, at: At, access: &Access, accessed: &[Accessed; 32]) {
    if access.kind == Kind::Atomic || access.space == Some(Space::Constant) {
        return;
    }
    let address = |place: &Accessed| match *place {
        Accessed::Global { allocation, offset } => Some(cluster.global.address(allocation, offset)),
        _ => None,
    };
    let addresses: Vec<u64> = accessed.iter().filter_map(address).collect();
    if addresses.is_empty() {
        return;
    }
    let spent = sectors(addresses, access.bytes.into());
    let example = cluster.actor(at, &format!("by {}", words::who(cluster, at.warp, at.mask)));
    cluster.findings.costs.add(at.statement, &CHECK, Cost::new(example, spent, word));
}

/// Sectors that lanes touch with `bytes` each, and those that their bytes fill.
fn sectors(mut addresses: Vec<u64>, bytes: u64) -> Spent {
    addresses.sort_unstable();
    addresses.dedup();
    let mut touched: Vec<u64> =
        addresses.iter().flat_map(|address| address / SECTOR..(address + bytes).div_ceil(SECTOR)).collect();
    touched.sort_unstable();
    touched.dedup();
    let filled = (addresses.len() as u64 * bytes).div_ceil(SECTOR);
    Spent { spent: touched.len() as u64, needed: filled.min(touched.len() as u64) }
}

fn word(cost: &Cost) -> Option<Report> {
    let (worst, total) = (cost.worst, cost.total);
    if total.spent < 2 * total.needed {
        return None;
    }
    let message = format!("uncoalesced access, {} sectors of 32 bytes instead of {}", worst.spent, worst.needed);
    let all = format!("{} sectors instead of {} in all", total.spent, total.needed);
    let help = format!("let neighbouring lanes access neighbouring addresses, or go through shared memory: {all}");
    Some(Report::new(&CHECK, message, cost.example.clone()).help(help))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(stride: u64, bytes: u64) -> (u64, u64) {
        let Spent { spent, needed } = sectors((0..32).map(|lane| 0x1000 + lane * stride).collect(), bytes);
        (spent, needed)
    }

    #[test]
    fn sectors_are_counted_once() {
        assert_eq!(strided(4, 4), (4, 4));
        assert_eq!(strided(0, 4), (1, 1));
        assert_eq!(strided(8, 4), (8, 4));
        assert_eq!(strided(4096, 4), (32, 4));
        assert_eq!(strided(16, 16), (16, 16));
        assert_eq!(strided(64, 32), (32, 32));
    }
}
