//! Many dot products at once: the hot spot of the emulator.
//!
//! Eight columns are computed side by side in floating-point lanes, which compilers turn into vector instructions, with
//! the same result as [`Rule::dot`]. A product of two operands is exact in f32: it has 22 bits at most. Aligning it means
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

/// Columns computed side by side; `mma.sync` has 8.
const LANES: usize = 8;
/// Exponent of a zero: below every floor, also when it is added to the exponent of a factor.
const NO_EXPONENT: i16 = -8000;
/// Operands must stay below 2 to this power, so that no product overflows.
const OPERAND_LIMIT: i32 = 63;
const SMALLEST_LARGEST_EXPONENT: i16 = -100;
/// In units: where the numbers of f64 are the integers.
const INTEGERS: f64 = (3u64 << 51) as f64;
/// In units; with it a difference keeps 24 bits after the point and 27 before.
const NEARLY_HALF: f64 = 0.5 - 1.0 / (1 << 24) as f64;

type Lanes<T> = [T; LANES];

/// `c += a * b` on the tensor cores: a chain of fused sums of [`Rule::length`] products each.
///
/// `a` is row-major, `b` column-major (the `depth` elements of a column lie together), `c` row-major accumulator bits.
/// Panics unless the slices have the extent of `shape` and its depth is a multiple of the rule's length.
pub fn multiply<T: Copy + Into<u32>>(rule: &Rule, shape: Shape, a: &[T], b: &[T], c: &mut [u32]) {
    let Shape { rows, columns, depth } = shape;
    assert!(depth.is_multiple_of(rule.length), "depth {depth} is not a multiple of {}", rule.length);
    assert_eq!((a.len(), b.len(), c.len()), (rows * depth, columns * depth, rows * columns), "extent of a, b, c");
    let (Some(left), Some(right)) = (Operand::decode(rule.operand, a), Operand::decode(rule.operand, b)) else {
        return multiply_plainly(rule, shape, a, b, c);
    };
    let mut panel = Panel::default();
    for first in (0..columns).step_by(LANES) {
        let lanes = LANES.min(columns - first);
        for start in (0..depth).step_by(rule.length) {
            panel.load(&right, first * depth + start, depth, rule.length, lanes);
            for row in 0..rows {
                let window = row * depth + start..row * depth + start + rule.length;
                let place = row * columns + first..row * columns + first + lanes;
                let terms = (&left.values[window.clone()], &left.exponents[window.clone()]);
                let undecided = panel.multiply(rule, terms, &mut c[place.clone()]);
                for lane in (0..lanes).filter(|lane| undecided >> lane & 1 == 1) {
                    let column = &b[(first + lane) * depth + start..][..rule.length];
                    c[place.start + lane] = dot_of_bits(rule, &a[window.clone()], column, c[place.start + lane]);
                }
            }
        }
    }
}

/// The same by [`Rule::dot`] alone.
fn multiply_plainly<T: Copy + Into<u32>>(rule: &Rule, shape: Shape, a: &[T], b: &[T], c: &mut [u32]) {
    let decode = |bits: &[T]| -> Vec<Element> { bits.iter().map(|&bits| rule.operand.decode(bits.into())).collect() };
    let (a, b) = (decode(a), decode(b));
    for (place, c) in c.iter_mut().enumerate() {
        let row = a[place / shape.columns * shape.depth..].chunks_exact(rule.length);
        let column = b[place % shape.columns * shape.depth..].chunks_exact(rule.length);
        for (a, b) in row.zip(column).take(shape.depth / rule.length) {
            *c = rule.dot(a, b, *c);
        }
    }
}

