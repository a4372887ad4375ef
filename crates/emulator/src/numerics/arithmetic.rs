//! f32 arithmetic: IEEE 754, with one NaN, and flushing as the hardware does it.
//!
//! Every operation computes its exact value in f64, or that value rounded to odd where it has more bits than f64 holds
//! (then rounding once more, to fewer bits, is as good as rounding the exact value), and rounds it once.

use super::format::{Format, Rounding};
use super::{INFINITY, NAN, SIGN};

/// Rounding and flushing of one f32 instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    pub rounding: Rounding,
    /// `.ftz`: subnormal operands are zero, and so is a result that is tiny after rounding.
    pub flush: bool,
}

impl Mode {
    /// `.rn`
    pub const NEAREST: Mode = Mode { rounding: Rounding::Nearest, flush: false };
    /// `.rn.ftz`
    pub const NEAREST_FLUSH: Mode = Mode { rounding: Rounding::Nearest, flush: true };

    pub(super) fn operand(self, bits: u32) -> f64 {
        f64::from(f32::from_bits(if self.flush { flush(bits) } else { bits }))
    }

    pub(super) fn result(self, value: f64) -> u32 {
        if self.flush && self.is_tiny(value) {
            return if value.is_sign_negative() { SIGN } else { 0 };
        }
        match self.rounding {
            Rounding::Nearest => canonical(value as f32),
            _ => Format::F32.round(value, self.rounding),
        }
    }

    /// Whether the value, rounded to 24 bits with unbounded exponent, is below the smallest normal number. This is not
    /// "rounds to a subnormal": just below 2^-126 the finer grid of 24 bits may stay below where IEEE rounds up to it.
    fn is_tiny(self, value: f64) -> bool {
        const SMALLEST: f64 = f32::MIN_POSITIVE as f64;
        const LIFT: f64 = (1u64 << 63) as f64; // Far from the subnormals, and exact.
        let rounded = || f32::from_bits(Format::F32.round(value * LIFT, self.rounding));
        value.abs() < SMALLEST && f64::from(rounded().abs()) < SMALLEST * LIFT
    }
}

/// A subnormal becomes a zero of its sign.
pub fn flush(bits: u32) -> u32 {
    if bits & INFINITY == 0 { bits & SIGN } else { bits }
}

/// `add{.rnd}{.ftz}.f32`
pub fn add(a: u32, b: u32, mode: Mode) -> u32 {
    mode.result(sum(mode.operand(a), mode.operand(b), mode.rounding))
}

/// `sub{.rnd}{.ftz}.f32`
pub fn subtract(a: u32, b: u32, mode: Mode) -> u32 {
    add(a, b ^ SIGN, mode)
}

/// `mul{.rnd}{.ftz}.f32`
pub fn multiply(a: u32, b: u32, mode: Mode) -> u32 {
    mode.result(mode.operand(a) * mode.operand(b))
}

/// `fma.rnd{.ftz}.f32`: `a * b + c`, rounded once.
pub fn fused_multiply_add(a: u32, b: u32, c: u32, mode: Mode) -> u32 {
    mode.result(sum(mode.operand(a) * mode.operand(b), mode.operand(c), mode.rounding))
}

/// `div.rnd{.ftz}.f32`
pub fn divide(a: u32, b: u32, mode: Mode) -> u32 {
    let (a, b) = (mode.operand(a), mode.operand(b));
    let quotient = a / b;
    // The remainder has the sign of what the quotient lost, times the divisor's.
    mode.result(odd(quotient, (-quotient).mul_add(b, a) * b.signum()))
}

/// `rcp.rnd{.ftz}.f32`
pub fn reciprocal(a: u32, mode: Mode) -> u32 {
    divide(1f32.to_bits(), a, mode)
}

/// `sqrt.rnd{.ftz}.f32`
pub fn square_root(a: u32, mode: Mode) -> u32 {
    let a = mode.operand(a);
    let root = a.sqrt();
    mode.result(odd(root, (-root).mul_add(root, a)))
}

/// `.sat`: into [0, 1]; NaN becomes +0.
pub fn saturate(a: u32) -> u32 {
    // Not `clamp`, which keeps NaN and -0.
    let value = f32::from_bits(a);
    if value > 0.0 { value.min(1.0).to_bits() } else { 0 }
}

/// `neg.f32`; it is an addition to the hardware, so a NaN loses its payload.
pub fn negate(a: u32) -> u32 {
    if is_nan(a) { NAN } else { a ^ SIGN }
}

/// `abs.f32`, likewise.
pub fn absolute(a: u32) -> u32 {
    if is_nan(a) { NAN } else { a & !SIGN }
}

/// `.xorsign.abs` of `min` and `max`: chooses among the magnitudes, with the product's sign.
pub fn with_product_sign(a: u32, b: u32, choose: impl Fn(u32, u32) -> u32) -> u32 {
    let chosen = choose(a & !SIGN, b & !SIGN);
    if is_nan(chosen) { chosen } else { chosen | (a ^ b) & SIGN }
}

/// What `min` and `max` make of one NaN operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NanOperand {
    /// The other operand is the result.
    Ignored,
    /// `.NaN`: the result is NaN.
    Kept,
}

/// `min{.NaN}.f32`; -0 is less than +0. With `.ftz` the caller flushes the operands.
pub fn minimum(a: u32, b: u32, nan: NanOperand) -> u32 {
    select(a, b, nan, u32::min)
}

/// `max{.NaN}.f32`, likewise.
pub fn maximum(a: u32, b: u32, nan: NanOperand) -> u32 {
    select(a, b, nan, u32::max)
}

fn select(a: u32, b: u32, nan: NanOperand, choose: fn(u32, u32) -> u32) -> u32 {
    // Ordered as unsigned integers once negative numbers are inverted and the sign bit is turned.
    let key = |bits: u32| if bits & SIGN != 0 { !bits } else { bits | SIGN };
    let value = |key: u32| if key & SIGN != 0 { key ^ SIGN } else { !key };
    match (is_nan(a), is_nan(b)) {
        (false, false) => value(choose(key(a), key(b))),
        (true, true) => NAN,
        _ if nan == NanOperand::Kept => NAN,
        (true, false) => b,
        (false, true) => a,
    }
}

fn canonical(value: f32) -> u32 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

pub(super) fn is_nan(bits: u32) -> bool {
    bits & !SIGN > INFINITY
}

/// `a + b`, rounded to odd; an exact zero has the sign that the rounding gives it.
pub(super) fn sum(a: f64, b: f64, rounding: Rounding) -> f64 {
    let sum = a + b;
    if sum == 0.0 {
        let opposite = a.is_sign_negative() != b.is_sign_negative();
        return if opposite && rounding == Rounding::Down { -0.0 } else { sum };
    }
    // Knuth's two-sum: what the rounding of the sum lost, exactly. NaN when the sum is not finite.
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    odd(sum, error)
}

/// A rounded value and the sign of what the rounding lost, rounded to odd instead.
fn odd(value: f64, error: f64) -> f64 {
    let even = value.to_bits() & 1 == 0;
    match error {
        error if !even || value == 0.0 || error == 0.0 || error.is_nan() => value,
        error if (error > 0.0) == (value > 0.0) => f64::from_bits(value.to_bits() + 1),
        _ => f64::from_bits(value.to_bits() - 1),
    }
}
