//! Sums of products on tensor cores: groups of 16 rows, as mma.sync m16n8k16 places them.

use super::rows::row_groups;
use super::{Element, Fragment, RowOperand, Share, Var};
use std::ops::{Deref, DerefMut};

/// Neighbours of a row that a lane has, of every eight. PTX ISA, "Matrix fragments for mma.m16n8k16".
const RUN: u32 = 2;
/// Rows that a lane has, of every 16.
const ROWS_OF_GROUP: usize = 2;

/// Rows × columns of f32 per warp: what products add to. Rows in sixteens, one such group behind the other.
pub struct Accumulator {
    sums: Fragment,
    groups: usize,
}

impl Accumulator {
    #[track_caller]
    pub fn zero(name: &str, rows: u32, columns: u32) -> Accumulator {
        let mut sums = Accumulator::new(name, rows, columns);
        sums.clear();
        sums
    }

    /// Without a value yet: for `mma`, which sets it.
    #[track_caller]
    pub fn new(name: &str, rows: u32, columns: u32) -> Accumulator {
        let groups = row_groups(name, rows);
        let of_group = columns as usize / 2;
        let place = |index: usize| {
            let (group, index) = (index / of_group, index % of_group);
            (group * ROWS_OF_GROUP + index / 2 % 2, (index / 4 * 8 + index % 2) as u32)
        };
        let places = (0..groups * of_group).map(place).collect();
        Accumulator { sums: Fragment::new(name, Share::of_product(rows), RUN, places), groups }
    }

    pub fn columns(&self) -> u32 {
        self.registers_of_group() as u32 * 2
    }

    fn registers_of_group(&self) -> usize {
        self.registers().len() / self.groups
    }

    /// All registers, as products of warpgroups number them: four for every eight columns of the warp's 16 rows.
    pub(crate) fn registers_of_warp(&self) -> impl Iterator<Item = &Var<f32>> {
        self.registers().iter()
    }

    /// The registers of each 16 rows.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[Var<f32>]> {
        self.registers().chunks_exact(self.registers_of_group())
    }

    /// The registers of 16 rows and of columns `8 * eight` to `8 * eight + 7`: one product of mma.sync.
    pub(super) fn eight_columns(&mut self, group: usize, eight: u32) -> &mut [Var<f32>] {
        let first = group * self.registers_of_group() + eight as usize * 4;
        &mut self.registers_mut()[first..first + 4]
    }

    /// Rounded to `E`, as the left side of the next product.
    #[track_caller]
    pub fn to<E: Element>(&self, name: &str) -> RowOperand<E> {
        let mut operand = RowOperand::new(name, self.rows(), self.columns());
        operand.set(self);
        operand
    }
}

impl Deref for Accumulator {
    type Target = Fragment;
    fn deref(&self) -> &Fragment {
        &self.sums
    }
}

impl DerefMut for Accumulator {
    fn deref_mut(&mut self) -> &mut Fragment {
        &mut self.sums
    }
}
