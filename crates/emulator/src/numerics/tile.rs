//! Products of matrices that lie in rows and columns, by way of the fragments of a warp.

use super::fragment::{Precision, Register, with_multiplier};
use super::tensor_core::Rule;

/// Extent of a matrix product: `rows` x `depth` times `depth` x `columns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
}

/// Rows and columns of a fragment's accumulator.
const ROWS: usize = 16;
const COLUMNS: usize = 8;

/// `c += a * b` on the tensor cores: a chain of fused sums of [`Rule::length`] products each.
///
/// `a` is row-major, `b` column-major (the `depth` elements of a column lie together), `c` row-major accumulator bits.
/// Panics unless the slices have the extent of `shape` and its depth is a multiple of the rule's length.
pub fn multiply<T: Copy + Into<u32>>(rule: &Rule, shape: Shape, a: &[T], b: &[T], c: &mut [u32]) {
    let Shape { rows, columns, depth } = shape;
    assert!(depth.is_multiple_of(rule.length), "depth {depth} is not a multiple of {}", rule.length);
    assert_eq!((a.len(), b.len(), c.len()), (rows * depth, columns * depth, rows * columns), "extent of a, b, c");
    let (a, b) = (Lines { rule, elements: a, depth }, Lines { rule, elements: b, depth });
    for first in (0..depth).step_by(rule.length) {
        for column in (0..columns).step_by(COLUMNS) {
            let right = b.cores(column, first);
            for row in (0..rows).step_by(ROWS) {
                let [upper, lower] = [a.cores(row, first), a.cores(row + 8, first)];
                let left: Vec<Register> =
                    upper.into_iter().zip(lower).flat_map(|(upper, lower)| [upper, lower]).collect();
                multiply_fragment(
                    rule,
                    &left,
                    &right,
                    |index, lane| {
                        let (row, column) = (row + index / 2 * 8 + lane / 4, column + lane % 4 * 2 + index % 2);
                        (row < rows && column < columns).then_some(row * columns + column)
                    },
                    c,
                );
            }
        }
    }
}

/// One fragment, where `place` says which element of `c` a lane of a register holds.
fn multiply_fragment(
    rule: &Rule,
    left: &[Register],
    right: &[Register],
    place: impl Fn(usize, usize) -> Option<usize>,
    c: &mut [u32],
) {
    let mut registers: [Register; 4] =
        std::array::from_fn(|index| std::array::from_fn(|lane| place(index, lane).map_or(0, |place| c[place])));
    with_multiplier(Precision::Exact, |multiplier| {
        multiplier.load_left(rule.operand, left);
        multiplier.load_right(rule.operand, 1, right);
        multiplier.multiply(rule, &mut registers);
    });
    for (index, register) in registers.iter().enumerate() {
        for (lane, value) in register.iter().enumerate() {
            if let Some(place) = place(index, lane) {
                c[place] = *value;
            }
        }
    }
}

/// Rows of A or columns of B.
struct Lines<'a, T> {
    rule: &'a Rule,
    elements: &'a [T],
    depth: usize,
}

impl<T: Copy + Into<u32>> Lines<'_, T> {
    /// The core matrices of eight lines, one sum deep; there are zeros beyond the last line.
    fn cores(&self, line: usize, first: usize) -> Vec<Register> {
        let bits = self.rule.operand.sign().ilog2() as usize + 1;
        let parts = 32 / bits;
        let word = |line: usize, depth: usize| {
            let elements = self.elements.get(line * self.depth + depth..).unwrap_or_default();
            elements
                .iter()
                .take(parts)
                .rev()
                .fold(0, |word, element| (u64::from(word) << bits) as u32 | (*element).into())
        };
        let core = |depth: usize| std::array::from_fn(|at| word(line + at / 4, depth + at % 4 * parts));
        (first..first + self.rule.length).step_by(4 * parts).map(core).collect()
    }
}
