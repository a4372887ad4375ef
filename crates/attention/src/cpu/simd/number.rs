//! The types that tensors have.

use super::entry::{self, InstructionSet, Task};
use super::{LANES, Simd};
use half::{bf16, f16};

/// f32, f16 or bf16.
pub trait Number: Copy + Default + Send + Sync + 'static {
    /// Whether its outputs show how long chains of additions were.
    const SHOWS_CHAINS: bool;
    /// The numbers themselves, if they need not be widened.
    fn as_f32(_: &[Self]) -> Option<&[f32]> {
        None
    }
    /// The numbers themselves, if they can be multiplied in pairs.
    fn as_bf16(_: &[Self]) -> Option<&[bf16]> {
        None
    }
    /// Runs a task on numbers of this type.
    fn run<T: Task>(set: InstructionSet, task: T) {
        entry::run(set, task);
    }
    fn widen<S: Simd>(s: S, from: &[Self; LANES]) -> S::Vector;
    fn narrow<S: Simd>(s: S, value: S::Vector, to: &mut [Self; LANES]);
}

impl Number for f32 {
    const SHOWS_CHAINS: bool = true;

    fn run<T: Task>(set: InstructionSet, task: T) {
        entry::run_exact(set, task);
    }

    #[inline(always)]
    fn as_f32(values: &[f32]) -> Option<&[f32]> {
        Some(values)
    }

    #[inline(always)]
    fn widen<S: Simd>(s: S, from: &[f32; LANES]) -> S::Vector {
        s.load(from)
    }

    #[inline(always)]
    fn narrow<S: Simd>(s: S, value: S::Vector, to: &mut [f32; LANES]) {
        s.store(to, value);
    }
}

impl Number for f16 {
    const SHOWS_CHAINS: bool = false;

    #[inline(always)]
    fn widen<S: Simd>(s: S, from: &[f16; LANES]) -> S::Vector {
        s.widen_f16(from)
    }

    #[inline(always)]
    fn narrow<S: Simd>(s: S, value: S::Vector, to: &mut [f16; LANES]) {
        s.narrow_f16(value, to);
    }
}

impl Number for bf16 {
    const SHOWS_CHAINS: bool = false;

    #[inline(always)]
    fn as_bf16(values: &[bf16]) -> Option<&[bf16]> {
        Some(values)
    }

    fn run<T: Task>(set: InstructionSet, task: T) {
        entry::run_pairs(set, task);
    }

    #[inline(always)]
    fn widen<S: Simd>(s: S, from: &[bf16; LANES]) -> S::Vector {
        s.widen_bf16(from)
    }

    #[inline(always)]
    fn narrow<S: Simd>(s: S, value: S::Vector, to: &mut [bf16; LANES]) {
        s.narrow_bf16(value, to);
    }
}
