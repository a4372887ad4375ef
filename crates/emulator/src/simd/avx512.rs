//! What the compiler does not find by itself, in instructions of AVX-512: permutations of lanes, tables that fit into
//! registers, and tests of all lanes at once.

use super::lanes::{Aligned, Half};
use super::words::{FRACTION, HIDDEN};
use crate::numerics::{INFINITY, NAN, SMALLEST_NORMAL};
use std::arch::x86_64::*;

#[inline]
#[target_feature(enable = "avx512f")]
fn halves(words: &[u32; 32]) -> [__m512i; 2] {
    // SAFETY: 32 words are twice 16.
    unsafe { [_mm512_loadu_si512(words.as_ptr().cast()), _mm512_loadu_si512(words.as_ptr().add(16).cast())] }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn vector(words: &Half) -> __m512i {
    // SAFETY: 16 words are 512 bits.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn words(vector: __m512i) -> Half {
    // SAFETY: a vector of 512 bits and 16 words are the same bytes.
    unsafe { std::mem::transmute::<__m512i, Half>(vector) }
}

/// The word of lane `from[lane]` for every lane.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn permute(all: &[u32; 32], from: &[u32; 32]) -> [Half; 2] {
    let ([low, high], [first, second]) = (halves(all), halves(from));
    [words(_mm512_permutex2var_epi32(low, first, high)), words(_mm512_permutex2var_epi32(low, second, high))]
}

/// The lanes whose word has its highest bit set.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub fn signs(all: &[Half; 2]) -> u32 {
    let [low, high] = [_mm512_movepi32_mask(vector(&all[0])), _mm512_movepi32_mask(vector(&all[1]))];
    u32::from(high) << 16 | u32::from(low)
}

/// Does every word lie `1 << shift` behind the one before?
#[inline]
#[target_feature(enable = "avx512f")]
pub fn is_row(all: &[u32; 32], shift: u32) -> bool {
    let [low, high] = halves(all);
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let behind = _mm512_sll_epi32(lanes, _mm_cvtsi32_si128(shift as i32));
    let row = _mm512_add_epi32(_mm512_set1_epi32(all[0] as i32), behind);
    let further = _mm512_add_epi32(row, _mm512_set1_epi32(16 << shift));
    _mm512_cmpneq_epi32_mask(low, row) | _mm512_cmpneq_epi32_mask(high, further) == 0
}

/// Are all words the same?
#[inline]
#[target_feature(enable = "avx512f")]
pub fn is_same(all: &[u32; 32]) -> bool {
    let ([low, high], first) = (halves(all), _mm512_set1_epi32(all[0] as i32));
    _mm512_cmpneq_epi32_mask(low, first) | _mm512_cmpneq_epi32_mask(high, first) == 0
}

/// Lanes' groups of four words, one group behind the other: the first words, the second words, and so on.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn apart(all: &[[u32; 4]; 32]) -> Aligned<[[Half; 2]; 4]> {
    let mut result = Aligned([[[0; 16]; 2]; 4]);
    for half in 0..2 {
        // SAFETY: 16 groups of four words are four vectors.
        let load = |part: usize| unsafe { _mm512_loadu_si512(all.as_ptr().add(16 * half + 4 * part).cast()) };
        let columns = transposed([load(0), load(1), load(2), load(3)]);
        for part in 0..4 {
            result.0[part][half] = words(columns[part]);
        }
    }
    result
}

/// The reverse of [`apart`].
#[inline]
#[target_feature(enable = "avx512f")]
pub fn together(parts: [&[u32; 32]; 4]) -> Aligned<[[u32; 4]; 32]> {
    let mut result = Aligned([[0; 4]; 32]);
    let [first, second, third, fourth] = [halves(parts[0]), halves(parts[1]), halves(parts[2]), halves(parts[3])];
    for half in 0..2 {
        let rows = transposed_back([first[half], second[half], third[half], fourth[half]]);
        for part in 0..4 {
            // SAFETY: as in `apart`.
            unsafe { _mm512_storeu_si512(result.0.as_mut_ptr().add(16 * half + 4 * part).cast(), rows[part]) };
        }
    }
    result
}

