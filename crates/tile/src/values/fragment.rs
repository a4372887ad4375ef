//! Numbers spread over the registers of a warp: what masks, scores and softmax work on, however they lie.
//!
//! Registers are Rust-side handles, so loops over them are unrolled and nothing can end up in local memory.

use super::{Cell, F32, Pred, Rows, Share, Var};
use crate::builder::here;
use crate::error::BuildError;

/// Rows × columns of f32 per warp.
pub struct Fragment {
    share: Share,
    /// How many neighbours of a row follow each other in a lane's registers.
    run: u32,
    registers: Vec<Var<f32>>,
    /// The row of each register, among those of the lane, and the constant part of its column.
    places: Vec<(usize, u32)>,
}

impl Fragment {
    /// Without values yet. `places` has row and column of each register; neighbours come in `run`s.
    #[track_caller]
    pub(super) fn new(name: &str, share: Share, run: u32, places: Vec<(usize, u32)>) -> Fragment {
        let registers = (0..places.len()).map(|index| Var::unset(format!("{name}_{index}"))).collect();
        Fragment { share, run, registers, places }
    }

    #[track_caller]
    pub fn clear(&mut self) {
        for register in &mut self.registers {
            register.set(0.0);
        }
    }

    pub fn share(&self) -> Share {
        self.share
    }

    pub fn rows(&self) -> u32 {
        self.share.rows()
    }

    pub(super) fn registers(&self) -> &[Var<f32>] {
        &self.registers
    }

    pub(super) fn registers_mut(&mut self) -> &mut [Var<f32>] {
        &mut self.registers
    }

    /// Where the element in a register is.
    fn cell(&self, register: usize) -> Cell {
        let (row, column) = self.places[register];
        Cell { share: self.share, run: self.run, row, column }
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

    /// Whether something holds for every element that this thread has.
    #[track_caller]
    pub fn all(&self, holds: impl Fn(F32) -> Pred) -> Pred {
        here();
        self.elements().map(holds).fold(true.into(), |all, one| all & one)
    }

    /// Every element with its place, in the order of `update`. It reads the register itself, too.
    pub(super) fn cells(&self) -> impl Iterator<Item = (Cell, F32)> + '_ {
        self.elements().enumerate().map(|(register, number)| (self.cell(register), number))
    }

    /// Pairs of neighbours of the lane's `row`-th row, each with the place of its first.
    #[track_caller]
    pub fn pairs_of_row(&self, row: usize) -> impl Iterator<Item = (Cell, [F32; 2])> + '_ {
        let at = here();
        self.runs_of_row(row).map(move |(cell, run)| match run {
            [left, right] => (cell, [left.raw(), right.raw()]),
            _ => {
                BuildError::new(format!("lanes have runs of {} neighbours here: expected pairs", run.len()), at).raise()
            }
        })
    }

    /// What the lane has of its `row`-th row: runs of neighbours, each with the place of its first.
    fn runs_of_row(&self, row: usize) -> impl Iterator<Item = (Cell, &[Var<f32>])> + '_ {
        let run = self.run as usize;
        let runs = self.registers.chunks_exact(run).zip((0..).step_by(run));
        runs.map(|(run, first)| (self.cell(first), run)).filter(move |(cell, _)| cell.row == row)
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
            let runs = self.runs_of_row(row).filter_map(|(_, run)| run.iter().map(Var::raw).reduce(&join));
            runs.reduce(&join).unwrap_or(F32::from(0.0))
        };
        Rows::new(self.share, (0..self.share.rows_per_lane()).map(joined))
    }
}
