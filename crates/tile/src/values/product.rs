//! Products on the tensor cores of one warp.

use super::operand::Square;
use super::shared::{STEPS_OF_PANEL, Transposed, View};
use super::{Accumulator, Element, Packed, RowOperand, U32, Value};
use crate::builder::here;
use crate::error::BuildError;
use crate::instructions::{ldmatrix_x4, mma_m16n8k16};

/// The left side of a warp's product.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be the left side of a product of `{E}`")]
pub trait Left<E: Element> {
    /// What each lane's addresses start from, if it lies in shared memory.
    type Lanes: Copy;
    fn rows(&self) -> u32;
    fn depth(&self) -> u32;
    fn lanes(&self) -> Self::Lanes;
    /// The registers of one 16-deep step: a square for every 16 rows.
    fn step(&self, lanes: Self::Lanes, step: u32) -> Vec<Square<E>>;
}

/// Held in registers.
impl<E: Element> Left<E> for &RowOperand<E> {
    type Lanes = ();
    fn rows(&self) -> u32 {
        RowOperand::rows(self)
    }
    fn depth(&self) -> u32 {
        RowOperand::depth(self)
    }
    fn lanes(&self) {}
    fn step(&self, (): (), step: u32) -> Vec<Square<E>> {
        RowOperand::step(self, step)
    }
}

/// Read from shared memory step by step, so that no more than a step is held.
impl<E: Element> Left<E> for View<'_, E> {
    type Lanes = U32;
    fn rows(&self) -> u32 {
        self.rows
    }
    fn depth(&self) -> u32 {
        self.columns
    }
    #[track_caller]
    fn lanes(&self) -> U32 {
        self.lanes_of_sixteen_rows()
    }
    #[track_caller]
    fn step(&self, lanes: U32, step: u32) -> Vec<Square<E>> {
        self.squares(lanes, step)
    }
}

/// The right side of a warp's product, read from shared memory 16 (depth) × 16 (columns) at a time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the right side of a product whose left side holds `{E}`",
    label = "expected a tile of `{E}`, or its transpose"
)]
pub trait Right<E: Element> {
    fn depth(&self) -> u32;
    fn columns(&self) -> u32;
    /// What each lane's addresses start from.
    fn lanes(&self) -> U32;
    /// Four 8×8 matrices: for each of two column groups, the two halves of the depth.
    fn block(&self, lanes: U32, depth: u32, columns: u32) -> [Value<Packed<E>>; 4];
}

impl<E: Element> Right<E> for View<'_, E> {
    fn depth(&self) -> u32 {
        self.rows
    }
    fn columns(&self) -> u32 {
        self.columns
    }
    #[track_caller]
    fn lanes(&self) -> U32 {
        self.lanes_of_sixteen_rows()
    }
    #[track_caller]
    fn block(&self, lanes: U32, depth: u32, columns: u32) -> [Value<Packed<E>>; 4] {
        ldmatrix_x4(self.step(lanes, columns, depth), true)
    }
}

impl<E: Element> Right<E> for Transposed<'_, E> {
    fn depth(&self) -> u32 {
        self.0.columns
    }
    fn columns(&self) -> u32 {
        let Transposed(tile) = self;
        tile.rows
    }
    #[track_caller]
    fn lanes(&self) -> U32 {
        self.0.lanes_of_transpose()
    }
    #[track_caller]
    fn block(&self, lanes: U32, depth: u32, columns: u32) -> [Value<Packed<E>>; 4] {
        ldmatrix_x4(self.0.step(lanes, depth, columns), false)
    }
}

/// `sum = left · right`
#[track_caller]
pub fn mma<E: Element>(sum: &mut Accumulator, left: impl Left<E>, right: impl Right<E>) {
    sum.clear();
    mma_add(sum, left, right);
}

/// `sum += left · right`
#[track_caller]
pub fn mma_add<E: Element>(sum: &mut Accumulator, left: impl Left<E>, right: impl Right<E>) {
    check_shapes([sum.rows(), sum.columns()], [left.rows(), left.depth()], [right.depth(), right.columns()]);
    let (left_lanes, lanes) = (left.lanes(), right.lanes());
    // Steps that are a panel apart have the same address but for a constant: one after the other they take one register.
    let steps = right.depth() / 16;
    for step in (0..STEPS_OF_PANEL).flat_map(|first| (first..steps).step_by(STEPS_OF_PANEL as usize)) {
        let left = left.step(left_lanes, step);
        for block in 0..right.columns() / 16 {
            let [a0, a1, b0, b1] = right.block(lanes, step, block);
            for (group, left) in left.iter().enumerate() {
                mma_m16n8k16(sum.eight_columns(group, block * 2), left, [a0, a1]);
                mma_m16n8k16(sum.eight_columns(group, block * 2 + 1), left, [b0, b1]);
            }
        }
    }
}

#[track_caller]
pub(super) fn check_shapes(sum: [u32; 2], [rows, left_depth]: [u32; 2], [right_depth, columns]: [u32; 2]) {
    let at = here();
    if !columns.is_multiple_of(16) || !right_depth.is_multiple_of(16) {
        let message = format!("the right side of a product is {right_depth}×{columns}: expected both in sixteens");
        BuildError::new(message, at).raise()
    }
    if left_depth != right_depth || sum != [rows, columns] {
        let sums = format!("{}×{}", sum[0], sum[1]);
        let message = format!("shapes do not fit: {sums} = {rows}×{left_depth} · {right_depth}×{columns}");
        BuildError::new(message, at)
            .help("the left side's depth is the right side's; rows and columns are the sum's")
            .raise()
    }
}
