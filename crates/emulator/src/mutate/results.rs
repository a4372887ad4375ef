//! What a kernel leaves in memory, and whether a mutant leaves something else.

use launch::{Error, Kernel, Memory, Resolved};
use ptx::forms::{Atomic, BulkCopy, Movement};
use ptx::{Instruction, Op};
use std::collections::BTreeMap;

/// The results of a kernel, as far as they are its own and not its schedule's.
pub struct Results {
    memory: Memory,
    /// Per buffer: do its bytes depend on the kernel alone?
    steady: Vec<bool>,
    /// Buffers that are not what the recipe expects under some schedule, each with how.
    failing: BTreeMap<String, String>,
}

impl Results {
    /// From what the kernel left behind under each schedule, at least one.
    pub fn new(kernel: &Kernel, resolved: &Resolved, runs: Vec<Memory>) -> Option<Results> {
        let rounds = any(kernel, rounds_in_turns);
        let same = |index: usize| runs.iter().all(|run| run.buffers[index].contents == runs[0].buffers[index].contents);
        let steady = (0..resolved.buffers.len()).map(|index| !rounds && same(index)).collect();
        let failing = runs.iter().flat_map(|run| failures(run, resolved)).collect();
        Some(Results { memory: runs.into_iter().next()?, steady, failing })
    }

    /// What is wrong with the kernel's own results.
    pub fn failures(&self) -> impl Iterator<Item = String> {
        self.failing.iter().map(|(buffer, how)| format!("`{buffer}` {how}"))
    }

    /// Steady buffers must stay the same to the bit; others must be as the recipe expects, unless the kernel's are not.
    pub fn differ(&self, memory: &Memory, resolved: &Resolved) -> bool {
        let mut pairs = self.memory.buffers.iter().zip(&memory.buffers).zip(&self.steady);
        let changed = pairs.any(|((kernel, mutant), steady)| *steady && kernel.contents != mutant.contents);
        let fails = || failures(memory, resolved).any(|(buffer, _)| !self.failing.contains_key(&buffer));
        changed || self.steady.contains(&false) && fails()
    }
}

/// Do two runs leave the same behind?
pub fn is_same(one: &Memory, other: &Memory) -> bool {
    one.buffers.iter().zip(&other.buffers).all(|(one, other)| one.contents == other.contents)
}

fn failures(memory: &Memory, resolved: &Resolved) -> impl Iterator<Item = (String, String)> {
    memory.failures(resolved).into_iter().map(|failure| match failure {
        Error::Expectation { buffer, message } => (buffer, message),
        other => (String::new(), other.to_string()),
    })
}

/// Can the results of a kernel without races depend on the schedule? Only if threads meet in memory.
pub fn may_vary(kernel: &Kernel) -> bool {
    any(kernel, |instruction| match instruction.op() {
        Op::Atomic(_) => true,
        Op::Movement(op) => matches!(
            op,
            Movement::LoadVolatile | Movement::LoadStrong | Movement::StoreVolatile | Movement::StoreStrong
        ),
        _ => rounds_in_turns(instruction),
    })
}

/// Does it add floating-point numbers in the order in which threads happen to come? A swap may be half of such a sum, and
/// the elements of a tensor map are not known here.
fn rounds_in_turns(instruction: &Instruction) -> bool {
    let sums = instruction.has("add") && instruction.ty().is_some_and(|ty| ty.is_float());
    match instruction.op() {
        Op::Atomic(Atomic::CompareSwap | Atomic::CompareSwapHalf) => true,
        Op::BulkCopy(BulkCopy::TensorReduce | BulkCopy::TensorReduceColumns) => instruction.has("add"),
        Op::Atomic(_) | Op::BulkCopy(_) => sums,
        _ => false,
    }
}

fn any(kernel: &Kernel, condition: impl Fn(&Instruction) -> bool) -> bool {
    let functions = &kernel.module().functions;
    functions.iter().flat_map(|function| function.instructions()).any(|(_, instruction)| condition(instruction))
}
