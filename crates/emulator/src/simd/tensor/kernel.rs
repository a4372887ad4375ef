//! Products of 16 rows by 8 columns at a time, in the places where a warp's registers hold them.
//!
//! The exact kernel computes [`Rule::dot`] of 16 elements side by side. A product of two operands has 22 bits at most, so
//! it is exact in f32. Aligning it means to count the multiples of a unit, `2^(largest - aligned_bits)`, in it: it is
//! scaled by a power of two, exactly, and the conversion to an integer truncates it. There are fewer than 2^27 units in a
//! product, so 16 of them fit an i32 (and 32 where fewer bits are aligned). What could leave these ranges is left
//! alone and named to the caller:
//! - an operand that is infinite, NaN or at least 2^63, because its products may overflow; its exponent is
//!   [`SPECIAL`](super::operand::SPECIAL), which makes the largest exponent too large;
//! - an accumulator that is infinite, NaN or may overflow: a largest exponent above 120;
//! - a largest exponent below -100, unless all products are zero, when the result is the accumulator. Above it, a product
//!   that underflows, or is rounded because it is subnormal, is below half a unit and truncates to 0 as its exact value
//!   does; and no result is subnormal;
//! - a sum that does not fit when the accumulator is added.
//!
//! Loops stand where closures would: a closure is compiled for the processor at large, not for the instructions.

#![allow(clippy::needless_range_loop)]

use super::operand::{LONGEST, NO_EXPONENT};
use super::vectors::Vectors;
use super::{Left, Register, Right};
use crate::numerics::format::{Format, Rounding};
use crate::numerics::tensor_core::Rule;

const LARGEST_EXPONENT: i32 = 120;
const SMALLEST_EXPONENT: i32 = -100;
/// Below it only sums of exponents lie of which one belongs to a zero.
const ALL_ZERO: i32 = -1000;
const MAGNITUDE: i32 = 0x7fff_ffff;
const BIAS: i32 = 127;

/// What a kernel needs of a [`Rule`].
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// Where the sum begins and ends.
    first: usize,
    end: usize,
    aligned_bits: i32,
    floor: i32,
    /// Exponent field, as of f32, of the accumulator's smallest normal number.
    smallest_field: i32,
    /// Bits of an f32 that a result keeps.
    kept: i32,
    halves: bool,
}

impl Parameters {
    /// Are the aligned products of a sum small enough for an i32?
    pub fn fits(rule: &Rule) -> bool {
        rule.length << (rule.aligned_bits + 2) <= 1 << 31
    }

    /// Of the sum that begins at a depth.
    pub fn new(rule: &Rule, first: usize) -> Parameters {
        let halves = rule.accumulator == Format::F16;
        // What is rounded to the nearest keeps all its bits until then.
        let dropped = if rule.rounding == Rounding::Nearest { 0 } else { Format::F32.fraction_bits - rule.result_bits };
        Parameters {
            first,
            end: first + rule.length,
            aligned_bits: rule.aligned_bits,
            floor: rule.floor,
            smallest_field: rule.accumulator.smallest_exponent() + BIAS,
            kept: -1 << dropped,
            halves,
        }
    }
}

/// Accumulator registers that share factors: `COUNT` runs of four columns, from one, by eight rows.
#[derive(Clone, Copy)]
struct Place<'a> {
    left: &'a Left,
    right: &'a [Right],
    half: usize,
    first: usize,
}