fn dot_of_bits<T: Copy + Into<u32>>(rule: &Rule, a: &[T], b: &[T], c: u32) -> u32 {
    let decode = |bits: &[T]| -> Vec<Element> { bits.iter().map(|&bits| rule.operand.decode(bits.into())).collect() };
    rule.dot(&decode(a), &decode(b), c)
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

/// A decoded matrix, all of whose elements are finite and below the limit.
struct Operand {
    values: Vec<f32>,
    exponents: Vec<i16>,
}

impl Operand {
    fn decode<T: Copy + Into<u32>>(format: Format, bits: &[T]) -> Option<Operand> {
        let magnitude = |bits: T| bits.into() & format.nan();
        let largest = bits.iter().fold(0, |largest, &bits| largest.max(magnitude(bits)));
        if largest >= Operand::limit(format) {
            return None;
        }
        let (values, exponents) = bits.iter().map(|&bits| split(format, bits.into())).unzip();
        Some(Operand { values, exponents })
    }

    /// The least magnitude, as bits, that must not occur.
    fn limit(format: Format) -> u32 {
        let special = if format.finite { format.nan() } else { format.infinity() };
        let large = ((OPERAND_LIMIT + format.bias()) as u32) << (format.fraction_bits + format.ignored_bits);
        special.min(large)
    }
}

/// Columns of one block, turned so that a step of `depth` holds its lanes together.
#[derive(Default)]
struct Panel {
    values: Vec<Lanes<f32>>,
    exponents: Vec<Lanes<i16>>,
}

impl Panel {
    fn load(&mut self, matrix: &Operand, start: usize, stride: usize, length: usize, lanes: usize) {
        self.values.clear();
        self.values.resize(length, [0.0; LANES]);
        self.exponents.clear();
        self.exponents.resize(length, [NO_EXPONENT; LANES]);
        for lane in 0..lanes {
            let column = start + lane * stride..start + lane * stride + length;
            let terms = matrix.values[column.clone()].iter().zip(&matrix.exponents[column]);
            for (step, (value, exponent)) in terms.enumerate() {
                self.values[step][lane] = *value;
                self.exponents[step][lane] = *exponent;
            }
        }
    }

    /// Adds the products of one row to its accumulators. Returns a bit for every lane that was left as it was.
    #[inline]
    fn multiply(&self, rule: &Rule, (values, exponents): (&[f32], &[i16]), c: &mut [u32]) -> u32 {
        let mut accumulators = [0; LANES];
        accumulators[..c.len()].copy_from_slice(c);
        let largest = self.largest_exponents(rule, exponents, &accumulators);
        let sums = self.sum(rule, values, &accumulators, &largest);
        let mut undecided = 0;
        for (lane, c) in c.iter_mut().enumerate() {
            let special = *c & rule.accumulator.nan() >= rule.accumulator.infinity();
            if special || largest[lane] < SMALLEST_LARGEST_EXPONENT {
                undecided |= 1 << lane;
            } else {
                *c = pack(rule, sums[lane], i32::from(largest[lane]));
            }
        }
        undecided
    }

    #[inline(always)]
    fn largest_exponents(&self, rule: &Rule, exponents: &[i16], accumulators: &Lanes<u32>) -> Lanes<i16> {
        let mut largest = accumulators.map(|bits| split(rule.accumulator, bits).1.max(rule.floor as i16));
        for (exponent, lanes) in exponents.iter().zip(&self.exponents) {
            for lane in 0..LANES {
                largest[lane] = largest[lane].max(exponent + lanes[lane]);
            }
        }
        largest
    }

    /// The sum of all terms, aligned.
    #[inline(always)]
    fn sum(&self, rule: &Rule, values: &[f32], accumulators: &Lanes<u32>, largest: &Lanes<i16>) -> Lanes<i64> {
        let unit = largest.map(|largest| power_of_two(i32::from(largest) - rule.aligned_bits));
        let grid = unit.map(|unit| unit * INTEGERS);
        let nearly_half = unit.map(|unit| unit * NEARLY_HALF);
        let mut sums = [0u64; LANES];
        for (value, lanes) in values.iter().zip(&self.values) {
            let products = lanes.map(|lane| value * lane);
            for lane in 0..LANES {
                let product = f64::from(products[lane]);
                let nearest = product - nearly_half[lane].copysign(product) + grid[lane];
                sums[lane] = sums[lane].wrapping_add(nearest.to_bits());
            }
        }
        std::array::from_fn(|lane| {
            let accumulator = f64::from(split(rule.accumulator, accumulators[lane]).0) / unit[lane];
            let offset = grid[lane].to_bits().wrapping_mul(values.len() as u64);
            sums[lane].wrapping_sub(offset) as i64 + accumulator as i64
        })
    }
}

#[inline(always)]
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// [`Rule::pack`], which it leaves to the cases that round, overflow or are subnormal.
#[inline(always)]
fn pack(rule: &Rule, sum: i64, largest: i32) -> u32 {
    let bits = (sum as f64).to_bits();
    let field = (bits >> 52 & 0x7ff) as i32 - 1023 + 127 + largest - rule.aligned_bits;
    if rule.rounding != Rounding::Zero || !(1..=254).contains(&field) {
        return rule.pack(sum, largest);
    }
    let fraction = (bits >> 29) as u32 & 0x007f_ffff & !0 << (23 - rule.result_bits);
    (bits >> 32) as u32 & 0x8000_0000 | (field as u32) << 23 | fraction
}
