//! What of the table runs. The rest is known, and refused with its name.

use ptx::forms::{AsyncCopy, BulkCopy, Control, Float};
use ptx::{Instruction, Op};

/// Does the emulator execute this operation?
pub fn executes(op: Op) -> bool {
    match op {
        Op::Float(op) => op != Float::ReciprocalRootDouble,
        Op::Movement(_) | Op::Warp(_) | Op::Matrix(_) | Op::Wmma(_) => true,
        Op::AsyncCopy(op) => matches!(
            op,
            AsyncCopy::Copy | AsyncCopy::CopyThroughL2 | AsyncCopy::Commit | AsyncCopy::WaitGroup | AsyncCopy::WaitAll
        ),
        Op::Control(op) => op != Control::Breakpoint,
        Op::Integer(_) | Op::Half(_) | Op::Compare(_) | Op::Convert(_) | Op::Atomic(_) => true,
        Op::Barrier(_) | Op::Mbarrier(_) | Op::TensorMap(_) | Op::Launch(_) | Op::Wgmma(_) | Op::Fence(_) => true,
        Op::BulkCopy(op) => !matches!(
            op,
            BulkCopy::TensorLoadColumnsLocal
                | BulkCopy::TensorLoadColumns
                | BulkCopy::TensorStoreColumns
                | BulkCopy::TensorReduceColumns
                | BulkCopy::TensorPrefetchColumns
        ),
    }
}

/// A modifier that the row of an executed operation allows and the operation does not execute.
pub fn unknown_modifier(instruction: &Instruction) -> Option<&'static str> {
    beyond(instruction.op()).split(' ').find(|modifier| instruction.has(modifier))
}

fn beyond(op: Op) -> &'static str {
    match op {
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
                || ["%cluster_ctarank", "%cluster_nctarank", "%is_explicit_cluster"].contains(&stem)
        }
        _ => {
            ["%tid", "%ntid", "%ctaid", "%nctaid"].contains(&stem)
                || ["%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"].contains(&stem)
        }
    }
}
