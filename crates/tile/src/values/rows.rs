//! One number per row that a thread holds of a fragment.

use super::{Cell, F32, Var};
use crate::builder::here;
use crate::error::BuildError;
use std::ops::{Add, Mul, Neg};

/// One thread holds two of every 16 rows: `lane / 4` and eight further.
pub(super) const ROWS_OF_GROUP: usize = 2;
/// Of one warp: 64 rows. More would not leave registers for anything else.
const MAX_GROUPS: usize = 4;

/// How many times 16 rows these are.
#[track_caller]
pub(super) fn row_groups(name: &str, rows: u32) -> usize {
    let at = here();
    if rows == 0 || !rows.is_multiple_of(16) || rows as usize > 16 * MAX_GROUPS {
        BuildError::new(format!("`{name}` has {rows} rows in one warp: expected 16, 32, 48 or 64"), at).raise()
    }
    rows as usize / 16
}

#[track_caller]
fn must_be(right: bool, otherwise: &str) {
    if !right {
        BuildError::new(format!("rows do not fit: {otherwise}"), here()).raise()
    }
}

#[derive(Clone, Copy)]
pub struct Rows {
    numbers: [F32; ROWS_OF_GROUP * MAX_GROUPS],
    count: usize,
}

impl FromIterator<F32> for Rows {
    fn from_iter<I: IntoIterator<Item = F32>>(numbers: I) -> Rows {
        let mut rows = Rows { numbers: [F32::from(0.0); ROWS_OF_GROUP * MAX_GROUPS], count: 0 };
        for number in numbers {
            must_be(rows.count < rows.numbers.len(), "more rows than a thread can have");
            rows.numbers[rows.count] = number;
            rows.count += 1;
        }
        rows
    }
}

impl Rows {
    /// The number of the row that `cell` is in.
    #[track_caller]
    pub fn of(self, cell: Cell) -> F32 {
        must_be(cell.row < self.count, "a cell of more rows than these");
        self.numbers[cell.row]
    }

    pub fn iter(&self) -> impl Iterator<Item = F32> {
        self.numbers.into_iter().take(self.count)
    }

    #[track_caller]
    pub fn map(self, change: impl Fn(F32) -> F32) -> Rows {
        here();
        self.iter().map(change).collect()
    }

    #[track_caller]
    pub fn zip(self, other: Rows, join: impl Fn(F32, F32) -> F32) -> Rows {
        here();
        must_be(self.count == other.count, "two fragments of different heights");
        self.iter().zip(other.iter()).map(|(left, right)| join(left, right)).collect()
    }

    #[track_caller]
    pub fn max(self, other: Rows) -> Rows {
        self.zip(other, F32::max)
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
pub struct RowVars(Vec<Var<f32>>);

impl RowVars {
    /// One number for each of a warp's `rows`.
    #[track_caller]
    pub fn new(name: &str, rows: u32, value: f32) -> RowVars {
        let count = row_groups(name, rows) * ROWS_OF_GROUP;
        RowVars((0..count).map(|row| Var::new(format!("{name}_{row}"), value)).collect())
    }

    #[track_caller]
    pub fn get(&self) -> Rows {
        here();
        self.0.iter().map(Var::get).collect()
    }

    #[track_caller]
    pub fn set(&mut self, rows: Rows) {
        must_be(self.0.len() == rows.count, "two fragments of different heights");
        for (var, value) in self.0.iter_mut().zip(rows.iter()) {
            var.set(value);
        }
    }
}
