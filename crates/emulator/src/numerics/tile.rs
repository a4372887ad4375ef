//! Many dot products at once: the hot spot of the emulator.
//!
//! Operands are decoded once, and the terms of a sum are computed side by side in floating point, which compilers turn
//! into vector instructions, with the same result as [`Rule::dot`]. A product of two operands is exact in f32: it has 22 bits at most. Aligning it means
//! truncating it to a multiple of a unit, `2^(largest - aligned_bits)`, of which it has fewer than 2^27. Near
//! `3 * 2^51` units the numbers of f64 are the multiples of the unit, and neighbours in their bits: adding that rounds to
//! the nearest multiple, and the bits count them. To truncate, nearly half a unit is first taken from the magnitude: what
//! follows the point, at most 1 - 2^-22, then never reaches one half, and f64 holds the difference exactly. (A cast would
//! truncate as well, but it saturates, and compilers keep that out of vector registers.)
//!
//! What could leave the range of f32 takes the plain way:
//! - an operand that is infinite, NaN or at least 2^63: its products may overflow;
//! - an accumulator that is infinite or NaN;
//! - a largest exponent below -100. Above it, a product that underflows, or is rounded because it is subnormal, is below
//!   half a unit, and truncates to 0 as its exact value does.

use super::format::{Element, Format, Rounding};
use super::tensor_core::Rule;

/// Extent of a matrix product: `rows` x `depth` times `depth` x `columns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
}

/// Exponent of a zero: below every floor, also when it is added to the exponent of a factor.
const NO_EXPONENT: i16 = -8000;
/// Operands must stay below 2 to this power, so that no product overflows.
const OPERAND_LIMIT: i32 = 63;
const SMALLEST_LARGEST_EXPONENT: i16 = -100;
/// In units: where the numbers of f64 are the integers.
const INTEGERS: f64 = (3u64 << 51) as f64;
/// In units; with it a difference keeps 24 bits after the point and 27 before.
const NEARLY_HALF: f64 = 0.5 - 1.0 / (1 << 24) as f64;

/// `c += a * b` on the tensor cores: a chain of fused sums of [`Rule::length`] products each.
///
/// `a` is row-major, `b` column-major (the `depth` elements of a column lie together), `c` row-major accumulator bits.
/// Panics unless the slices have the extent of `shape` and its depth is a multiple of the rule's length.
pub fn multiply<T: Copy + Into<u32>>(rule: &Rule, shape: Shape, a: &[T], b: &[T], c: &mut [u32]) {
    let Shape { rows, columns, depth } = shape;
    assert!(depth.is_multiple_of(rule.length), "depth {depth} is not a multiple of {}", rule.length);
    assert_eq!((a.len(), b.len(), c.len()), (rows * depth, columns * depth, rows * columns), "extent of a, b, c");
    if c.is_empty() || depth == 0 {
        return;
    }
    match rule.length {
        4 => multiply_blocks::<4, T>(rule, shape, a, b, c),
        8 => multiply_blocks::<8, T>(rule, shape, a, b, c),
        16 => multiply_blocks::<16, T>(rule, shape, a, b, c),
        32 => multiply_blocks::<32, T>(rule, shape, a, b, c),
        _ => multiply_plainly(rule, shape, a, b, c),
    }
}

/// With the length known to the compiler.
fn multiply_blocks<const LENGTH: usize, T: Copy + Into<u32>>(
    rule: &Rule,
    shape: Shape,
    a: &[T],
    b: &[T],
    c: &mut [u32],
) {
    let (Some(left), Some(right)) = (decode::<LENGTH, T>(rule.operand, a), decode(rule.operand, b)) else {
        return multiply_plainly(rule, shape, a, b, c);
    };
    let blocks = shape.depth / LENGTH;
    for (row, c) in c.chunks_exact_mut(shape.columns).enumerate() {
        for (column, c) in c.iter_mut().enumerate() {
            for block in 0..blocks {
                let (at_left, at_right) = (row * blocks + block, column * blocks + block);
                *c = left[at_left].dot(&right[at_right], rule, *c).unwrap_or_else(|| {
                    dot_of_bits(rule, &a[at_left * LENGTH..][..LENGTH], &b[at_right * LENGTH..][..LENGTH], *c)
                });
            }
        }
    }
}

/// The same by [`Rule::dot`] alone.
fn multiply_plainly<T: Copy + Into<u32>>(rule: &Rule, shape: Shape, a: &[T], b: &[T], c: &mut [u32]) {
    let (a, b) = (elements(rule, a), elements(rule, b));
    for (place, c) in c.iter_mut().enumerate() {
        let row = &a[place / shape.columns * shape.depth..][..shape.depth];
        let column = &b[place % shape.columns * shape.depth..][..shape.depth];
        for (a, b) in row.chunks_exact(rule.length).zip(column.chunks_exact(rule.length)) {
            *c = rule.dot(a, b, *c);
        }
    }
}

