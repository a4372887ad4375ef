//! The two products where lanes are columns, of one query: rows of K and V are read as they lie, from the first to the last.
//!
//! `products[key] = query · K[key]`, and `output += weights[key] · V[key]`. What surrounds a multiply-add counts: while K and V come
//! from memory, a processor runs ahead by as many loads as there are among the next few hundred instructions. Where it would have
//! to begin anew, at V behind K and at K behind V, what comes next is fetched already: each has some numbers `soon`, or none.

use super::{LANES, Lanes, Number, Product, Simd, Task};
use std::marker::PhantomData;

/// Bytes that are fetched together, on most processors.
const CACHE_LINE: usize = 64;

/// Keys that a word of the query is loaded for once.
const TOGETHER: usize = 4;

/// Keys whose values are added before the next columns of their rows have their turn: of 128 bf16 they take a page.
const NEAR: usize = 16;

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

    /// The last numbers of a row, which are less than sixteen, with zeros behind them.
    ///
    /// # Safety
    /// It is one of the rows.
    #[inline(always)]
    unsafe fn rest<S: Simd>(&self, s: S, row: *const N) -> S::Vector {
        let (first, count) = (self.whole() * LANES, self.columns % LANES);
        let mut numbers = [N::default(); LANES];
        numbers[..count].copy_from_slice(unsafe { std::slice::from_raw_parts(row.add(first), count) });
        N::widen(s, &numbers)
    }
}

/// Numbers that come from memory while others are computed with, if there are `ANY`: a type, so that no loop asks.
struct Soon<N, const ANY: bool>(*const N);

impl<N: Number, const ANY: bool> Soon<N, ANY> {
    /// Fetches so many more; behind the last one, whatever is there.
    #[inline(always)]
    fn fetch<S: Simd>(&mut self, s: S, count: usize) {
        if ANY {
            for at in (0..count).step_by(CACHE_LINE / size_of::<N>()) {
                s.prefetch(self.0.wrapping_add(at));
            }
            self.0 = self.0.wrapping_add(count);
        }
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

/// The product of a query and each of the keys. In a function of its own: in that around it, registers are short.
#[inline(always)]
pub fn products<S: Simd, N: Number>(s: S, query: &[Lanes], keys: Rows<N>, soon: &[N], products: &mut [f32]) {
    assert!(query.len() == keys.columns.div_ceil(LANES) && products.len() == keys.rows);
    s.apart(Products { query, keys, soon, products });
}

struct Products<'a, N> {
    query: &'a [Lanes],
    keys: Rows<'a, N>,
    soon: &'a [N],
    products: &'a mut [f32],
}

impl<N: Number> Task for Products<'_, N> {
    #[inline(always)]
    fn run<S: Simd, P: Product<S>, const ROWS: usize>(self, s: S, _: P) {
        let Products { query, keys, soon, products } = self;
        if soon.is_empty() {
            of_length(s, query, keys, Soon::<N, false>(soon.as_ptr()), products);
        } else {
            of_length(s, query, keys, Soon::<N, true>(soon.as_ptr()), products);
        }
    }
}

/// The same for some lengths: where one is known, the query stays in registers.
#[inline(always)]
fn of_length<S: Simd, N: Number, const ANY: bool>(
    s: S,
    query: &[Lanes],
    keys: Rows<N>,
    soon: Soon<N, ANY>,
    products: &mut [f32],
) {
    match (query.as_array::<4>(), query.as_array::<8>()) {
        (Some(query), _) if S::MANY_REGISTERS && keys.columns == 4 * LANES => each_four(s, query, keys, soon, products),
        (_, Some(query)) if S::MANY_REGISTERS && keys.columns == 8 * LANES => each_four(s, query, keys, soon, products),
        _ => each_four(s, query, keys, soon, products),
    }
}

