//! What of the table runs. The rest is known, and refused with its name.

use ptx::forms::{AsyncCopy, Barrier, Control, Float, Movement, Warp};
use ptx::{Instruction, Op};

/// Does the emulator execute this operation?
pub fn executes(op: Op) -> bool {
    match op {
        Op::Float(op) => !matches!(op, Float::ReciprocalDoubleApproximate | Float::ReciprocalRootDouble),
        Op::Movement(op) => matches!(
            op,
            Movement::Move
                | Movement::ToSpace
                | Movement::ToGeneric
                | Movement::Load
                | Movement::LoadVolatile
                | Movement::LoadUniform
                | Movement::IsSpace
                | Movement::Prefetch
                | Movement::PrefetchKept
                | Movement::PrefetchUniform
                | Movement::PolicyOfFraction
                | Movement::Store
                | Movement::StoreVolatile
        ),
        Op::Warp(op) => matches!(op, Warp::Shuffle | Warp::Vote | Warp::Ballot | Warp::ActiveMask | Warp::Synchronise),
        Op::Matrix(_) | Op::Wmma(_) => true,
        Op::AsyncCopy(op) => matches!(
            op,
            AsyncCopy::Copy | AsyncCopy::CopyThroughL2 | AsyncCopy::Commit | AsyncCopy::WaitGroup | AsyncCopy::WaitAll
        ),
        Op::Barrier(op) => matches!(op, Barrier::Synchronise | Barrier::SynchroniseAligned | Barrier::Arrive),
        Op::Control(op) => matches!(op, Control::Branch | Control::Return | Control::Exit | Control::Trap),
        Op::Integer(_) | Op::Half(_) | Op::Compare(_) | Op::Convert(_) => true,
        Op::Atomic(_)
        | Op::Fence(_)
        | Op::Wgmma(_)
        | Op::BulkCopy(_)
        | Op::TensorMap(_)
        | Op::Mbarrier(_)
        | Op::Launch(_) => false,
    }
}

/// A modifier that the row of an executed operation allows and the operation does not execute.
pub fn unknown_modifier(instruction: &Instruction) -> Option<&'static str> {
    beyond(instruction.op()).split(' ').find(|modifier| instruction.has(modifier))
}

fn beyond(op: Op) -> &'static str {
    match op {
        Op::Movement(Movement::Prefetch) => "",
        Op::Movement(Movement::IsSpace) => "const local param param::entry shared::cluster",
        Op::Movement(_) => "const local shared::cluster param::func",
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
                || stem.starts_with("%clock")
                || stem.starts_with("%globaltimer")
                || ["%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid"].contains(&stem)
                || ["%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size"].contains(&stem)
        }
        _ => ["%tid", "%ntid", "%ctaid", "%nctaid"].contains(&stem),
    }
}
