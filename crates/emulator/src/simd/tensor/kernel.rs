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

    /// Values of A, each four times.
    #[inline(always)]
    fn rows<V: Vectors>(self, v: V, depth: usize) -> [V::Floats; 2] {
        let [low, high] = &self.left.0[depth].values[self.half];
        [v.floats(low), v.floats(high)]
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
    match parameters.halves {
        true => exact_into::<V, true>(v, parameters, left, right, c, rest),
        false => exact_into::<V, false>(v, parameters, left, right, c, rest),
    }
}

#[inline(always)]
fn exact_into<V: Vectors, const HALVES: bool>(
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
                exact_at::<V, HALVES, 4>(v, parameters, place, c, rest);
                first += 4;
            } else if V::EXACT_AT_ONCE >= 2 {
                exact_at::<V, HALVES, 2>(v, parameters, place, c, rest);
                first += 2;
            } else {
                exact_at::<V, HALVES, 1>(v, parameters, place, c, rest);
                first += 1;
            }
        }
    }
}

#[inline(always)]
fn exact_at<V: Vectors, const HALVES: bool, const COUNT: usize>(
    v: V,
    parameters: &Parameters,
    place: Place,
    c: &mut [Register],
    rest: &mut [u32],
) {
    let mut largest = largest_exponents::<V, COUNT>(v, parameters, place);
    let mut scales = [[v.of_bits(v.splat(0)); 2]; COUNT];
    for run in 0..COUNT {
        let (c, _) = c[place.register(run)].as_chunks::<16>();
        for part in 0..2 {
            let c = accumulators::<V, HALVES>(v, &c[part]);
            largest[run][part] = v.larger(largest[run][part], exponents_of(v, parameters, c));
            let units = v.subtract(v.splat(BIAS + parameters.aligned_bits), largest[run][part]);
            scales[run][part] = v.of_bits(v.shift_left(units));
        }
    }
    let sums = aligned_sums::<V, COUNT>(v, parameters, place, &scales);
    for run in 0..COUNT {
        let register = place.register(run);
        let (c, _) = c[register].as_chunks_mut::<16>();
        rest[register] = 0;
        for part in 0..2 {
            let aligned = Aligned {
                c: accumulators::<V, HALVES>(v, &c[part]),
                largest: largest[run][part],
                scale: scales[run][part],
                sum: sums[run][part],
            };
            let (result, unusual) = aligned.result::<HALVES>(v, parameters);
            if v.lanes(unusual) == 0 {
                v.store(result, &mut c[part]);
                continue;
            }
            let products =
                largest_exponents::<V, 1>(v, parameters, Place { first: place.first + run, ..place })[0][part];
            let old = v.integers(&c[part]);
            let (result, left_alone) = aligned.unusual::<HALVES>(v, parameters, products, result, unusual);
            v.store(v.select(left_alone, old, result), &mut c[part]);
            rest[register] |= v.lanes(left_alone) << (16 * part);
        }
    }
}

/// As f32.
#[inline(always)]
fn accumulators<V: Vectors, const HALVES: bool>(v: V, c: &[u32; 16]) -> V::Integers {
    let c = v.integers(c);
    if HALVES { v.bits(v.of_halves(c)) } else { c }
}

/// Of accumulators, and at least the floor.
#[inline(always)]
fn exponents_of<V: Vectors>(v: V, parameters: &Parameters, c: V::Integers) -> V::Integers {
    let magnitude = v.and(c, v.splat(MAGNITUDE));
    let field = v.larger(v.shift_right(magnitude), v.splat(parameters.smallest_field));
    let floor = v.splat(parameters.floor);
    // The floor lies below the exponent of every number but zero.
    v.select(v.equal(magnitude, v.splat(0)), floor, v.subtract(field, v.splat(BIAS)))
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
            let right = v.shorts_of_four(&right.exponents[depth][parity]);
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
    scales: &[[V::Floats; 2]; COUNT],
) -> [[V::Integers; 2]; COUNT] {
    let mut sums = [[v.splat(0); 2]; COUNT];
    let runs = place.runs::<COUNT>();
    for depth in parameters.first..parameters.end.min(LONGEST) {
        let left = place.rows(v, depth);
        for run in 0..COUNT {
            let (right, parity) = runs[run];
            let right = v.floats_of_four(&right.values[depth][parity]);
            for part in 0..2 {
                let product = v.multiply(v.multiply(left[part], right), scales[run][part]);
                sums[run][part] = v.add(sums[run][part], v.truncate(product));
            }
        }
    }
    sums
}

/// Accumulators and sums of products, in the same units.
struct Aligned<V: Vectors> {
    /// As f32.
    c: V::Integers,
    largest: V::Integers,
    /// Units in one.
    scale: V::Floats,
    sum: V::Integers,
}

