//! Frequent functions of 32-bit words, written so that a loop over lanes becomes vector instructions: no branches, no
//! wide integers. Each is another way to say what the instruction's definition says, and is tested against it.

use crate::numerics::{INFINITY, NAN, SIGN, SMALLEST_NORMAL};

pub const FRACTION: u32 = 0x007f_ffff;
pub const ONE: u32 = 0x3f80_0000;
pub const HIDDEN: u32 = 0x0080_0000;
/// What the unit adds to the small terms of its polynomial.
pub const BIAS: u32 = 0x77e2;

#[inline(always)]
fn float(bits: u32) -> f32 {
    f32::from_bits(bits)
}

#[inline(always)]
fn is_nan(bits: u32) -> bool {
    bits & !SIGN > INFINITY
}

/// The bits of a result: there is one NaN.
#[inline(always)]
fn canonical(value: f32) -> u32 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

#[inline(always)]
fn flush(bits: u32) -> u32 {
    if bits & INFINITY == 0 { bits & SIGN } else { bits }
}

/// `.ftz`, chosen when the kernel is compiled.
#[inline(always)]
fn operand<const FLUSH: bool>(bits: u32) -> u32 {
    if FLUSH { flush(bits) } else { bits }
}

/// A sum in the range of subnormals is exact: to flush it is to round it.
#[inline(always)]
pub fn add<const FLUSH: bool>(a: u32, b: u32) -> u32 {
    operand::<FLUSH>(canonical(float(operand::<FLUSH>(a)) + float(operand::<FLUSH>(b))))
}

/// The product, and whether it may be wrong: with `.ftz` a result is tiny by its value before it is rounded to the grid
/// of subnormals, and whatever that grid rounds up to the smallest normal number is in doubt.
#[inline(always)]
pub fn multiply<const FLUSH: bool>(a: u32, b: u32) -> (u32, bool) {
    flushed::<FLUSH>(float(operand::<FLUSH>(a)) * float(operand::<FLUSH>(b)))
}

#[inline(always)]
pub fn fused_multiply_add<const FLUSH: bool>(a: u32, b: u32, c: u32) -> (u32, bool) {
    let (a, b, c) = (operand::<FLUSH>(a), operand::<FLUSH>(b), operand::<FLUSH>(c));
    flushed::<FLUSH>(float(a).mul_add(float(b), float(c)))
}

/// The quotient, and whether it may be wrong, as for [`multiply`].
#[inline(always)]
pub fn divide<const FLUSH: bool>(a: u32, b: u32) -> (u32, bool) {
    flushed::<FLUSH>(float(operand::<FLUSH>(a)) / float(operand::<FLUSH>(b)))
}

/// `sqrt.rn`. No root is subnormal.
#[inline(always)]
pub fn root<const FLUSH: bool>(a: u32) -> u32 {
    let a = operand::<FLUSH>(a);
    // Known by the operand: optimisers have taken the root of a signalling NaN for a number.
    let negative = a > SIGN;
    if negative | is_nan(a) { NAN } else { float(a).sqrt().to_bits() }
}

#[inline(always)]
fn flushed<const FLUSH: bool>(value: f32) -> (u32, bool) {
    let bits = canonical(value);
    (operand::<FLUSH>(bits), FLUSH && bits & !SIGN == SMALLEST_NORMAL)
}

/// `max`, or `min`: of zeros of both signs the one that is chosen is all that their bits differ in. `KEEP` is `.NaN`.
#[inline(always)]
pub fn extreme<const MAXIMUM: bool, const FLUSH: bool, const KEEP: bool>(a: u32, b: u32) -> u32 {
    let (a, b) = (operand::<FLUSH>(a), operand::<FLUSH>(b));
    let (x, y) = if MAXIMUM { (float(a), float(b)) } else { (float(b), float(a)) };
    let equal = if MAXIMUM { a & b } else { a | b };
    let chosen = if x > y {
        a
    } else if x < y {
        b
    } else {
        equal
    };
    let chosen = if is_nan(a) { b } else { chosen };
    let chosen = if is_nan(b) { a } else { chosen };
    let lost = if KEEP { is_nan(a) | is_nan(b) } else { is_nan(a) & is_nan(b) };
    if lost { NAN } else { chosen }
}

