//! # bank-conflict
//!
//! Lanes of a warp access different words of the same bank of shared memory, which serves one word at a time: the access
//! takes several wavefronts where one would do. Shared memory has 32 banks of 4 bytes; words that are 128 bytes apart lie
//! in the same one. Accesses of 8 bytes are served by half-warps, those of 16 bytes and the rows of `ldmatrix` by eight
//! lanes at a time.
//!
//! ```ptx
//! shl.b32 %place, %lane, 7;              // row `lane` of a tile with rows of 128 bytes
//! ld.shared.f32 %value, [%place];        // a column: 32 words of one bank, 32 wavefronts
//! ```
//!
//! Fix: pad the rows (by 4 bytes for columns of words, by 16 for `ldmatrix`), or swizzle: exclusive-or the column with the
//! row. CUDA C++ Best Practices Guide, "Shared Memory and Memory Banks".

use super::{Check, words};
use crate::cost::{Cost, Spent};
use crate::exec::{Access, Accessed, At};
use crate::finding::Report;
use crate::machine::Cluster;
use happens_before::Kind;

pub const CHECK: Check = Check::lint("bank-conflict", include_str!("bank_conflict.rs"));

const BANKS: usize = 32;
const WORD_BYTES: usize = 4;

/// Atomics are not counted: how they meet at one word is not a matter of banks.
pub fn watch(cluster: &mut Cluster, at: At, access: &Access, accessed: &[Accessed; 32]) {
    if access.kind == Kind::Atomic || !accessed.iter().any(|place| matches!(place, Accessed::Shared { .. })) {
        return;
    }
    let spent = wavefronts(accessed, access.bytes as usize);
    let example = cluster.actor(at, &format!("by {}", words::who(cluster, at.warp, at.mask)));
    cluster.findings.costs.add(at.statement, &CHECK, Cost::new(example, spent, word));
}

/// The wavefronts of an access of `bytes` per lane, and those that its words would need in different banks.
fn wavefronts(accessed: &[Accessed; 32], bytes: usize) -> Spent {
    let together = (BANKS * WORD_BYTES / bytes.max(WORD_BYTES)).max(1);
    let of_group = |group: &[Accessed]| {
        let mut words: Vec<(usize, usize)> = group.iter().flat_map(|place| words_of(*place, bytes)).collect();
        words.sort_unstable();
        words.dedup();
        let mut banks = [0; BANKS];
        words.iter().for_each(|(_, word)| banks[word % BANKS] += 1);
        let spent = banks.into_iter().max().unwrap_or(0);
        Spent { spent, needed: words.len().div_ceil(BANKS) as u64 }
    };
    let groups = accessed.chunks(together).map(of_group);
    groups.fold(Spent::default(), |sum, one| Spent { spent: sum.spent + one.spent, needed: sum.needed + one.needed })
}

/// The block and the number of each word that a lane touches.
fn words_of(place: Accessed, bytes: usize) -> impl Iterator<Item = (usize, usize)> {
    let (block, range) = match place {
        Accessed::Shared { block, offset } => (block, offset / WORD_BYTES..(offset + bytes).div_ceil(WORD_BYTES)),
        _ => (0, 0..0),
    };
    range.map(move |word| (block, word))
}

fn word(cost: &Cost) -> Option<Report> {
    let (worst, total) = (cost.worst, cost.total);
    if total.spent <= total.needed {
        return None;
    }
    let way = worst.spent.div_ceil(worst.needed.max(1));
    let message = format!("{way}-way bank conflict, {} wavefronts instead of {}", worst.spent, worst.needed);
    let all = format!("{} wavefronts instead of {} in all", total.spent, total.needed);
    let help = format!("pad the rows or swizzle the columns, so that lanes meet 32 different banks: {all}");
    Some(Report::new(&CHECK, message, cost.example.clone()).help(help))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An access of so many bytes at a stride.
    fn spent(bytes: usize, stride: usize) -> (u64, u64) {
        let Spent { spent, needed } =
            wavefronts(&std::array::from_fn(|lane| Accessed::Shared { block: 0, offset: lane * stride }), bytes);
        (spent, needed)
    }

    #[test]
    fn words_of_one_bank_are_served_one_by_one() {
        assert_eq!(spent(4, 4), (1, 1));
        assert_eq!(spent(4, 8), (2, 1));
        assert_eq!(spent(4, 128), (32, 1));
        assert_eq!(spent(4, 132), (1, 1));
        assert_eq!(spent(4, 0), (1, 1));
    }

    #[test]
    fn wide_accesses_are_served_by_parts_of_the_warp() {
        assert_eq!(spent(8, 8), (2, 2));
        assert_eq!(spent(16, 16), (4, 4));
        assert_eq!(spent(16, 128), (32, 4));
        assert_eq!(spent(16, 144), (4, 4));
        assert_eq!(spent(1, 1), (1, 1));
    }
}
