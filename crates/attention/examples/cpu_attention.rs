//! Attention on plain cores behind a C function, for `peers/cpu_side_by_side.py`, which times it beside torch in one process:
//! `cargo build --release -p attention --example cpu_attention`.

#![allow(unsafe_code)] // A C function is given pointers.

use attention::Problem;
use attention::cpu::{Change, Forward, InstructionSet, Number, Sight, Strided};
use attention::problem::Shape;
use attention::scoring::ScoreKind;
use attention::visibility::MaskKind;
use half::{bf16, f16};
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Sizes of a problem whose tensors are (batch, heads, rows, columns) without gaps.
#[repr(C)]
pub struct Sizes {
    batch: u32,
    heads: u32,
    kv_heads: u32,
    queries: u32,
    keys: u32,
    head_dim: u32,
    value_dim: u32,
    /// 0 f32, 1 f16, 2 bf16.
    dtype: u32,
    /// The last query sees the last key, and each earlier one a key less.
    causal: u32,
    /// An index of [`InstructionSet::ALL`]; any other is the best that there is.
    instructions: u32,
}

/// Zero if all went well.
///
/// # Safety
/// The pointers point to tensors of these sizes, and nobody else uses the outputs meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn veriflash_cpu_attention(
    sizes: &Sizes,
    q: *const u8,
    k: *const u8,
    v: *const u8,
    o: *mut u8,
    lse: *mut f32,
) -> i32 {
    let Ok(problem) = problem(sizes) else { return 1 };
    // SAFETY: as the caller promises.
    unsafe {
        match sizes.dtype {
            0 => run::<f32>(sizes, &problem, [q, k, v], o, lse),
            1 => run::<f16>(sizes, &problem, [q, k, v], o, lse),
            2 => run::<bf16>(sizes, &problem, [q, k, v], o, lse),
            _ => return 1,
        }
    }
    0
}

fn problem(sizes: &Sizes) -> Result<Problem, attention::Error> {
    let mask = if sizes.causal != 0 { MaskKind::CausalBottomRight } else { MaskKind::None };
    let builder = Problem::builder().batch(sizes.batch).heads(sizes.heads).kv_heads(sizes.kv_heads).mask(mask);
    builder.queries(sizes.queries).keys(sizes.keys).head_dim(sizes.head_dim).value_dim(sizes.value_dim).build()
}

/// # Safety
/// The pointers point to tensors of the problem's shapes.
unsafe fn run<N: Number>(sizes: &Sizes, problem: &Problem, inputs: [*const u8; 3], o: *mut u8, lse: *mut f32) {
    let [q, k, v] = [0, 1, 2].map(|index| {
        let shape: Shape = [problem.q_shape(), problem.k_shape(), problem.v_shape()][index];
        // SAFETY: as the caller promises.
        let values = unsafe { from_raw_parts(inputs[index].cast::<N>(), shape.elements()) };
        Strided::new(values, shape.strides(), shape.columns as usize)
    });
    let shape = problem.o_shape();
    // SAFETY: as the caller promises.
    let (o, lse) = unsafe {
        let rows = shape.elements() / shape.columns as usize;
        (from_raw_parts_mut(o.cast::<N>(), shape.elements()), from_raw_parts_mut(lse, rows))
    };
    let (mask, score) = (Sight::Kind(problem.mask()), Change::Kind(ScoreKind::Plain));
    let forward = Forward { problem, q, k, v, mask, score, numbers: &[], sinks: &[], documents: None, packed: None };
    let set = InstructionSet::ALL.get(sizes.instructions as usize).copied().unwrap_or_else(InstructionSet::best);
    forward.run_with(set, o, shape.strides(), lse);
}
