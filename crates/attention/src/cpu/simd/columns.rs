//! The two products where lanes are columns, of one query: rows of K and V are read as they lie, from the first to the last.
//!
//! `products[key] = query · K[key]`, and `output += weights[key] · V[key]`. What surrounds a multiply-add counts: while K and V come
//! from memory, a processor runs ahead by as many loads as there are among the next few hundred instructions.

use super::{LANES, Lanes, Number, Simd};
use std::marker::PhantomData;

/// Keys that a word of the query is loaded for once.
const TOGETHER: usize = 4;

/// Rows of K or of V, with gaps of one size between them.
#[derive(Clone, Copy)]
pub struct Rows<'a, N> {
    first: *const N,
    /// Numbers from a row to the next.
    stride: usize,
    rows: usize,
    columns: usize,
    borrowed: PhantomData<&'a [N]>,
}

impl<'a, N: Number> Rows<'a, N> {
    #[inline(always)]
    pub fn new(numbers: &'a [N], stride: usize, rows: usize, columns: usize) -> Rows<'a, N> {
        let reach = rows.saturating_sub(1).checked_mul(stride).and_then(|last| last.checked_add(columns));
        assert!(reach.is_some_and(|reach| reach <= numbers.len()), "rows end inside of the tensor");
        Rows { first: numbers.as_ptr(), stride, rows, columns, borrowed: PhantomData }
    }

    /// Vectors of a row that need no zeros.
    #[inline(always)]
    fn whole(&self) -> usize {
        self.columns / LANES
    }

    #[inline(always)]
    fn place(&self, row: usize) -> *const N {
        debug_assert!(row < self.rows);
        self.first.wrapping_add(row * self.stride)
    }

    /// The last numbers of a row, which are less than sixteen, with zeros behind them.
    #[inline(always)]
    fn rest<S: Simd>(&self, s: S, row: usize) -> S::Vector {
        assert!(row < self.rows);
        let (first, count) = (self.whole() * LANES, self.columns % LANES);
        let mut numbers = [N::default(); LANES];
        // SAFETY: the row exists, and so do all of its columns (`Rows::new`).
        numbers[..count].copy_from_slice(unsafe { std::slice::from_raw_parts(self.place(row).add(first), count) });
        N::widen(s, &numbers)
    }
}

/// Sixteen numbers of a row.
///
/// # Safety
/// The row has sixteen columns from there on.
#[inline(always)]
unsafe fn sixteen<S: Simd, N: Number>(s: S, row: *const N, column: usize) -> S::Vector {
    N::widen(s, unsafe { &*row.add(column).cast() })
}

/// The product of a query and each of the keys.
#[inline(always)]
pub fn products<S: Simd, N: Number>(s: S, query: &[Lanes], keys: Rows<N>, products: &mut [f32]) {
    assert!(query.len() * LANES >= keys.columns && products.len() == keys.rows);
    let whole = keys.whole();
    let mut key = 0;
    while key < keys.rows {
        // Behind the last key, it is multiplied again, and nobody looks.
        let mut rows = [keys.first; TOGETHER];
        for (index, row) in rows.iter_mut().enumerate() {
            *row = keys.place((key + index).min(keys.rows - 1));
        }
        let (mut sums, mut at) = ([s.splat(0.0); TOGETHER], 0);
        // SAFETY: the rows exist, and the query and they have so many whole vectors.
        unsafe {
            while at + 4 <= whole {
                multiply::<S, N, 4>(s, query, rows, at, &mut sums);
                at += 4;
            }
            while at < whole {
                multiply::<S, N, 1>(s, query, rows, at, &mut sums);
                at += 1;
            }
        }
        if let Some(words) = query.get(whole) {
            for (index, sum) in sums.iter_mut().enumerate() {
                *sum = s.mul_add(keys.rest(s, (key + index).min(keys.rows - 1)), s.load(&words.0), *sum);
            }
        }
        let sums = s.sums(sums);
        let products = &mut products[key..];
        match products.first_chunk_mut() {
            Some(products) => *products = sums,
            None => products.copy_from_slice(&sums[..products.len()]),
        }
        key += TOGETHER;
    }
}

/// Adds the products of some vectors of a query and of keys.
///
/// # Safety
/// Query and rows have so many from `first` on.
#[inline(always)]
unsafe fn multiply<S: Simd, N: Number, const VECTORS: usize>(
    s: S,
    query: &[Lanes],
    rows: [*const N; TOGETHER],
    first: usize,
    sums: &mut [S::Vector; TOGETHER],
) {
    for vector in first..first + VECTORS {
        unsafe {
            let words = s.load(&query.get_unchecked(vector).0);
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum = s.mul_add(sixteen(s, row, vector * LANES), words, *sum);
            }
        }
    }
}

/// Adds each of the values, times its weight, to the output.
#[inline(always)]
pub fn add_values<S: Simd, N: Number>(s: S, weights: &[f32], values: Rows<N>, output: &mut [Lanes]) {
    assert!(weights.len() == values.rows && output.len() * LANES >= values.columns);
    let (whole, mut at) = (values.whole(), 0);
    // SAFETY: output and values have so many whole vectors.
    unsafe {
        while S::MANY_REGISTERS && at + 8 <= whole {
            add_vectors::<S, N, 8>(s, weights, values, at, output);
            at += 8;
        }
        while at + 4 <= whole {
            add_vectors::<S, N, 4>(s, weights, values, at, output);
            at += 4;
        }
        while at < whole {
            add_vectors::<S, N, 1>(s, weights, values, at, output);
            at += 1;
        }
    }
    if let Some(output) = output.get_mut(whole) {
        let mut sum = s.splat(0.0);
        for (key, weight) in weights.iter().enumerate() {
            sum = s.mul_add(values.rest(s, key), s.splat(*weight), sum);
        }
        let sum = s.add(s.load(&output.0), sum);
        s.store(&mut output.0, sum);
    }
}

/// The same for some vectors of columns.
///
/// # Safety
/// Values and output have so many from `first` on.
#[inline(always)]
unsafe fn add_vectors<S: Simd, N: Number, const VECTORS: usize>(
    s: S,
    weights: &[f32],
    values: Rows<N>,
    first: usize,
    output: &mut [Lanes],
) {
    let mut sums = [s.splat(0.0); VECTORS];
    // One address counts, not the key: a register less.
    let mut row = values.first.wrapping_add(first * LANES);
    for weight in weights {
        let weight = s.splat(*weight);
        for (vector, sum) in sums.iter_mut().enumerate() {
            *sum = s.mul_add(unsafe { sixteen(s, row, vector * LANES) }, weight, *sum);
        }
        row = row.wrapping_add(values.stride);
    }
    for (output, sum) in output[first..first + VECTORS].iter_mut().zip(sums) {
        let sum = s.add(s.load(&output.0), sum);
        s.store(&mut output.0, sum);
    }
}
