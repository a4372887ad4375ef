//! Conversions between f32, the 16-bit formats and integers, as `cvt` makes them.
//!
//! IEEE 754 with subnormals kept; a NaN becomes the canonical one, but for bf16 to f32, which only moves bits.

use super::arithmetic::Mode;
use super::format::{Class, Format, Rounding};
use super::{INFINITY, NAN, NAN_16, SIGN};

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

/// An integer of up to 64 bits in f64, rounded to odd: good for any further rounding to f32 or narrower.
pub fn integer_to_odd(value: i128) -> f64 {
    const ROOM: u32 = 11;
    let magnitude = value.unsigned_abs() as u64;
    let lost = magnitude & ((1 << ROOM) - 1) != 0;
    let result = match magnitude >> 53 {
        0 => magnitude as f64,
        _ => (magnitude >> ROOM | u64::from(lost)) as f64 * f64::from(1u32 << ROOM),
    };
    if value < 0 { -result } else { result }
}

/// Rounds to an integer, as a float.
pub fn to_integral(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

/// `cvt.f64.f32`; a NaN keeps its payload and becomes quiet.
pub fn f32_to_f64(bits: u32) -> u64 {
    const QUIET: u64 = 1 << 51;
    let value = f32::from_bits(bits);
    if value.is_nan() {
        let sign = u64::from(bits >> 31) << 63;
        return sign | 0x7ff << 52 | QUIET | u64::from(bits & 0x007f_ffff) << 29;
    }
    f64::from(value).to_bits()
}

/// `cvt.rnd{.ftz}.f32.f64`; a NaN keeps its sign and the upper part of its payload.
pub fn f64_to_f32(bits: u64, mode: Mode) -> u32 {
    match f64::from_bits(bits).is_nan() {
        true => shortened_nan(bits, 32, 23) as u32,
        false => mode.result(f64::from_bits(bits)),
    }
}

/// The NaN of an f64 in a format of fewer bits: sign, a quiet NaN, and what fits of the payload.
pub fn shortened_nan(bits: u64, format_bits: u32, fraction_bits: u32) -> u64 {
    let exponent = (1u64 << (format_bits - 1)) - (1 << fraction_bits);
    let payload = (bits & ((1 << 52) - 1)) >> (52 - fraction_bits);
    (bits >> 63) << (format_bits - 1) | exponent | payload | 1 << (fraction_bits - 1)
}

/// `cvt.rna{.satfinite}.tf32.f32`: half away from zero. Without `.satfinite` the bits above are all that counts, so a NaN
/// whose payload lies below becomes infinity.
pub fn f32_to_tf32_away(bits: u32, finite: bool) -> u32 {
    const KEPT: u32 = 0xffff_e000;
    const LARGEST: u32 = 0x7f7f_e000;
    let magnitude = bits & !SIGN;
    let rounded = if magnitude < INFINITY { bits.wrapping_add(0x1000) & KEPT } else { bits & KEPT };
    match finite {
        true if magnitude > INFINITY => NAN,
        true => bits & SIGN | (rounded & !SIGN).min(LARGEST),
        false => rounded,
    }
}

/// `cvt.(rn|rz){.relu}.tf32.f32`
pub fn f32_to_tf32(bits: u32, rounding: Rounding) -> u32 {
    const NAN_TF32: u32 = 0x7fff_e000;
    let value = f32::from_bits(bits);
    if value.is_nan() { NAN_TF32 } else { Format::TF32.round(f64::from(value), rounding) }
}

/// `cvt.rn.satfinite.(e4m3x2|e5m2x2)`, one half: what is too large, infinity as well, becomes the largest number.
pub fn f32_to_8(bits: u32, format: Format) -> u8 {
    let value = f32::from_bits(bits);
    let largest = if format.finite { format.nan() - 1 } else { format.infinity() - 1 };
    let magnitude = match value {
        value if value.is_nan() => return 0x7f,
        value if value.is_infinite() => largest,
        value => format.round(f64::from(value.abs()), Rounding::Nearest).min(largest),
    };
    (magnitude | bits >> 31 << 7) as u8
}

/// `cvt.rn.f16x2.(e4m3x2|e5m2x2)`, one half: exact.
pub fn f8_to_f16(bits: u8, format: Format) -> u16 {
    let element = format.decode(u32::from(bits));
    let sign = u16::from(bits >> 7) << 15;
    match element.class {
        Class::NotANumber => NAN_16,
        Class::Infinite => sign | Format::F16.infinity() as u16,
        Class::Finite => {
            let scale = f64::from(element.exponent - format.fraction_bits as i32).exp2();
            sign | Format::F16.round(f64::from(element.significand) * scale, Rounding::Nearest) as u16
        }
    }
}

/// The integers of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integers {
    pub bits: u32,
    pub signed: bool,
}

impl Integers {
    pub fn clamp(self, value: i128) -> i128 {
        match self.signed {
            true => value.clamp(-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => value.clamp(0, (1 << self.bits) - 1),
        }
    }
}

/// `cvt.(rni|rzi|rmi|rpi)` to integers: out of range saturates. NaN becomes zero, or the top bit alone where f64 or
/// integers of 64 bits take part (`wide`).
pub fn to_integer(value: f64, rounding: Rounding, integers: Integers, wide: bool) -> i128 {
    match value {
        value if !value.is_nan() => integers.clamp(to_integral(value, rounding) as i128),
        _ if !wide => 0,
        _ if integers.signed => -(1 << (integers.bits - 1)),
        _ => 1 << (integers.bits - 1),
    }
}

/// `.relu` of a converted f32: negative numbers and -0 become +0, a NaN stays.
pub fn relu(bits: u32) -> u32 {
    if bits & !SIGN <= INFINITY && bits & SIGN != 0 { 0 } else { bits }
}
