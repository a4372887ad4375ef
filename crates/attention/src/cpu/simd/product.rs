//! The two products of attention, which are one: a word of K or V, from where it lies, times the queries side by side.
//!
//! `scores[key] += K[key][word] · queries[word]`, and `output[column] += V[key][column] · weights[key]`. A word is one f32, or a pair
//! of bf16 that one instruction multiplies and adds up. `ROWS` sums are under way at once: as many as leave registers free.

use super::portable::Portable;
use super::{LANES, Lanes, Simd};
use half::bf16;
use std::marker::PhantomData;
use std::ops::Range;

/// How many terms in f32 are summed in one go: a long chain of additions feels its roundings. With 64, one of ten problems failed
/// the rule; 8 are no better than 16.
pub const CHAIN: usize = 16;

/// What a word is, and how it is multiplied.
pub trait Product<S: Simd>: Copy + Send + Sync + 'static {
    /// Numbers in a word.
    const NUMBERS: usize;
    fn dot(self, s: S, sum: S::Vector, words: S::Vector, word: f32) -> S::Vector;
    /// Words out of the numbers of two rows.
    fn pair(self, s: S, low: S::Vector, high: S::Vector) -> S::Vector;
    /// The same, of numbers in memory.
    fn zip(self, s: S, low: &[bf16; LANES], high: &[bf16; LANES]) -> S::Vector;
}

/// Words are f32.
#[derive(Clone, Copy)]
pub struct Singles;

impl<S: Simd> Product<S> for Singles {
    const NUMBERS: usize = 1;

    #[inline(always)]
    fn dot(self, s: S, sum: S::Vector, words: S::Vector, word: f32) -> S::Vector {
        s.mul_add(words, s.splat(word), sum)
    }

    #[inline(always)]
    fn pair(self, _: S, low: S::Vector, _: S::Vector) -> S::Vector {
        low
    }

    #[inline(always)]
    fn zip(self, s: S, low: &[bf16; LANES], _: &[bf16; LANES]) -> S::Vector {
        s.widen_bf16(low)
    }
}

/// The same, where products are rounded: without an instruction for it, one rounding for both takes four times as long, and
/// outputs of 16 bits do not show the difference.
#[derive(Clone, Copy)]
pub struct RoundedSingles;

impl Product<Portable> for RoundedSingles {
    const NUMBERS: usize = 1;

    #[inline(always)]
    fn dot(self, _: Portable, sum: [f32; LANES], words: [f32; LANES], word: f32) -> [f32; LANES] {
        std::array::from_fn(|lane| words[lane] * word + sum[lane])
    }

    #[inline(always)]
    fn pair(self, _: Portable, low: [f32; LANES], _: [f32; LANES]) -> [f32; LANES] {
        low
    }

    #[inline(always)]
    fn zip(self, s: Portable, low: &[bf16; LANES], _: &[bf16; LANES]) -> [f32; LANES] {
        s.widen_bf16(low)
    }
}

/// Words are pairs of bf16.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Pairs(pub super::avx512::Avx512Bf16);

#[cfg(target_arch = "x86_64")]
impl Product<super::avx512::Avx512> for Pairs {
    const NUMBERS: usize = 2;

    #[inline(always)]
    fn dot(
        self,
        s: super::avx512::Avx512,
        sum: std::arch::x86_64::__m512,
        words: std::arch::x86_64::__m512,
        word: f32,
    ) -> std::arch::x86_64::__m512 {
        self.0.dot(sum, words, s.splat(word))
    }

    #[inline(always)]
    fn pair(
        self,
        _: super::avx512::Avx512,
        low: std::arch::x86_64::__m512,
        high: std::arch::x86_64::__m512,
    ) -> std::arch::x86_64::__m512 {
        self.0.pair(low, high)
    }

    #[inline(always)]
    fn zip(self, _: super::avx512::Avx512, low: &[bf16; LANES], high: &[bf16; LANES]) -> std::arch::x86_64::__m512 {
        self.0.zip(low, high)
    }
}

/// Rows of words, of K or of V.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    first: *const f32,
    /// Words from a row to the next.
    stride: usize,
    rows: usize,
    columns: usize,
    borrowed: PhantomData<&'a [f32]>,
}

