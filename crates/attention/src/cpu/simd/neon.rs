//! 64-bit Arm: four vectors of four lanes.

use super::exp2::polynomial;
use super::{LANES, Simd, Task, entry};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use std::arch::aarch64::*;

#[derive(Clone, Copy)]
pub struct Neon(());

impl Neon {
    pub fn detect() -> Option<Neon> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Neon(()))
    }
}

type Vector = [float32x4_t; 4];

const QUARTER: usize = LANES / 4;

/// The same for each quarter of the lanes.
macro_rules! quarters {
    (|$quarter:ident| $body:expr) => {
        // SAFETY: the instructions were detected, and each quarter of an array has the length that is read or written.
        unsafe {
            let of = |$quarter: usize| $body;
            [of(0), of(1), of(2), of(3)]
        }
    };
}

impl Simd for Neon {
    type Vector = Vector;
    const SUMS_SIX_COLUMNS: bool = false;
    const MANY_REGISTERS: bool = false;

    #[inline(always)]
    fn splat(self, value: f32) -> Vector {
        quarters!(|_quarter| vdupq_n_f32(value))
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Vector {
        quarters!(|quarter| vld1q_f32(from.as_ptr().add(quarter * QUARTER)))
    }
    #[inline(always)]
    fn store(self, to: &mut [f32; LANES], value: Vector) {
        let first = to.as_mut_ptr();
        quarters!(|quarter| vst1q_f32(first.add(quarter * QUARTER), value[quarter]));
    }
    #[inline(always)]
    fn add(self, left: Vector, right: Vector) -> Vector {
        quarters!(|quarter| vaddq_f32(left[quarter], right[quarter]))
    }
    #[inline(always)]
    fn sub(self, left: Vector, right: Vector) -> Vector {
        quarters!(|quarter| vsubq_f32(left[quarter], right[quarter]))
    }
    #[inline(always)]
    fn mul(self, left: Vector, right: Vector) -> Vector {
        quarters!(|quarter| vmulq_f32(left[quarter], right[quarter]))
    }
    #[inline(always)]
    fn div(self, left: Vector, right: Vector) -> Vector {
        quarters!(|quarter| vdivq_f32(left[quarter], right[quarter]))
    }
    #[inline(always)]
    fn max(self, left: Vector, right: Vector) -> Vector {
        self.if_below(right, left, left, right)
    }
    #[inline(always)]
    fn mul_add(self, left: Vector, right: Vector, more: Vector) -> Vector {
        quarters!(|quarter| vfmaq_f32(more[quarter], left[quarter], right[quarter]))
    }
    #[inline(always)]
    fn if_below(self, left: Vector, right: Vector, yes: Vector, no: Vector) -> Vector {
        quarters!(|quarter| vbslq_f32(vcltq_f32(left[quarter], right[quarter]), yes[quarter], no[quarter]))
    }
    #[inline(always)]
    fn any_above(self, left: Vector, right: Vector) -> bool {
        let above = quarters!(|quarter| vmaxvq_u32(vcgtq_f32(left[quarter], right[quarter])));
        above.into_iter().any(|any| any != 0)
    }
    #[inline(always)]
    fn sum(self, value: Vector) -> f32 {
        // SAFETY: the instructions were detected.
        unsafe { vaddvq_f32(vaddq_f32(vaddq_f32(value[0], value[2]), vaddq_f32(value[1], value[3]))) }
    }
    #[inline(always)]
    fn exp2(self, x: Vector) -> Vector {
        let least = self.splat(-126.0);
        let clamped = self.if_below(x, least, least, x);
        let below = quarters!(|quarter| vrndmq_f32(clamped[quarter]));
        let power = polynomial(self, self.sub(clamped, below));
        let scaled = quarters!(|quarter| {
            let exponent = vshlq_n_s32::<23>(vcvtq_s32_f32(below[quarter]));
            vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(power[quarter]), exponent))
        });
        self.if_below(x, least, self.splat(0.0), scaled)
    }
    #[inline(always)]
    fn apart<T: Task>(self, task: T) {
        // SAFETY: the instructions were detected.
        unsafe { entry::neon(self, task) }
    }
    #[inline(always)]
    fn widen_f16(self, from: &[f16; LANES]) -> Vector {
        let mut wide = [0.0; LANES];
        from.convert_to_f32_slice(&mut wide);
        self.load(&wide)
    }
    #[inline(always)]
    fn widen_bf16(self, from: &[bf16; LANES]) -> Vector {
        let first: *const u16 = from.as_ptr().cast();
        quarters!(|quarter| vreinterpretq_f32_u32(vshll_n_u16::<16>(vld1_u16(first.add(quarter * QUARTER)))))
    }
    #[inline(always)]
    fn narrow_f16(self, value: Vector, to: &mut [f16; LANES]) {
        let mut wide = [0.0; LANES];
        self.store(&mut wide, value);
        to.convert_from_f32_slice(&wide);
    }
    #[inline(always)]
    fn narrow_bf16(self, value: Vector, to: &mut [bf16; LANES]) {
        let mut wide = [0.0; LANES];
        self.store(&mut wide, value);
        *to = wide.map(bf16::from_f32);
    }
}
