//! What of the table runs. The rest is known, and refused with its name.

use ptx::Op;
use ptx::forms::{AsyncCopy, BulkCopy, Control, Matrix, Wmma};

/// A form whose results are not equal to an H200's to the bit.
pub struct Difference {
    pub ops: &'static [Op],
    pub reason: &'static str,
    /// The largest difference that was seen.
    pub largest: &'static str,
}

/// All that is known not to be bit-equal.
pub const NOT_BIT_EQUAL: &[Difference] = &[Difference {
    ops: &[Op::Matrix(Matrix::MultiplyDouble), Op::Matrix(Matrix::MultiplyDoubleWide), Op::Wmma(Wmma::MultiplyDouble)],
    reason: "where several NaNs meet in one sum, which of them gives the result its payload is not known",
    largest: "the payload of a NaN; every number is equal",
}];

/// Does the emulator execute this operation?
pub fn executes(op: Op) -> bool {
    match op {
        Op::Movement(_) | Op::Warp(_) | Op::Matrix(_) | Op::Wmma(_) => true,
        Op::AsyncCopy(op) => matches!(
            op,
            AsyncCopy::Copy | AsyncCopy::CopyThroughL2 | AsyncCopy::Commit | AsyncCopy::WaitGroup | AsyncCopy::WaitAll
        ),
        Op::Control(op) => op != Control::Breakpoint,
        Op::Float(_) | Op::Integer(_) | Op::Half(_) | Op::Compare(_) | Op::Convert(_) | Op::Atomic(_) => true,
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
