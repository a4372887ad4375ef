//! Operands of a product, decoded: values as f32, and exponents apart.
//!
//! They come as *core matrices*, 8 lines (rows of A, columns of B) of 16 bytes, which is what one register of a `mma`
//! fragment holds, and also the unit of `wgmma` in shared memory (PTX ISA, "core matrix"). They are spread so that lane
//! `4 * g + t` of an accumulator register, which holds row `g` and column `2 * t` or `2 * t + 1`, finds its factors in its
//! own place: rows of A are repeated four times, and the even and odd columns of B lie apart.

use super::Register;
use super::vectors::Vectors;
use crate::numerics::format::Format;

/// Products in the longest sum.
pub const LONGEST: usize = 32;
/// Exponent of a zero: below every floor, also when it is added to the exponent of a factor.
pub const NO_EXPONENT: i16 = -8000;
/// Exponent of what the fast path leaves alone: above every limit, also when it is added to that of a zero.
pub const SPECIAL: i16 = 16000;
/// Operands must stay below 2 to this power, so that no product overflows.
const OPERAND_LIMIT: i32 = 63;

/// One depth of 16 rows of A, by halves of 8 rows.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct LeftStep {
    pub values: [[[f32; 16]; 2]; 2],
    pub exponents: [[i16; 32]; 2],
}

/// 16 rows of A.
pub struct Left(pub [LeftStep; LONGEST]);

/// 8 columns of B, depth by depth: the even ones, then the odd ones.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct Right {
    pub values: [[[f32; 4]; 2]; LONGEST],
    pub exponents: [[[i16; 4]; 2]; LONGEST],
}

/// Some depths of it.
pub struct RightSteps<'a> {
    pub values: &'a mut [[[f32; 4]; 2]],
    pub exponents: &'a mut [[[i16; 4]; 2]],
}

impl Default for Left {
    fn default() -> Left {
        Left([LeftStep { values: [[[0.0; 16]; 2]; 2], exponents: [[0; 32]; 2] }; LONGEST])
    }
}

impl Default for Right {
    fn default() -> Right {
        Right { values: [[[0.0; 4]; 2]; LONGEST], exponents: [[[0; 4]; 2]; LONGEST] }
    }
}

impl Left {
    pub fn value(&self, row: usize, depth: usize) -> f32 {
        self.0[depth].values[row / 8][row % 8 / 4][row % 4 * 4]
    }
}

impl Right {
    pub fn value(&self, column: usize, depth: usize) -> f32 {
        self.values[depth][column % 2][column / 2]
    }
}

/// Elements in 16 bytes.
pub fn elements(format: Format) -> usize {
    128 / (format.sign().ilog2() as usize + 1)
}

/// Core matrices of A: for each 16 bytes of depth, rows 0 to 7 and rows 8 to 15.
#[inline(always)]
pub fn load_left<V: Vectors, const EXPONENTS: bool>(v: V, format: Format, cores: &[Register], left: &mut Left) {
    for (cores, steps) in cores.as_chunks::<2>().0.iter().zip(left.0.chunks_exact_mut(elements(format))) {
        v.load_left::<EXPONENTS>(format, &cores[0], 0, steps);
        v.load_left::<EXPONENTS>(format, &cores[1], 1, steps);
    }
}

/// Core matrices of B: for each 8 columns, its depths.
#[inline(always)]
pub fn load_right<V: Vectors, const EXPONENTS: bool>(v: V, format: Format, cores: &[Register], right: &mut [Right]) {
    for (cores, right) in cores.chunks_exact((cores.len() / right.len()).max(1)).zip(right) {
        let values = right.values.chunks_exact_mut(elements(format));
        let exponents = right.exponents.chunks_exact_mut(elements(format));
        for (core, (values, exponents)) in cores.iter().zip(values.zip(exponents)) {
            v.load_right::<EXPONENTS>(format, core, RightSteps { values, exponents });
        }
    }
}

#[inline(always)]
pub fn spread_left<const EXPONENTS: bool>(format: Format, core: &Register, half: usize, steps: &mut [LeftStep]) {
    decoded(format, core, |line, depth, value, exponent| {
        steps[depth].values[half][line / 4][line % 4 * 4..][..4].fill(value);
        if EXPONENTS {
            steps[depth].exponents[half][line * 4..][..4].fill(exponent);
        }
    });
}

#[inline(always)]
pub fn spread_right<const EXPONENTS: bool>(format: Format, core: &Register, steps: RightSteps) {
    decoded(format, core, |line, depth, value, exponent| {
        steps.values[depth][line % 2][line / 2] = value;
        if EXPONENTS {
            steps.exponents[depth][line % 2][line / 2] = exponent;
        }
    });
}

/// Hands over every element of a core matrix, with the format known to the compiler.
#[inline(always)]
fn decoded(format: Format, core: &Register, put: impl FnMut(usize, usize, f32, i16)) {
    match format {
        Format::F16 => each::<8>(Format::F16, core, put),
        Format::BF16 => each::<8>(Format::BF16, core, put),
        Format::TF32 => each::<4>(Format::TF32, core, put),
        Format::E4M3 => each::<16>(Format::E4M3, core, put),
        Format::E5M2 => each::<16>(Format::E5M2, core, put),
        other => each::<4>(other, core, put),
    }
}

#[inline(always)]
fn each<const ELEMENTS: usize>(format: Format, core: &Register, mut put: impl FnMut(usize, usize, f32, i16)) {
    let parts = ELEMENTS / 4;
    let bits = 32 / parts as u32;
    for line in 0..8 {
        for depth in 0..ELEMENTS {
            let word = core[4 * line + depth / parts] >> (depth % parts * bits as usize);
            let (value, exponent) = split(format, word & u32::MAX >> (32 - bits));
            put(line, depth, value, exponent);
        }
    }
}

/// Value and unnormalised exponent.
#[inline(always)]
fn split(format: Format, bits: u32) -> (f32, i16) {
    let magnitude = (bits & format.nan()) >> format.ignored_bits;
    let shifted = magnitude << (23 - format.fraction_bits);
    // Read as f32 the exponent is too small by the difference of the biases; the product is exact, subnormals included.
    let finite = f32::from_bits(shifted) * f32::from_bits(((254 - format.bias()) as u32) << 23);
    let special = (if format.finite { format.nan() } else { format.infinity() }) >> format.ignored_bits;
    let limit = ((OPERAND_LIMIT + format.bias()) as u32) << format.fraction_bits;
    let not_finite = 0x7f80_0000 | if format.finite { 1 } else { shifted };
    let value = if magnitude < special { finite.to_bits() } else { not_finite };
    let sign = u32::from(bits & format.sign() != 0) << 31;
    let exponent = (magnitude >> format.fraction_bits).max(1) as i16 - format.bias() as i16;
    let exponent = if magnitude < special.min(limit) { exponent } else { SPECIAL };
    (f32::from_bits(value | sign), if magnitude == 0 { NO_EXPONENT } else { exponent })
}
