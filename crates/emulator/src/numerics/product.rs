//! Matrix products of a warp, one rule per instruction, on top of the fused sums of the tensor cores.
//!
//! sm_90 has no fp8 in `mma.sync`, no 4-bit integers and no products of four halves: the assembler writes other
//! instructions for them, and the rules here are what those compute.

use super::arithmetic::{self, Mode};
use super::convert::{f16_to_f32, f32_to_f16};
use super::double;
use super::format::{Class, Element, Format, Rounding};
use super::tensor_core::{Rule, Shape, multiply};

/// How the elements of a product are made from rows and columns of 32-bit elements at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// Fused sums, one after the other.
    Fused(Rule),
    /// The same of two formats: the rule's, or one with fewer fraction bits.
    Mixed { left: Format, right: Format, sum: Rule },
    /// Widened to f16; two fused sums, over depths that are 0 or 1 and 2 or 3 modulo 4, of which the second continues
    /// the first; then added to the accumulator.
    Float8 { left: Format, right: Format, sum: Rule },
    /// Exact; what does not fit 32 bits wraps, or saturates.
    Integer { left: Digit, right: Digit, saturate: bool },
    /// Ones counted in `a & b`, or in `a ^ b`.
    Bits { exclusive: bool },
    /// Four halves by four, in f32 instructions; the accumulator is f32 or f16.
    Quad { accumulator: Format },
}

/// An integer of 4 or 8 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digit {
    pub bits: u32,
    pub signed: bool,
}

impl Digit {
    fn value(self, element: u32) -> i64 {
        let top = element << (32 - self.bits);
        i64::from(if self.signed { top as i32 >> (32 - self.bits) } else { (top >> (32 - self.bits)) as i32 })
    }
}

impl Arithmetic {
    /// `c += a * b`; `a` is row-major, `b` column-major, `c` row-major.
    pub fn multiply(&self, shape: Shape, a: &[u32], b: &[u32], c: &mut [u32]) {
        match *self {
            Arithmetic::Fused(rule) => multiply(&rule, shape, a, b, c),
            Arithmetic::Mixed { left, right, sum } => {
                mixed(sum, shape, [&elements(left, sum, a), &elements(right, sum, b)], c)
            }
            Arithmetic::Float8 { left, right, sum } => float8(sum, shape, [&halves(left, a), &halves(right, b)], c),
            Arithmetic::Integer { left, right, saturate } => each(shape, a, b, c, |a, b, c| {
                let products = a.iter().zip(b).map(|(a, b)| left.value(*a) * right.value(*b));
                let sum = i64::from(c as i32) + products.sum::<i64>();
                if saturate { sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32 } else { sum as u32 }
            }),
            Arithmetic::Bits { exclusive } => each(shape, a, b, c, |a, b, c| {
                let ones = a.iter().zip(b).filter(|(a, b)| if exclusive { a != b } else { **a & **b == 1 }).count();
                c.wrapping_add(ones as u32)
            }),
            Arithmetic::Quad { accumulator: Format::F16 } => each(shape, a, b, c, quad_into_f16),
            Arithmetic::Quad { .. } => each(shape, a, b, c, quad_into_f32),
        }
    }
}

/// Every element of the product from its row, its column and its old value.
fn each<T: Copy>(shape: Shape, a: &[T], b: &[T], c: &mut [T], element: impl Fn(&[T], &[T], T) -> T) {
    for (place, c) in c.iter_mut().enumerate() {
        let row = &a[place / shape.columns * shape.depth..][..shape.depth];
        let column = &b[place % shape.columns * shape.depth..][..shape.depth];
        *c = element(row, column, *c);
    }
}

/// `mma` of f64: a chain of fused multiply-adds in the order of the depth.
pub fn multiply_double(rounding: Rounding, shape: Shape, a: &[u64], b: &[u64], c: &mut [u64]) {
    each(shape, a, b, c, |a, b, c| {
        a.iter().zip(b).fold(c, |sum, (a, b)| double::fused_multiply_add(*a, *b, sum, rounding))
    });
}

