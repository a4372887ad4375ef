//! f64 approximations by the special-function unit.
//!
//! The unit reads and writes the high word alone: 20 fraction bits go through the same rows, with the same bias, as the 23
//! of an f32, and three more bits of the result are dropped. A NaN whose payload is in the low word is an infinity to it.
//! Functions named `unit_` are the unit itself, with a low word of zero.
//!
//! Compared with an H200: `unit_reciprocal` for all 2^20 high fractions and 262,588 operands of every exponent, without a
//! difference. The reciprocal roots follow the same rule and the sequence that ptxas emits for sm_90; no recorded value
//! stands behind them yet, so the emulator does not execute `rsqrt.approx.f64`.

use super::double::{add, fused_multiply_add, multiply};
use super::format::Rounding;
use super::special::{RCP, RSQ};

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7ff0_0000;
const SMALLEST_NORMAL: i64 = 0x0010_0000;
const HIDDEN: i64 = 0x0010_0000;
/// What the unit gives for a NaN.
const NAN: u32 = 0x7fff_ffff;
/// Fraction bits of an f32 below those of a high word.
const MISSING_BITS: u32 = 3;

fn high(bits: u64) -> u32 {
    (bits >> 32) as u32
}

fn from_high(word: u32) -> u64 {
    u64::from(word) << 32
}

/// Exponent field, and the fraction as an f32 has it.
fn parts(word: u32) -> (i64, u32) {
    (i64::from(word >> 20 & 0x7ff), (word & 0x000f_ffff) << MISSING_BITS)
}

/// Exponent field and significand in [2^20, 2^21], joined.
fn join(field: i64, significand: i64) -> i64 {
    (field << 20) + significand - HIDDEN
}

/// `rcp.approx.ftz.f64`
pub fn unit_reciprocal(a: u64) -> u64 {
    let word = high(a);
    let (field, fraction) = parts(word);
    let magnitude = match field {
        0 => INFINITY,
        0x7ff if fraction != 0 => return from_high(NAN),
        0x7ff => 0,
        _ => match join(2045 - field, RCP.at(fraction) >> (15 + MISSING_BITS)) {
            bits if bits < SMALLEST_NORMAL => 0,
            bits => bits as u32,
        },
    };
    from_high(word & SIGN | magnitude)
}

/// `rsqrt.approx.ftz.f64`
pub fn unit_reciprocal_root(a: u64) -> u64 {
    let word = high(a);
    let (field, fraction) = parts(word);
    let (half, odd) = ((field - 1023) >> 1, ((field - 1023) & 1) as u32);
    from_high(match field {
        0 => word & SIGN | INFINITY,
        0x7ff if fraction != 0 => NAN,
        _ if word & SIGN != 0 => NAN,
        0x7ff => 0,
        _ if odd == 0 && fraction == 0 => join(1023 - half, HIDDEN) as u32,
        _ => join(1022 - half, RSQ.at(odd << 23 | fraction) >> (16 + MISSING_BITS)) as u32,
    })
}

/// `rsqrt.approx.f64`
pub fn reciprocal_root(a: u64) -> u64 {
    const INDEFINITE: u64 = 0xfff8_0000_0000_0000;
    let value = f64::from_bits(a);
    match value {
        _ if value == 0.0 => from_high(high(a) & SIGN | INFINITY),
        _ if value.is_nan() => add(a, a, Rounding::Nearest),
        _ if value < 0.0 => INDEFINITE,
        _ if value == f64::INFINITY => 0,
        _ if value.is_normal() => refined_root(a),
        _ => {
            let scaled = multiply(a, (2f64.powi(54)).to_bits(), Rounding::Nearest);
            multiply(refined_root(scaled), (2f64.powi(27)).to_bits(), Rounding::Nearest)
        }
    }
}

/// One step of third order on the unit's result, for positive normal numbers.
fn refined_root(a: u64) -> u64 {
    let fused = |a, b, c| fused_multiply_add(a, b, c, Rounding::Nearest);
    let product = |a, b| multiply(a, b, Rounding::Nearest);
    let root = unit_reciprocal_root(a);
    let square = product(root, root);
    let error = fused(a, square ^ (1 << 63), 1f64.to_bits());
    fused(fused(error, 0.375f64.to_bits(), 0.5f64.to_bits()), product(root, error), root)
}