#[cold]
fn dot_of_bits<T: Copy + Into<u32>>(rule: &Rule, a: &[T], b: &[T], c: u32) -> u32 {
    rule.dot(&elements(rule, a), &elements(rule, b), c)
}

fn elements<T: Copy + Into<u32>>(rule: &Rule, bits: &[T]) -> Vec<Element> {
    bits.iter().map(|&bits| rule.operand.decode(bits.into())).collect()
}

/// Decoded operands of one sum, each finite and below the limit.
struct Block<const LENGTH: usize> {
    values: [f32; LENGTH],
    exponents: [i16; LENGTH],
}

/// Nothing if an element is not finite, or too large.
fn decode<const LENGTH: usize, T: Copy + Into<u32>>(format: Format, bits: &[T]) -> Option<Vec<Block<LENGTH>>> {
    let largest = bits.iter().fold(0, |largest, &bits| largest.max(bits.into() & format.nan()));
    let special = if format.finite { format.nan() } else { format.infinity() };
    let limit = ((OPERAND_LIMIT + format.bias()) as u32) << (format.fraction_bits + format.ignored_bits);
    let blocks = bits.as_chunks::<LENGTH>().0.iter().map(|bits| Block {
        values: bits.map(|bits| split(format, bits.into()).0),
        exponents: bits.map(|bits| split(format, bits.into()).1),
    });
    (largest < special.min(limit)).then(|| blocks.collect())
}

/// Value and unnormalised exponent of finite bits.
#[inline(always)]
fn split(format: Format, bits: u32) -> (f32, i16) {
    let magnitude = (bits & format.nan()) >> format.ignored_bits;
    // Read as f32 the exponent is too small by the difference of the biases; the product is exact, subnormals included.
    let bias_difference = f32::from_bits(((254 - format.bias()) as u32) << 23);
    let value = f32::from_bits(magnitude << (23 - format.fraction_bits)) * bias_difference;
    let exponent = (magnitude >> format.fraction_bits).max(1) as i16 - format.bias() as i16;
    let sign = u32::from(bits & format.sign() != 0) << 31;
    (f32::from_bits(value.to_bits() | sign), if magnitude == 0 { NO_EXPONENT } else { exponent })
}

impl<const LENGTH: usize> Block<LENGTH> {
    /// [`Rule::dot`], or nothing where that must decide.
    #[inline(always)]
    fn dot(&self, other: &Block<LENGTH>, rule: &Rule, c: u32) -> Option<u32> {
        let (accumulator, exponent) = split(rule.accumulator, c);
        let mut largest = exponent.max(rule.floor as i16);
        for step in 0..LENGTH {
            largest = largest.max(self.exponents[step] + other.exponents[step]);
        }
        if c & rule.accumulator.nan() >= rule.accumulator.infinity() || largest < SMALLEST_LARGEST_EXPONENT {
            return None;
        }
        let scale = i32::from(largest) - rule.aligned_bits;
        let products = self.aligned_products(other, power_of_two(scale));
        Some(pack(rule, products + (f64::from(accumulator) * power_of_two(-scale)) as i64, scale))
    }

    /// The sum of the products, each truncated to a multiple of `unit`, in units.
    #[inline(always)]
    fn aligned_products(&self, other: &Block<LENGTH>, unit: f64) -> i64 {
        let (grid, nearly_half) = (unit * INTEGERS, unit * NEARLY_HALF);
        let mut sum = 0u64;
        for step in 0..LENGTH {
            let product = f64::from(self.values[step] * other.values[step]);
            let nearest = product - nearly_half.copysign(product) + grid;
            sum = sum.wrapping_add(nearest.to_bits());
        }
        sum.wrapping_sub(grid.to_bits().wrapping_mul(LENGTH as u64)) as i64
    }
}

#[inline(always)]
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// [`Rule::pack`] of `sum * 2^scale`, to which it leaves what rounds, overflows or is subnormal.
#[inline(always)]
fn pack(rule: &Rule, sum: i64, scale: i32) -> u32 {
    let bits = (sum as f64).to_bits();
    let field = (bits >> 52 & 0x7ff) as i32 - 1023 + 127 + scale;
    if rule.rounding != Rounding::Zero || !(1..=254).contains(&field) {
        return rule.pack(sum, scale + rule.aligned_bits);
    }
    let fraction = (bits >> 29) as u32 & 0x007f_ffff & !0 << (23 - rule.result_bits);
    (bits >> 32) as u32 & 0x8000_0000 | (field as u32) << 23 | fraction
}
