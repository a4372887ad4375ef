//! Products on the tensor cores of a warpgroup, which go on while its warps do something else.
//!
//! A product borrows its sum for `'sum` and its operands for `'operands` until it is finished: nobody reads the one or changes the others.

use super::product::check_shapes;
use super::{Accumulator, Element, Pred, RowOperand, Transposed, U64, View};
use crate::builder::{here, with};
use crate::control::either;
use crate::error::{BuildError, Place};
use crate::instructions::{Sixteen, wgmma_commit_group, wgmma_fence, wgmma_k16, wgmma_wait_group};
use crate::roles::Warpgroup;
use std::marker::PhantomData;

/// Rows of a warpgroup's product: 16 of each of its warps.
const ROWS: u32 = 64;

/// The left side of a warpgroup's product.
pub trait LeftOfGroup<'operands, E: Element> {
    /// Of the warpgroup, and the columns.
    fn shape(&self) -> [u32; 2];
    /// Columns `16 * step` and the 15 behind it.
    fn step(&self, step: u32) -> Sixteen<E>;
}

/// Each warp holds its 16 rows.
impl<'operands, E: Element> LeftOfGroup<'operands, E> for &'operands RowOperand<E> {
    fn shape(&self) -> [u32; 2] {
        [self.rows() * 4, self.depth()]
    }
    fn step(&self, step: u32) -> Sixteen<E> {
        Sixteen::Registers(RowOperand::step(self, step)[0])
    }
}

impl<'operands, E: Element> LeftOfGroup<'operands, E> for View<'operands, E> {
    fn shape(&self) -> [u32; 2] {
        [self.rows, self.columns]
    }
    #[track_caller]
    fn step(&self, step: u32) -> Sixteen<E> {
        Sixteen::Shared(self.descriptor_of_columns(step))
    }
}

/// The right side, which always lies in shared memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the right side of a product whose left side holds `{E}`",
    label = "expected a tile of `{E}`, or its transpose"
)]
pub trait RightOfGroup<'operands, E: Element> {
    /// Whether elements of a row are neighbours, and not those of a column.
    const COLUMNS_FIRST: bool;
    /// Depth and columns.
    fn shape(&self) -> [u32; 2];
    /// The descriptor of 16 of the depth.
    fn step(&self, step: u32) -> U64;
}

impl<'operands, E: Element> RightOfGroup<'operands, E> for View<'operands, E> {
    const COLUMNS_FIRST: bool = true;
    fn shape(&self) -> [u32; 2] {
        [self.rows, self.columns]
    }
    #[track_caller]
    fn step(&self, step: u32) -> U64 {
        self.descriptor_of_rows(step)
    }
}

impl<'operands, E: Element> RightOfGroup<'operands, E> for Transposed<'operands, E> {
    const COLUMNS_FIRST: bool = false;
    fn shape(&self) -> [u32; 2] {
        let Transposed(tile) = self;
        [tile.columns, tile.rows]
    }
    #[track_caller]
    fn step(&self, step: u32) -> U64 {
        self.0.descriptor_of_columns(step)
    }
}

impl Warpgroup {
    /// `sum = left · right`
    #[track_caller]
    pub fn mma<'sum, 'operands, E: Element>(
        &self,
        sum: &'sum mut Accumulator,
        left: impl LeftOfGroup<'operands, E>,
        right: impl RightOfGroup<'operands, E>,
    ) -> InFlight<'sum, 'operands> {
        self.mma_add_if(false.into(), sum, left, right)
    }

    /// `sum += left · right` where `add` holds, and `sum = left · right` where it does not.
    #[track_caller]
    pub fn mma_add_if<'sum, 'operands, E: Element, R: RightOfGroup<'operands, E>>(
        &self,
        add: Pred,
        sum: &'sum mut Accumulator,
        left: impl LeftOfGroup<'operands, E>,
        right: R,
    ) -> InFlight<'sum, 'operands> {
        let at = here();
        let [depth, columns] = right.shape();
        check_shapes([sum.rows() * 4, sum.columns()], left.shape(), [depth, columns]);
        if sum.rows() * 4 != ROWS {
            BuildError::new(format!("a warpgroup's product has {ROWS} rows: expected 16 in each warp"), at).raise()
        }
        wgmma_fence();
        for step in 0..depth / 16 {
            let add = if step == 0 { add } else { true.into() };
            wgmma_k16(sum, left.step(step), right.step(step), add, R::COLUMNS_FIRST);
        }
        wgmma_commit_group();
        let number = with(|b| b.products);
        InFlight { sum: Some(sum), number, at, operands: PhantomData }
    }
}

/// A product that the tensor cores are at.
#[must_use = "a product is finished before its sum is read"]
pub struct InFlight<'sum, 'operands> {
    sum: Option<&'sum mut Accumulator>,
    /// How many groups of products there were with it.
    number: u64,
    at: Place,
    operands: PhantomData<&'operands ()>,
}

impl<'sum> InFlight<'sum, '_> {
    /// Waits for it; younger products stay in flight.
    #[track_caller]
    pub fn finish(mut self) -> &'sum mut Accumulator {
        wgmma_wait_group(self.younger());
        let Some(sum) = self.sum.take() else { unreachable!("a product is finished once") };
        sum
    }

    /// Waits for it in both of two branches. ptxas moves a wait that no branch holds back up into the arithmetic before it.
    #[track_caller]
    pub fn finish_either(
        mut self,
        condition: Pred,
        yes: impl FnOnce(&mut Accumulator),
        no: impl FnOnce(&mut Accumulator),
    ) -> &'sum mut Accumulator {
        let younger = self.younger();
        let Some(sum) = self.sum.take() else { unreachable!("a product is finished once") };
        let shared = std::cell::RefCell::new(&mut *sum);
        let arm = |body: &mut dyn FnMut(&mut Accumulator)| {
            wgmma_wait_group(younger);
            body(&mut shared.borrow_mut());
        };
        let (mut yes, mut no) = (once(yes), once(no));
        either(condition, || arm(&mut yes), || arm(&mut no));
        sum
    }

    fn younger(&self) -> u32 {
        with(|b| b.products - self.number) as u32
    }
}

fn once(body: impl FnOnce(&mut Accumulator)) -> impl FnMut(&mut Accumulator) {
    let mut body = Some(body);
    move |sum| body.take().into_iter().for_each(|body| body(sum))
}

impl Drop for InFlight<'_, '_> {
    fn drop(&mut self) {
        if self.sum.is_some() && !std::thread::panicking() {
            BuildError::new("this product is never finished", self.at)
                .help("call `.finish()` before its sum is read")
                .raise()
        }
    }
}
