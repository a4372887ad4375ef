//! One number per row that a thread holds of a 16-row fragment.

use super::{Cell, F32, Var};
use crate::builder::here;
use std::ops::{Add, Mul, Neg};

/// One thread holds two rows of a 16-row matrix: `lane / 4` and eight further.
pub const ROWS_PER_THREAD: usize = 2;

#[derive(Clone, Copy)]
pub struct Rows(pub [F32; ROWS_PER_THREAD]);

impl Rows {
    /// The number of the row that `cell` is in.
    pub fn of(self, cell: Cell) -> F32 {
        self.0[cell.row]
    }

    #[track_caller]
    pub fn map(self, change: impl Fn(F32) -> F32) -> Rows {
        here();
        Rows(self.0.map(change))
    }

    #[track_caller]
    pub fn zip(self, other: Rows, join: impl Fn(F32, F32) -> F32) -> Rows {
        here();
        Rows(std::array::from_fn(|row| join(self.0[row], other.0[row])))
    }

    #[track_caller]
    pub fn max(self, other: Rows) -> Rows {
        self.zip(other, F32::max)
    }

    #[track_caller]
    pub fn mul_add(self, factor: F32, addend: Rows) -> Rows {
        self.zip(addend, |x, addend| x.mul_add(factor, addend))
    }

    #[track_caller]
    pub fn exp2(self) -> Rows {
        self.map(F32::exp2)
    }

    #[track_caller]
    pub fn log2(self) -> Rows {
        self.map(F32::log2)
    }

    /// The sum over the four lanes that share a row.
    #[track_caller]
    pub fn sum_over_lanes(self) -> Rows {
        let pairs = self + self.map(|x| x.shuffle_xor(1));
        pairs + pairs.map(|x| x.shuffle_xor(2))
    }

    /// The largest over the four lanes that share a row.
    #[track_caller]
    pub fn max_over_lanes(self) -> Rows {
        let pairs = self.max(self.map(|x| x.shuffle_xor(1)));
        pairs.max(pairs.map(|x| x.shuffle_xor(2)))
    }
}

impl Add for Rows {
    type Output = Rows;
    #[track_caller]
    fn add(self, other: Rows) -> Rows {
        self.zip(other, |a, b| a + b)
    }
}

impl Mul for Rows {
    type Output = Rows;
    #[track_caller]
    fn mul(self, other: Rows) -> Rows {
        self.zip(other, |a, b| a * b)
    }
}

impl Mul<f32> for Rows {
    type Output = Rows;
    #[track_caller]
    fn mul(self, factor: f32) -> Rows {
        self.map(|x| x * factor)
    }
}

impl Neg for Rows {
    type Output = Rows;
    #[track_caller]
    fn neg(self) -> Rows {
        self.map(|x| -x)
    }
}

/// Rows that may change.
pub struct RowVars([Var<f32>; ROWS_PER_THREAD]);

impl RowVars {
    #[track_caller]
    pub fn new(name: &str, value: f32) -> RowVars {
        here();
        RowVars(std::array::from_fn(|row| Var::new(format!("{name}_{row}"), value)))
    }

    #[track_caller]
    pub fn get(&self) -> Rows {
        here();
        Rows(std::array::from_fn(|row| self.0[row].get()))
    }

    #[track_caller]
    pub fn set(&mut self, rows: Rows) {
        for (var, value) in self.0.iter_mut().zip(rows.0) {
            var.set(value);
        }
    }
}
