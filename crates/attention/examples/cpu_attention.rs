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
    /// An index of [`InstructionSet::ALL`]; [`BEST`] is the best that there is.
    instructions: u32,
}

/// Of [`Sizes::instructions`].
const BEST: u32 = 99;

/// Zero if all went well, 1 if the problem is refused, 2 if this processor lacks the instructions.
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
    let Some(set) = instructions(sizes.instructions) else { return 2 };
    // SAFETY: as the caller promises.
    unsafe {
        match sizes.dtype {
            0 => run::<f32>(set, &problem, [q, k, v], o, lse),
            1 => run::<f16>(set, &problem, [q, k, v], o, lse),
            2 => run::<bf16>(set, &problem, [q, k, v], o, lse),
            _ => return 1,
        }
    }
    0
}

fn instructions(number: u32) -> Option<InstructionSet> {
    match number {
        BEST => Some(InstructionSet::best()),
        _ => InstructionSet::ALL.get(number as usize).copied().filter(|set| set.is_here()),
    }
}

fn problem(sizes: &Sizes) -> Result<Problem, attention::Error> {
    let mask = if sizes.causal != 0 { MaskKind::CausalBottomRight } else { MaskKind::None };
    let builder = Problem::builder().batch(sizes.batch).heads(sizes.heads).kv_heads(sizes.kv_heads).mask(mask);
    builder.queries(sizes.queries).keys(sizes.keys).head_dim(sizes.head_dim).value_dim(sizes.value_dim).build()
}

/// # Safety
/// The pointers point to tensors of the problem's shapes.
unsafe fn run<N: Number>(set: InstructionSet, problem: &Problem, inputs: [*const u8; 3], o: *mut u8, lse: *mut f32) {
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
    forward.run_with(set, o, shape.strides(), lse);
}