/// Vector `i` has the four words of lanes `4 i` to `4 i + 3`; afterwards vector `i` has word `i` of all 16 lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn transposed(rows: [__m512i; 4]) -> [__m512i; 4] {
    let first = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    let third = _mm512_setr_epi32(2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31);
    let pick = |from, pair: usize| _mm512_permutex2var_epi32(rows[2 * pair], from, rows[2 * pair + 1]);
    let (low, high) = ([pick(first, 0), pick(first, 1)], [pick(third, 0), pick(third, 1)]);
    let even = |pair: [__m512i; 2]| _mm512_shuffle_i64x2::<0b01_00_01_00>(pair[0], pair[1]);
    let odd = |pair: [__m512i; 2]| _mm512_shuffle_i64x2::<0b11_10_11_10>(pair[0], pair[1]);
    [even(low), odd(low), even(high), odd(high)]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn transposed_back(columns: [__m512i; 4]) -> [__m512i; 4] {
    let [first, second, third, fourth] = columns;
    // Words 0 and 1 of each lane beside each other, then words 2 and 3.
    let low = [_mm512_unpacklo_epi32(first, second), _mm512_unpackhi_epi32(first, second)];
    let high = [_mm512_unpacklo_epi32(third, fourth), _mm512_unpackhi_epi32(third, fourth)];
    // Block `b` of vector `i` is lane `4 b + i`.
    let lane = [
        _mm512_unpacklo_epi64(low[0], high[0]),
        _mm512_unpackhi_epi64(low[0], high[0]),
        _mm512_unpacklo_epi64(low[1], high[1]),
        _mm512_unpackhi_epi64(low[1], high[1]),
    ];
    let pair = |one: usize, two: usize| {
        [
            _mm512_shuffle_i32x4::<0b10_00_10_00>(lane[one], lane[two]),
            _mm512_shuffle_i32x4::<0b11_01_11_01>(lane[one], lane[two]),
        ]
    };
    let ([even, odd], [even_second, odd_second]) = (pair(0, 1), pair(2, 3));
    let order = |one, two, which: usize| match which {
        0 => _mm512_shuffle_i32x4::<0b10_00_10_00>(one, two),
        _ => _mm512_shuffle_i32x4::<0b11_01_11_01>(one, two),
    };
    [order(even, even_second, 0), order(odd, odd_second, 0), order(even, even_second, 1), order(odd, odd_second, 1)]
}

/// Operands of the exponential, on their way through the unit.
struct Power {
    operand: __m512i,
    /// The operand was halved: the result is squared.
    small: __mmask16,
    negative: __mmask16,
    /// Fraction of the fixed-point operand, and the exponent of the result.
    rest: __m512i,
    exponent: __m512i,
}

/// `ex2.approx`, or `ex2.approx.ftz`: what the functions of [`super::words`] say, whose names these have.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub fn exponentials<const FLUSH: bool>(operands: &[u32; 32], columns: &[[u32; 64]; 3]) -> Aligned<[Half; 2]> {
    let [first, second] = halves(operands).map(|half| fixed_point::<FLUSH>(half));
    let squares = truncated_squares(first.rest, second.rest);
    let low = _mm512_and_si512(squares, _mm512_set1_epi32(0xffff));
    let high = _mm512_srli_epi32::<16>(squares);
    Aligned([words(interpolated::<FLUSH>(first, low, columns)), words(interpolated::<FLUSH>(second, high, columns))])
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn fixed_point<const FLUSH: bool>(operand: __m512i) -> Power {
    let all = |bits: u32| _mm512_set1_epi32(bits as i32);
    let float = _mm512_castsi512_ps(operand);
    let small = if FLUSH { 0 } else { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(float, _mm512_set1_ps(-126.0)) };
    let operand = _mm512_castps_si512(_mm512_mask_mul_ps(float, small, float, _mm512_set1_ps(0.5)));
    let negative = _mm512_movepi32_mask(operand);
    let normal = _mm512_test_epi32_mask(operand, all(INFINITY));
    let significand = _mm512_maskz_or_epi32(normal, _mm512_and_si512(operand, all(FRACTION)), all(HIDDEN));
    let field = _mm512_and_si512(_mm512_srli_epi32::<23>(operand), all(255));
    // One of the counts is negative unless both are zero: such a shift gives zero.
    let left = _mm512_sllv_epi32(significand, _mm512_sub_epi32(field, all(127)));
    let fixed = _mm512_or_si512(left, _mm512_srlv_epi32(significand, _mm512_sub_epi32(all(127), field)));
    let (whole, rest) = (_mm512_srli_epi32::<23>(fixed), _mm512_and_si512(fixed, all(FRACTION)));
    let complemented = _mm512_mask_test_epi32_mask(negative, rest, rest);
    let rest = _mm512_mask_xor_epi32(rest, complemented, rest, all(FRACTION));
    let whole = _mm512_mask_sub_epi32(whole, negative, _mm512_setzero_si512(), whole);
    let exponent = _mm512_mask_sub_epi32(_mm512_add_epi32(whole, all(127)), complemented, whole, all(-126i32 as u32));
    Power { operand, small, negative, rest, exponent }
}

