//! Can clusters of a launch tell each other anything? Not unless some code accesses global memory with atomics or
//! strong accesses, so that is what the text is searched for.

use ptx::forms::{BulkCopy, Movement};
use ptx::{Instruction, Op, Space, Statement};

/// Clusters that run these statements know nothing of each other: in whatever order they run, they see memory as it was
/// at the start, and what they wrote themselves.
pub fn is_isolated<'a>(statements: impl Iterator<Item = &'a Statement>) -> bool {
    let communicates = |statement: &Statement| matches!(statement, Statement::Instruction(one) if communicates(one));
    !statements.into_iter().any(communicates)
}

fn communicates(instruction: &Instruction) -> bool {
    match instruction.op() {
        Op::Atomic(_) => instruction.space() != Some(Space::Shared),
        Op::Movement(
            Movement::LoadVolatile | Movement::LoadStrong | Movement::StoreVolatile | Movement::StoreStrong,
        ) => instruction.space() != Some(Space::Shared),
        Op::BulkCopy(op) => matches!(
            op,
            BulkCopy::Reduce
                | BulkCopy::ReduceHalf
                | BulkCopy::ReduceMinimumMaximum
                | BulkCopy::ReduceCount
                | BulkCopy::ReduceBits
                | BulkCopy::TensorReduce
                | BulkCopy::TensorReduceColumns
        ),
        _ => false,
    }
}