impl<V: Vectors> Aligned<V> {
    /// The results, and the lanes where these may be wrong.
    #[inline(always)]
    fn result<const HALVES: bool>(&self, v: V, parameters: &Parameters) -> (V::Integers, V::Mask) {
        let c = v.truncate(v.multiply(v.of_bits(self.c), self.scale));
        let total = v.add(self.sum, c);
        let overflow = v.and(v.exclusive_or(self.sum, total), v.exclusive_or(c, total));
        let overflow = v.greater(v.splat(0), overflow);
        let large = v.greater(self.largest, v.splat(LARGEST_EXPONENT));
        let unusual = v.either(v.either(large, overflow), self.small(v));
        let unit = v.of_bits(v.shift_left(v.add(self.largest, v.splat(BIAS - parameters.aligned_bits))));
        let truncated = v.toward_zero(total);
        let result = v.and(v.bits(v.multiply(truncated, unit)), v.splat(parameters.kept));
        if !HALVES {
            return (result, unusual);
        }
        // Where bits were lost the last one is set, so that the rest is not taken for a tie.
        let exact = v.equal(v.truncate(truncated), total);
        let halves = v.to_halves(v.of_bits(v.select(exact, result, v.or(result, v.splat(1)))));
        let zero = v.equal(v.and(halves, v.splat(0x7fff)), v.splat(0));
        (v.select(zero, v.splat(0), halves), unusual)
    }

    #[inline(always)]
    fn small(&self, v: V) -> V::Mask {
        v.greater(v.splat(SMALLEST_EXPONENT), self.largest)
    }

    /// The results once more, and the lanes to leave alone. The largest exponents of the `products` tell whether all are zero.
    #[inline(always)]
    fn unusual<const HALVES: bool>(
        &self,
        v: V,
        parameters: &Parameters,
        products: V::Integers,
        result: V::Integers,
        unusual: V::Mask,
    ) -> (V::Integers, V::Mask) {
        if HALVES {
            return (result, unusual); // Their floor is above what is too small.
        }
        let kept = v.both(self.small(v), v.greater(v.splat(ALL_ZERO), products));
        let c = v.and(self.c, v.splat(parameters.kept));
        let zero = v.equal(v.and(c, v.splat(MAGNITUDE)), v.splat(0));
        let c = v.select(zero, v.splat(0), c);
        (v.select(kept, c, result), v.without(unusual, kept))
    }
}

/// `c += a * b` by chains of fused multiply-adds of f32.
#[inline(always)]
pub fn fused<V: Vectors>(v: V, parameters: &Parameters, left: &Left, right: &[Right], c: &mut [Register]) {
    match parameters.halves {
        true => fused_into::<V, true>(v, parameters, left, right, c),
        false => fused_into::<V, false>(v, parameters, left, right, c),
    }
}

#[inline(always)]
fn fused_into<V: Vectors, const HALVES: bool>(
    v: V,
    parameters: &Parameters,
    left: &Left,
    right: &[Right],
    c: &mut [Register],
) {
    for half in 0..2 {
        let mut first = 0;
        while first < 2 * right.len() {
            let place = Place { left, right, half, first };
            if V::FUSED_AT_ONCE == 4 && first + 4 <= 2 * right.len() {
                fused_at::<V, HALVES, 4>(v, parameters, place, c);
                first += 4;
            } else {
                fused_at::<V, HALVES, 2>(v, parameters, place, c);
                first += 2;
            }
        }
    }
}

#[inline(always)]
fn fused_at<V: Vectors, const HALVES: bool, const COUNT: usize>(
    v: V,
    parameters: &Parameters,
    place: Place,
    c: &mut [Register],
) {
    let mut sums = [[v.of_bits(v.splat(0)); 2]; COUNT];
    for run in 0..COUNT {
        let (c, _) = c[place.register(run)].as_chunks::<16>();
        for part in 0..2 {
            sums[run][part] = v.of_bits(accumulators::<V, HALVES>(v, &c[part]));
        }
    }
    let runs = place.runs::<COUNT>();
    for depth in parameters.first..parameters.end.min(LONGEST) {
        let left = place.rows(v, depth);
        for run in 0..COUNT {
            let (right, parity) = runs[run];
            let right = v.floats_of_four(&right.values[depth][parity]);
            for part in 0..2 {
                sums[run][part] = v.fused(left[part], right, sums[run][part]);
            }
        }
    }
    for run in 0..COUNT {
        let (c, _) = c[place.register(run)].as_chunks_mut::<16>();
        for part in 0..2 {
            let sum = sums[run][part];
            let (bits, nan) = if HALVES { (v.to_halves(sum), 0x7fff) } else { (v.bits(sum), MAGNITUDE) };
            v.store(v.select(v.not_a_number(sum), v.splat(nan), bits), &mut c[part]);
        }
    }
}