#[inline(always)]
pub fn negate<const FLUSH: bool>(a: u32) -> u32 {
    if is_nan(a) { NAN } else { operand::<FLUSH>(a) ^ SIGN }
}

#[inline(always)]
pub fn absolute<const FLUSH: bool>(a: u32) -> u32 {
    if is_nan(a) { NAN } else { operand::<FLUSH>(a) & !SIGN }
}

#[inline(always)]
pub fn less<const FLUSH: bool>(a: u32, b: u32) -> bool {
    float(operand::<FLUSH>(a)) < float(operand::<FLUSH>(b))
}

#[inline(always)]
pub fn less_or_equal<const FLUSH: bool>(a: u32, b: u32) -> bool {
    float(operand::<FLUSH>(a)) <= float(operand::<FLUSH>(b))
}

#[inline(always)]
pub fn equal<const FLUSH: bool>(a: u32, b: u32) -> bool {
    float(operand::<FLUSH>(a)) == float(operand::<FLUSH>(b))
}

/// `cvt.rn.f16.f32`: the three ranges of the format, each with its own arithmetic, then the choice.
#[inline(always)]
pub fn to_half(a: u32) -> u32 {
    const SUBNORMAL_BELOW: u32 = 113 << 23; // 2^-14
    const INFINITE_FROM: u32 = 143 << 23; // 2^16
    const ALIGNER: u32 = 126 << 23; // 0.5 has its last bit where the smallest half has it.
    let magnitude = a & !SIGN;
    let tiny = (float(magnitude) + float(ALIGNER)).to_bits().wrapping_sub(ALIGNER);
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(0xfff + odd) >> 13;
    let finite = if magnitude < SUBNORMAL_BELOW { tiny } else { normal };
    let rounded = if magnitude >= INFINITE_FROM { 0x7c00 } else { finite };
    if magnitude > INFINITY { 0x7fff } else { rounded | a >> 16 & 0x8000 }
}

/// `cvt.f32.f16`
#[inline(always)]
pub fn from_half(a: u32) -> u32 {
    let (sign, magnitude) = ((a & 0x8000) << 16, a & 0x7fff);
    let scaled = (float(magnitude << 13) * float((112 + 127) << 23)).to_bits();
    let finite = if magnitude == 0x7c00 { INFINITY } else { scaled };
    if magnitude > 0x7c00 { NAN } else { sign | finite }
}

/// `cvt.rn.bf16.f32`
#[inline(always)]
pub fn to_brain16(a: u32) -> u32 {
    let rounded = a.wrapping_add(0x7fff + (a >> 16 & 1)) >> 16;
    if is_nan(a) { 0x7fff } else { rounded }
}

/// A function of 16-bit floats by way of f32, on both halves. Right for one sum or product of halves: f32 has more than
/// twice their bits, so that rounding twice is rounding once.
#[inline(always)]
pub fn on_halves(a: u32, b: u32, function: impl Fn(f32, f32) -> f32) -> u32 {
    let one = |shift: u32| to_half(function(float(from_half(a >> shift)), float(from_half(b >> shift))).to_bits());
    one(16) << 16 | one(0)
}

/// `ex2.approx`: below -126 the unit gets half the operand, and its result is squared; with `.ftz` that is zero.
#[inline(always)]
pub fn scaled_exponent<const FLUSH: bool>(a: u32) -> (u32, bool) {
    let small = !FLUSH && float(a) < -126.0;
    (if small { (float(a) * 0.5).to_bits() } else { a }, small)
}

/// The other end of [`scaled_exponent`].
#[inline(always)]
pub fn unscaled(value: u32, small: bool) -> u32 {
    if small { canonical(float(value) * float(value)) } else { value }
}

