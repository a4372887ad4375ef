//! The one rule of the tensor cores: a fused sum of products and the accumulator.
//!
//! Every instruction adds its products and the accumulator at once. All terms are aligned to the largest exponent and
//! cut there to a fixed number of fraction bits; the sum of what is left is exact, and is packed once. There is no
//! order of summation and no rounding in between. Instructions differ only in the parameters of a [`Rule`], so
//! `mma.sync`, `wmma` and `wgmma`, and the operand formats, are rows of one table.

use super::format::{Class, Element, Format, Rounding};
pub use super::tile::{Shape, multiply};

/// The parameters of one fused dot product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub operand: Format,
    pub accumulator: Format,
    /// Products in one sum.
    pub length: usize,
    /// Fraction bits that every term keeps below the largest exponent.
    pub aligned_bits: i32,
    /// The largest exponent is never taken to be below this: 7 below the accumulator's smallest normal exponent.
    pub floor: i32,
    /// Fraction bits of the result; those of the accumulator but for fp8.
    pub result_bits: u32,
    /// How the sum becomes the result. Overflow is an infinity even where the sum is truncated.
    pub rounding: Rounding,
}

#[rustfmt::skip] // One row per line.
impl Rule {
    // name                        operand       products  accumulator
    pub const F16_K16:      Rule = Format::F16 .products(16).into_f32();
    pub const F16_K8:       Rule = Format::F16 .products(8) .into_f32();
    pub const BF16_K16:     Rule = Format::BF16.products(16).into_f32();
    pub const BF16_K8:      Rule = Format::BF16.products(8) .into_f32();
    pub const TF32_K8:      Rule = Format::TF32.products(8) .into_f32();
    pub const TF32_K4:      Rule = Format::TF32.products(4) .into_f32();
    pub const F16_K16_F16:  Rule = Format::F16 .products(16).into_f16();
    pub const F16_K8_F16:   Rule = Format::F16 .products(8) .into_f16();
    // fp8 as wgmma computes it; mma.sync has no such instruction on Hopper.
    pub const E4M3_K32:     Rule = Format::E4M3.products(32).into_f32().aligned_to(13);
    pub const E5M2_K32:     Rule = Format::E5M2.products(32).into_f32().aligned_to(13);
    pub const E4M3_K32_F16: Rule = Format::E4M3.products(32).into_f16().aligned_to(13);
    pub const E5M2_K32_F16: Rule = Format::E5M2.products(32).into_f16().aligned_to(13);
}

/// The operand half of a [`Rule`].
#[derive(Clone, Copy)]
struct Products(Format, usize);

impl Format {
    const fn products(self, length: usize) -> Products {
        Products(self, length)
    }
}

impl Products {
    const fn into_f32(self) -> Rule {
        self.into(Format::F32, Rounding::Zero)
    }

    const fn into_f16(self) -> Rule {
        self.into(Format::F16, Rounding::Nearest)
    }

    const fn into(self, accumulator: Format, rounding: Rounding) -> Rule {
        let (floor, result_bits) = (accumulator.smallest_exponent() - 7, accumulator.fraction_bits);
        Rule { operand: self.0, accumulator, length: self.1, aligned_bits: 25, floor, result_bits, rounding }
    }
}

impl Rule {
    const fn aligned_to(mut self, bits: u32) -> Rule {
        self.aligned_bits = bits as i32;
        self.result_bits = if self.result_bits > bits { bits } else { self.result_bits };
        self
    }

    /// `c` plus the sum of the products of `a` and `b`, which hold [`Rule::length`] elements each.
    pub fn dot(&self, a: &[Element], b: &[Element], c: u32) -> u32 {
        let c = self.accumulator.decode(c);
        if let Some(special) = self.special(a, b, c) {
            return special;
        }
        let products = a.iter().zip(b).map(|(a, b)| Term::product(a, b, self.operand.fraction_bits));
        let terms = products.chain([Term::of(&c, self.accumulator.fraction_bits)]).filter(|term| term.significand != 0);
        let largest = terms.clone().map(|term| term.exponent).fold(self.floor, i32::max);
        let sum = terms.map(|term| term.align(largest, self.aligned_bits)).sum();
        self.pack(sum, largest)
    }

