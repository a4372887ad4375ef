//! The forms, with what the emulator computes for each.

use super::{Difference, Tally};
use emulator::numerics::arithmetic::flush;
use emulator::numerics::half::{self, Mode};
use emulator::numerics::special::*;
use emulator::numerics::special_double;

/// One instruction form.
pub struct Form {
    pub name: &'static str,
    pub function: Function,
}

/// On bits, by the width of operand and result.
#[derive(Clone, Copy)]
pub enum Function {
    Half(fn(u16) -> u16),
    Single(fn(u32) -> u32),
    Double(fn(u64) -> u64),
}

#[rustfmt::skip] // One row per line.
pub fn forms() -> Vec<Form> {
    use Function::*;
    let form = |name, function| Form { name, function };
    vec![
        form("rcp.approx.f32",       Single(reciprocal)),
        form("rcp.approx.ftz.f32",   Single(unit_reciprocal)),
        form("rsqrt.approx.f32",     Single(reciprocal_root)),
        form("rsqrt.approx.ftz.f32", Single(unit_reciprocal_root)),
        form("sqrt.approx.f32",      Single(root)),
        form("sqrt.approx.ftz.f32",  Single(unit_root)),
        form("ex2.approx.f32",       Single(exponential)),
        form("ex2.approx.ftz.f32",   Single(unit_exponential)),
        form("lg2.approx.f32",       Single(logarithm)),
        form("lg2.approx.ftz.f32",   Single(unit_logarithm)),
        form("sin.approx.f32",       Single(sine)),
        form("sin.approx.ftz.f32",   Single(|a| sine(flush(a)))),
        form("cos.approx.f32",       Single(cosine)),
        form("cos.approx.ftz.f32",   Single(|a| cosine(flush(a)))),
        form("tanh.approx.f32",      Single(hyperbolic_tangent)),
        form("ex2.approx.f16",       Half(|a| half::exponential(a, Mode::F16))),
        form("ex2.approx.ftz.bf16",  Half(|a| half::exponential(a, Mode { flush: true, ..Mode::BF16 }))),
        form("tanh.approx.f16",      Half(|a| half::tangent(a, Mode::F16))),
        form("tanh.approx.bf16",     Half(|a| half::tangent(a, Mode::BF16))),
        form("rcp.approx.ftz.f64",   Double(special_double::unit_reciprocal)),
        form("rsqrt.approx.f64",     Double(special_double::reciprocal_root)),
        form("rsqrt.approx.ftz.f64", Double(special_double::unit_reciprocal_root)),
    ]
}

impl Form {
    /// How many operands there are to compare.
    pub fn operands(&self) -> u64 {
        match self.function {
            Function::Half(_) => 1 << 16,
            Function::Single(_) => 1 << 32,
            Function::Double(_) => 1 << 22,
        }
    }

    /// Of an operand or a result.
    pub fn bytes(&self) -> usize {
        match self.function {
            Function::Half(_) => 2,
            Function::Single(_) => 4,
            Function::Double(_) => 8,
        }
    }

    /// Compares the results for the operands from number `first` on.
    pub fn tally(&self, first: u64, results: &[u8]) -> Tally {
        match self.function {
            Function::Half(function) => {
                tally(first, results, |bytes| u16::from_le_bytes(bytes).into(), |a| function(a as u16).into(), |n| n)
            }
            Function::Single(function) => {
                tally(first, results, |bytes| u32::from_le_bytes(bytes).into(), |a| function(a as u32).into(), |n| n)
            }
            Function::Double(function) => tally(first, results, u64::from_le_bytes, function, double_operand),
        }
    }
}

fn tally<const BYTES: usize>(
    first: u64,
    results: &[u8],
    read: impl Fn([u8; BYTES]) -> u64,
    function: impl Fn(u64) -> u64,
    operand: impl Fn(u64) -> u64,
) -> Tally {
    let mut tally = Tally::default();
    for (number, bytes) in (first..).zip(results.as_chunks::<BYTES>().0) {
        let operand = operand(number);
        let (expected, found) = (function(operand), read(*bytes));
        if expected != found {
            tally = tally.and(Tally { count: 1, first: Some(Difference { operand, expected, found }) });
        }
    }
    tally
}

/// Every high fraction from 0.5 to 2; then, for every sign and exponent, 512 fractions, those with few bits first.
pub fn double_operand(number: u64) -> u64 {
    const FRACTION: u64 = (1 << 52) - 1;
    if number < 1 << 21 {
        return (1022 << 52) + (number << 32);
    }
    let (sign_and_field, step) = (number & 0xfff, number >> 12 & 0x1ff);
    let fraction = match step {
        0 => 0,
        1..=52 => 1 << (step - 1),
        53..=104 => FRACTION >> (step - 53),
        _ => number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12,
    };
    sign_and_field << 52 | fraction
}
