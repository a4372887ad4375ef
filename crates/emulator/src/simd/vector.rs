//! Functions of all lanes of which the compiler makes too little: permutations, tables, tests of whole rows. `LEVEL` is
//! that of the function that they are compiled into.

#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::lanes::{Aligned, File, Half};
use super::words;
use crate::numerics::tables::EXPONENTIAL;

/// The columns of the table of `ex2`: value, slope, curvature.
static COLUMNS: Aligned<[[u32; 64]; 3]> = Aligned(columns());

const fn columns() -> [[u32; 64]; 3] {
    let mut columns = [[0; 64]; 3];
    let mut index = 0;
    while index < 3 * 64 {
        columns[index / 64][index % 64] = EXPONENTIAL[index % 64][index / 64] as u32;
        index += 1;
    }
    columns
}

/// The word of lane `from[lane]` for every lane.
#[inline(always)]
pub fn permute<const LEVEL: u8>(words: &[u32; 32], from: &[u32; 32]) -> [Half; 2] {
    #[cfg(target_arch = "x86_64")]
    if LEVEL == 2 {
        // SAFETY: level 2 is AVX-512.
        return unsafe { avx512::permute(words, from) };
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
    #[cfg(target_arch = "x86_64")]
    if LEVEL == 2 {
        // SAFETY: level 2 is AVX-512.
        let results = unsafe { avx512::exponentials::<FLUSH>(file.words(a), &COLUMNS.0) };
        return file.write(destination, mask, &results.0);
    }
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
        let values = look_up(&COLUMNS.0[0], &rows);
        let slopes = look_up(&COLUMNS.0[1], &rows);
        let curvatures = look_up(&COLUMNS.0[2], &rows);
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

/// Half the squares of the low 17 bits, as the special-function unit squares: every partial product loses its low bits. The
/// lowest two are nothing but that; the other 15, and the sum, fit 16 bits, so that one vector holds all lanes. Of those
/// the upper eight lose nothing among themselves. With the lower seven they meet twice: bits `i` and `j` whose product
/// counts give the same, whichever chooses.
#[inline(always)]
fn truncated_squares(fractions: &[Half; 2]) -> [[u16; 16]; 2] {
    let (mut upper, mut lower, mut sums) = ([0u16; 32], [0u16; 32], [0u16; 32]);
    for lane in 0..32 {
        let factor = (fractions[lane / 16][lane % 16] >> 2) as u16 & 0x7fff;
        (upper[lane], lower[lane]) = (factor >> 7, factor & 127);
        sums[lane] = (upper[lane] * upper[lane]) >> 1;
    }
    for bit in 1..8 {
        for lane in 0..32 {
            let chosen = (upper[lane] >> bit & 1).wrapping_neg();
            sums[lane] += chosen & lower[lane] >> (7 - bit);
        }
    }
    let mut squares = [[0; 16]; 2];
    for lane in 0..32 {
        squares[lane / 16][lane % 16] = sums[lane];
    }
    squares
}

/// The entries of a table of 64 words.
#[inline(always)]
fn look_up(table: &[u32; 64], rows: &Half) -> Half {
    let mut found = [0; 16];
    for lane in 0..16 {
        found[lane] = table[rows[lane] as usize & 63];
    }
    found
}

/// The lanes whose word has its highest bit set.
#[inline(always)]
pub fn signs<const LEVEL: u8>(words: &[Half; 2]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if LEVEL == 2 {
        // SAFETY: level 2 is AVX-512.
        return unsafe { avx512::signs(words) };
    }
    let mut bits = 0;
    for half in 0..2 {
        // A sum of bits is what the compiler makes a vector of; it takes a mask from it only by chance.
        let mut chosen = [0u32; 16];
        for lane in 0..16 {
            chosen[lane] = (words[half][lane] >> 31) << lane;
        }
        let mut one = 0;
        for bit in chosen {
            one |= bit;
        }
        bits |= one << (16 * half);
    }
    bits
}

/// Does every word lie `1 << shift` behind the one before?
#[inline(always)]
pub fn is_row<const LEVEL: u8>(words: &[u32; 32], shift: u32) -> bool {
    #[cfg(target_arch = "x86_64")]
    if LEVEL == 2 {
        // SAFETY: level 2 is AVX-512.
        return unsafe { avx512::is_row(words, shift) };
    }
    let mut other = 0;
    for lane in 0..32 {
        other |= words[lane] ^ words[0].wrapping_add((lane as u32) << shift);
    }
    other == 0
}

/// Are all words the same?
#[inline(always)]
pub fn is_same<const LEVEL: u8>(words: &[u32; 32]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if LEVEL == 2 {
        // SAFETY: level 2 is AVX-512.
        return unsafe { avx512::is_same(words) };
    }
    let mut other = 0;
    for lane in 0..32 {
        other |= words[lane] ^ words[0];
    }
    other == 0
}

/// Of groups of words, one for each lane: the first words, the second words, and so on.
#[inline(always)]
pub fn apart<const LEVEL: u8, const WORDS: usize>(groups: &[[u32; WORDS]; 32]) -> Aligned<[[Half; 2]; WORDS]> {
    let mut parts = Aligned([[[0; 16]; 2]; WORDS]);
    #[cfg(target_arch = "x86_64")]
    if LEVEL == 2 && WORDS == 4 {
        // SAFETY: level 2 is AVX-512; groups of four words are what they are.
        unsafe {
            let groups = &*groups.as_ptr().cast::<[[u32; 4]; 32]>();
            *parts.0.as_mut_ptr().cast::<[[Half; 2]; 4]>() = avx512::apart(groups).0;
        }
        return parts;
    }
    for part in 0..WORDS {
        for lane in 0..32 {
            parts.0[part][lane / 16][lane % 16] = groups[lane][part];
        }
    }
    parts
}

/// The reverse of [`apart`].
#[inline(always)]
pub fn together<const LEVEL: u8, const WORDS: usize>(parts: &[&[u32; 32]; WORDS]) -> Aligned<[[u32; WORDS]; 32]> {
    let mut groups = Aligned([[0; WORDS]; 32]);
    #[cfg(target_arch = "x86_64")]
    if LEVEL == 2 && WORDS == 4 {
        // SAFETY: level 2 is AVX-512; groups of four words are what they are.
        unsafe {
            let parts = *parts.as_ptr().cast::<[&[u32; 32]; 4]>();
            *groups.0.as_mut_ptr().cast::<[[u32; 4]; 32]>() = avx512::together(parts).0;
        }
        return groups;
    }
    for lane in 0..32 {
        for part in 0..WORDS {
            groups.0[lane][part] = parts[part][lane];
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Chunk;
    use crate::numerics::special;
    use crate::simd::Level;

    fn powers<const LEVEL: u8>() {
        for step in 0..1u32 << 17 {
            let words = std::array::from_fn(|lane| (step * 32 + lane as u32).wrapping_mul(1021));
            let chunks = &mut [Chunk(words), Chunk::ZERO, Chunk::ZERO];
            // SAFETY: there are three places.
            let mut file = unsafe { File::new(chunks, &mut []) };
            exponentials::<LEVEL, true>(&mut file, [1, 0, 0, 0], u32::MAX);
            exponentials::<LEVEL, false>(&mut file, [2, 0, 0, 0], u32::MAX);
            assert_eq!(chunks[1].0, words.map(special::unit_exponential), "{words:x?}");
            assert_eq!(chunks[2].0, words.map(special::exponential), "{words:x?}");
        }
    }

    #[test]
    fn powers_of_two_are_those_of_the_unit() {
        powers::<0>();
    }

    #[test]
    fn powers_of_two_are_those_of_the_unit_in_wide_vectors() {
        if Level::best() == Level::Avx512 {
            powers::<2>();
        }
    }

    fn groups_part_and_meet<const LEVEL: u8, const WORDS: usize>() {
        let groups: [[u32; WORDS]; 32] =
            std::array::from_fn(|lane| std::array::from_fn(|part| (1000 * part + lane) as u32));
        let parts = apart::<LEVEL, WORDS>(&groups).0;
        for part in 0..WORDS {
            assert_eq!(parts[part].concat(), Vec::from_iter((0..32).map(|lane| 1000 * part as u32 + lane)));
        }
        let columns: [[u32; 32]; WORDS] =
            std::array::from_fn(|part| std::array::from_fn(|lane| parts[part][lane / 16][lane % 16]));
        assert_eq!(together::<LEVEL, WORDS>(&columns.each_ref()).0, groups);
    }

    fn rows_are_known<const LEVEL: u8>() {
        let row: [u32; 32] = std::array::from_fn(|lane| (u32::MAX - 40).wrapping_add(4 * lane as u32));
        assert!(is_row::<LEVEL>(&row, 2) && !is_same::<LEVEL>(&row));
        assert!(!is_row::<LEVEL>(&row, 3));
        assert!(!is_row::<LEVEL>(&[7; 32], 2) && is_same::<LEVEL>(&[7; 32]));
        for lane in 0..32 {
            let mut other = row;
            other[lane] ^= 1 << lane;
            assert!(!is_row::<LEVEL>(&other, 2), "lane {lane}");
            let mut other = [7; 32];
            other[lane] ^= 1 << lane;
            assert!(!is_same::<LEVEL>(&other), "lane {lane}");
        }
    }

    #[test]
    fn every_level_moves_lanes_alike() {
        groups_part_and_meet::<0, 2>();
        groups_part_and_meet::<0, 4>();
        rows_are_known::<0>();
        if Level::best() == Level::Avx512 {
            groups_part_and_meet::<2, 2>();
            groups_part_and_meet::<2, 4>();
            rows_are_known::<2>();
        }
    }
}
