//! The special-function unit: tables with quadratic interpolation, and the PTX instructions that stand on it.
//!
//! One evaluator serves every function. The top bits of the fraction choose a table row, the rest is the offset `x`
//! within the segment, and the value is `row[0] << shift + row[1] * x + row[2] * square(x) + bias`, in integers. It is
//! the unit NVIDIA has built since 2006. Subnormal operands are zero to it; the instructions without `.ftz` scale around
//! it, in the sequences that ptxas emits for sm_90. Functions named `unit_` are the unit itself.

use super::arithmetic::{Mode, add, flush, multiply};
use super::format::Rounding;
use super::tables::{
    EXPONENTIAL, HYPERBOLIC_TANGENT, HYPERBOLIC_TANGENT_BINADES, LOGARITHM, RECIPROCAL, RECIPROCAL_ROOT, ROOT, Row,
    SINE,
};
use super::{INFINITY, NAN, SIGN, SMALLEST_NORMAL};

const FRACTION: u32 = 0x007f_ffff;
const HIDDEN: i64 = 0x0080_0000;
const ONE: u32 = 0x3f80_0000;
const TWO_POW_24: u32 = 0x4b80_0000;

/// How a function reads its table.
pub(super) struct Interpolation {
    rows: &'static [Row],
    /// Fraction bits of the operand below those that choose the row.
    offset_bits: u32,
    shift: u32,
    bias: i64,
}

#[rustfmt::skip] // One row per line.
mod interpolations {
    use super::*;
    pub const EX2: Interpolation = Interpolation { rows: &EXPONENTIAL,     offset_bits: 17, shift: 13, bias: 0x77e2 };
    pub const LG2: Interpolation = Interpolation { rows: &LOGARITHM,       offset_bits: 17, shift: 12, bias: 0x3345 };
    pub const RCP: Interpolation = Interpolation { rows: &RECIPROCAL,      offset_bits: 16, shift: 13, bias: 0x47e7 };
    pub const RSQ: Interpolation = Interpolation { rows: &RECIPROCAL_ROOT, offset_bits: 17, shift: 14, bias: 0x7fff };
    pub const SQRT: Interpolation = Interpolation { rows: &ROOT,           offset_bits: 17, shift: 15, bias: 0xffff };
    pub const SIN: Interpolation = Interpolation { rows: &SINE,            offset_bits: 17, shift: 11, bias: 0 };
    pub const TANH: Interpolation = Interpolation { rows: &HYPERBOLIC_TANGENT, offset_bits: 17, shift: 15, bias: 0 };
}
use interpolations::{EX2, LG2, SIN, SQRT, TANH};
pub(super) use interpolations::{RCP, RSQ};

impl Interpolation {
    /// `fraction` is the 23-bit fraction, with further bits of the row's index above it.
    pub(super) fn at(&self, fraction: u32) -> i64 {
        let [value, slope, curvature] = self.rows[(fraction >> self.offset_bits) as usize].map(i64::from);
        let offset = fraction & ((1 << self.offset_bits) - 1);
        let square = truncated_square(offset << (17 - self.offset_bits));
        (value << self.shift) + slope * i64::from(offset) + curvature * square + self.bias
    }
}

/// About `x^2 / 2^19` for 17 bits: the multiplier array of the unit drops the low bits of every partial product.
fn truncated_square(x: u32) -> i64 {
    let partial = |bit: u32| if x >> bit & 1 == 1 { x >> (18 - bit) } else { 0 };
    i64::from((0..17).map(partial).sum::<u32>() >> 1)
}

/// Exponent field and fraction.
fn parts(bits: u32) -> (i64, u32) {
    (i64::from(bits >> 23 & 255), bits & FRACTION)
}

fn is_nan(bits: u32) -> bool {
    bits & !SIGN > INFINITY
}

/// Exponent field and significand in [2^23, 2^24], joined; a carry out of the significand raises the exponent.
fn join(field: i64, significand: i64) -> i64 {
    (field << 23) + significand - HIDDEN
}

/// `ex2.approx.ftz.f32`
pub fn unit_exponential(a: u32) -> u32 {
    let ((field, fraction), negative) = (parts(a), a & SIGN != 0);
    if is_nan(a) {
        return NAN;
    }
    if field >= 135 {
        return if negative { 0 } else { INFINITY };
    }
    let significand = if field > 0 { u64::from(fraction) | HIDDEN as u64 } else { 0 };
    let fixed = if field >= 127 { significand << (field - 127) } else { significand >> (127 - field).min(40) };
    let (mut whole, mut rest) = ((fixed >> 23) as i64, fixed as u32 & FRACTION);
    if negative {
        // The unit complements the fraction instead of negating it: 2^-23 too low wherever there is one.
        whole = if rest != 0 { -whole - 1 } else { -whole };
        rest = if rest != 0 { !rest & FRACTION } else { 0 };
    }
    match join(whole + 127, EX2.at(rest) >> 15) {
        bits if bits < i64::from(SMALLEST_NORMAL) => 0,
        bits => bits.min(i64::from(INFINITY)) as u32,
    }
}

