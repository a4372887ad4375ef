//! The operations that kernels are written in.

use super::Register;
use super::operand::{self, LeftStep, RightSteps};
use crate::numerics::format::Format;

/// 16 lanes of 32 bits, 32 lanes of 16 bits. Integers wrap.
pub trait Vectors: Copy {
    type Floats: Copy;
    type Integers: Copy;
    type Shorts: Copy;
    type Mask: Copy;
    /// Accumulator registers that an exact product, or a chain of fused multiply-adds, holds at a time: as many as the
    /// processor's registers have room for.
    const EXACT_AT_ONCE: usize;
    const FUSED_AT_ONCE: usize;

    fn shorts(self, from: &[i16; 32]) -> Self::Shorts;
    /// Four lanes, eight times.
    fn shorts_of_four(self, from: &[i16; 4]) -> Self::Shorts;
    fn add_shorts(self, a: Self::Shorts, b: Self::Shorts) -> Self::Shorts;
    fn larger_shorts(self, a: Self::Shorts, b: Self::Shorts) -> Self::Shorts;
    /// With their signs; the lower lanes first.
    fn widen(self, shorts: Self::Shorts) -> [Self::Integers; 2];

    fn floats(self, from: &[f32; 16]) -> Self::Floats;
    /// Four lanes, four times.
    fn floats_of_four(self, from: &[f32; 4]) -> Self::Floats;
    fn multiply(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a * b + c`, rounded once.
    fn fused(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    fn not_a_number(self, a: Self::Floats) -> Self::Mask;
    /// Toward zero. What does not fit becomes any number.
    fn truncate(self, a: Self::Floats) -> Self::Integers;
    /// Toward zero.
    fn toward_zero(self, a: Self::Integers) -> Self::Floats;
    fn bits(self, a: Self::Floats) -> Self::Integers;
    fn of_bits(self, a: Self::Integers) -> Self::Floats;
    /// From f16 in the lower halves.
    fn of_halves(self, a: Self::Integers) -> Self::Floats;
    /// To the nearest f16, ties to even.
    fn to_halves(self, a: Self::Floats) -> Self::Integers;

    fn integers(self, from: &[u32; 16]) -> Self::Integers;
    fn store(self, a: Self::Integers, to: &mut [u32; 16]);
    fn splat(self, value: i32) -> Self::Integers;
    fn add(self, a: Self::Integers, b: Self::Integers) -> Self::Integers;
    fn subtract(self, a: Self::Integers, b: Self::Integers) -> Self::Integers;
    fn larger(self, a: Self::Integers, b: Self::Integers) -> Self::Integers;
    fn and(self, a: Self::Integers, b: Self::Integers) -> Self::Integers;
    fn or(self, a: Self::Integers, b: Self::Integers) -> Self::Integers;
    fn exclusive_or(self, a: Self::Integers, b: Self::Integers) -> Self::Integers;
    /// By the 23 bits of a fraction; zeros come in.
    fn shift_left(self, a: Self::Integers) -> Self::Integers;
    fn shift_right(self, a: Self::Integers) -> Self::Integers;

    fn greater(self, a: Self::Integers, b: Self::Integers) -> Self::Mask;
    fn equal(self, a: Self::Integers, b: Self::Integers) -> Self::Mask;
    fn both(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn either(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn without(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn select(self, mask: Self::Mask, a: Self::Integers, b: Self::Integers) -> Self::Integers;
    /// A bit for each lane.
    fn lanes(self, mask: Self::Mask) -> u32;

    /// Eight rows of A, with their exponents or without.
    #[inline(always)]
    fn load_left<const EXPONENTS: bool>(self, format: Format, core: &Register, half: usize, steps: &mut [LeftStep]) {
        operand::spread_left::<EXPONENTS>(format, core, half, steps);
    }

    /// Eight columns of B.
    #[inline(always)]
    fn load_right<const EXPONENTS: bool>(self, format: Format, core: &Register, steps: RightSteps) {
        operand::spread_right::<EXPONENTS>(format, core, steps);
    }

    /// Eight lines of eight elements of 16 bits.
    #[inline(always)]
    fn transpose(self, core: &Register) -> Register {
        let element = |line: usize, place: usize| core[4 * line + place / 2] >> (16 * (place % 2)) & 0xffff;
        std::array::from_fn(|word| {
            let (line, place) = (word / 4, word % 4 * 2);
            element(place, line) | element(place + 1, line) << 16
        })
    }
}