    /// The result if it is an infinity or NaN because an operand is.
    fn special(&self, a: &[Element], b: &[Element], c: Element) -> Option<u32> {
        let (mut infinite, mut nan) = ([false; 2], c.class == Class::NotANumber);
        infinite[usize::from(c.negative)] |= c.class == Class::Infinite;
        for (a, b) in a.iter().zip(b) {
            if a.class == Class::NotANumber || b.class == Class::NotANumber {
                nan = true;
            } else if a.class == Class::Infinite || b.class == Class::Infinite {
                nan |= a.is_zero() || b.is_zero();
                infinite[usize::from(a.negative != b.negative)] = true;
            }
        }
        match infinite {
            _ if nan => Some(self.accumulator.nan()),
            [true, true] => Some(self.accumulator.nan()),
            [true, false] => Some(self.accumulator.infinity()),
            [false, true] => Some(self.accumulator.infinity() | self.accumulator.sign()),
            [false, false] => None,
        }
    }

    /// Bits of `sum * 2^(largest - aligned_bits)`. A zero is always positive.
    pub(super) fn pack(&self, sum: i64, largest: i32) -> u32 {
        let (magnitude, scale) = (sum.unsigned_abs(), largest - self.aligned_bits);
        if magnitude == 0 {
            return 0;
        }
        let smallest = self.accumulator.smallest_exponent();
        let exponent = (magnitude.ilog2() as i32 + scale).max(smallest);
        let quotient = self.shorten(magnitude, exponent - self.result_bits as i32 - scale);
        let steps = ((exponent - smallest) as u64) << self.result_bits;
        let dropped = self.accumulator.fraction_bits - self.result_bits;
        match (((steps + quotient) << dropped).min(u64::from(self.accumulator.infinity())) as u32, sum < 0) {
            (0, _) => 0,
            (bits, true) => bits | self.accumulator.sign(),
            (bits, false) => bits,
        }
    }

    /// `magnitude / 2^shift`, rounded as the rule says.
    fn shorten(&self, magnitude: u64, shift: i32) -> u64 {
        match shift {
            ..=0 => magnitude << -shift,
            1..=62 => {
                let (quotient, remainder, half) =
                    (magnitude >> shift, magnitude & ((1 << shift) - 1), 1 << (shift - 1));
                let up = remainder > half || remainder == half && quotient & 1 == 1;
                quotient + u64::from(self.rounding == Rounding::Nearest && up)
            }
            _ => 0,
        }
    }
}

impl Element {
    fn is_zero(&self) -> bool {
        self.class == Class::Finite && self.significand == 0
    }
}

/// A finite product or accumulator: `significand * 2^(exponent - fraction_bits)`.
#[derive(Clone, Copy)]
struct Term {
    negative: bool,
    exponent: i32,
    significand: u64,
    fraction_bits: u32,
}

impl Term {
    fn of(element: &Element, fraction_bits: u32) -> Term {
        let Element { negative, exponent, significand, .. } = *element;
        Term { negative, exponent, significand: u64::from(significand), fraction_bits }
    }

    /// Exact, and not normalised: the significand lies in [0, 4), and it is the sum of exponents that aligns it.
    fn product(a: &Element, b: &Element, fraction_bits: u32) -> Term {
        Term {
            negative: a.negative != b.negative,
            exponent: a.exponent + b.exponent,
            significand: u64::from(a.significand) * u64::from(b.significand),
            fraction_bits: 2 * fraction_bits,
        }
    }

    /// In units of `2^(largest - bits)`; the magnitude is truncated.
    fn align(self, largest: i32, bits: i32) -> i64 {
        let left = bits - self.fraction_bits as i32;
        // Both shifts may be asked for at once; going left first loses nothing, as no significand has more than 24 bits.
        let magnitude = (self.significand << left.max(0)) >> (largest - self.exponent + (-left).max(0)).min(63);
        if self.negative { -(magnitude as i64) } else { magnitude as i64 }
    }
}