impl<'a> Place<'a> {
    /// The columns of each run: even or odd ones of eight.
    #[inline(always)]
    fn runs<const COUNT: usize>(self) -> [(&'a Right, usize); COUNT] {
        let mut runs = [(&self.right[0], 0); COUNT];
        for (index, run) in runs.iter_mut().enumerate() {
            *run = (&self.right[(self.first + index) / 2], (self.first + index) % 2);
        }
        runs
    }

    #[inline(always)]
    fn register(self, index: usize) -> usize {
        let run = self.first + index;
        run / 2 * 4 + self.half * 2 + run % 2
    }
}

/// `c += a * b` by the rule; lanes of `c` that it leaves alone are set in `rest`.
#[inline(always)]
pub fn exact<V: Vectors>(
    v: V,
    parameters: &Parameters,
    left: &Left,
    right: &[Right],
    c: &mut [Register],
    rest: &mut [u32],
) {
    for half in 0..2 {
        let mut first = 0;
        while first < 2 * right.len() {
            let place = Place { left, right, half, first };
            if V::EXACT_AT_ONCE == 4 && first + 4 <= 2 * right.len() {
                exact_at::<V, 4>(v, parameters, place, c, rest);
                first += 4;
            } else if V::EXACT_AT_ONCE >= 2 {
                exact_at::<V, 2>(v, parameters, place, c, rest);
                first += 2;
            } else {
                exact_at::<V, 1>(v, parameters, place, c, rest);
                first += 1;
            }
        }
    }
}

#[inline(always)]
fn exact_at<V: Vectors, const COUNT: usize>(
    v: V,
    parameters: &Parameters,
    place: Place,
    c: &mut [Register],
    rest: &mut [u32],
) {
    let of_products = largest_exponents::<V, COUNT>(v, parameters, place);
    let mut terms = [[Alignment::new(v, parameters, v.splat(0), v.splat(0)); 2]; COUNT];
    for run in 0..COUNT {
        let (c, _) = c[place.register(run)].as_chunks::<16>();
        for part in 0..2 {
            terms[run][part] = Alignment::new(v, parameters, v.integers(&c[part]), of_products[run][part]);
        }
    }
    let sums = aligned_sums::<V, COUNT>(v, parameters, place, &terms);
    for run in 0..COUNT {
        let register = place.register(run);
        let (c, _) = c[register].as_chunks_mut::<16>();
        let mut left_alone = 0;
        for part in 0..2 {
            let (result, lanes) = terms[run][part].finish(v, parameters, sums[run][part]);
            v.store(result, &mut c[part]);
            left_alone |= lanes << (16 * part);
        }
        rest[register] = left_alone;
    }
}

/// Of the products.
#[inline(always)]
fn largest_exponents<V: Vectors, const COUNT: usize>(
    v: V,
    parameters: &Parameters,
    place: Place,
) -> [[V::Integers; 2]; COUNT] {
    let mut largest = [v.shorts_of_four(&[2 * NO_EXPONENT; 4]); COUNT];
    let runs = place.runs::<COUNT>();
    for depth in parameters.first..parameters.end.min(LONGEST) {
        let left = v.shorts(&place.left.0[depth].exponents[place.half]);
        for run in 0..COUNT {
            let (right, parity) = runs[run];
            let right = v.shorts_of_four(&right.0[depth].exponents[parity]);
            largest[run] = v.larger_shorts(largest[run], v.add_shorts(left, right));
        }
    }
    let mut wide = [[v.splat(0); 2]; COUNT];
    for run in 0..COUNT {
        wide[run] = v.widen(largest[run]);
    }
    wide
}

/// Of the products, in units.
#[inline(always)]
fn aligned_sums<V: Vectors, const COUNT: usize>(
    v: V,
    parameters: &Parameters,
    place: Place,
    terms: &[[Alignment<V>; 2]; COUNT],
) -> [[V::Integers; 2]; COUNT] {
    let mut sums = [[v.splat(0); 2]; COUNT];
    let runs = place.runs::<COUNT>();
    for depth in parameters.first..parameters.end.min(LONGEST) {
        let [low, high] = &place.left.0[depth].values[place.half];
        let left = [v.floats(low), v.floats(high)];
        for run in 0..COUNT {
            let (right, parity) = runs[run];
            let right = v.floats_of_four(&right.0[depth].values[parity]);
            for part in 0..2 {
                let product = v.multiply(v.multiply(left[part], right), terms[run][part].scale);
                sums[run][part] = v.add(sums[run][part], v.truncate(product));
            }
        }
    }
    sums
}

/// Accumulators, and the unit that they and their products are aligned to.
struct Alignment<V: Vectors> {
    c: V::Integers,
    /// As f32.
    wide: V::Integers,
    of_products: V::Integers,
    largest: V::Integers,
    /// Units in one.
    scale: V::Floats,
}

impl<V: Vectors> Clone for Alignment<V> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Vectors> Copy for Alignment<V> {}

impl<V: Vectors> Alignment<V> {
    #[inline(always)]
    fn new(v: V, parameters: &Parameters, c: V::Integers, of_products: V::Integers) -> Alignment<V> {
        let wide = if parameters.halves { v.bits(v.of_halves(c)) } else { c };
        let magnitude = v.and(wide, v.splat(MAGNITUDE));
        let field = v.larger(v.shift_right(magnitude), v.splat(parameters.smallest_field));
        let exponent = v.subtract(field, v.splat(BIAS));
        let exponent = v.select(v.equal(magnitude, v.splat(0)), v.splat(NO_EXPONENT.into()), exponent);
        let largest = v.larger(v.larger(of_products, exponent), v.splat(parameters.floor));
        let scale = v.of_bits(v.shift_left(v.subtract(v.splat(BIAS + parameters.aligned_bits), largest)));
        Alignment { c, wide, of_products, largest, scale }
    }

