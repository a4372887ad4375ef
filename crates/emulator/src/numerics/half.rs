//! Arithmetic on f16 and bf16: exact in f64, or rounded to odd there, then rounded once.

use super::NAN_16;
use super::arithmetic::sum;
use super::convert::{bf16_to_f32, f16_to_f32};
use super::format::{Format, Rounding};
use super::special::{hyperbolic_tangent, unit_exponential};

const SIGN: u16 = 0x8000;

/// What becomes of a rounded result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    None,
    /// `.sat`: into [0, 1]; NaN becomes +0.
    Saturate,
    /// `.relu`: negative numbers and -0 become +0; NaN stays.
    Relu,
}

/// Format and modifiers of one instruction.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    pub format: Format,
    /// `.ftz`: subnormal operands are zero, and so is a result that is tiny after rounding.
    pub flush: bool,
    pub bound: Bound,
}

impl Mode {
    pub const F16: Mode = Mode { format: Format::F16, flush: false, bound: Bound::None };
    pub const BF16: Mode = Mode { format: Format::BF16, flush: false, bound: Bound::None };

    /// The bits as f32.
    fn single(self, bits: u16) -> u32 {
        if self.format == Format::BF16 { bf16_to_f32(bits) } else { f16_to_f32(bits) }
    }

    /// The value of an operand, flushed if the mode flushes.
    pub fn operand(self, bits: u16) -> f64 {
        f64::from(f32::from_bits(self.single(self.flushed(bits))))
    }

    fn flushed(self, bits: u16) -> u16 {
        let subnormal = bits & self.format.infinity() as u16 == 0;
        if self.flush && subnormal { bits & SIGN } else { bits }
    }

    fn is_nan(self, bits: u16) -> bool {
        bits & !SIGN > self.format.infinity() as u16
    }

    fn result(self, value: f64) -> u16 {
        if self.flush && self.is_tiny(value) {
            return self.bounded(if value.is_sign_negative() { SIGN } else { 0 });
        }
        self.bounded(self.format.round(value, Rounding::Nearest) as u16)
    }

    /// As for f32: the value, rounded with unbounded exponent, is below the smallest normal number.
    fn is_tiny(self, value: f64) -> bool {
        const LIFT: f64 = (1u64 << 20) as f64;
        let smallest = f64::from(f32::from_bits(self.single(1 << self.format.fraction_bits)));
        let rounded = || self.format.round(value * LIFT, Rounding::Nearest) as u16;
        value.abs() < smallest && f64::from(f32::from_bits(self.single(rounded() & !SIGN))) < smallest * LIFT
    }

    fn bounded(self, bits: u16) -> u16 {
        let one = (self.format.bias() << self.format.fraction_bits) as u16;
        match self.bound {
            Bound::None => bits,
            Bound::Saturate if self.is_nan(bits) || bits & SIGN != 0 => 0,
            Bound::Saturate => bits.min(one),
            Bound::Relu if self.is_nan(bits) => NAN_16,
            Bound::Relu => {
                if bits & SIGN != 0 {
                    0
                } else {
                    bits
                }
            }
        }
    }
}

pub fn add(a: u16, b: u16, mode: Mode) -> u16 {
    mode.result(sum(mode.operand(a), mode.operand(b), Rounding::Nearest))
}

pub fn subtract(a: u16, b: u16, mode: Mode) -> u16 {
    add(a, b ^ SIGN, mode)
}

pub fn multiply(a: u16, b: u16, mode: Mode) -> u16 {
    mode.result(mode.operand(a) * mode.operand(b))
}

/// `a * b + c`, rounded once.
pub fn fused_multiply_add(a: u16, b: u16, c: u16, mode: Mode) -> u16 {
    mode.result(sum(mode.operand(a) * mode.operand(b), mode.operand(c), Rounding::Nearest))
}

pub fn negate(a: u16, mode: Mode) -> u16 {
    if mode.is_nan(a) { NAN_16 } else { mode.flushed(a) ^ SIGN }
}

pub fn absolute(a: u16, mode: Mode) -> u16 {
    if mode.is_nan(a) { NAN_16 } else { mode.flushed(a) & !SIGN }
}

/// Which of two operands, as for f32, which holds both.
pub fn select(a: u16, b: u16, mode: Mode, choose: impl Fn(u32, u32) -> u32) -> u16 {
    let chosen = choose(mode.single(mode.flushed(a)), mode.single(mode.flushed(b)));
    mode.format.round(f64::from(f32::from_bits(chosen)), Rounding::Nearest) as u16
}

/// `.xorsign.abs` of `min` and `max`: chooses among the magnitudes, with the product's sign.
pub fn with_product_sign(a: u16, b: u16, choose: impl Fn(u16, u16) -> u16) -> u16 {
    let chosen = choose(a & !SIGN, b & !SIGN);
    if chosen == NAN_16 { chosen } else { chosen | (a ^ b) & SIGN }
}

/// `ex2.approx`
pub fn exponential(a: u16, mode: Mode) -> u16 {
    special(a, mode, unit_exponential)
}

/// `tanh.approx`
pub fn tangent(a: u16, mode: Mode) -> u16 {
    special(a, mode, hyperbolic_tangent)
}

/// The special-function unit on the operand as f32; the result is truncated, but overflows to infinity.
fn special(a: u16, mode: Mode, function: fn(u32) -> u32) -> u16 {
    let value = f32::from_bits(function(mode.single(a)));
    let infinite = mode.format == Format::F16 && value >= 65536.0;
    if infinite { Format::F16.infinity() as u16 } else { mode.format.round(f64::from(value), Rounding::Zero) as u16 }
}

/// A function of halves, on both halves of a register.
pub fn on_halves<const N: usize>(operands: [u32; N], function: impl Fn([u16; N]) -> u16) -> u32 {
    let low = function(operands.map(|bits| bits as u16));
    let high = function(operands.map(|bits| (bits >> 16) as u16));
    u32::from(high) << 16 | u32::from(low)
}
