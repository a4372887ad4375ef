//! Sums spread over the registers of a warp: groups of 16 rows, as mma.sync m16n8k16 places them.
//!
//! Registers are Rust-side handles, so loops over them are unrolled and nothing can end up in local memory.

use super::rows::{ROWS_OF_GROUP, row_groups};
use super::{Cell, Element, F32, RowOperand, Rows, Var};
use crate::builder::here;

/// Rows × columns of f32 per warp: what products add to. Rows in sixteens, one such group behind the other.
pub struct Accumulator {
    registers: Vec<Var<f32>>,
    groups: usize,
}

impl Accumulator {
    #[track_caller]
    pub fn zero(name: &str, rows: u32, columns: u32) -> Accumulator {
        let mut fragment = Accumulator::new(name, rows, columns);
        fragment.clear();
        fragment
    }

    /// Without a value yet: for `mma`, which sets it.
    #[track_caller]
    pub fn new(name: &str, rows: u32, columns: u32) -> Accumulator {
        let groups = row_groups(name, rows);
        let count = groups as u32 * columns / 2;
        let registers = (0..count).map(|index| Var::unset(format!("{name}_{index}"))).collect();
        Accumulator { registers, groups }
    }

    #[track_caller]
    pub fn clear(&mut self) {
        for register in &mut self.registers {
            register.set(0.0);
        }
    }

    pub fn columns(&self) -> u32 {
        self.registers_of_group() as u32 * 2
    }

    pub fn rows(&self) -> u32 {
        self.groups as u32 * 16
    }

    /// How many of them each thread has a part of.
    pub fn rows_per_thread(&self) -> usize {
        self.groups * ROWS_OF_GROUP
    }

    fn registers_of_group(&self) -> usize {
        self.registers.len() / self.groups
    }

    /// The registers of each 16 rows.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[Var<f32>]> {
        self.registers.chunks_exact(self.registers_of_group())
    }

    /// The registers of 16 rows and of columns `8 * eight` to `8 * eight + 7`: one product of mma.sync.
    pub(super) fn eight_columns(&mut self, group: usize, eight: u32) -> &mut [Var<f32>] {
        let first = group * self.registers_of_group() + eight as usize * 4;
        &mut self.registers[first..first + 4]
    }

    /// Where the element in a register is.
    fn cell(&self, register: usize) -> Cell {
        let of_group = self.registers_of_group();
        Cell::of_register(register / of_group, register % of_group)
    }

    /// Replaces each element by `change` of it.
    #[track_caller]
    pub fn update(&mut self, mut change: impl FnMut(Cell, F32) -> F32) {
        for index in 0..self.registers.len() {
            let changed = change(self.cell(index), self.registers[index].raw());
            self.registers[index].set(changed);
        }
    }

    #[track_caller]
    pub fn scale_rows(&mut self, by: Rows) {
        here();
        self.update(|cell, x| x * by.of(cell));
    }

    /// Every element, in the order of `update`. It reads the register itself: use it before the next change.
    pub fn elements(&self) -> impl Iterator<Item = F32> + '_ {
        self.registers.iter().map(Var::raw)
    }

    /// Pairs of neighbours of the thread's `row`-th row, each with the place of its first.
    pub fn pairs_of_row(&self, row: usize) -> impl Iterator<Item = (Cell, [F32; 2])> + '_ {
        let pairs = self.registers.chunks_exact(2).enumerate();
        let placed = pairs.map(|(index, pair)| (self.cell(2 * index), [pair[0].raw(), pair[1].raw()]));
        placed.filter(move |(cell, _)| cell.row == row)
    }

    /// The largest element of each row.
    #[track_caller]
    pub fn row_max(&self) -> Rows {
        here();
        self.join_rows(F32::max).max_over_lanes()
    }

    /// The sum of what this thread holds of each row; `sum_over_lanes` completes it.
    #[track_caller]
    pub fn row_sum_of_lane(&self) -> Rows {
        here();
        self.join_rows(|a, b| a + b)
    }

    fn join_rows(&self, join: impl Fn(F32, F32) -> F32) -> Rows {
        let joined = |row| {
            let pairs = self.pairs_of_row(row).map(|(_, [left, right])| join(left, right));
            pairs.reduce(&join).unwrap_or(F32::from(0.0))
        };
        (0..self.rows_per_thread()).map(joined).collect()
    }

    /// Rounded to `E`, as the left side of the next product.
    #[track_caller]
    pub fn to<E: Element>(&self, name: &str) -> RowOperand<E> {
        let mut operand = RowOperand::new(name, self.rows(), self.columns());
        operand.set(self);
        operand
    }
}
