//! The registers of a block: what its warps own, and what is left for those who ask for more. PTX ISA, "setmaxnreg".

use ptx::forms::Launch;
use ptx::{Function, Immediate, Op, Operand, Tuning};

const FILE: u32 = 65536; // Registers of a processor, CUDA C++ Programming Guide, compute capability 9.0
const MOST: u32 = 256; // Registers of a thread, PTX ISA, "setmaxnreg"

/// How many registers a thread has when an entry begins: as many as fit, but no more than its `setmaxnreg` ever name. The
/// assembler ignores those where it cannot tell: it needs `.maxnreg`, or the threads of a block and how many blocks a
/// processor must hold.
pub fn at_entry(function: &Function) -> Option<u32> {
    let find = |choose: fn(&Tuning) -> Option<u32>| function.tuning.iter().find_map(choose);
    let given = find(|tuning| match tuning {
        Tuning::MaxRegisters(count) => Some(count.next_multiple_of(8)),
        _ => None,
    });
    let threads = find(|tuning| match tuning {
        Tuning::MaxThreads(size) | Tuning::RequiredThreads(size) => Some(size.iter().product()),
        _ => None,
    });
    let blocks = find(|tuning| match tuning {
        Tuning::MinBlocksPerProcessor(blocks) => Some(*blocks),
        _ => None,
    });
    let fitting = || {
        let threads = threads?.checked_mul(blocks?).filter(|threads| *threads != 0)?;
        Some(FILE / threads / 8 * 8)
    };
    Some(given.or_else(fitting)?.min(largest(function)))
}

/// The largest count that a `setmaxnreg` names.
fn largest(function: &Function) -> u32 {
    let demands = function.instructions().filter(|(_, one)| one.op() == Op::Launch(Launch::Registers));
    let counts = demands.filter_map(|(_, demand)| match demand.operands.first() {
        Some(Operand::Immediate(Immediate::Integer(count))) => u32::try_from(*count).ok(),
        _ => None,
    });
    counts.max().unwrap_or(MOST)
}

/// The pool of one block.
#[derive(Clone, Debug)]
pub struct RegisterPool {
    /// Registers per thread at the entry.
    pub entry: Option<u32>,
    /// Registers per thread, by warp.
    pub counts: Vec<u32>,
    /// The statements at which each warp changed its count.
    pub changes: Vec<Vec<u32>>,
}

impl RegisterPool {
    pub fn new(entry: Option<u32>, warps: usize) -> RegisterPool {
        RegisterPool { entry, counts: vec![entry.unwrap_or(0); warps], changes: vec![vec![]; warps] }
    }

    /// Registers of all warps at the entry.
    pub fn whole(&self) -> u32 {
        self.entry.unwrap_or(0) * 32 * self.counts.len() as u32
    }

    /// Registers that warps own now.
    pub fn owned(&self) -> u32 {
        self.counts.iter().map(|count| count * 32).sum()
    }

    /// Can a warp own so many?
    pub fn has_room(&self, warp: usize, count: u32) -> bool {
        self.owned() - self.counts[warp] * 32 + count * 32 <= self.whole()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(tuning: &str, counts: [u32; 2]) -> Option<u32> {
        let demands = counts.map(|count| format!("setmaxnreg.inc.sync.aligned.u32 {count};")).concat();
        let text = format!(".version 8.0\n.target sm_90a\n.address_size 64\n.entry k() {tuning} {{ {demands} ret; }}");
        at_entry(&ptx::parse(&ptx::Source::new("test", text)).unwrap().module.functions[0])
    }

    /// As ptxas 13.0 prints them with `-v`.
    #[test]
    fn registers_at_the_entry_are_those_of_the_assembler() {
        assert_eq!(entry(".maxntid 384, 1, 1 .minnctapersm 1", [24, 240]), Some(168));
        assert_eq!(entry(".reqntid 384, 1, 1 .minnctapersm 1", [24, 240]), Some(168));
        assert_eq!(entry(".maxntid 128, 1, 1 .minnctapersm 3", [24, 240]), Some(168));
        assert_eq!(entry(".maxntid 256, 1, 1 .minnctapersm 1", [24, 240]), Some(240));
        assert_eq!(entry(".maxnreg 216", [24, 200]), Some(200));
        assert_eq!(entry(".maxnreg 168", [24, 240]), Some(168));
        assert_eq!([entry(".maxntid 384, 1, 1", [24, 240]), entry("", [24, 240])], [None, None]);
    }

    #[test]
    fn what_one_warp_gives_another_may_take() {
        let mut pool = RegisterPool::new(Some(168), 12);
        assert!(!pool.has_room(4, 240));
        pool.counts[..4].fill(24);
        assert!(pool.has_room(4, 240));
        pool.counts[4..8].fill(240);
        pool.counts[8..11].fill(240);
        assert!(pool.has_room(11, 240) && !pool.has_room(11, 248));
    }
}
