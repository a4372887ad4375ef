//! Outputs that threads share: each part belongs to the one that has claimed it.

use crate::cpu::division::{Division, Item};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// O and the log-sum-exp, by the items of a division.
pub struct Claims<'a, N> {
    division: &'a Division<'a>,
    next: AtomicUsize,
    o: *mut N,
    elements: usize,
    /// Elements from one batch entry, head and row to the next.
    strides: [usize; 3],
    columns: usize,
    lse: *mut f32,
    borrowed: PhantomData<&'a mut [N]>,
}

// SAFETY: no two claims have the same item, items share no query of a head, and queries share no place in O
// (`Claims::new`), so that no two threads write the same element.
unsafe impl<N: Send> Sync for Claims<'_, N> {}

/// The right to write the results of one item.
pub struct Claim<'a, N> {
    pub item: Item,
    of: &'a Claims<'a, N>,
}

impl<'a, N> Claims<'a, N> {
    /// O with elements from one batch entry, head and row to the next, and the log-sum-exp as (batch, heads, rows).
    pub fn new(
        division: &'a Division<'a>,
        o: &'a mut [N],
        strides: [usize; 3],
        columns: usize,
        lse: &'a mut [f32],
    ) -> Claims<'a, N> {
        let [batch, heads, rows] = division.extents();
        assert_eq!(lse.len(), batch * heads * rows, "a log-sum-exp for each query");
        let mut steps = [(strides[0], batch), (strides[1], heads), (strides[2], rows)];
        steps.sort_unstable();
        let reach = steps.into_iter().filter(|(_, extent)| *extent > 1).try_fold(columns, |reach, (stride, extent)| {
            assert!(stride >= reach, "queries share a place in O");
            reach.checked_add(stride.checked_mul(extent - 1)?)
        });
        assert!(reach.is_some_and(|reach| reach <= o.len()), "O ends before its last query");
        let (o, elements, lse) = (o.as_mut_ptr(), o.len(), lse.as_mut_ptr());
        Claims { division, next: AtomicUsize::new(0), o, elements, strides, columns, lse, borrowed: PhantomData }
    }

    /// The next item that nobody has.
    pub fn next(&'a self) -> Option<Claim<'a, N>> {
        let index = self.next.fetch_add(1, Relaxed);
        (index < self.division.items()).then(|| Claim { item: self.division.item(index), of: self })
    }
}

impl<N> Claim<'_, N> {
    /// The output of one of the item's queries.
    #[inline(always)]
    pub fn row(&mut self, head: usize, query: usize) -> &mut [N] {
        let [batch, row] = self.place(head, query);
        let [batch_stride, head_stride, row_stride] = self.of.strides;
        let start = batch * batch_stride + head * head_stride + row * row_stride;
        assert!(start + self.of.columns <= self.of.elements);
        // SAFETY: inside of O, and of no other claim.
        unsafe { std::slice::from_raw_parts_mut(self.of.o.add(start), self.of.columns) }
    }

    /// The log-sum-exp of one of the item's queries.
    #[inline(always)]
    pub fn log_sum_exp(&mut self, head: usize, query: usize) -> &mut f32 {
        let [batch, row] = self.place(head, query);
        let [_, heads, rows] = self.of.division.extents();
        // SAFETY: there is one for each batch entry, head and row, and this one is of no other claim.
        unsafe { &mut *self.of.lse.add((batch * heads + head) * rows + row) }
    }

    /// Batch entry and row.
    #[inline(always)]
    fn place(&self, head: usize, query: usize) -> [usize; 2] {
        let Item { sequence, ref heads, ref queries, .. } = self.item;
        assert!(heads.contains(&head) && queries.contains(&query), "a query of another item");
        [sequence.batch, sequence.first_query + query]
    }
}

/// A slice in chunks of one size, each for whoever comes next.
pub struct Chunks<'a, T> {
    first: *mut T,
    size: usize,
    count: usize,
    next: AtomicUsize,
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: no chunk is handed out twice.
unsafe impl<T: Send> Sync for Chunks<'_, T> {}

impl<'a, T> Chunks<'a, T> {
    pub fn new(slice: &'a mut [T], size: usize) -> Chunks<'a, T> {
        let count = slice.len() / size;
        Chunks { first: slice.as_mut_ptr(), size, count, next: AtomicUsize::new(0), borrowed: PhantomData }
    }

    /// The next chunk that nobody has, with its number.
    pub fn next(&self) -> Option<(usize, &'a mut [T])> {
        let index = self.next.fetch_add(1, Relaxed);
        // SAFETY: inside of the slice, and nobody else has it.
        (index < self.count)
            .then(|| (index, unsafe { std::slice::from_raw_parts_mut(self.first.add(index * self.size), self.size) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::division::Cut;
    use crate::visibility::Lengths;

    fn claim(strides: [usize; 3], elements: usize) {
        let (mut blocks, lengths) = (vec![], Lengths { queries: 4, keys: 1 });
        let division = Division::new([1, 3], Cut::TILE, lengths, None, &mut blocks);
        Claims::new(&division, &mut vec![0f32; elements], strides, 8, &mut [0.0; 12]);
    }

    #[test]
    fn rows_apart_and_inside_are_taken() {
        claim([0, 32, 8], 96);
        claim([0, 8, 24], 96);
    }

    #[test]
    #[should_panic(expected = "O ends before its last query")]
    fn strides_beyond_the_end_are_refused() {
        claim([0, 32, 8], 95);
    }

    /// Twice the stride is 0 in 64 bits.
    #[test]
    #[should_panic(expected = "O ends before its last query")]
    fn strides_that_would_wrap_are_refused() {
        claim([0, 1 << 63, 8], 96);
    }

    #[test]
    #[should_panic(expected = "queries share a place in O")]
    fn strides_that_share_places_are_refused() {
        claim([0, 31, 8], 96);
    }
}
