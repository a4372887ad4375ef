//! Conversions between f32, the 16-bit formats and integers, as `cvt` makes them.
//!
//! IEEE 754 with subnormals kept; a NaN becomes the canonical one, but for bf16 to f32, which only moves bits.

use super::format::{Format, Rounding};
use super::{INFINITY, NAN};

/// `cvt.(rn|rz).f16.f32`
pub fn f32_to_f16(bits: u32, rounding: Rounding) -> u16 {
    Format::F16.round(f64::from(f32::from_bits(bits)), rounding) as u16
}

/// `cvt.(rn|rz).bf16.f32`
pub fn f32_to_bf16(bits: u32, rounding: Rounding) -> u16 {
    Format::BF16.round(f64::from(f32::from_bits(bits)), rounding) as u16
}

/// `cvt.(rn|rz).f16x2.f32 d, high, low`: the first source is the high half.
pub fn f32_to_f16x2(high: u32, low: u32, rounding: Rounding) -> u32 {
    u32::from(f32_to_f16(high, rounding)) << 16 | u32::from(f32_to_f16(low, rounding))
}

/// `cvt.(rn|rz).bf16x2.f32 d, high, low`: the first source is the high half.
pub fn f32_to_bf16x2(high: u32, low: u32, rounding: Rounding) -> u32 {
    u32::from(f32_to_bf16(high, rounding)) << 16 | u32::from(f32_to_bf16(low, rounding))
}

/// `cvt.f32.f16`
pub fn f16_to_f32(bits: u16) -> u32 {
    let bits = u32::from(bits);
    let (sign, magnitude) = ((bits & 0x8000) << 16, bits & 0x7fff);
    if magnitude >= Format::F16.infinity() {
        return if magnitude > Format::F16.infinity() { NAN } else { sign | INFINITY };
    }
    // Read as f32 the exponent is too small by 112, the difference of the biases; the product is exact.
    let bias_difference = f32::from_bits((112 + 127) << 23);
    sign | (f32::from_bits(magnitude << 13) * bias_difference).to_bits()
}

/// `cvt.f32.bf16`; a NaN keeps its payload.
pub fn bf16_to_f32(bits: u16) -> u32 {
    u32::from(bits) << 16
}

/// `cvt.(rni|rzi|rmi|rpi).s32.f32`: out of range saturates, NaN becomes 0.
pub fn f32_to_s32(bits: u32, rounding: Rounding) -> i32 {
    to_integer(bits, rounding) as i32
}

/// `cvt.(rni|rzi|rmi|rpi).u32.f32`: out of range saturates, NaN becomes 0.
pub fn f32_to_u32(bits: u32, rounding: Rounding) -> u32 {
    to_integer(bits, rounding) as u32
}

/// `cvt.rn.f32.s32`
pub fn s32_to_f32(value: i32) -> u32 {
    (value as f32).to_bits()
}

/// `cvt.rn.f32.u32`
pub fn u32_to_f32(value: u32) -> u32 {
    (value as f32).to_bits()
}

fn to_integer(bits: u32, rounding: Rounding) -> f32 {
    let value = f32::from_bits(bits);
    match rounding {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}