fn mixed(sum: Rule, shape: Shape, [a, b]: [&[Element]; 2], c: &mut [u32]) {
    for (place, c) in c.iter_mut().enumerate() {
        let row = &a[place / shape.columns * shape.depth..][..shape.depth];
        let column = &b[place % shape.columns * shape.depth..][..shape.depth];
        for (a, b) in row.chunks_exact(sum.length).zip(column.chunks_exact(sum.length)) {
            *c = sum.dot(a, b, *c);
        }
    }
}

/// With as many fraction bits as the rule expects. What counts is that the exponents stay, also those of subnormals.
fn elements(format: Format, rule: Rule, bits: &[u32]) -> Vec<Element> {
    let more = rule.operand.fraction_bits - format.fraction_bits;
    let widened = bits.iter().map(|bits| format.decode(*bits));
    widened.map(|element| Element { significand: element.significand << more, ..element }).collect()
}

fn float8(sum: Rule, shape: Shape, operands: [&[u32]; 2], c: &mut [u32]) {
    let half = Shape { depth: shape.depth / 2, ..shape };
    let mut products = vec![0; c.len()];
    for first in [0, 2] {
        let part =
            |all: &[u32]| -> Vec<u32> { all.chunks_exact(4).flat_map(|four| [four[first], four[first + 1]]).collect() };
        multiply(&sum, half, &part(operands[0]), &part(operands[1]), &mut products);
    }
    for (c, product) in c.iter_mut().zip(products) {
        *c = match sum.accumulator {
            Format::F16 => add_f16(*c, product),
            _ => arithmetic::add(*c, product, Mode::NEAREST),
        };
    }
}

fn add_f16(a: u32, b: u32) -> u32 {
    let value = |bits: u32| f64::from(f32::from_bits(f16_to_f32(bits as u16)));
    Format::F16.round(value(a) + value(b), Rounding::Nearest)
}

fn halves(format: Format, elements: &[u32]) -> Vec<u32> {
    elements.iter().map(|bits| widen(format, *bits)).collect()
}

/// fp8 as f16, which holds every one of them.
fn widen(format: Format, bits: u32) -> u32 {
    let element = format.decode(bits);
    let sign = if element.negative { Format::F16.sign() } else { 0 };
    let unit = f64::from(element.exponent - format.fraction_bits as i32).exp2();
    match element.class {
        Class::NotANumber => Format::F16.nan(),
        Class::Infinite => sign | Format::F16.infinity(),
        Class::Finite => sign | Format::F16.round(f64::from(element.significand) * unit, Rounding::Nearest),
    }
}

fn fused_multiply_add(a: u32, b: u32, c: u32) -> u32 {
    arithmetic::fused_multiply_add(f16_to_f32(a as u16), f16_to_f32(b as u16), c, Mode::NEAREST)
}

/// A chain from zero, then the accumulator.
fn quad_into_f32(a: &[u32], b: &[u32], c: u32) -> u32 {
    let sum = a.iter().zip(b).fold(0, |sum, (a, b)| fused_multiply_add(*a, *b, sum));
    arithmetic::add(c, sum, Mode::NEAREST)
}

/// Two sums of two products, added to the accumulator in turn.
fn quad_into_f16(a: &[u32], b: &[u32], c: u32) -> u32 {
    let wide = |bits: u32| f16_to_f32(bits as u16);
    let sum = a.chunks(2).zip(b.chunks(2)).fold(wide(c), |sum, (a, b)| {
        let first = arithmetic::multiply(wide(a[0]), wide(b[0]), Mode::NEAREST);
        arithmetic::add(sum, fused_multiply_add(a[1], b[1], first), Mode::NEAREST)
    });
    u32::from(f32_to_f16(sum, Rounding::Nearest))
}