/// `lg2.approx.ftz.f32`
pub fn unit_logarithm(a: u32) -> u32 {
    let (field, fraction) = parts(a);
    match field {
        _ if is_nan(a) => return NAN,
        0 => return SIGN | INFINITY,
        _ if a & SIGN != 0 => return NAN,
        255 => return INFINITY,
        _ if a == ONE => return 0,
        _ => {}
    }
    // 36 fraction bits.
    let fixed = (LG2.at(fraction) >> 2) + ((field - 127) << 36);
    let (sign, magnitude) = if fixed < 0 { (SIGN, !fixed) } else { (0, fixed) };
    match magnitude {
        0 => sign,
        _ => sign | truncated(magnitude, 36),
    }
}

/// A positive fixed-point number as f32 bits, truncated.
fn truncated(fixed: i64, fraction_bits: i64) -> u32 {
    let top = i64::from(fixed.ilog2());
    let significand = if top >= 23 { fixed >> (top - 23) } else { fixed << (23 - top) };
    join(top - fraction_bits + 127, significand) as u32
}

/// `rcp.approx.ftz.f32`
pub fn unit_reciprocal(a: u32) -> u32 {
    let (field, fraction) = parts(a);
    let magnitude = match field {
        _ if is_nan(a) => return NAN,
        0 => INFINITY,
        255 => 0,
        _ => match join(253 - field, RCP.at(fraction) >> 15) {
            bits if bits < i64::from(SMALLEST_NORMAL) => 0,
            bits => bits as u32,
        },
    };
    a & SIGN | magnitude
}

/// `rsqrt.approx.ftz.f32`
pub fn unit_reciprocal_root(a: u32) -> u32 {
    let (field, fraction) = parts(a);
    let (half, odd) = halved(field);
    match field {
        _ if is_nan(a) => NAN,
        0 => a & SIGN | INFINITY,
        _ if a & SIGN != 0 => NAN,
        255 => 0,
        _ if odd == 0 && fraction == 0 => join(127 - half, HIDDEN) as u32,
        _ => join(126 - half, RSQ.at(odd << 23 | fraction) >> 16) as u32,
    }
}

/// `sqrt.approx.ftz.f32`
pub fn unit_root(a: u32) -> u32 {
    let (field, fraction) = parts(a);
    let (half, odd) = halved(field);
    match field {
        _ if is_nan(a) => NAN,
        0 => a & SIGN,
        _ if a & SIGN != 0 => NAN,
        255 => INFINITY,
        _ => join(127 + half, SQRT.at(odd << 23 | fraction) >> 17) as u32,
    }
}

/// The argument is in turns. Quarters of a turn fold onto the first one.
fn unit_wave(a: u32, first_quarter: u64) -> u32 {
    let (field, fraction) = parts(a);
    if field == 255 {
        return NAN;
    }
    let significand = if field > 0 { u64::from(fraction) | HIDDEN as u64 } else { 0 };
    // Quarters of a turn with 23 fraction bits. Whole turns beyond 64 bits do not count.
    let fixed = match field - 125 {
        by if by >= 40 => 0,
        by if by >= 0 => significand << by,
        by => significand >> (-by).min(40),
    };
    let quarter = (fixed >> 23) + first_quarter;
    let rest = fixed as u32 & FRACTION;
    let rest = if quarter & 1 == 1 { !rest & FRACTION } else { rest };
    let sign = if first_quarter == 0 { a & SIGN } else { 0 } ^ ((quarter as u32 >> 1 & 1) << 31);
    match SIN.at(rest) {
        0 => sign,
        value => sign | truncated(value, 37),
    }
}

/// `sin.approx{.ftz}.f32`
pub fn sine(a: u32) -> u32 {
    unit_wave(turns(a), 0)
}

/// `cos.approx{.ftz}.f32`
pub fn cosine(a: u32) -> u32 {
    unit_wave(turns(a), 1)
}

/// Radians to turns, toward zero.
fn turns(a: u32) -> u32 {
    const TURNS_PER_RADIAN: u32 = 0x3e22_f983;
    multiply(a, TURNS_PER_RADIAN, Mode { rounding: Rounding::Zero, flush: false })
}