    /// The results from the sums of the products, and the lanes that keep their accumulator instead.
    #[inline(always)]
    fn finish(self, v: V, parameters: &Parameters, sum: V::Integers) -> (V::Integers, u32) {
        let c = v.truncate(v.multiply(v.of_bits(self.wide), self.scale));
        let total = v.add(sum, c);
        let zero = v.splat(0);
        let overflow = v.and(v.exclusive_or(sum, total), v.exclusive_or(c, total));
        let small = v.greater(v.splat(SMALLEST_EXPONENT), self.largest);
        let products = v.greater(self.of_products, v.splat(ALL_ZERO));
        let large = v.greater(self.largest, v.splat(LARGEST_EXPONENT));
        let rest = v.either(v.either(large, v.greater(zero, overflow)), v.both(small, products));
        let unit = v.of_bits(v.shift_left(v.add(self.largest, v.splat(BIAS - parameters.aligned_bits))));
        let value = v.bits(v.multiply(v.toward_zero(total), unit));
        let result = v.and(v.select(small, self.wide, value), v.splat(parameters.kept));
        let result = if parameters.halves { self.nearest_halves(v, total, result) } else { result };
        let magnitude = v.and(result, v.splat(if parameters.halves { 0x7fff } else { MAGNITUDE }));
        let result = v.select(v.equal(magnitude, zero), zero, result);
        (v.select(rest, self.c, result), v.lanes(rest))
    }

    /// Of a truncated f32: its last bit is set where bits were lost, so that it is not taken for a tie.
    #[inline(always)]
    fn nearest_halves(self, v: V, total: V::Integers, truncated: V::Integers) -> V::Integers {
        let exact = v.equal(v.truncate(v.toward_zero(total)), total);
        v.to_halves(v.of_bits(v.select(exact, truncated, v.or(truncated, v.splat(1)))))
    }
}

/// `c += a * b` by chains of fused multiply-adds of f32.
#[inline(always)]
pub fn fused<V: Vectors>(v: V, parameters: &Parameters, left: &Left, right: &[Right], c: &mut [Register]) {
    for half in 0..2 {
        let mut first = 0;
        while first < 2 * right.len() {
            let place = Place { left, right, half, first };
            if V::FUSED_AT_ONCE == 4 && first + 4 <= 2 * right.len() {
                fused_at::<V, 4>(v, parameters, place, c);
                first += 4;
            } else {
                fused_at::<V, 2>(v, parameters, place, c);
                first += 2;
            }
        }
    }
}

#[inline(always)]
fn fused_at<V: Vectors, const COUNT: usize>(v: V, parameters: &Parameters, place: Place, c: &mut [Register]) {
    let mut sums = [[v.of_bits(v.splat(0)); 2]; COUNT];
    for run in 0..COUNT {
        let (c, _) = c[place.register(run)].as_chunks::<16>();
        for part in 0..2 {
            let c = v.integers(&c[part]);
            sums[run][part] = if parameters.halves { v.of_halves(c) } else { v.of_bits(c) };
        }
    }
    let runs = place.runs::<COUNT>();
    for depth in parameters.first..parameters.end.min(LONGEST) {
        let [low, high] = &place.left.0[depth].values[place.half];
        let left = [v.floats(low), v.floats(high)];
        for run in 0..COUNT {
            let (right, parity) = runs[run];
            let right = v.floats_of_four(&right.0[depth].values[parity]);
            for part in 0..2 {
                sums[run][part] = v.fused(left[part], right, sums[run][part]);
            }
        }
    }
    for run in 0..COUNT {
        let (c, _) = c[place.register(run)].as_chunks_mut::<16>();
        for part in 0..2 {
            let sum = sums[run][part];
            let (bits, nan) = if parameters.halves { (v.to_halves(sum), 0x7fff) } else { (v.bits(sum), MAGNITUDE) };
            v.store(v.select(v.not_a_number(sum), v.splat(nan), bits), &mut c[part]);
        }
    }
}