/// Those of two vectors, in the low and the high halves of words.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn truncated_squares(first: __m512i, second: __m512i) -> __m512i {
    let low = _mm512_and_si512(_mm512_srli_epi32::<2>(first), _mm512_set1_epi32(0x7fff));
    let high = _mm512_and_si512(_mm512_slli_epi32::<14>(second), _mm512_set1_epi32(0x7fff_0000));
    let factors = _mm512_or_si512(low, high);
    let large = _mm512_srli_epi16::<7>(factors);
    let small = _mm512_and_si512(factors, _mm512_set1_epi16(127));
    let mut sums = _mm512_srli_epi16::<1>(_mm512_mullo_epi16(large, large));
    macro_rules! add {
        ($($bit:literal $shift:literal),*) => {$(
            let chosen = _mm512_test_epi16_mask(large, _mm512_set1_epi16(1 << $bit));
            sums = _mm512_mask_add_epi16(sums, chosen, sums, _mm512_srli_epi16::<$shift>(small));
        )*};
    }
    add!(1 6, 2 5, 3 4, 4 3, 5 2, 6 1, 7 0);
    sums
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn interpolated<const FLUSH: bool>(power: Power, squares: __m512i, columns: &[[u32; 64]; 3]) -> __m512i {
    let all = |bits: u32| _mm512_set1_epi32(bits as i32);
    let Power { operand, small, negative, rest, exponent } = power;
    let rows = _mm512_srli_epi32::<17>(rest);
    let (value, slope, curvature) =
        (look_up(&columns[0], rows), look_up(&columns[1], rows), look_up(&columns[2], rows));
    let x = _mm512_and_si512(rest, all(0x1ffff));
    let large = _mm512_mullo_epi32(slope, _mm512_srli_epi32::<1>(x));
    let odd = _mm512_test_epi32_mask(x, all(1));
    let bias = _mm512_add_epi32(_mm512_slli_epi32::<13>(_mm512_and_si512(value, all(3))), all(super::words::BIAS));
    let rest = _mm512_add_epi32(_mm512_mullo_epi32(curvature, squares), bias);
    let rest = _mm512_srli_epi32::<1>(_mm512_mask_add_epi32(rest, odd, rest, slope));
    let significand =
        _mm512_add_epi32(_mm512_srli_epi32::<2>(value), _mm512_srli_epi32::<14>(_mm512_add_epi32(large, rest)));
    joined::<FLUSH>(operand, (small, negative), significand, exponent)
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn joined<const FLUSH: bool>(
    operand: __m512i,
    (small, negative): (__mmask16, __mmask16),
    significand: __m512i,
    exponent: __m512i,
) -> __m512i {
    let all = |bits: u32| _mm512_set1_epi32(bits as i32);
    let joined = _mm512_sub_epi32(_mm512_add_epi32(_mm512_slli_epi32::<23>(exponent), significand), all(HIDDEN));
    let positive = _mm512_knot(_mm512_movepi32_mask(exponent));
    let normal = _mm512_mask_cmpge_epu32_mask(positive, joined, all(SMALLEST_NORMAL));
    let bits = _mm512_maskz_min_epu32(normal, joined, all(INFINITY));
    let magnitude = _mm512_and_si512(operand, all(!crate::numerics::SIGN));
    let beyond = _mm512_cmpge_epu32_mask(magnitude, all(135 << 23));
    let bits = _mm512_mask_mov_epi32(bits, beyond, _mm512_maskz_mov_epi32(_mm512_knot(negative), all(INFINITY)));
    let bits = _mm512_mask_mov_epi32(bits, _mm512_cmpgt_epu32_mask(magnitude, all(INFINITY)), all(NAN));
    let float = _mm512_castsi512_ps(bits);
    if FLUSH { bits } else { _mm512_castps_si512(_mm512_mask_mul_ps(float, small, float, float)) }
}

/// The entries of a table of 64 words.
#[inline]
#[target_feature(enable = "avx512f")]
fn look_up(table: &[u32; 64], rows: __m512i) -> __m512i {
    // SAFETY: the table is four times 16 words.
    let part = |index: usize| unsafe { _mm512_loadu_si512(table.as_ptr().add(16 * index).cast()) };
    let low = _mm512_permutex2var_epi32(part(0), rows, part(1));
    let high = _mm512_permutex2var_epi32(part(2), rows, part(3));
    _mm512_mask_blend_epi32(_mm512_test_epi32_mask(rows, _mm512_set1_epi32(32)), low, high)
}
