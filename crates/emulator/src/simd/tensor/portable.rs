//! Arrays and loops, for processors of other kinds, and as the meaning of the operations.

use super::vectors::Vectors;
use crate::numerics::convert::{f16_to_f32, f32_to_f16};
use crate::numerics::format::Rounding;
use std::array::from_fn;

#[derive(Clone, Copy, Debug)]
pub struct Portable;

/// Operations lane by lane.
macro_rules! lanewise {
    ($($name:ident($($argument:ident: $type:ident),*) -> $result:ident = $lane:expr;)*) => {
        $(#[inline(always)]
        fn $name(self, $($argument: Self::$type),*) -> Self::$result {
            let mut result = <Self::$result>::default();
            for (lane, result) in result.iter_mut().enumerate() {
                $(let $argument = $argument[lane];)*
                *result = $lane;
            }
            result
        })*
    };
}

#[rustfmt::skip] // One row per line.
impl Vectors for Portable {
    type Floats = [f32; 16];
    type Integers = [i32; 16];
    type Shorts = [i16; 32];
    type Mask = [bool; 16];
    const EXACT_AT_ONCE: usize = 1;
    const FUSED_AT_ONCE: usize = 2;

    lanewise! {
        add_shorts(a: Shorts, b: Shorts) -> Shorts = a.wrapping_add(b);
        larger_shorts(a: Shorts, b: Shorts) -> Shorts = a.max(b);
        multiply(a: Floats, b: Floats) -> Floats = a * b;
        fused(a: Floats, b: Floats, c: Floats) -> Floats = a.mul_add(b, c);
        not_a_number(a: Floats) -> Mask = a.is_nan();
        truncate(a: Floats) -> Integers = a as i32;
        toward_zero(a: Integers) -> Floats = toward_zero(a);
        bits(a: Floats) -> Integers = a.to_bits() as i32;
        of_bits(a: Integers) -> Floats = f32::from_bits(a as u32);
        of_halves(a: Integers) -> Floats = f32::from_bits(f16_to_f32(a as u16));
        to_halves(a: Floats) -> Integers = f32_to_f16(a.to_bits(), Rounding::Nearest).into();
        add(a: Integers, b: Integers) -> Integers = a.wrapping_add(b);
        subtract(a: Integers, b: Integers) -> Integers = a.wrapping_sub(b);
        larger(a: Integers, b: Integers) -> Integers = a.max(b);
        and(a: Integers, b: Integers) -> Integers = a & b;
        or(a: Integers, b: Integers) -> Integers = a | b;
        exclusive_or(a: Integers, b: Integers) -> Integers = a ^ b;
        shift_left(a: Integers) -> Integers = a << 23;
        shift_right(a: Integers) -> Integers = (a as u32 >> 23) as i32;
        greater(a: Integers, b: Integers) -> Mask = a > b;
        equal(a: Integers, b: Integers) -> Mask = a == b;
        both(a: Mask, b: Mask) -> Mask = a & b;
        either(a: Mask, b: Mask) -> Mask = a | b;
        without(a: Mask, b: Mask) -> Mask = a & !b;
        select(mask: Mask, a: Integers, b: Integers) -> Integers = if mask { a } else { b };
    }

    #[inline(always)]
    fn lanes(self, mask: [bool; 16]) -> u32 {
        mask.iter().rev().fold(0, |lanes, lane| lanes << 1 | u32::from(*lane))
    }

    #[inline(always)]
    fn widen(self, shorts: [i16; 32]) -> [[i32; 16]; 2] {
        [0, 16].map(|first| from_fn(|lane| shorts[first + lane].into()))
    }

    #[inline(always)]
    fn shorts(self, from: &[i16; 32]) -> [i16; 32] {
        *from
    }

    #[inline(always)]
    fn shorts_of_four(self, from: &[i16; 4]) -> [i16; 32] {
        from_fn(|lane| from[lane % 4])
    }

    #[inline(always)]
    fn floats(self, from: &[f32; 16]) -> [f32; 16] {
        *from
    }

    #[inline(always)]
    fn floats_of_four(self, from: &[f32; 4]) -> [f32; 16] {
        from_fn(|lane| from[lane % 4])
    }

    #[inline(always)]
    fn integers(self, from: &[u32; 16]) -> [i32; 16] {
        from.map(|bits| bits as i32)
    }

    #[inline(always)]
    fn store(self, a: [i32; 16], to: &mut [u32; 16]) {
        *to = a.map(|bits| bits as u32);
    }

    #[inline(always)]
    fn splat(self, value: i32) -> [i32; 16] {
        [value; 16]
    }
}

/// The conversion rounds to the nearest: where its magnitude is too large, the bits before it are those wanted.
#[inline(always)]
fn toward_zero(a: i32) -> f32 {
    let nearest = a as f32;
    let too_large = f64::from(nearest).abs() > f64::from(a).abs();
    f32::from_bits(nearest.to_bits() - u32::from(too_large))
}
