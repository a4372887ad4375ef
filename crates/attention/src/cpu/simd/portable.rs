//! Any processor: arrays, which the compiler turns into what vectors there are.

use super::exp2::polynomial;
use super::product::Singles;
use super::{LANES, Simd, Task};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

#[derive(Clone, Copy)]
pub struct Portable;

type Vector = [f32; LANES];

#[inline(always)]
fn map2(left: Vector, right: Vector, with: impl Fn(f32, f32) -> f32) -> Vector {
    std::array::from_fn(|lane| with(left[lane], right[lane]))
}

impl Simd for Portable {
    type Vector = Vector;
    const SUMS_SIX_COLUMNS: bool = false;
    const MANY_REGISTERS: bool = false;

    #[inline(always)]
    fn splat(self, value: f32) -> Vector {
        [value; LANES]
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Vector {
        *from
    }
    #[inline(always)]
    fn store(self, to: &mut [f32; LANES], value: Vector) {
        *to = value;
    }
    #[inline(always)]
    fn add(self, left: Vector, right: Vector) -> Vector {
        map2(left, right, |left, right| left + right)
    }
    #[inline(always)]
    fn sub(self, left: Vector, right: Vector) -> Vector {
        map2(left, right, |left, right| left - right)
    }
    #[inline(always)]
    fn mul(self, left: Vector, right: Vector) -> Vector {
        map2(left, right, |left, right| left * right)
    }
    #[inline(always)]
    fn div(self, left: Vector, right: Vector) -> Vector {
        map2(left, right, |left, right| left / right)
    }
    #[inline(always)]
    fn max(self, left: Vector, right: Vector) -> Vector {
        map2(left, right, |left, right| if left > right { left } else { right })
    }
    /// In f64 the product is exact.
    #[inline(always)]
    fn mul_add(self, left: Vector, right: Vector, more: Vector) -> Vector {
        std::array::from_fn(|lane| (f64::from(left[lane]) * f64::from(right[lane]) + f64::from(more[lane])) as f32)
    }
    #[inline(always)]
    fn if_below(self, left: Vector, right: Vector, yes: Vector, no: Vector) -> Vector {
        std::array::from_fn(|lane| if left[lane] < right[lane] { yes[lane] } else { no[lane] })
    }
    #[inline(always)]
    fn any_above(self, left: Vector, right: Vector) -> bool {
        left.into_iter().zip(right).any(|(left, right)| left > right)
    }
    #[inline(always)]
    fn sum(self, value: Vector) -> f32 {
        let half: [f32; 8] = std::array::from_fn(|lane| value[lane] + value[lane + 8]);
        let quarter: [f32; 4] = std::array::from_fn(|lane| half[lane] + half[lane + 4]);
        (quarter[0] + quarter[2]) + (quarter[1] + quarter[3])
    }
    #[inline(always)]
    fn exp2(self, x: Vector) -> Vector {
        // Whole numbers as floats have their integer in the low bits once 1.5·2²³ is added.
        const SHIFT: f32 = 12_582_912.0;
        const ONE: u32 = 1f32.to_bits();
        // NaN stays.
        let clamped = x.map(|x| if x < -126.0 { -126.0 } else { x });
        let nearest = clamped.map(|x| (x - 0.5) + SHIFT);
        let fraction: Vector = std::array::from_fn(|lane| clamped[lane] - (nearest[lane] - SHIFT));
        let power = polynomial(self, fraction);
        std::array::from_fn(|lane| {
            // A product, and no sum of bits, so that NaN stays whatever its own bits are.
            let whole = f32::from_bits((nearest[lane].to_bits() << 23).wrapping_add(ONE));
            if x[lane] < -126.0 { 0.0 } else { power[lane] * whole }
        })
    }
    #[inline(always)]
    fn apart<T: Task>(self, task: T) {
        task.run::<_, _, 2>(self, Singles);
    }
    #[inline(always)]
    fn widen_f16(self, from: &[f16; LANES]) -> Vector {
        let mut wide = [0.0; LANES];
        from.convert_to_f32_slice(&mut wide);
        wide
    }
    #[inline(always)]
    fn widen_bf16(self, from: &[bf16; LANES]) -> Vector {
        from.map(|value| f32::from_bits(u32::from(value.to_bits()) << 16))
    }
    #[inline(always)]
    fn narrow_f16(self, value: Vector, to: &mut [f16; LANES]) {
        to.convert_from_f32_slice(&value);
    }
    #[inline(always)]
    fn narrow_bf16(self, value: Vector, to: &mut [bf16; LANES]) {
        *to = value.map(bf16::from_f32);
    }
}