/// The same, four keys at once. `Q` is a query of known length, or of any.
#[inline(always)]
fn each_four<S: Simd, N: Number, Q: AsRef<[Lanes]> + ?Sized, const ANY: bool>(
    s: S,
    query: &Q,
    keys: Rows<N>,
    mut soon: Soon<N, ANY>,
    products: &mut [f32],
) {
    let (query, step) = (query.as_ref(), keys.stride);
    let (fours, last) = products.as_chunks_mut::<TOGETHER>();
    let mut row = keys.first;
    for four in fours {
        soon.fetch(s, TOGETHER * query.len() * LANES);
        let rows = [row, row.wrapping_add(step), row.wrapping_add(2 * step), row.wrapping_add(3 * step)];
        // SAFETY: there are as many rows as products.
        *four = unsafe { four_products(s, query, keys, rows) };
        row = row.wrapping_add(4 * step);
    }
    if !last.is_empty() {
        // Behind the last key, it is multiplied again, and nobody looks.
        let mut rows = [row; TOGETHER];
        for (index, row) in rows.iter_mut().enumerate() {
            *row = row.wrapping_add(index.min(last.len() - 1) * step);
        }
        // SAFETY: these rows exist.
        let four = unsafe { four_products(s, query, keys, rows) };
        last.copy_from_slice(&four[..last.len()]);
    }
}

/// # Safety
/// These are rows of the keys.
#[inline(always)]
unsafe fn four_products<S: Simd, N: Number>(
    s: S,
    query: &[Lanes],
    keys: Rows<N>,
    rows: [*const N; TOGETHER],
) -> [f32; TOGETHER] {
    let whole = if query.len() * LANES > keys.columns { query.len() - 1 } else { query.len() };
    let (mut sums, mut at) = ([s.splat(0.0); TOGETHER], 0);
    // SAFETY: query and rows have so many whole vectors.
    unsafe {
        while S::MANY_REGISTERS && at + 4 <= whole {
            multiply::<S, N, 4>(s, query, rows, at, &mut sums);
            at += 4;
        }
        while at < whole {
            multiply::<S, N, 1>(s, query, rows, at, &mut sums);
            at += 1;
        }
    }
    if let Some(words) = query.get(whole) {
        for (sum, row) in sums.iter_mut().zip(rows) {
            // SAFETY: it is one of the rows.
            *sum = s.mul_add(unsafe { keys.rest(s, row) }, s.load(&words.0), *sum);
        }
    }
    s.sums(sums)
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

/// Adds each of the values, times its weight, to the output. In a function of its own, too.
#[inline(always)]
pub fn add_values<S: Simd, N: Number>(s: S, weights: &[f32], values: Rows<N>, soon: &[N], output: &mut [Lanes]) {
    assert!(weights.len() == values.rows && output.len() == values.columns.div_ceil(LANES));
    s.apart(Values { weights, values, soon, output });
}

struct Values<'a, N> {
    weights: &'a [f32],
    values: Rows<'a, N>,
    soon: &'a [N],
    output: &'a mut [Lanes],
}

impl<N: Number> Task for Values<'_, N> {
    #[inline(always)]
    fn run<S: Simd, P: Product<S>, const ROWS: usize>(self, s: S, _: P) {
        let Values { weights, values, soon, output } = self;
        if soon.is_empty() {
            in_turns(s, weights, values, Soon::<N, false>(soon.as_ptr()), output);
        } else {
            in_turns(s, weights, values, Soon::<N, true>(soon.as_ptr()), output);
        }
    }
}

/// The same. Where a row takes several turns, the next one comes before what was fetched beside is gone.
#[inline(always)]
fn in_turns<S: Simd, N: Number, const ANY: bool>(
    s: S,
    weights: &[f32],
    values: Rows<N>,
    mut soon: Soon<N, ANY>,
    output: &mut [Lanes],
) {
    let one_turn = output.len() == 4 || S::MANY_REGISTERS && output.len() == 8;
    let near = if one_turn { weights.len().max(1) } else { NEAR };
    for (index, weights) in weights.chunks(near).enumerate() {
        let first = values.first.wrapping_add(index * near * values.stride);
        let (whole, mut at) = (values.whole(), 0);
        let values = Rows { first, rows: weights.len(), ..values };
        // SAFETY: output and values have so many whole vectors, and there are as many values as weights.
        unsafe {
            while S::MANY_REGISTERS && at + 8 <= whole {
                add_vectors::<S, N, 8, ANY>(s, weights, values, at, &mut soon, output);
                at += 8;
            }
            while at + 4 <= whole {
                add_vectors::<S, N, 4, ANY>(s, weights, values, at, &mut soon, output);
                at += 4;
            }
            while at < whole {
                add_vectors::<S, N, 1, ANY>(s, weights, values, at, &mut soon, output);
                at += 1;
            }
            if let Some(output) = output.get_mut(whole) {
                add_rest(s, weights, values, output);
            }
        }
    }
}

