//! What the compiler does not find by itself: permutations of lanes, and tables that fit into registers.

use super::lanes::{File, Half};
use super::words;
use crate::numerics::tables::EXPONENTIAL;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// The columns of the table of `ex2`: value, slope, curvature.
static COLUMNS: [[u32; 64]; 3] = columns();

const fn columns() -> [[u32; 64]; 3] {
    let mut columns = [[0; 64]; 3];
    let mut index = 0;
    while index < 3 * 64 {
        columns[index / 64][index % 64] = EXPONENTIAL[index % 64][index / 64] as u32;
        index += 1;
    }
    columns
}

/// The word of lane `from[lane]` for every lane. `LEVEL` is that of the function that this is compiled into.
#[inline(always)]
pub fn permute<const LEVEL: u8>(words: &[u32; 32], from: &[u32; 32]) -> [Half; 2] {
    #[cfg(target_arch = "x86_64")]
    if LEVEL == 2 {
        // SAFETY: level 2 is AVX-512.
        return unsafe { permute_avx512(words, from) };
    }
    let mut result = [[0; 16]; 2];
    for lane in 0..32 {
        result[lane / 16][lane % 16] = words[from[lane] as usize & 31];
    }
    result
}

/// `ex2.approx`, or `ex2.approx.ftz`.
#[inline(always)]
pub fn exponentials<const LEVEL: u8, const FLUSH: bool>(file: &mut File, [destination, a, ..]: [u32; 4], mask: u32) {
    let operands = file.halves(a);
    let (mut scaled, mut small, mut rests, mut exponents) =
        ([[0; 16]; 2], [[false; 16]; 2], [[0; 16]; 2], [[0; 16]; 2]);
    for half in 0..2 {
        for lane in 0..16 {
            (scaled[half][lane], small[half][lane]) = words::scaled_exponent::<FLUSH>(operands[half][lane]);
            (rests[half][lane], exponents[half][lane]) = words::fixed_point(scaled[half][lane]);
        }
    }
    let squares = truncated_squares(&rests);
    for half in 0..2 {
        let mut rows = [0; 16];
        for lane in 0..16 {
            rows[lane] = rests[half][lane] >> 17;
        }
        let values = look_up::<LEVEL>(&COLUMNS[0], &rows);
        let slopes = look_up::<LEVEL>(&COLUMNS[1], &rows);
        let curvatures = look_up::<LEVEL>(&COLUMNS[2], &rows);
        let mut results = [0; 16];
        for lane in 0..16 {
            let row = [values[lane], slopes[lane], curvatures[lane]];
            let significand = words::interpolated(rests[half][lane], squares[half][lane].into(), row);
            let power = words::joined_power(scaled[half][lane], significand, exponents[half][lane]);
            results[lane] = words::unscaled(power, small[half][lane]);
        }
        file.write_half(destination, half, mask, results);
    }
}

/// The squares of the low 17 bits, as the special-function unit squares: every partial product loses its low bits. The
/// lowest two are nothing but that; the other 15, and the sum, fit 16 bits, so that one vector holds all lanes.
#[inline(always)]
fn truncated_squares(fractions: &[Half; 2]) -> [[u16; 16]; 2] {
    let (mut factors, mut sums) = ([0u16; 32], [0u16; 32]);
    for lane in 0..32 {
        factors[lane] = (fractions[lane / 16][lane % 16] >> 2) as u16 & 0x7fff;
    }
    for bit in 0..15 {
        for lane in 0..32 {
            let chosen = (factors[lane] >> bit & 1).wrapping_neg();
            sums[lane] = sums[lane].wrapping_add(chosen & factors[lane] >> (14 - bit));
        }
    }
    let mut squares = [[0; 16]; 2];
    for lane in 0..32 {
        squares[lane / 16][lane % 16] = sums[lane] >> 1;
    }
    squares
}

/// The entries of a table of 64 words.
#[inline(always)]
fn look_up<const LEVEL: u8>(table: &[u32; 64], rows: &Half) -> Half {
    #[cfg(target_arch = "x86_64")]
    if LEVEL == 2 {
        // SAFETY: level 2 is AVX-512.
        return unsafe { look_up_avx512(table, rows) };
    }
    let mut found = [0; 16];
    for lane in 0..16 {
        found[lane] = table[rows[lane] as usize & 63];
    }
    found
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn permute_avx512(words: &[u32; 32], from: &[u32; 32]) -> [Half; 2] {
    // SAFETY: 32 words are twice 16; a vector of 512 bits and 16 words are the same bytes.
    unsafe {
        let low = _mm512_loadu_si512(words.as_ptr().cast());
        let high = _mm512_loadu_si512(words.as_ptr().add(16).cast());
        let first = _mm512_permutex2var_epi32(low, _mm512_loadu_si512(from.as_ptr().cast()), high);
        let second = _mm512_permutex2var_epi32(low, _mm512_loadu_si512(from.as_ptr().add(16).cast()), high);
        [std::mem::transmute::<__m512i, Half>(first), std::mem::transmute::<__m512i, Half>(second)]
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn look_up_avx512(table: &[u32; 64], rows: &Half) -> Half {
    // SAFETY: the table is four times 16 words; a vector of 512 bits and 16 words are the same bytes.
    unsafe {
        let table = table.as_ptr();
        let rows = _mm512_loadu_si512(rows.as_ptr().cast());
        let (first, second) = (_mm512_loadu_si512(table.cast()), _mm512_loadu_si512(table.add(16).cast()));
        let (third, fourth) = (_mm512_loadu_si512(table.add(32).cast()), _mm512_loadu_si512(table.add(48).cast()));
        let low = _mm512_permutex2var_epi32(first, rows, second);
        let high = _mm512_permutex2var_epi32(third, rows, fourth);
        let above = _mm512_test_epi32_mask(rows, _mm512_set1_epi32(32));
        std::mem::transmute::<__m512i, Half>(_mm512_mask_blend_epi32(above, low, high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Chunk;
    use crate::numerics::special;

    #[test]
    fn powers_of_two_are_those_of_the_unit() {
        for step in 0..1u32 << 17 {
            let words = std::array::from_fn(|lane| (step * 32 + lane as u32).wrapping_mul(1021));
            let chunks = &mut [Chunk(words), Chunk::ZERO, Chunk::ZERO];
            // SAFETY: there are three places.
            let mut file = unsafe { File::new(chunks, &mut []) };
            exponentials::<0, true>(&mut file, [1, 0, 0, 0], u32::MAX);
            exponentials::<0, false>(&mut file, [2, 0, 0, 0], u32::MAX);
            assert_eq!(chunks[1].0, words.map(special::unit_exponential), "{words:x?}");
            assert_eq!(chunks[2].0, words.map(special::exponential), "{words:x?}");
        }
    }
}