impl<'a> Words<'a> {
    /// As many rows as there are whole ones.
    #[inline(always)]
    pub fn singles(words: &'a [f32], columns: usize) -> Words<'a> {
        Words { first: words.as_ptr(), stride: columns, rows: words.len() / columns, columns, borrowed: PhantomData }
    }

    /// Of an even number of columns.
    #[inline(always)]
    pub fn pairs(numbers: &'a [bf16], columns: usize) -> Words<'a> {
        assert!(columns.is_multiple_of(2), "a word has two numbers");
        let (first, columns) = (numbers.as_ptr().cast(), columns / 2);
        Words { first, stride: columns, rows: numbers.len() / 2 / columns, columns, borrowed: PhantomData }
    }
}

/// The products of the keys in `rows` with all queries; and the largest for each query. No sum has more than `chain` terms
/// before it is added to others. Rows of `out` behind the last one may be overwritten.
#[inline(always)]
pub fn scores<S: Simd, P: Product<S>, const ROWS: usize>(
    s: S,
    p: P,
    queries: &[Lanes],
    keys: Words,
    rows: Range<usize>,
    chain: usize,
    out: &mut [Lanes],
) -> S::Vector {
    assert!(queries.len() == keys.columns && rows.end <= keys.rows && rows.end.next_multiple_of(ROWS) <= out.len());
    assert!(rows.start.is_multiple_of(ROWS));
    let mut top = s.splat(f32::NEG_INFINITY);
    let mut row = rows.start;
    while row < rows.end {
        // Behind the last row, it is multiplied again, and nobody looks.
        let mut of_row = [keys.first; ROWS];
        for (index, of_row) in of_row.iter_mut().enumerate() {
            // SAFETY: the row exists, as is asserted above.
            *of_row = unsafe { keys.first.add((row + index).min(rows.end - 1) * keys.stride) };
        }
        let out = &mut out[row..row + ROWS];
        let mut start = 0_usize;
        loop {
            let end = start.saturating_add(chain).min(keys.columns);
            let mut sums = [s.splat(0.0); ROWS];
            for column in start..end {
                // SAFETY: there are as many queries as columns. Words of pairs may lie at any even address.
                unsafe {
                    let words = s.load(&queries.get_unchecked(column).0);
                    for (sum, of_row) in sums.iter_mut().zip(&of_row) {
                        *sum = p.dot(s, *sum, words, of_row.add(column).read_unaligned());
                    }
                }
            }
            if start > 0 {
                for (sum, out) in sums.iter_mut().zip(&*out) {
                    *sum = s.add(s.load(&out.0), *sum);
                }
            }
            for (sum, out) in sums.iter().zip(&mut *out) {
                s.store(&mut out.0, *sum);
            }
            start = end;
            if start == keys.columns {
                for sum in sums {
                    top = s.max(sum, top);
                }
                break;
            }
        }
        row += ROWS;
    }
    top
}

/// Adds the values of the keys in `rows` to `out`, each times its weight.
#[inline(always)]
pub fn values<S: Simd, P: Product<S>, const ROWS: usize>(
    s: S,
    p: P,
    weights: &[Lanes],
    values: Words,
    rows: Range<usize>,
    out: &mut [Lanes],
) {
    assert!(rows.end <= weights.len() && rows.end <= values.rows && values.columns == out.len());
    let mut column = 0;
    if S::SUMS_SIX_COLUMNS {
        // As many sixes as leave whole fours.
        let fours = (6 - out.len() % 6) % 6 / 2;
        while column + 4 * fours < out.len() {
            column_values::<S, P, 6>(s, p, weights, values, rows.clone(), column, out);
            column += 6;
        }
    }
    while column < out.len() {
        column_values::<S, P, ROWS>(s, p, weights, values, rows.clone(), column, out);
        column += ROWS;
    }
}

/// The same for as many columns as are summed at once.
#[inline(always)]
fn column_values<S: Simd, P: Product<S>, const COLUMNS: usize>(
    s: S,
    p: P,
    weights: &[Lanes],
    values: Words,
    rows: Range<usize>,
    first: usize,
    out: &mut [Lanes],
) {
    let out = &mut out[first..first + COLUMNS];
    let mut sums = [s.splat(0.0); COLUMNS];
    // One address counts, not the row: a register less.
    let mut of_row = values.first.wrapping_add(rows.start * values.stride + first);
    for words in &weights[rows] {
        let words = s.load(&words.0);
        for (column, sum) in sums.iter_mut().enumerate() {
            // SAFETY: row and columns exist, as is asserted above.
            *sum = p.dot(s, *sum, words, unsafe { of_row.add(column).read_unaligned() });
        }
        of_row = of_row.wrapping_add(values.stride);
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        let sum = s.add(sum, s.load(&out.0));
        s.store(&mut out.0, sum);
    }
}