/// The fixed-point operand of the unit: its fraction, and its whole part plus the bias of an exponent.
#[inline(always)]
pub fn fixed_point(a: u32) -> (u32, i32) {
    let (field, negative) = (a >> 23 & 255, a & SIGN != 0);
    let significand = if field > 0 { a & FRACTION | HIDDEN } else { 0 };
    let (left, right) = (field.wrapping_sub(127).min(31), 127u32.wrapping_sub(field).min(31));
    let fixed = if field >= 127 { significand << left } else { significand >> right };
    let (whole, rest) = ((fixed >> 23) as i32, fixed & FRACTION);
    let complemented = negative & (rest != 0);
    let whole = if negative { -whole } else { whole } - i32::from(complemented);
    let rest = if complemented { !rest & FRACTION } else { rest };
    (rest, whole + 127)
}

/// The unit's result, from the table's significand.
#[inline(always)]
pub fn joined_power(a: u32, significand: u32, exponent: i32) -> u32 {
    let (field, negative) = (a >> 23 & 255, a & SIGN != 0);
    let joined = ((exponent as u32) << 23).wrapping_add(significand - HIDDEN);
    let bits = if (exponent < 0) | (joined < SMALLEST_NORMAL) { 0 } else { joined.min(INFINITY) };
    let beyond = if negative { 0 } else { INFINITY };
    let bits = if field >= 135 { beyond } else { bits };
    if is_nan(a) { NAN } else { bits }
}

/// The polynomial of a row at a 23-bit fraction, whose low bits have this square: a significand of 24 bits. Products of more than 32 bits are halved, and
/// their lowest bit is added with the small terms.
#[inline(always)]
pub fn interpolated(fraction: u32, square: u32, [value, slope, curvature]: [u32; 3]) -> u32 {
    let x = fraction & 0x1ffff;
    let large = slope.wrapping_mul(x >> 1);
    let small = slope * (x & 1) + curvature.wrapping_mul(square) + BIAS + ((value & 3) << 13);
    (value >> 2) + (large.wrapping_add(small >> 1) >> 14)
}

/// A sum of 64 bits, in words.
#[inline(always)]
pub fn add_pairs(a: [u32; 2], b: [u32; 2]) -> [u32; 2] {
    let low = a[0].wrapping_add(b[0]);
    [low, a[1].wrapping_add(b[1]).wrapping_add(u32::from(low < a[0]))]
}

#[inline(always)]
pub fn product(a: u32, b: u32) -> [u32; 2] {
    [a.wrapping_mul(b), ((u64::from(a) * u64::from(b)) >> 32) as u32]
}

#[inline(always)]
pub fn product_signed(a: u32, b: u32) -> [u32; 2] {
    [a.wrapping_mul(b), ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32]
}

/// `lop3`: the rows of the table that hold.
#[inline(always)]
pub fn logic_of_three(a: u32, b: u32, c: u32, table: u32) -> u32 {
    let row = |index: u32| {
        let choose = |bits: u32, bit: u32| bits ^ (index >> bit & 1).wrapping_sub(1);
        choose(a, 2) & choose(b, 1) & choose(c, 0) & (table >> index & 1).wrapping_neg()
    };
    row(0) | row(1) | row(2) | row(3) | row(4) | row(5) | row(6) | row(7)
}

/// `prmt` in its general form.
#[inline(always)]
pub fn permute(a: u32, b: u32, control: u32) -> u32 {
    let both = u64::from(b) << 32 | u64::from(a);
    let pick = |index: u32| {
        let nibble = control >> (4 * index) & 15;
        let byte = (both >> (8 * (nibble & 7))) as u32 & 0xff;
        let sign = (byte >> 7).wrapping_neg() & 0xff;
        (if nibble & 8 == 0 { byte } else { sign }) << (8 * index)
    };
    pick(0) | pick(1) | pick(2) | pick(3)
}

/// `bfe`: the bits from `position` on, and above their length the sign, or zeros.
#[inline(always)]
pub fn extract<const SIGNED: bool>(a: u32, position: u32, length: u32) -> u32 {
    let (position, length) = (position & 255, length & 255);
    let inside = length.min(32u32.saturating_sub(position));
    let field = if position > 31 { 0 } else { a >> position };
    let known = if inside > 31 { u32::MAX } else { (1 << inside) - 1 };
    let last = (position + length).wrapping_sub(1).min(31);
    let sign = SIGNED && a >> last & 1 == 1;
    let bits = if sign { field & known | !known } else { field & known };
    if length == 0 { 0 } else { bits }
}
