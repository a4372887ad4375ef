//! Tensors as they lie in memory, row by row.

use super::simd::{LANES, Number, Rows, Simd};
use crate::problem::Shape;

/// Q, K or V: rows of contiguous columns.
#[derive(Clone, Copy)]
pub struct Strided<'a, N> {
    values: &'a [N],
    /// Elements from one batch entry, head and row to the next.
    strides: [usize; 3],
    columns: usize,
}

impl<'a, N: Number> Strided<'a, N> {
    pub fn new(values: &'a [N], strides: [usize; 3], columns: usize) -> Strided<'a, N> {
        Strided { values, strides, columns }
    }

    /// Whether there are so many columns, and all rows lie inside.
    pub fn has(&self, shape: Shape) -> bool {
        let extents = [shape.batch, shape.heads, shape.rows].map(|extent| extent as usize);
        let mut steps = self.strides.into_iter().zip(extents);
        let reach = steps.try_fold(self.columns, |reach, (stride, extent)| {
            reach.checked_add(stride.checked_mul(extent.saturating_sub(1))?)
        });
        let inside = extents.contains(&0) || reach.is_some_and(|reach| reach <= self.values.len());
        self.columns == shape.columns as usize && inside
    }

    #[inline(always)]
    pub fn row(&self, batch: usize, head: usize, row: usize) -> &'a [N] {
        &self.values[self.place(batch, head, row)..][..self.columns]
    }

    /// Several rows at once, if nothing is between them.
    #[inline(always)]
    pub fn dense(&self, batch: usize, head: usize, first: usize, rows: usize) -> Option<&'a [N]> {
        (self.strides[2] == self.columns).then(|| &self.values[self.place(batch, head, first)..][..rows * self.columns])
    }

    /// Several rows at once, whatever is between them.
    #[inline(always)]
    pub fn rows(&self, batch: usize, head: usize, first: usize, rows: usize) -> Rows<'a, N> {
        Rows::new(&self.values[self.place(batch, head, first)..], self.strides[2], rows, self.columns)
    }

    #[inline(always)]
    fn place(&self, batch: usize, head: usize, row: usize) -> usize {
        let [of_batch, of_head, of_row] = self.strides;
        batch * of_batch + head * of_head + row * of_row
    }
}

/// Sixteen numbers of a row from `at` on, with zeros behind its end.
#[inline(always)]
pub fn sixteen<N: Number>(row: &[N], at: usize) -> [N; LANES] {
    let rest = &row[at..];
    match rest.first_chunk() {
        Some(numbers) => *numbers,
        None => {
            let mut numbers = [N::default(); LANES];
            numbers[..rest.len()].copy_from_slice(rest);
            numbers
        }
    }
}

/// A row as f32, with zeros up to the end of `to`.
#[inline(always)]
pub fn widen<S: Simd, N: Number>(s: S, row: &[N], to: &mut [f32]) {
    let mut at = 0;
    while at < row.len() {
        let wide = N::widen(s, &sixteen(row, at));
        store(s, wide, &mut to[at..]);
        at += LANES;
    }
    if at < to.len() {
        to[at..].fill(0.0);
    }
}

/// As many lanes as there is room for.
#[inline(always)]
pub fn store<S: Simd>(s: S, value: S::Vector, to: &mut [f32]) {
    match to.first_chunk_mut() {
        Some(to) => s.store(to, value),
        None => {
            let mut numbers = [0.0; LANES];
            s.store(&mut numbers, value);
            to.copy_from_slice(&numbers[..to.len()]);
        }
    }
}

/// As many numbers as there is room for.
#[inline(always)]
pub fn narrow<S: Simd, N: Number>(s: S, value: S::Vector, to: &mut [N]) {
    match to.first_chunk_mut() {
        Some(to) => N::narrow(s, value, to),
        None => {
            let mut numbers = [N::default(); LANES];
            N::narrow(s, value, &mut numbers);
            to.copy_from_slice(&numbers[..to.len()]);
        }
    }
}