/// `tanh.approx.f32`; the only function of the unit that sees subnormals.
pub fn hyperbolic_tangent(a: u32) -> u32 {
    const FIRST_BINADE: i64 = 119;
    let (field, fraction) = parts(a);
    if is_nan(a) {
        return NAN;
    }
    if field < FIRST_BINADE {
        return a;
    }
    let Some((first, index_bits)) = HYPERBOLIC_TANGENT_BINADES.get((field - FIRST_BINADE) as usize) else {
        return a & SIGN | ONE;
    };
    // Rows of a binade may be longer than 2^17 steps of the fraction; the offset drops what is below.
    let position = (first << 17) + (fraction >> (6 - index_bits));
    a & SIGN | truncated(TANH.at(position), 39)
}

/// The exponent as `2 * half + odd`.
fn halved(field: i64) -> (i64, u32) {
    ((field - 127) >> 1, ((field - 127) & 1) as u32)
}

fn product(a: u32, b: u32) -> u32 {
    multiply(a, b, Mode::NEAREST)
}

fn is_subnormal_or_zero(a: u32) -> bool {
    a & !SIGN < SMALLEST_NORMAL
}

/// Above 2^126 the reciprocal would be subnormal.
fn is_huge(a: u32) -> bool {
    let limit = 253 << 23;
    a & !SIGN > limit && !is_nan(a)
}

/// `ex2.approx.f32`
pub fn exponential(a: u32) -> u32 {
    if f32::from_bits(a) < -126.0 {
        let half = unit_exponential(product(a, 0.5f32.to_bits()));
        return product(half, half);
    }
    unit_exponential(a)
}

/// `lg2.approx.f32`
pub fn logarithm(a: u32) -> u32 {
    if is_subnormal_or_zero(a) {
        return add(unit_logarithm(product(a, TWO_POW_24)), (-24.0f32).to_bits(), Mode::NEAREST);
    }
    unit_logarithm(a)
}

/// `rcp.approx.f32`
pub fn reciprocal(a: u32) -> u32 {
    let scale = scale_of_divisor(a);
    product(scale, unit_reciprocal(product(a, scale)))
}

/// Brings a divisor to where neither it nor its reciprocal is subnormal.
fn scale_of_divisor(a: u32) -> u32 {
    match a {
        _ if is_subnormal_or_zero(a) => TWO_POW_24,
        _ if is_huge(a) => 0.25f32.to_bits(),
        _ => ONE,
    }
}

/// `rsqrt.approx.f32`
pub fn reciprocal_root(a: u32) -> u32 {
    if is_subnormal_or_zero(a) {
        return product(unit_reciprocal_root(product(a, TWO_POW_24)), 4096f32.to_bits());
    }
    unit_reciprocal_root(a)
}

/// `sqrt.approx.f32`
pub fn root(a: u32) -> u32 {
    if is_subnormal_or_zero(a) {
        return product(unit_root(product(a, TWO_POW_24)), (1.0f32 / 4096.0).to_bits());
    }
    unit_root(a)
}

/// `div.full.f32`
pub fn divide_full(a: u32, b: u32) -> u32 {
    let scale = scale_of_divisor(b);
    product(unit_reciprocal(product(b, scale)), product(a, scale))
}

/// `div.approx.f32`
pub fn divide(a: u32, b: u32) -> u32 {
    let scale = if is_subnormal_or_zero(b) { TWO_POW_24 } else { ONE };
    product(unit_reciprocal(product(b, scale)), product(a, scale))
}

/// `div.full.ftz.f32`
pub fn divide_full_flush(a: u32, b: u32) -> u32 {
    let scale = if is_huge(b) { 0.25f32.to_bits() } else { ONE };
    let scaled = |bits| multiply(bits, scale, Mode::NEAREST_FLUSH);
    multiply(unit_reciprocal(scaled(b)), scaled(a), Mode::NEAREST_FLUSH)
}

/// `div.approx.ftz.f32`
pub fn divide_flush(a: u32, b: u32) -> u32 {
    multiply(flush(a), unit_reciprocal(b), Mode::NEAREST_FLUSH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recorded sweeps see every constant: one off, and some result of theirs changes.
    #[test]
    fn a_bias_off_by_one_changes_results() {
        for (right, dropped_bits) in [(EX2, 15), (LG2, 2), (RCP, 15), (RSQ, 16), (SQRT, 17)] {
            for change in [-1, 1] {
                let wrong = Interpolation { bias: right.bias + change, ..right };
                let differs = |fraction| right.at(fraction) >> dropped_bits != wrong.at(fraction) >> dropped_bits;
                let fractions = (0..1u32 << 20).map(|step| step.wrapping_mul(4093) & FRACTION);
                assert!(fractions.filter(|fraction| differs(*fraction)).count() > 0, "bias {:#x}", wrong.bias);
            }
        }
    }
}
