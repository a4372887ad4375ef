//! Sixteen numbers at a time: what attention needs of an instruction set, and nothing more.
//!
//! A value of a type that is [`Simd`] is the proof that the processor has the instructions: it comes out of `detect` alone,
//! and the methods are safe for that reason. Everything here is `#[inline(always)]`, so that it takes on the features of the
//! function around it; those with `#[target_feature]` are the entries in `entry.rs`. This folder holds all `unsafe` code of the
//! backend.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod claim;
mod columns;
mod entry;
mod exp2;
#[cfg(target_arch = "aarch64")]
mod neon;
mod number;
mod portable;
mod product;

pub use claim::{Chunks, Claim, Claims};
pub use columns::{Rows, add_values, products};
pub use entry::{InstructionSet, Task, run};
pub use number::Number;
pub use product::{CHAIN, Product, Words, scores, values};

/// Queries that are computed side by side, one in each lane.
pub const LANES: usize = 16;

/// One number for each of sixteen queries, or sixteen numbers of one row.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Lanes(pub [f32; LANES]);

impl Lanes {
    pub const fn all(value: f32) -> Lanes {
        Lanes([value; LANES])
    }
}

/// The numbers of all lanes, one behind the other.
#[inline(always)]
pub fn flat(lanes: &mut [Lanes]) -> &mut [f32] {
    // SAFETY: `Lanes` is sixteen f32 from its first byte on, and nothing else: its size is its alignment.
    unsafe { std::slice::from_raw_parts_mut(lanes.as_mut_ptr().cast(), lanes.len() * LANES) }
}

pub trait Simd: Copy + Send + Sync + 'static {
    /// Sixteen f32 in registers.
    type Vector: Copy;
    /// Whether six columns of V are summed at once instead of four: four keep multiply-adds busy only while nothing delays them.
    const SUMS_SIX_COLUMNS: bool;
    /// Whether eight sums leave registers free.
    const MANY_REGISTERS: bool;

    fn splat(self, value: f32) -> Self::Vector;
    fn load(self, from: &[f32; LANES]) -> Self::Vector;
    fn store(self, to: &mut [f32; LANES], value: Self::Vector);
    fn add(self, left: Self::Vector, right: Self::Vector) -> Self::Vector;
    fn sub(self, left: Self::Vector, right: Self::Vector) -> Self::Vector;
    fn mul(self, left: Self::Vector, right: Self::Vector) -> Self::Vector;
    fn div(self, left: Self::Vector, right: Self::Vector) -> Self::Vector;
    /// The right one where one of them is NaN.
    fn max(self, left: Self::Vector, right: Self::Vector) -> Self::Vector;
    /// `left · right + more`, rounded once.
    fn mul_add(self, left: Self::Vector, right: Self::Vector, more: Self::Vector) -> Self::Vector;
    /// `yes` in the lanes where left < right, `no` in the others.
    fn if_below(self, left: Self::Vector, right: Self::Vector, yes: Self::Vector, no: Self::Vector) -> Self::Vector;
    fn any_above(self, left: Self::Vector, right: Self::Vector) -> bool;
    /// The sum of all lanes, always in the same order.
    fn sum(self, value: Self::Vector) -> f32;
    /// The sums of the lanes of each, all in the same order.
    #[inline(always)]
    fn sums(self, of: [Self::Vector; 4]) -> [f32; 4] {
        [self.sum(of[0]), self.sum(of[1]), self.sum(of[2]), self.sum(of[3])]
    }
    /// 2^x for x up to 127, 0 for −∞, NaN for NaN.
    fn exp2(self, x: Self::Vector) -> Self::Vector;
    fn widen_f16(self, from: &[half::f16; LANES]) -> Self::Vector;
    fn widen_bf16(self, from: &[half::bf16; LANES]) -> Self::Vector;
    fn narrow_f16(self, value: Self::Vector, to: &mut [half::f16; LANES]);
    fn narrow_bf16(self, value: Self::Vector, to: &mut [half::bf16; LANES]);
    /// Runs a task in a function of its own.
    fn apart<T: Task>(self, task: T);
    /// Has a place come from memory, if it can; nothing need be there.
    #[inline(always)]
    fn prefetch<T>(self, _: *const T) {}
    /// Rows become columns.
    fn transpose(self, block: &mut [Lanes; LANES]) {
        for row in 1..LANES {
            for column in 0..row {
                let held = block[row].0[column];
                block[row].0[column] = block[column].0[row];
                block[column].0[row] = held;
            }
        }
    }
}
