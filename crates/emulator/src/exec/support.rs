//! What of the table runs. The rest is known, and refused with its name.

use ptx::forms::{AsyncCopy, Barrier, Compare, Control, Convert, Fence, Float, Integer, Launch, Matrix, Movement};
use ptx::{Instruction, Op};

/// Does the emulator execute this operation?
pub fn executes(op: Op) -> bool {
    match op {
        Op::Integer(op) => matches!(
            op,
            Integer::Add
                | Integer::Subtract
                | Integer::MultiplyLow
                | Integer::MultiplyHigh
                | Integer::MultiplyWide
                | Integer::MultiplyAddLow
                | Integer::MultiplyAddWide
                | Integer::Divide
                | Integer::Remainder
                | Integer::Minimum
                | Integer::Maximum
                | Integer::Negate
                | Integer::And
                | Integer::Or
                | Integer::Xor
                | Integer::Not
                | Integer::ShiftLeft
                | Integer::ShiftRight
                | Integer::BitFieldExtract
                | Integer::CountOnes
        ),
        Op::Float(op) => matches!(
            op,
            Float::Add
                | Float::Subtract
                | Float::Multiply
                | Float::FusedMultiplyAdd
                | Float::Divide
                | Float::DivideFull
                | Float::Minimum
                | Float::Maximum
                | Float::Negate
                | Float::Absolute
                | Float::PowerOfTwo
                | Float::LogarithmOfTwo
                | Float::Reciprocal
                | Float::ReciprocalExact
                | Float::SquareRoot
                | Float::ReciprocalRoot
        ),
        Op::Compare(op) => matches!(op, Compare::SetPredicate | Compare::SetCombined | Compare::Select),
        Op::Movement(op) => matches!(
            op,
            Movement::Move
                | Movement::ToSpace
                | Movement::ToGeneric
                | Movement::ToRareSpace
                | Movement::RareToGeneric
                | Movement::IsSpace
                | Movement::Load
                | Movement::LoadVolatile
                | Movement::LoadStrong
                | Movement::LoadUniform
                | Movement::Prefetch
                | Movement::PrefetchKept
                | Movement::PrefetchUniform
                | Movement::Store
                | Movement::StoreVolatile
                | Movement::StoreStrong
        ),
        Op::Convert(op) => matches!(
            op,
            Convert::Integer
                | Convert::ToFloat
                | Convert::ToInteger
                | Convert::Widen
                | Convert::WidenBrain16
                | Convert::Narrow
                | Convert::NarrowBrain16
                | Convert::NarrowPair
        ),
        Op::Warp(_) => true,
        Op::Matrix(op) => matches!(op, Matrix::LoadMatrix | Matrix::Multiply16 | Matrix::MultiplyBrain16),
        Op::AsyncCopy(op) => matches!(
            op,
            AsyncCopy::Copy | AsyncCopy::CopyThroughL2 | AsyncCopy::Commit | AsyncCopy::WaitGroup | AsyncCopy::WaitAll
        ),
        Op::Barrier(op) => !matches!(op, Barrier::ClusterArrive | Barrier::ClusterWait),
        Op::Control(op) => op != Control::Breakpoint,
        Op::Atomic(_) => true,
        Op::Fence(op) => matches!(op, Fence::Barrier | Fence::Scope | Fence::OneWay),
        Op::Launch(op) => matches!(op, Launch::Sleep | Launch::CountEvent),
        Op::Half(_) | Op::Wmma(_) | Op::Wgmma(_) | Op::BulkCopy(_) | Op::TensorMap(_) | Op::Mbarrier(_) => false,
    }
}

/// A modifier that the row of an executed operation allows and the operation does not execute.
pub fn unknown_modifier(instruction: &Instruction) -> Option<&'static str> {
    beyond(instruction.op()).split(' ').find(|modifier| instruction.has(modifier))
}

fn beyond(op: Op) -> &'static str {
    match op {
        Op::Float(Float::Divide | Float::ReciprocalExact | Float::SquareRoot) => "ftz rz rm rp",
        Op::Float(_) => "sat rz rm rp NaN xorsign abs",
        Op::Compare(Compare::SetPredicate | Compare::SetCombined) => "f64",
        Op::Convert(Convert::Widen) => "sat ftz",
        Op::Convert(Convert::ToFloat) => "rz rm rp sat u8 s8 u16 s16 u64 s64",
        Op::Convert(Convert::ToInteger) => "sat u8 s8 u16 s16 u64 s64",
        Op::Movement(_) => "shared::cluster",
        Op::Atomic(_) => "shared::cluster",
        Op::AsyncCopy(_) => "L2::cache_hint",
        _ => "",
    }
}

/// Special registers that the emulator knows.
pub fn knows_special(name: &str) -> bool {
    let (stem, component) = name.split_once('.').unwrap_or((name, ""));
    match component {
        "" => {
            stem.starts_with("%lanemask_")
                || ["%laneid", "%warpid", "%nwarpid", "%dynamic_smem_size", "%total_smem_size"].contains(&stem)
        }
        _ => ["%tid", "%ntid", "%ctaid", "%nctaid"].contains(&stem),
    }
}
