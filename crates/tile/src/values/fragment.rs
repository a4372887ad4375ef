//! Sums spread over the registers of a warp: 16 rows, as mma.sync m16n8k16 places them.
//!
//! Registers are Rust-side handles, so loops over them are unrolled and nothing can end up in local memory.

use super::{Cell, Element, F32, RowOperand, Rows, Var};
use crate::builder::here;

/// 16 × columns of f32 per warp: what products add to.
pub struct Accumulator {
    registers: Vec<Var<f32>>,
}

impl Accumulator {
    #[track_caller]
    pub fn zero(name: &str, columns: u32) -> Accumulator {
        let mut fragment = Accumulator::new(name, columns);
        fragment.clear();
        fragment
    }

    /// Without a value yet: for `mma`, which sets it.
    #[track_caller]
    pub fn new(name: &str, columns: u32) -> Accumulator {
        here();
        Accumulator { registers: (0..columns / 2).map(|index| Var::unset(format!("{name}_{index}"))).collect() }
    }

    #[track_caller]
    pub fn clear(&mut self) {
        for register in &mut self.registers {
            register.set(0.0);
        }
    }

    pub fn columns(&self) -> u32 {
        self.registers.len() as u32 * 2
    }

    pub(super) fn registers(&self) -> &[Var<f32>] {
        &self.registers
    }

    /// The registers of columns `8 * eight` to `8 * eight + 7`: one product of mma.sync.
    pub(super) fn eight_columns(&mut self, eight: u32) -> &mut [Var<f32>] {
        let first = eight as usize * 4;
        &mut self.registers[first..first + 4]
    }

    /// Replaces each element by `change` of it.
    #[track_caller]
    pub fn update(&mut self, mut change: impl FnMut(Cell, F32) -> F32) {
        for (index, register) in self.registers.iter_mut().enumerate() {
            let changed = change(Cell::of_register(index), register.raw());
            register.set(changed);
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
        let placed = pairs.map(|(index, pair)| (Cell::of_register(2 * index), [pair[0].raw(), pair[1].raw()]));
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
        Rows(std::array::from_fn(|row| {
            let pairs = self.pairs_of_row(row).map(|(_, [left, right])| join(left, right));
            pairs.reduce(&join).unwrap_or(F32::from(0.0))
        }))
    }

    /// Rounded to `E`, as the left side of the next product.
    #[track_caller]
    pub fn to<E: Element>(&self, name: &str) -> RowOperand<E> {
        let mut operand = RowOperand::new(name, self.columns());
        operand.set(self);
        operand
    }
}