/// The same for the last columns, which are less than sixteen.
///
/// # Safety
/// There are as many values as weights.
#[inline(always)]
unsafe fn add_rest<S: Simd, N: Number>(s: S, weights: &[f32], values: Rows<N>, output: &mut Lanes) {
    let (mut sum, mut row) = (s.splat(0.0), values.first);
    for weight in weights {
        sum = s.mul_add(unsafe { values.rest(s, row) }, s.splat(*weight), sum);
        row = row.wrapping_add(values.stride);
    }
    let sum = s.add(s.load(&output.0), sum);
    s.store(&mut output.0, sum);
}

/// The same for some vectors of columns.
///
/// # Safety
/// Values and output have so many from `first` on.
#[inline(always)]
unsafe fn add_vectors<S: Simd, N: Number, const VECTORS: usize, const ANY: bool>(
    s: S,
    weights: &[f32],
    values: Rows<N>,
    first: usize,
    soon: &mut Soon<N, ANY>,
    output: &mut [Lanes],
) {
    let mut sums = [s.splat(0.0); VECTORS];
    // One address counts, not the key: a register less.
    let mut row = values.first.wrapping_add(first * LANES);
    for weight in weights {
        soon.fetch(s, VECTORS * LANES);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::simd::{InstructionSet, flat, run};
    use proptest::prelude::*;

    /// Both products of some rows, of which the second is added to what is there.
    struct Both<'a> {
        query: &'a [Lanes],
        rows: Rows<'a, f32>,
        soon: &'a [f32],
        products: &'a mut [f32],
        output: &'a mut [Lanes],
    }

    impl Task for Both<'_> {
        #[inline(always)]
        fn run<S: Simd, P: Product<S>, const ROWS: usize>(self, s: S, _: P) {
            products(s, self.query, self.rows, self.soon, self.products);
            add_values(s, self.products, self.rows, self.soon, self.output);
        }
    }

    proptest! {
        /// Small whole numbers: every sum is exact, whatever its order.
        #[test]
        fn all_rows_and_columns_are_met_once(
            columns in prop_oneof![1usize..300, Just(64), Just(128)], rows in 1usize..40, gap in 0usize..3, fetches: bool,
        ) {
            let number = |index: usize| (index * 7 % 11) as f32 - 5.0;
            let stride = columns + gap;
            let numbers: Vec<f32> = (0..(rows - 1) * stride + columns).map(number).collect();
            let row = |row: usize| &numbers[row * stride..][..columns];
            let vectors = columns.div_ceil(LANES);
            let mut query = vec![Lanes::all(0.0); vectors];
            for (column, word) in flat(&mut query)[..columns].iter_mut().enumerate() {
                *word = (column % 3) as f32;
            }
            let dot = |of: usize| row(of).iter().enumerate().map(|(column, number)| (column % 3) as f32 * number).sum();
            let expected: Vec<f32> = (0..rows).map(dot).collect();
            for set in InstructionSet::ALL.into_iter().filter(|set| set.is_here()) {
                let (mut products, mut output) = (vec![0.0; rows], vec![Lanes::all(1.0); vectors]);
                let of = Rows::new(&numbers, stride, rows, columns);
                let soon = if fetches { &numbers[..] } else { &[] };
                run(set, Both { query: &query, rows: of, soon, products: &mut products, output: &mut output });
                prop_assert_eq!(&products, &expected, "{:?}", set);
                for (column, sum) in flat(&mut output).iter().enumerate() {
                    let terms = (0..rows).filter_map(|index| Some(row(index).get(column)? * expected[index]));
                    prop_assert_eq!(*sum, 1.0 + terms.sum::<f32>(), "{:?}, column {}", set, column);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "rows end inside of the tensor")]
    fn rows_behind_the_end_are_refused() {
        Rows::new(&[0f32; 9], 5, 2, 5);
    }
}
